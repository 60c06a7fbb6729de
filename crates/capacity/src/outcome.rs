//! Outcome of a run: backlog and delays.

use serde::Serialize;

/// Moment of the largest backlog.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Peak {
    /// Time, in microseconds since 1970.
    pub at_micros: i64,
    /// Rows waiting on all nodes.
    pub rows: f64,
    /// Bytes of the values of these rows.
    pub bytes: f64,
}

/// Load and backlog of one node.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NodeOutcome {
    /// Number of partitions at the end.
    pub partitions: usize,
    /// Rows that arrived at its partitions while it had them; rows that arrived while the node was
    /// lost do not count.
    pub rows: f64,
    /// Load as a share of its capacity over the windows that have rows; `None` if nodes are not
    /// limited, or if it never served.
    pub utilization: Option<f64>,
    /// Highest utilization in any window.
    pub highest_utilization: Option<f64>,
    /// Maximum number of rows that waited at the node.
    pub most_waiting_rows: f64,
    /// Seconds needed to serve its largest backlog, by the node or by its most backlogged
    /// partition, whichever is longer.
    pub most_waiting_seconds: f64,
}

/// Backlog and delays of a run, as computed by a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunOutcome {
    /// Number of rows that arrived.
    pub arrived_rows: f64,
    /// Rows that were served by the end of the last window.
    pub served_rows: f64,
    /// Rows that were waiting at that moment.
    pub waiting_rows: f64,
    /// Moment of the largest backlog; `None` if no rows ever waited at the end of a step.
    pub peak: Option<Peak>,
    /// Seconds that the node or partition with the longest queue needs to serve it, at the worst
    /// moment.
    pub most_waiting_seconds: f64,
    /// Time when rows first waited, in microseconds since 1970.
    pub waiting_from_micros: Option<i64>,
    /// Time when the backlog finally cleared; `None` if there never was one, or if some rows are
    /// never served.
    pub waiting_until_micros: Option<i64>,
    /// Seconds during which rows waited; `None` if some are never served.
    pub waiting_seconds: Option<f64>,
    /// Longest time that a row waited; `None` if some are never served.
    pub longest_delay_seconds: Option<f64>,
    /// Average time that a row waited; `None` if some are never served.
    pub mean_delay_seconds: Option<f64>,
    /// Highest utilization of any node that took over partitions of a lost one, in the windows
    /// since then.
    pub utilization_after_loss: Option<f64>,
    /// Rows waiting at the end of each window.
    pub waiting_rows_by_window: Vec<f64>,
    /// Outcome of each node, from number 0 on.
    pub nodes: Vec<NodeOutcome>,
}

impl RunOutcome {
    /// Whether some rows are never served because no node with them is left.
    #[must_use]
    pub fn is_never_served(&self) -> bool {
        self.longest_delay_seconds.is_none()
    }
}
