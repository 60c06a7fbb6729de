//! Replays an export through a model of Spanner's range splits.
//!
//! Every row of the export is inserted, in arrival order, into the key space that each strategy
//! defines. The public facts about Spanner and the assumptions of the model are described in
//! [`splits`].

mod advice;
mod arrivals;
mod columns;
mod declared;
mod design;
mod index;
mod interleave;
mod key;
mod migrate;
mod pairing;
mod reads;
mod recommended;
mod replay;
mod result;
mod schema;
pub mod splits;
mod strategy;

use thiserror::Error;

use evenkeel_advisor::evaluate::EvaluateError;
use evenkeel_input::source::SourceError;
use evenkeel_model::bounded::{names, quote};
use evenkeel_placement::placement::PlacementError;

pub use crate::simulate::advice::{AS_GOOD, HARMLESS, few_digits};
pub use crate::simulate::declared::{Declared, Parent, Written};
pub use crate::simulate::index::{IndexSpec, IndexSpecError, parse_key_order};
pub use crate::simulate::interleave::simulate_interleaved;
pub use crate::simulate::migrate::{KeyKind, Migration, migrate, normalize_uuids};
pub use crate::simulate::pairing::{PairingError, declared_pair, declared_table};
pub use crate::simulate::recommended::RecommendedSchema;
pub use crate::simulate::replay::simulate;
pub use crate::simulate::result::{
    IndexReport, KeyOrder, Load, RateSource, ReadKind, ReadReport, SimulateOptions, Simulation,
    StrategyReport,
};
pub use crate::simulate::schema::Declaration;
pub use crate::simulate::strategy::{Strategy, StrategyError, StrategyName, UuidForm};

/// Reasons why a simulation is not possible.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum SimulateError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("keys cannot be made: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Evaluate(Box<EvaluateError>),
    #[error("there is no column '{column}'; there are: {}", names(known), column = quote(column))]
    UnknownColumn { column: String, known: Vec<String> },
    #[error("column '{column}' of type {column_type} cannot be part of a key", column = quote(column))]
    KeyType { column: String, column_type: evenkeel_model::table::ColumnType },
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
    #[error("the columns of a batch are not those of its export")]
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
