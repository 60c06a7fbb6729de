//! The part of an evaluation that one machine counts.

use serde::{Deserialize, Serialize};

use crate::evaluate::EvaluateError;

/// What one pass over rows counts, where others count the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// All partition keys, of a stretch of the rows.
    PartitionKeys,
    /// The primary key of this number, from 0, and the time axis: of all rows, because their order matters.
    PrimaryKey(usize),
    /// The time axis alone, of all rows: which of them are late is known only to someone who saw those before.
    TimeAxis,
}

pub(crate) fn no_such_key(number: usize) -> EvaluateError {
    EvaluateError::KeyParts { reason: format!("there is no primary key {number}") }
}
