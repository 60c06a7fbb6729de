//! Size of each partition of a table.

use serde::Serialize;

use evenkeel_model::units::PartitionId;
use evenkeel_stats::overlap::OverlapDepth;
use evenkeel_store::log::{Snapshot, overlap_depths};

/// One partition of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionOverview {
    /// The partition.
    pub partition: PartitionId,
    /// Rows that a query sees.
    pub rows: u64,
    /// Rows in its portions; more than `rows` if newer portions supersede rows of older ones.
    pub stored_rows: u64,
    /// Keys that its portions delete, and that compactions have not dropped yet.
    pub deletes: u64,
    /// Bytes of its portions.
    pub bytes: u64,
    /// Number of its portions.
    pub portions: u64,
    /// Overlap depth of its portions.
    pub overlap: OverlapDepth,
}

/// Returns the stored rows, bytes and portions of each partition. Rows that a query sees are not
/// counted.
pub(super) fn stored_partitions(snapshot: &Snapshot) -> Vec<PartitionOverview> {
    let mut partitions: Vec<PartitionOverview> =
        snapshot.spec().partitions().ids().map(PartitionOverview::empty).collect();
    for portions in snapshot.portions().chunk_by(|a, b| a.partition == b.partition) {
        let index = portions.first().map(|portion| portion.partition.index());
        let Some(partition) = index.and_then(|index| partitions.get_mut(index)) else { continue };
        partition.stored_rows = portions.iter().map(|portion| portion.data_rows()).sum();
        partition.deletes = portions.iter().map(|portion| portion.deleted_keys()).sum();
        partition.bytes = portions.iter().map(|portion| portion.bytes).sum();
        partition.portions = portions.len() as u64;
        partition.overlap = OverlapDepth::from_depths(overlap_depths(portions));
    }
    partitions
}

impl PartitionOverview {
    fn empty(partition: PartitionId) -> Self {
        let overlap = OverlapDepth::default();
        Self { partition, rows: 0, stored_rows: 0, deletes: 0, bytes: 0, portions: 0, overlap }
    }
}
