//! What is asked of a simulation of nodes, and what it gives.

use serde::Serialize;

use crate::{Assignment, Capacities, Fault, Outcome};
use evenkeel_input::source::OnUnreadable;
use evenkeel_model::finding::Finding;
use evenkeel_model::table::Candidate;
use evenkeel_model::units::{Micros, PartitionCount};
use evenkeel_placement::placement::Function;
use evenkeel_stats::skew::{NoiseFloor, SkewFigures};

/// Nodes and partitions that are tried together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Nodes, at least one.
    pub nodes: usize,
    /// Partitions.
    pub partitions: PartitionCount,
}

/// What is simulated.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Partition keys to compare.
    pub partition_keys: Vec<Candidate>,
    /// The placement function.
    pub placement: Function,
    /// Nodes and partitions to compare.
    pub shapes: Vec<Shape>,
    /// How partitions are dealt to nodes.
    pub assignment: Assignment,
    /// What nodes and partitions take. If nothing is limited, what a node takes is assumed by `headroom`. If partitions are not,
    /// each takes [`evenkeel_stats::throughput::DEFAULT_PARTITION_RATE`].
    pub capacities: Capacities,
    /// So many times what comes in the busiest window all nodes together take, where no capacity is given.
    pub headroom: f64,
    /// Rows per second on average over the windows that have rows, instead of those of the export.
    pub rate: Option<f64>,
    /// The column of time; the only one where none is named.
    pub time: Option<String>,
    /// Length of windows; found from the data where it is not given.
    pub window: Option<Micros>,
    /// What goes wrong, each fault in a run of its own.
    pub faults: Vec<Fault>,
    /// Time from the loss of a node until its partitions are served by others.
    pub recovery: Micros,
    /// The longest that rows of a design that keeps up wait; where none is given a window, but at least a second.
    pub longest_delay: Option<Micros>,
    /// What is done with rows that cannot be read.
    pub on_unreadable: OnUnreadable,
}

/// What the model assumes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeParameters {
    /// The placement function.
    pub placement: String,
    /// How partitions are dealt to nodes.
    pub assignment: Assignment,
    /// Length of a window.
    #[serde(rename = "window_micros")]
    pub window: Micros,
    /// Rows that each row of the export counts for.
    pub scale: f64,
    /// Rows per second that were asked for.
    #[serde(rename = "rate_rows_per_second")]
    pub rate: Option<f64>,
    /// What nodes and partitions take, where it was given.
    pub capacities: Capacities,
    /// Where nothing was given: so many times what comes in the busiest window all nodes together take.
    pub headroom: Option<f64>,
    /// Time from the loss of a node until its partitions are served by others.
    #[serde(rename = "recovery_micros")]
    pub recovery: Micros,
    /// A design keeps up if what comes is sustained and no row waits longer; after a loss, longer than this and the recovery together.
    #[serde(rename = "longest_delay_micros")]
    pub longest_delay: Micros,
}

/// What comes, on all nodes together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ArrivalFigures {
    /// Windows that have rows.
    pub windows: usize,
    /// Rows per second over these, on average.
    pub average_rows_per_second: f64,
    /// Bytes of values per second over these, on average.
    pub average_bytes_per_second: f64,
    /// Rows per second in the window with the most.
    pub busiest_rows_per_second: f64,
    /// Bytes per second in that window.
    pub busiest_bytes_per_second: f64,
    /// Where that window begins, in microseconds since 1970.
    pub busiest_start_micros: i64,
}

/// How uneven what comes is, over partitions or over nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unevenness {
    /// Over the whole time, by rows.
    pub in_total: SkewFigures,
    /// What a perfect hash would give to as many keys.
    pub noise_floor: NoiseFloor,
    /// At a time: of each window the rate of the hottest over the mean, on average, each window by its rows.
    pub max_over_mean_at_a_time: f64,
    /// The same of rows that are thrown by chance, were each row a key: what so few rows in a window let expect.
    pub max_over_mean_at_a_time_by_chance: f64,
    /// The load at a time that what is sustained follows from: that of the hottest over the mean, less what chance adds.
    pub sustained_over_mean: f64,
}

/// Kind of a fault of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The node has less capacity from the beginning.
    Slow,
    /// The node is gone from a moment on.
    Lost,
}

/// What goes wrong in a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultReport {
    /// As it was asked for.
    pub asked: String,
    /// Kind of fault.
    pub kind: FaultKind,
    /// The node.
    pub node: usize,
    /// Share of its capacity that is left.
    pub factor: f64,
    /// When it happens, in microseconds since 1970.
    pub at_micros: i64,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// What goes wrong; nothing in the first run of a design.
    pub fault: Option<FaultReport>,
    /// What waited.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Whether what comes is sustained and no row waits longer than it may.
    pub keeps_up: bool,
    /// Seconds from the fault until nothing waits for good; none without a fault, or where nothing waits, or some rows are never served.
    pub seconds_to_drain: Option<f64>,
}

/// One partition key on so many nodes with so many partitions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignReport {
    /// The parts of the partition key.
    pub partition_key: Vec<String>,
    /// The same as a candidate.
    #[serde(skip)]
    pub candidate: Candidate,
    /// Nodes.
    pub nodes: usize,
    /// Partitions.
    pub partitions: usize,
    /// Partitions per node.
    pub partitions_per_node: f64,
    /// What nodes and partitions take.
    pub capacities: Capacities,
    /// Over partitions.
    pub over_partitions: Unevenness,
    /// Over nodes.
    pub over_nodes: Unevenness,
    /// Rows per second on average, at the export's own pace, up to which nothing waits at the end of any window; none without a limit.
    pub rows_per_second_without_queue: Option<f64>,
    /// Rows per second that are sustained, by the model of [`evenkeel_stats::throughput`]: at this rate the hottest partition or node is
    /// offered exactly what it takes at a time. None without a limit.
    pub sustained_rows_per_second: Option<f64>,
    /// Whether what comes on average is within that.
    pub is_sustained: bool,
    /// Rows per second on average up to which what waits is taken in the end, however long that takes, so that no queue grows for good;
    /// none without a limit.
    pub rows_per_second_in_the_long_run: Option<f64>,
    /// Whether it is the hottest partition that limits what is sustained, not the hottest node.
    pub limited_by_partition: bool,
    /// Without a fault, then with each.
    pub runs: Vec<RunReport>,
}

impl DesignReport {
    /// The run without a fault.
    #[must_use]
    pub fn without_fault(&self) -> Option<&RunReport> {
        self.runs.first()
    }

    /// Whether it keeps up in every run.
    #[must_use]
    pub fn keeps_up_with_faults(&self) -> bool {
        self.runs.iter().all(|run| run.keeps_up)
    }

    /// In words: `(user_id), 4 nodes, 16 partitions`.
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
    /// Nodes.
    pub nodes: usize,
    /// Partitions.
    pub partitions: usize,
    /// The faults with which it keeps up, as they were asked for; without these, it keeps up as long as nothing goes wrong.
    pub keeps_up_with: Vec<String>,
    /// The faults with which it falls behind; no design that keeps up without any falls behind with fewer.
    pub falls_behind_with: Vec<String>,
}

/// A simulation of nodes: a model, not a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeSimulation {
    /// Always true: the figures are those of a model.
    pub model: bool,
    /// The inputs.
    pub inputs: Vec<String>,
    /// Rows of the export.
    pub rows: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Rows without a time, which do not come.
    pub rows_without_time: u64,
    /// The column of time; none where rows come one after the other.
    pub time: Option<String>,
    /// What is assumed.
    pub parameters: NodeParameters,
    /// What comes.
    pub arrivals: ArrivalFigures,
    /// The designs, in the order in which they were asked for.
    pub designs: Vec<DesignReport>,
    /// Why none is recommended, where that is so.
    pub unsure: Option<String>,
    /// The design to take, whatever the order in which designs were named: of those that keep up with the most faults, the one
    /// with the fewest nodes, then the fewest partitions, the evenest load at a time on nodes and on partitions, and the simplest
    /// key: fewer parts, fewer of them derived, the first name.
    pub recommended: Option<NodeRecommendation>,
    /// What the figures advise, the gravest first.
    pub findings: Vec<Finding>,
    /// What else is worth knowing, one sentence each.
    pub notes: Vec<String>,
    /// Seconds that it took.
    pub seconds: f64,
}
