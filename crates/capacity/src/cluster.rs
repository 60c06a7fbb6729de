//! A cluster to replay an export against, and the fault of one of its nodes.

use crate::capacity::Capacities;
use evenkeel_model::units::Micros;
use evenkeel_stats::throughput::Assignment;

/// A cluster of equal nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeCluster {
    /// Number of nodes; 0 counts as 1.
    pub nodes: usize,
    /// Rule that assigns partitions to nodes.
    pub assignment: Assignment,
    /// Capacities of nodes and partitions.
    pub capacities: Capacities,
    /// Time from the loss of a node until other nodes serve its partitions.
    pub recovery: Micros,
}

/// A fault of one node of a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NodeFault {
    /// The node and its partitions have only this share of their capacity.
    Slow {
        /// Number of the node.
        node: usize,
        /// Share that is left: above 0, at most 1.
        factor: f64,
    },
    /// The node is lost permanently.
    Lost {
        /// Number of the node.
        node: usize,
        /// Seconds from the start of the first window.
        after_seconds: f64,
    },
}
