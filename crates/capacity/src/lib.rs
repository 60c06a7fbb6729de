//! Simulation of nodes: a model of the load that ingesting an export would put on them.
//!
//! ```text
//! export -> the pass of an evaluation (`evaluate::count_loads`): rows and bytes by window and
//!           partition, once for all keys and partition counts
//!        -> for each design (partition key, nodes, partitions), alone:
//!             Assignment      partition -> node
//!             Unevenness      of partitions and nodes, over the whole time and at any moment,
//!                             beside that of a perfect hash
//!             Concentration   sustained rate, by the model of `evenkeel_stats::throughput`
//!                             with the figures of an evaluation
//!             Headroom        factor by which the load could grow, without a queue at the
//!                             end of any window and in the long run
//!             play            where backlog builds and for how long, without and with each fault
//!        -> findings, the smallest design that keeps up
//! ```
//! Exact: the partition of every row, and the rows and bytes of every window. Modelled: rows of a
//! window arrive evenly, nodes have the stated capacity, and they share it in a defined way. The
//! full definition is at [`play`](fn@play); every assumed number is a field of [`NodeParameters`].

mod advice;
mod arrivals;
mod backlog;
mod capacity;
mod cluster;
mod delays;
mod design;
mod error;
mod fault;
mod load;
mod node;
mod outcome;
mod play;
mod queue;
mod result;
mod run;
#[cfg(test)]
mod testing;

pub use arrivals::Arrivals;
pub use capacity::{Capacities, Headroom, Rate, ScaleModel, Utilization};
pub use cluster::{NodeCluster, NodeFault};
pub use error::CapacityError;
pub use fault::{FaultError, LossTime, Lost, NodeChoice, RequestedFault, Slow};
pub use outcome::{NodeOutcome, Peak, RunOutcome};
pub use play::play;
pub use result::{
    ArrivalFigures, DesignReport, FaultKind, FaultReport, NodeOptions, NodeParameters, NodeRecommendation,
    NodeSimulation, RunReport, Shape, Unevenness,
};
pub use run::simulate_nodes;

pub use evenkeel_advisor::evaluate::LoadWindow;
pub use evenkeel_stats::throughput::{Assignment, AssignmentError};
