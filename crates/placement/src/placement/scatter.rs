//! Rows of a batch, grouped by partition.

use evenkeel_model::units::{PartitionCount, PartitionId};

/// Row numbers of one batch grouped by partition, in input order within each: a counting sort.
///
/// `[2, 0, 2, 1]` over 3 partitions gives `0: [1]`, `1: [3]`, `2: [0, 2]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scatter {
    rows: Vec<u32>,
    /// End of each partition's rows in `rows`.
    ends: Vec<u32>,
}

impl Scatter {
    /// Groups rows by their assigned partitions. Every row lands in exactly one group.
    #[must_use]
    pub fn new(assigned: &[PartitionId], partitions: PartitionCount) -> Self {
        let mut next = vec![0u32; partitions.len()];
        for partition in assigned {
            if let Some(count) = next.get_mut(partition.index()) {
                *count += 1;
            }
        }
        let mut start = 0;
        for slot in &mut next {
            let count = *slot;
            *slot = start;
            start += count;
        }
        let mut rows = vec![0u32; start as usize];
        for (row, partition) in (0u32..).zip(assigned) {
            if let Some(position) = next.get_mut(partition.index())
                && let Some(slot) = rows.get_mut(*position as usize)
            {
                *slot = row;
                *position += 1;
            }
        }
        // Each position has advanced to the end of its group.
        Self { rows, ends: next }
    }

    /// Returns the rows of one partition, in input order.
    #[must_use]
    pub fn rows(&self, partition: PartitionId) -> &[u32] {
        let end = self.ends.get(partition.index()).copied().unwrap_or(0) as usize;
        let start =
            partition.index().checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0)
                as usize;
        self.rows.get(start..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn every_row_lands_in_its_partition_once_and_in_order(assigned in proptest::collection::vec(0u32..7, 0..300)) {
            let ids: Vec<PartitionId> = assigned.iter().map(|p| PartitionId(*p)).collect();
            let partitions = PartitionCount::new(7).unwrap();
            let scatter = Scatter::new(&ids, partitions);
            for partition in partitions.ids() {
                let expected: Vec<u32> =
                    (0u32..).zip(&ids).filter(|(_, p)| **p == partition).map(|(row, _)| row).collect();
                prop_assert_eq!(scatter.rows(partition), expected.as_slice());
            }
        }
    }
}
