//! Turns rows into a commit.
//!
//! ```text
//! batches -> hash -> scatter by partition -> buffer
//!   (full) -> the fullest partition: sort, newest wins -> portion -> ... -> commit
//! ```
//! Rows are buffered until they fill their part of the memory budget; then the rows of the fullest
//! partition are sorted and written as one portion, while others arrive. Which rows form a portion
//! depends only on the input and the budget. Portions are invisible until the single commit at the
//! end; an ingest that fails deletes what it wrote.

mod buffer;
mod encode;
mod existing;
mod files;
mod memory;
mod rejects;
mod writer;

use std::path::PathBuf;

use arrow::error::ArrowError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use crate::ingest::files::{IngestFiles, IngestProgress, ingest_files};
pub use crate::ingest::memory::LEAST_MEMORY;
pub use crate::ingest::writer::{Committed, Ingest, PartitionWrite};
pub use crate::ingest::{
    encode::key_of,
    files::{Written, finish_written, notes as notes_of},
};
use evenkeel_model::bounded::quote;

use crate::log::LogError;
use crate::portion::PortionError;
use evenkeel_input::source::{Reject, SourceError};
use evenkeel_model::units::{ByteSize, PartitionId, Version};
use evenkeel_placement::placement::PlacementError;
use evenkeel_stats::skew::SkewFigures;
use evenkeel_storage::StorageError;

/// Memory budget of an ingest if none is given.
pub const DEFAULT_MEMORY: ByteSize = ByteSize::mib(1024);

/// Handling of a row whose primary key already exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IngestMode {
    /// The new row replaces the existing one.
    #[default]
    Upsert,
    /// The whole ingest fails, as INSERT does in YDB.
    Insert,
}

/// Options of an ingest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestOptions {
    /// Handling of keys that already exist.
    pub mode: IngestMode,
    /// Memory budget of the whole process during the ingest; at least [`LEAST_MEMORY`].
    pub memory: ByteSize,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self { mode: IngestMode::Upsert, memory: DEFAULT_MEMORY }
    }
}

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
    #[error("a memory budget of {found} is too small; the least is {LEAST_MEMORY}")]
    Memory { found: ByteSize },
    #[error("a batch has the columns ({found}), the table has ({expected})", found = quote(found))]
    Schema { expected: String, found: String },
    #[error("cannot copy a batch: {source}")]
    Copy { source: ArrowError },
    #[error("interrupted; nothing was committed")]
    Interrupted,
    #[error("a worker stopped: {reason}")]
    Worker { reason: String },
}

/// Report on one input of an ingest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    /// Name of the input.
    pub name: String,
    /// Bytes of the input as stored.
    pub bytes: u64,
    /// Rows taken from the input.
    pub rows: u64,
    /// Rows that could not be taken; if the input was skipped, those of the time when it was
    /// ingested.
    pub rejected: u64,
    /// Version that ingested the same content before, if the input was skipped.
    pub skipped_since: Option<Version>,
}

/// Report on an ingest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IngestReport {
    /// Version made by the ingest; `None` if every input had been ingested before.
    pub version: Option<Version>,
    /// Handling of keys that already existed.
    pub mode: IngestMode,
    /// Reports on the inputs, in order.
    pub sources: Vec<SourceReport>,
    /// Rows taken from the inputs.
    pub rows: u64,
    /// Of those, rows that a later row of the same portion replaced before it was written. Rows
    /// that replace older ones of the table are not counted, because nothing looks for those.
    #[serde(rename = "replaced_within_ingest")]
    pub replaced: u64,
    /// Rows that could not be taken.
    pub rejected: u64,
    /// File that holds those rows.
    pub rejects_file: Option<PathBuf>,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes of the portions.
    pub bytes_written: u64,
    /// Number of portions written.
    pub portions: u64,
    /// Seconds from the first byte read to the commit.
    pub seconds: f64,
    /// Rows taken per second.
    pub rows_per_second: f64,
    /// Rows written per partition.
    pub rows_per_partition: Vec<u64>,
    /// Skew of those rows.
    pub skew: SkewFigures,
    /// Further notes, one sentence each.
    pub notes: Vec<String>,
}
