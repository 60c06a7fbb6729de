//! Portions that batches in a key's order would make.

use serde::Serialize;

use evenkeel_model::wire::wire;
use evenkeel_stats::overlap::OverlapDepth;

/// Portions of one level that overlap before they are merged into one of the next: the fan-in of a tiered merge policy
/// (O'Neil and others, "The Log-Structured Merge-Tree"; RocksDB, "Universal Compaction").
pub const MERGE_FAN_IN: usize = 8;

/// How much the portions of a table overlap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayoutReport {
    /// Rows of a batch.
    pub batch_rows: u64,
    /// Batches.
    pub batches: u64,
    /// Portions, over all partitions.
    pub portions: u64,
    /// How deep they overlap.
    #[serde(flatten)]
    pub depth: OverlapDepth,
    /// Rows written per row ingested, when portions of one size are merged wherever [`MERGE_FAN_IN`] of them cover one key. 1 is
    /// no rewriting at all; fewer batches than the fan-in tell nothing.
    pub write_amplification: f64,
}

wire!(LayoutReport { batch_rows, batches, portions, depth, write_amplification });

impl LayoutReport {
    /// The write amplification, where there are enough batches for one.
    #[must_use]
    pub fn known_amplification(&self) -> Option<f64> {
        (self.batches >= MERGE_FAN_IN as u64).then_some(self.write_amplification)
    }
}
