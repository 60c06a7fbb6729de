//! Portions that batches in a key's order would make.

use serde::Serialize;

use evenkeel_model::wire::wire;
use evenkeel_stats::overlap::OverlapDepth;

/// Overlapping portions of one level that are merged into one portion of the next: the fan-in of a
/// tiered merge policy (O'Neil and others, "The Log-Structured Merge-Tree"; RocksDB, "Universal
/// Compaction").
pub const MERGE_FAN_IN: usize = 8;

/// Overlap of the portions of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayoutReport {
    /// Number of rows per batch of the simulated ingest.
    pub batch_rows: u64,
    /// Number of batches.
    pub batches: u64,
    /// Number of portions, over all partitions.
    pub portions: u64,
    /// Depth of their overlap.
    #[serde(flatten)]
    pub depth: OverlapDepth,
    /// Rows written per row ingested, if portions of one size are merged whenever [`MERGE_FAN_IN`]
    /// of them cover one key. 1 means no rewriting at all; the figure is meaningless for fewer
    /// batches than the fan-in.
    pub write_amplification: f64,
}

wire!(LayoutReport { batch_rows, batches, portions, depth, write_amplification });

impl LayoutReport {
    /// Returns the write amplification; `None` if there are too few batches for one.
    #[must_use]
    pub fn known_amplification(&self) -> Option<f64> {
        (self.batches >= MERGE_FAN_IN as u64).then_some(self.write_amplification)
    }
}
