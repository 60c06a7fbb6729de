//! Error of a compaction.

use thiserror::Error;

use crate::compact::options::MIN_MEMORY;
use crate::query::QueryError;
use evenkeel_model::units::{ByteSize, PartitionId};
use evenkeel_store::log::{LogError, PortionDamage};
use evenkeel_store::portion::PortionError;

/// Error of a compaction. The table is as after its last commit.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum CompactionError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Portion(#[from] PortionError),
    #[error(
        "{table}: {file} {damage}. It was not compacted; restore the file from a copy, and see 'evenkeel check {table}'"
    )]
    Damaged { table: String, file: String, damage: PortionDamage },
    #[error("cannot merge portions of partition {partition}: {reason}")]
    Merge { partition: PartitionId, reason: String },
    #[error("a worker stopped: {reason}")]
    Worker { reason: String },
    #[error("a memory budget of {found} is too small; the minimum is {MIN_MEMORY}")]
    Memory { found: ByteSize },
    #[error("interrupted; commits made so far stay, and the rest is unchanged")]
    Interrupted,
}
