//! What waited.

use serde::Serialize;

/// When most rows waited.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Peak {
    /// When, in microseconds since 1970.
    pub at_micros: i64,
    /// Rows that waited, on all nodes.
    pub rows: f64,
    /// Bytes of their values.
    pub bytes: f64,
}

/// What came to one node, and what waited there.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NodeOutcome {
    /// Partitions in the end.
    pub partitions: usize,
    /// Rows that came to its partitions while it had them; to those of a lost node while it was lost, none.
    pub rows: f64,
    /// What came, as a share of what it takes in the windows that have rows; none where nodes are not limited, or never served.
    pub utilization: Option<f64>,
    /// The same in the window where it is highest.
    pub highest_utilization: Option<f64>,
    /// The most rows that waited there.
    pub most_waiting_rows: f64,
    /// Seconds that it needs for the most that waited there, or its partition with most of it does.
    pub most_waiting_seconds: f64,
}

/// What waited. A result of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Rows that came.
    pub arrived_rows: f64,
    /// Rows that were served when the last window ended.
    pub served_rows: f64,
    /// Rows that waited then.
    pub waiting_rows: f64,
    /// When most rows waited; none where none ever waited at the end of a step.
    pub peak: Option<Peak>,
    /// Seconds that the node or partition with the longest queue needs for it, at the worst time.
    pub most_waiting_seconds: f64,
    /// When rows first waited, in microseconds since 1970.
    pub waiting_from_micros: Option<i64>,
    /// When none waited any more for good; none where none ever waited, and where some are never served.
    pub waiting_until_micros: Option<i64>,
    /// Seconds in which rows waited; none where some are never served.
    pub waiting_seconds: Option<f64>,
    /// The longest that a row waited; none where some are never served.
    pub longest_delay_seconds: Option<f64>,
    /// How long a row waited on average; likewise.
    pub mean_delay_seconds: Option<f64>,
    /// The highest utilization of a node that has taken partitions of a lost one over, in the windows since.
    pub utilization_after_loss: Option<f64>,
    /// Rows that waited at the end of each window.
    pub waiting_rows_by_window: Vec<f64>,
    /// Each node, from number 0 on.
    pub nodes: Vec<NodeOutcome>,
}

impl Outcome {
    /// Whether some rows are never served: no node that has them is left.
    #[must_use]
    pub fn is_never_served(&self) -> bool {
        self.longest_delay_seconds.is_none()
    }
}
