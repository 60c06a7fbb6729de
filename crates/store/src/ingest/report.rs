//! Reports on an ingest and its inputs.

use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

use crate::ingest::committed::Committed;
use crate::ingest::options::IngestMode;
use crate::log::Snapshot;
use evenkeel_model::remark::Remark;
use evenkeel_model::units::{PartitionCount, Version};
use evenkeel_stats::skew::SkewFigures;

/// Report on one input of an ingest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    /// Name of the input.
    pub name: String,
    /// Bytes of the input as stored.
    pub bytes: u64,
    /// Rows taken from the input.
    pub rows: u64,
    /// Rejected rows; if the input was skipped, the rows rejected when it was ingested.
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
    /// Of those, rows that delete; of several with one key in one portion, the last one counts.
    pub deletes: u64,
    /// Of those, rows that a later row of the same portion replaced before it was written. Rows
    /// that replace older ones of the table are not counted, because ingest does not look them up.
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
    pub notes: Vec<Remark>,
}

impl IngestReport {
    /// Reports on the commit of a stream of batches, which has no inputs; `committed` is `None` if
    /// there was nothing to commit.
    #[must_use]
    pub fn from_stream(
        committed: Option<Committed>,
        mode: IngestMode,
        partitions: PartitionCount,
        seconds: f64,
    ) -> Self {
        Self { mode, ..report(committed, partitions.len(), seconds) }
    }

    /// Notes that the compaction after the ingest failed, which does not undo the ingest.
    pub fn note_failed_compaction(&mut self, error: &impl fmt::Display) {
        let text = format!("the rows are committed, but not compacted: {error}");
        self.notes.push(Remark::new("not_compacted", text));
    }
}

/// Reports that nothing was committed, because others had committed all inputs.
pub(super) fn no_commit(
    base: &Snapshot,
    mode: IngestMode,
    sources: Vec<SourceReport>,
    started: Instant,
) -> IngestReport {
    let seconds = started.elapsed().as_secs_f64();
    IngestReport { mode, sources, ..report(None, base.spec().partitions().len(), seconds) }
}

/// Reports on a commit, without its inputs.
pub(super) fn report(committed: Option<Committed>, partitions: usize, seconds: f64) -> IngestReport {
    let rows = committed.as_ref().map_or(0, |committed| committed.rows);
    let rows_per_partition =
        committed.as_ref().map_or_else(|| vec![0; partitions], |committed| committed.rows_per_partition());
    IngestReport {
        version: committed.as_ref().map(|committed| committed.version),
        mode: IngestMode::Upsert,
        sources: Vec::new(),
        rows,
        deletes: committed.as_ref().map_or(0, Committed::deletes),
        replaced: committed.as_ref().map_or(0, |committed| committed.replaced),
        rejected: 0,
        rejects_file: None,
        bytes_read: 0,
        bytes_written: committed.as_ref().map_or(0, Committed::bytes_written),
        portions: committed.as_ref().map_or(0, Committed::portions),
        seconds,
        rows_per_second: if seconds > 0.0 { rows as f64 / seconds } else { 0.0 },
        skew: SkewFigures::from_counts(&rows_per_partition),
        rows_per_partition,
        notes: Vec::new(),
    }
}
