//! The part of an evaluation that one machine counts.

use serde::{Deserialize, Serialize};

use crate::evaluate::EvaluateError;

/// Part of an evaluation that one pass over rows counts, while others count the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// All partition keys, over a range of the rows.
    PartitionKeys,
    /// The primary key of this number, from 0, and the time axis: over all rows, because their
    /// order matters.
    PrimaryKey(usize),
    /// The time axis alone, over all rows: which of them are late depends on all rows before them.
    TimeAxis,
}

pub(crate) fn no_such_key(number: usize) -> EvaluateError {
    EvaluateError::KeyParts { reason: format!("there is no primary key {number}") }
}
