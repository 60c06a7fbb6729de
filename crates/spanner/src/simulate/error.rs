//! Reasons why a simulation is not possible.

use thiserror::Error;

use evenkeel_advisor::evaluate::EvaluateError;
use evenkeel_input::source::SourceError;
use evenkeel_model::bounded::{names, quote};
use evenkeel_model::table::ColumnType;
use evenkeel_placement::placement::PlacementError;
use evenkeel_stats::sketch::SpillError;

/// Reasons why a simulation is not possible.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum SimulateError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("keys cannot be built: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Spill(#[from] SpillError),
    #[error(transparent)]
    Evaluate(Box<EvaluateError>),
    #[error("there is no column '{column}'; there are: {}", names(known), column = quote(column))]
    UnknownColumn { column: String, known: Vec<String> },
    #[error("column '{column}' of type {column_type} cannot be part of a key", column = quote(column))]
    KeyType { column: String, column_type: ColumnType },
    #[error("the key names '{column}' twice", column = quote(column))]
    Repeated { column: String },
    #[error("the key of the children does not begin with that of the parent: {reason}")]
    ChildKey { reason: String },
    #[error("{reason}")]
    Migration { reason: String },
    #[error("index '{name}' is given twice", name = quote(name))]
    RepeatedIndex { name: String },
    #[error("strategy {strategy} needs {what}", strategy = quote(strategy))]
    Unsuited { strategy: String, what: &'static str },
    #[error("rows need times: name a column of time with --time, or set the rows per second with --rate")]
    NoClock,
    #[error("column '{column}' is not a point in time or a date", column = quote(column))]
    Time { column: String },
    #[error("there are no rows")]
    NoRows,
    #[error("the columns of a batch differ from those of its export")]
    Columns,
    #[error("interrupted")]
    Interrupted,
}

impl From<EvaluateError> for SimulateError {
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
