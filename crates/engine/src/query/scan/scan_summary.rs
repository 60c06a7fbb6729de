//! Summary of the data that a scan reads, with reasons.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::query::scan::overlap::OverlapGroup;
use evenkeel_model::units::PartitionId;
use evenkeel_store::log::Snapshot;

/// Summary of the data that one scan of a table reads, and of the total.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ScanSummary {
    /// Name of the table.
    pub table: String,
    /// Partitions that the scan reads.
    pub partitions_read: usize,
    /// Partitions of the table.
    pub partitions: usize,
    /// Portions that the scan reads.
    pub portions_read: usize,
    /// Portions of the table.
    pub portions: usize,
    /// Portions read that are merged because their key ranges overlap.
    pub portions_merged: usize,
    /// Rows in the portions read.
    pub rows_in_portions: u64,
    /// Bytes of all portions of the table.
    #[serde(skip)]
    pub bytes: u64,
    /// Reasons for reading or skipping, one sentence each.
    pub reasons: Vec<String>,
}

impl ScanSummary {
    /// Creates the summary of a scan that reads nothing yet.
    pub(in crate::query) fn new(snapshot: &Snapshot) -> Self {
        Self {
            table: snapshot.spec().name().to_owned(),
            partitions: snapshot.spec().partitions().len(),
            portions: snapshot.portion_count(),
            bytes: snapshot.bytes(),
            ..Self::default()
        }
    }

    /// Records that no condition narrows the scan.
    pub(in crate::query) fn reads_everything(&mut self) {
        self.partitions_read = self.partitions;
        self.reasons.push("no condition narrows the scan".to_owned());
    }

    /// Records the partitions to which a condition narrows the scan; `None` for all of them.
    pub(in crate::query) fn reads_partitions(
        &mut self,
        partitions: Option<&BTreeSet<PartitionId>>,
        key: &[String],
    ) {
        let key = key.join(", ");
        self.partitions_read = partitions.map_or(self.partitions, BTreeSet::len);
        self.reasons.push(match partitions {
            Some(partitions) => {
                format!(
                    "the condition fixes the partition key ({key}): {} of the partitions",
                    partitions.len()
                )
            }
            None => format!(
                "the condition does not fix every column of the partition key ({key}): all partitions"
            ),
        });
    }

    /// Records the number of portions that a condition excludes by their key ranges.
    pub(in crate::query) fn excludes_portions(&mut self, portions: usize) {
        if portions > 0 {
            self.reasons.push(format!("ranges of the primary key exclude {portions} of their portions"));
        }
    }

    /// Counts the portions that are read, by partition and in groups of overlapping ones.
    pub(in crate::query) fn count(&mut self, partitions: &[Vec<OverlapGroup>]) {
        let portions = partitions.iter().flatten().flatten();
        self.portions_read = portions.clone().count();
        self.rows_in_portions = portions.map(|portion| portion.data_rows()).sum();
        let merged = partitions.iter().flatten().filter(|group| group.len() > 1);
        self.portions_merged = merged.map(Vec::len).sum();
    }
}
