//! Nodes on an export: what an ingest of it would ask of them, as a model.
//!
//! ```text
//! export -> rows and bytes by window and partition, once for all partition keys and numbers of partitions
//!        -> for each design (partition key, nodes, partitions), alone:
//!             Assignment      partition -> node
//!             Unevenness      of partitions and nodes, over the whole time and at a time, beside what a perfect hash would give
//!             Concentration   what it sustains, by the model of `crate::capacity` with the figures of an evaluation
//!             Room            how many times what comes could come, if all that waits may wait
//!             play            what waits where and how long, without a fault and with each
//!        -> findings, the smallest design that keeps up
//! ```
//! What is exact: the partition of every row, and the rows and bytes of every window. What is a model: that rows of a window come evenly,
//! that nodes take what they are said to, and how they share it; [`play`](fn@play) has its full definition, and every number that is
//! assumed is a field of [`NodeParameters`] or an option of it.

mod advice;
mod arrivals;
mod capacity;
mod design;
mod fault;
mod load;
mod outcome;
mod play;
mod queue;
mod result;
mod run;
#[cfg(test)]
mod tests;

pub use arrivals::{ArrivalWindow, Arrivals};
pub use capacity::{Capacities, Rate, Room, ScaleModel, Utilization};
pub use fault::{Fault, FaultError, Lost, Moment, NodeChoice, Slow};
pub use outcome::{NodeOutcome, Outcome, Peak};
pub use play::{Cluster, NodeFault, play};
pub use result::{
    ArrivalFigures, DesignReport, FaultKind, FaultReport, NodeOptions, NodeParameters, NodeRecommendation,
    NodeSimulation, RunReport, Shape, Unevenness,
};
pub use run::simulate_nodes;

pub use crate::capacity::{Assignment, AssignmentError};
