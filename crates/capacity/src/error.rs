//! Reasons why an export cannot be replayed.

use thiserror::Error;

use evenkeel_advisor::evaluate::EvaluateError;
use evenkeel_input::source::SourceError;
use evenkeel_placement::placement::PlacementError;

/// Reason why an export cannot be replayed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum CapacityError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Evaluate(Box<EvaluateError>),
    #[error("rows need times: name a column of time with --time, or set the rows per second with --rate")]
    NoClock,
    #[error("{fault}: there is no node {node}; a design with {nodes} nodes has the nodes 0 to {last}")]
    UnknownNode { fault: String, node: usize, nodes: usize, last: usize },
    #[error("{fault}: all rows have arrived by then, within {hours:.2} hours of the first")]
    LateFault { fault: String, hours: f64 },
    #[error("no row has a time")]
    NoTimes,
    #[error("there are no rows")]
    NoRows,
    #[error("the columns of a batch differ from those of its export")]
    Columns,
    #[error("interrupted")]
    Interrupted,
}

impl From<EvaluateError> for CapacityError {
    fn from(error: EvaluateError) -> Self {
        match error {
            EvaluateError::Placement { source, .. } => Self::Placement(source),
            EvaluateError::Source(source) => Self::Source(source),
            EvaluateError::NoRows => Self::NoRows,
            EvaluateError::Interrupted => Self::Interrupted,
            other => Self::Evaluate(Box::new(other)),
        }
    }
}
