//! Progress and result of a compaction.

use serde::Serialize;

use evenkeel_model::remark::Remark;
use evenkeel_model::units::Version;

/// Progress of a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionProgress {
    /// Sets of portions merged so far in this round.
    pub merged: usize,
    /// Sets of portions to merge in this round.
    pub merges: usize,
    /// Rows read so far.
    pub rows: u64,
}

/// Result of a compaction.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CompactionReport {
    /// Versions that it created.
    pub versions: Vec<Version>,
    /// Portions of the table before.
    pub portions_before: usize,
    /// Portions of the table after.
    pub portions_after: usize,
    /// Maximum number of portions that covered one key before.
    pub max_depth_before: u64,
    /// Maximum number of portions that cover one key after.
    pub max_depth_after: u64,
    /// Portions that were merged.
    pub portions_merged: u64,
    /// Portions that were dropped unread, because all of their rows had expired.
    pub portions_expired: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Rows written.
    pub rows_written: u64,
    /// Rows left out because a newer row has their key.
    pub rows_superseded: u64,
    /// Rows left out because they had expired, including rows of dropped portions.
    pub rows_expired: u64,
    /// Deletes left out because nothing older is left that they could delete, or because newer rows
    /// or deletes have their keys.
    pub deletes_dropped: u64,
    /// Bytes of the portions that were merged.
    pub bytes_read: u64,
    /// Bytes of the portions that were written.
    pub bytes_written: u64,
    /// Partitions whose work was discarded because another compaction removed their portions first.
    pub partitions_lost: u64,
    /// Total time in seconds.
    pub seconds: f64,
    /// Further notes, one sentence each.
    pub notes: Vec<Remark>,
}
