//! Result of a finished ingest.

use crate::log::Snapshot;
use evenkeel_model::units::Version;

/// Totals that an ingest wrote to one partition.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PartitionWrite {
    /// Number of rows.
    pub rows: u64,
    /// Number of keys that were deleted.
    pub deletes: u64,
    /// Bytes of the portions.
    pub bytes: u64,
    /// Number of portions.
    pub portions: u64,
    /// Seconds spent sorting, encoding and storing them; partitions overlap in time.
    pub seconds: f64,
}

/// Result of a finished ingest.
#[derive(Debug)]
pub struct Committed {
    /// The table with the new rows.
    pub snapshot: Snapshot,
    /// The version that the commit made.
    pub version: Version,
    /// Rows taken.
    pub rows: u64,
    /// Of those, rows that a later row of the same portion replaced.
    pub replaced: u64,
    /// Totals written per partition.
    pub writes: Vec<PartitionWrite>,
}

impl Committed {
    /// Rows written per partition.
    #[must_use]
    pub fn rows_per_partition(&self) -> Vec<u64> {
        self.writes.iter().map(|write| write.rows).collect()
    }

    /// Keys that were deleted, each once per portion.
    #[must_use]
    pub fn deletes(&self) -> u64 {
        self.writes.iter().map(|write| write.deletes).sum()
    }

    /// Bytes of the portions.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.writes.iter().map(|write| write.bytes).sum()
    }

    /// Number of portions written.
    #[must_use]
    pub fn portions(&self) -> u64 {
        self.writes.iter().map(|write| write.portions).sum()
    }
}
