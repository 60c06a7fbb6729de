//! Errors of an ingest.

use std::path::PathBuf;

use arrow::error::ArrowError;
use thiserror::Error;

use crate::ingest::options::MIN_MEMORY;
use crate::log::LogError;
use crate::portion::PortionError;
use evenkeel_input::source::{Reject, SourceError};
use evenkeel_model::bounded::quote;
use evenkeel_model::units::{ByteSize, PartitionId, Version};
use evenkeel_placement::placement::PlacementError;
use evenkeel_storage::StorageError;

/// Error of an ingest. Nothing of the ingest is visible then, except possibly after
/// [`LogError::Unknown`].
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum IngestError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Portion(#[from] PortionError),
    #[error("cannot sort partition {partition}: {source}")]
    Sort { partition: PartitionId, source: ArrowError },
    #[error(
        "{reject}. Nothing was committed; --on-error reject writes such rows to a file and ingests \
        the rest"
    )]
    Row { reject: Box<Reject> },
    #[error("all {count} rows are rejected; the first: {first}. Nothing was committed")]
    AllRejected { count: u64, first: Box<Reject> },
    #[error(
        "the primary key {key} occurs twice in this ingest, but the mode is insert. Nothing was \
            committed", key = quote(key)
)]
    RepeatedKey { key: String },
    #[error("the primary key {key} is in the table already, but the mode is insert. Nothing was \
        committed", key = quote(key))]
    ExistingKey { key: String },
    #[error("cannot read the keys of {portion}: {reason}")]
    Keys { portion: String, reason: String },
    #[error(
        "{name} was ingested by another process in the meantime, as version {version}. Nothing was committed", name = quote(name)
)]
    TakenMeanwhile { name: String, version: Version },
    #[error(
        "{name} was ingested before, as version {version}. Nothing was committed; leave it out, or ingest \
            it again with --again", name = quote(name)
)]
    AlreadyIngested { name: String, bytes: u64, version: Version },
    #[error("{path}: exists already; name a new file for rejected rows", path = path.display())]
    RejectsExist { path: PathBuf },
    #[error("{path}: cannot write rejected rows there: {source}", path = path.display())]
    Rejects { path: PathBuf, source: std::io::Error },
    #[error("a memory budget of {found} is too small; the minimum is {MIN_MEMORY}")]
    Memory { found: ByteSize },
    #[error("a batch has the columns ({found}), the table has ({expected})", found = quote(found))]
    Schema { expected: String, found: String },
    #[error("cannot copy a batch: {source}")]
    Copy { source: ArrowError },
    #[error("rows of the table changed in the meantime, with version {version}. Nothing was committed")]
    ChangedMeanwhile { version: Version },
    #[error("interrupted; nothing was committed")]
    Interrupted,
    #[error("a worker stopped: {reason}")]
    Worker { reason: String },
    /// The machines that write in place of this process failed.
    #[error("{reason}")]
    Elsewhere { reason: String },
}
