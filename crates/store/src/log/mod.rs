//! The log of a table, which alone decides which portions are visible.
//!
//! A table is the fold of its commits `_log/00000000000000000000.json`, `...001.json`, and so on
//! without a gap. A commit is one file, written by put-if-absent, so two writers cannot make the
//! same version. Its last line holds the checksum of the lines before it, so a torn file is
//! detected. A checkpoint holds the fold up to its version; whatever precedes the oldest version
//! that is kept may be cleaned. `docs/FORMAT.md` specifies the lines.

mod checkpoint;
mod checkpointing;
mod draft;
mod entry;
mod error;
mod files;
mod portions;
mod reader;
mod retention;
mod snapshot;
mod table_log;
#[cfg(test)]
mod tests;
mod unlisted;
mod writer;

pub use checkpoint::{read_checkpoint, write_checkpoint};
pub use draft::CommitDraft;
pub use entry::{
    CheckpointInfo, CommitInfo, CommitSummary, LogEntry, Operation, PortionEntry, Sequence, SourceEntry,
    read_entries, write_entries,
};
pub use error::LogError;
pub use files::{DamagedLogFile, LogFiles};
pub use portions::PortionDamage;
pub use snapshot::{Snapshot, fold, overlap_depths};
pub use table_log::TableLog;
pub use writer::CommitOutcome;
