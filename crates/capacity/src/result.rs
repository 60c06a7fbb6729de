//! Options and results of a simulation of nodes.

use serde::Serialize;

use crate::capacity::Capacities;
use crate::fault::RequestedFault;
use crate::outcome::RunOutcome;
use evenkeel_input::source::OnUnreadable;
use evenkeel_model::finding::Finding;
use evenkeel_model::remark::Remark;
use evenkeel_model::table::Candidate;
use evenkeel_model::units::{Micros, PartitionCount};
use evenkeel_placement::placement::Function;
use evenkeel_stats::skew::{NoiseFloor, SkewFigures};
use evenkeel_stats::throughput::Assignment;

/// Node and partition counts that are tried together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Number of nodes, at least one.
    pub nodes: usize,
    /// Number of partitions.
    pub partitions: PartitionCount,
}

/// Options of a simulation.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Partition keys to compare.
    pub partition_keys: Vec<Candidate>,
    /// The placement function.
    pub placement: Function,
    /// Nodes and partitions to compare.
    pub shapes: Vec<Shape>,
    /// Rule that assigns partitions to nodes.
    pub assignment: Assignment,
    /// Capacities of nodes and partitions. If nothing is limited, the capacity of a node follows
    /// from `headroom`. If partitions are not limited, each has
    /// [`evenkeel_stats::throughput::DEFAULT_PARTITION_RATE`].
    pub capacities: Capacities,
    /// If no capacity is given, the nodes together handle this many times the load of the busiest
    /// window.
    pub headroom: f64,
    /// Average rows per second over the windows that have rows, replacing the export's own rate.
    pub rate: Option<f64>,
    /// Time column; if `None`, the only one is used.
    pub time: Option<String>,
    /// Length of windows; derived from the data if `None`.
    pub window: Option<Micros>,
    /// Faults, each simulated in a separate run.
    pub faults: Vec<RequestedFault>,
    /// Time from the loss of a node until other nodes serve its partitions.
    pub recovery: Micros,
    /// Longest time that a row may wait in a design that keeps up; if `None`, one window, but at
    /// least a second.
    pub longest_delay: Option<Micros>,
    /// Treatment of rows that cannot be read.
    pub on_unreadable: OnUnreadable,
}

/// Assumptions of the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeParameters {
    /// The placement function.
    pub placement: String,
    /// Rule that assigns partitions to nodes.
    pub assignment: Assignment,
    /// Length of a window.
    #[serde(rename = "window_micros")]
    pub window: Micros,
    /// Number of rows that each row of the export counts for.
    pub scale: f64,
    /// Requested rows per second.
    #[serde(rename = "rate_rows_per_second")]
    pub rate: Option<f64>,
    /// Given capacities of nodes and partitions.
    pub capacities: Capacities,
    /// If no capacity was given, the nodes together handle this many times the load of the busiest
    /// window.
    pub headroom: Option<f64>,
    /// Time from the loss of a node until other nodes serve its partitions.
    #[serde(rename = "recovery_micros")]
    pub recovery: Micros,
    /// A design keeps up if the load is sustained and no row waits longer than this; after a loss,
    /// longer than this plus the recovery.
    #[serde(rename = "longest_delay_micros")]
    pub longest_delay: Micros,
}

/// Total load on all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ArrivalFigures {
    /// Number of windows that have rows.
    pub windows: usize,
    /// Average rows per second over these windows.
    pub average_rows_per_second: f64,
    /// Average bytes of values per second over these windows.
    pub average_bytes_per_second: f64,
    /// Rows per second in the window with the most rows.
    pub busiest_rows_per_second: f64,
    /// Bytes per second in that window.
    pub busiest_bytes_per_second: f64,
    /// Start of that window, in microseconds since 1970.
    pub busiest_start_micros: i64,
}

/// Unevenness of the load, over partitions or over nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unevenness {
    /// Skew over the whole time, by rows.
    pub in_total: SkewFigures,
    /// Skew that a perfect hash would give with as many keys.
    pub noise_floor: NoiseFloor,
    /// Rate of the hottest over the mean, at any moment: the average over all windows, weighted by
    /// rows.
    pub max_over_mean_at_a_time: f64,
    /// The same figure for rows placed at random, as if each row were a key: the unevenness to
    /// expect from this number of rows per window.
    pub max_over_mean_at_a_time_by_chance: f64,
    /// Load at any moment that determines the sustained rate: the load of the hottest over the
    /// mean, minus the part that chance adds.
    pub sustained_over_mean: f64,
}

/// Kind of a fault of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The node has less capacity from the beginning.
    Slow,
    /// The node is lost permanently.
    Lost,
}

/// Fault of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultReport {
    /// The fault as requested.
    #[serde(rename = "asked")]
    pub requested: String,
    /// Kind of fault.
    pub kind: FaultKind,
    /// Number of the node.
    pub node: usize,
    /// Share of its capacity that is left.
    pub factor: f64,
    /// Time of the fault, in microseconds since 1970.
    pub at_micros: i64,
}

/// One run of a design.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// Fault of the run; `None` in the first run of a design.
    pub fault: Option<FaultReport>,
    /// Backlog and delays.
    #[serde(flatten)]
    pub outcome: RunOutcome,
    /// Whether the load is sustained and no row waits longer than allowed.
    pub keeps_up: bool,
    /// Seconds from the fault until the backlog finally clears; `None` without a fault, if nothing
    /// waits after it, or if some rows are never served.
    pub seconds_to_drain: Option<f64>,
}

/// One partition key on a given number of nodes and partitions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignReport {
    /// The parts of the partition key.
    pub partition_key: Vec<String>,
    /// The partition key as a candidate.
    #[serde(skip)]
    pub candidate: Candidate,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of partitions.
    pub partitions: usize,
    /// Partitions per node.
    pub partitions_per_node: f64,
    /// Capacities of nodes and partitions.
    pub capacities: Capacities,
    /// Unevenness over partitions.
    pub over_partitions: Unevenness,
    /// Unevenness over nodes.
    pub over_nodes: Unevenness,
    /// Average rows per second, at the export's own pace, up to which nothing waits at the end of
    /// any window; `None` without a limit.
    pub rows_per_second_without_queue: Option<f64>,
    /// Sustained rows per second, by the model of [`evenkeel_stats::throughput`]: at this rate the
    /// load at any moment of the hottest partition or node equals its capacity. `None` without a
    /// limit.
    pub sustained_rows_per_second: Option<f64>,
    /// Whether the average load is within the sustained rate.
    pub is_sustained: bool,
    /// Average rows per second up to which any backlog is eventually served, however long that
    /// takes, so that no queue grows forever; `None` without a limit.
    pub rows_per_second_in_the_long_run: Option<f64>,
    /// Whether the hottest partition, rather than the hottest node, limits the sustained rate.
    pub limited_by_partition: bool,
    /// Runs: first without a fault, then with each fault.
    pub runs: Vec<RunReport>,
}

impl DesignReport {
    /// Returns the run without a fault.
    #[must_use]
    pub fn without_fault(&self) -> Option<&RunReport> {
        self.runs.first()
    }

    /// Returns the design in words: `(user_id), 4 nodes, 16 partitions`.
    #[must_use]
    pub fn name(&self) -> String {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        format!(
            "({}), {} node{}, {} partition{}",
            self.partition_key.join(", "),
            self.nodes,
            plural(self.nodes),
            self.partitions,
            plural(self.partitions)
        )
    }
}

/// The smallest design that keeps up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeRecommendation {
    /// The parts of the partition key.
    pub partition_key: Vec<String>,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of partitions.
    pub partitions: usize,
    /// Faults with which the design keeps up, as requested. Without these faults it keeps up as
    /// long as nothing goes wrong.
    pub keeps_up_with: Vec<String>,
    /// Faults with which the design falls behind. No design that keeps up without a fault falls
    /// behind with fewer.
    pub falls_behind_with: Vec<String>,
}

/// Result of a simulation of nodes: a model, not a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeSimulation {
    /// Always true: the figures come from a model.
    pub model: bool,
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Number of rows of the export.
    pub rows: u64,
    /// Bytes of the values of these rows.
    pub bytes: u64,
    /// Number of rows without a time, which are not replayed.
    pub rows_without_time: u64,
    /// Time column; `None` if rows arrive evenly spaced at a given rate.
    pub time: Option<String>,
    /// Assumptions of the model.
    pub parameters: NodeParameters,
    /// Load on all nodes together.
    pub arrivals: ArrivalFigures,
    /// The designs, in the order in which they were requested.
    pub designs: Vec<DesignReport>,
    /// Reason why no design is recommended, if so.
    pub unsure: Option<String>,
    /// Recommended design, regardless of the order in which designs were named: among those that
    /// keep up with the most faults, the one with the fewest nodes, then the fewest partitions, the
    /// most even load at any moment on nodes and then on partitions, and the simplest key (fewest
    /// parts, fewest derived parts, first name).
    pub recommended: Option<NodeRecommendation>,
    /// Findings, most severe first.
    pub findings: Vec<Finding>,
    /// Further notes, one sentence each.
    pub notes: Vec<Remark>,
    /// Duration of the simulation in seconds.
    pub seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_stats::skew::KeyWeights;

    fn design(key: &str, nodes: usize, partitions: usize) -> DesignReport {
        let in_total = SkewFigures::from_counts(&vec![100; partitions]);
        let rows = in_total.rows;
        let keys = KeyWeights { distinct: rows, rows, heaviest: 1, sum_of_squares: u128::from(rows) };
        let even = Unevenness {
            noise_floor: NoiseFloor::from_weights(&in_total, &keys),
            in_total,
            max_over_mean_at_a_time: 1.0,
            max_over_mean_at_a_time_by_chance: 1.0,
            sustained_over_mean: 1.0,
        };
        let candidate: Candidate = key.parse().unwrap();
        DesignReport {
            partition_key: candidate.part_names(),
            candidate,
            nodes,
            partitions,
            partitions_per_node: partitions as f64 / nodes as f64,
            capacities: Capacities::default(),
            over_partitions: even.clone(),
            over_nodes: even,
            rows_per_second_without_queue: None,
            sustained_rows_per_second: None,
            is_sustained: true,
            rows_per_second_in_the_long_run: None,
            limited_by_partition: false,
            runs: Vec::new(),
        }
    }

    #[test]
    fn a_design_is_named_by_its_key_and_its_counts() {
        for (key, nodes, partitions, name) in [
            ("user_id", 4, 16, "(user_id), 4 nodes, 16 partitions"),
            ("user_id", 1, 16, "(user_id), 1 node, 16 partitions"),
            ("a, b", 1, 1, "(a, b), 1 node, 1 partition"),
        ] {
            assert_eq!(design(key, nodes, partitions).name(), name);
        }
    }
}
