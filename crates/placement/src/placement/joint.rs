//! One placement function with several partition counts at once.

use arrow::array::ArrayRef;

use crate::placement::assign::hash_interval;
use crate::placement::{Function, Placement, PlacementError};
use evenkeel_model::table::{ColumnType, PlacementFunction};
use evenkeel_model::units::{PartitionCount, PartitionId};

/// Several partition counts of one function. Keys are placed into *cells*: two keys in the same
/// cell are in the same partition for every count. Rows are therefore counted once, by cell, and
/// never by partition.
///
/// Intervals of 16 and 256 partitions make 256 cells and a few more, because rounding shifts their
/// borders.
#[derive(Debug, Clone)]
pub struct JointPlacement {
    placements: Vec<Placement>,
    counts: Vec<PartitionCount>,
    cells: Cells,
    /// For each partition count, the partition of each cell.
    partitions: Vec<Vec<PartitionId>>,
}

#[derive(Debug, Clone)]
enum Cells {
    Intervals(Borders),
    /// Remainders modulo this number.
    Remainders(u64),
    /// Partitions of the only placement.
    Partitions,
}

/// Starts of the cells in the hash space, with a lookup table for them.
#[derive(Debug, Clone)]
struct Borders {
    begins: Vec<u64>,
    /// For each value of the highest bits of a hash, the cell of the smallest such hash.
    first: Vec<u32>,
    shift: u32,
}

impl Borders {
    fn new(counts: &[PartitionCount]) -> Self {
        let begins_of = |count: &PartitionCount| {
            let count = u64::from(count.get());
            let interval = u64::MAX / count;
            (0..count).map(move |partition| partition * interval)
        };
        let mut begins: Vec<u64> = counts.iter().flat_map(begins_of).collect();
        begins.sort_unstable();
        begins.dedup();
        // About eight entries per cell, so that most lead straight to it.
        let bits = (begins.len() * 8).next_power_of_two().trailing_zeros().clamp(4, 20);
        let shift = u64::BITS - bits;
        let cell_of = |hash: u64| begins.partition_point(|begin| *begin <= hash).saturating_sub(1) as u32;
        let first = (0..1u64 << bits).map(|bits| cell_of(bits << shift)).collect();
        Self { begins, first, shift }
    }

    #[inline]
    fn cell(&self, hash: u64) -> PartitionId {
        let mut cell = self.first.get((hash >> self.shift) as usize).copied().unwrap_or(0);
        while self.begins.get(cell as usize + 1).is_some_and(|begin| *begin <= hash) {
            cell += 1;
        }
        PartitionId(cell)
    }
}

impl JointPlacement {
    /// Groups the placements of keys of the given types by `function` into as few groups as can
    /// serve all partition counts, in their order.
    #[must_use]
    pub fn group(function: impl Into<Function>, counts: &[PartitionCount], key: &[ColumnType]) -> Vec<Self> {
        let function = function.into();
        let all: u64 = counts.iter().map(|count| u64::from(count.get())).sum();
        match function {
            Function::Ydb(PlacementFunction::Ydb) if counts.len() > 1 => {
                vec![Self::new(function, counts, key, Cells::Intervals(Borders::new(counts)))]
            }
            Function::Ydb(PlacementFunction::YdbModulo) if counts.len() > 1 => {
                let product =
                    counts.iter().try_fold(1, |product, count| least_common_multiple(product, *count));
                match product.filter(|product| *product <= all) {
                    Some(product) => vec![Self::new(function, counts, key, Cells::Remainders(product))],
                    None => Self::each(function, counts, key),
                }
            }
            _ => Self::each(function, counts, key),
        }
    }

    fn each(function: Function, counts: &[PartitionCount], key: &[ColumnType]) -> Vec<Self> {
        counts.iter().map(|count| Self::new(function, &[*count], key, Cells::Partitions)).collect()
    }

    fn new(function: Function, counts: &[PartitionCount], key: &[ColumnType], cells: Cells) -> Self {
        let partitions = |count: &PartitionCount| match &cells {
            Cells::Intervals(borders) => {
                borders.begins.iter().map(|hash| hash_interval(*hash, *count)).collect()
            }
            // A remainder is below its count, which is 32 bits wide; the least common multiple is
            // at most the sum of the counts.
            Cells::Remainders(product) => {
                (0..*product).map(|hash| PartitionId((hash % u64::from(count.get())) as u32)).collect()
            }
            Cells::Partitions => count.ids().collect(),
        };
        Self {
            partitions: counts.iter().map(partitions).collect(),
            placements: counts.iter().map(|count| Placement::new(function, *count, key.to_vec())).collect(),
            counts: counts.to_vec(),
            cells,
        }
    }

    /// Returns the partition counts.
    #[must_use]
    pub fn counts(&self) -> &[PartitionCount] {
        &self.counts
    }

    /// Returns the placements themselves, in the same order.
    #[must_use]
    pub fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// Returns the hash of every row's key, which is the same in all groups of one
    /// [`JointPlacement::hash_family`].
    ///
    /// # Errors
    /// As for [`Placement::hash`].
    pub fn hash(&self, columns: &[ArrayRef]) -> Result<Vec<u64>, PlacementError> {
        self.placements.first().map_or(Ok(Vec::new()), |placement| placement.hash(columns))
    }

    /// Identifier shared by groups with the same hash.
    #[must_use]
    pub fn hash_family(&self) -> &'static str {
        self.placements.first().map_or("", |placement| placement.function().hash_family())
    }

    /// Number of cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.partitions.first().map_or(0, Vec::len)
    }

    /// For each partition count, the partition of each cell.
    #[must_use]
    pub fn partitions(&self) -> &[Vec<PartitionId>] {
        &self.partitions
    }

    /// Writes the cell of every row into `cells`, from hashes that are already known.
    ///
    /// # Errors
    /// As for [`Placement::assign_hashes`].
    pub fn assign_hashes(
        &self,
        hashes: &[u64],
        columns: &[ArrayRef],
        cells: &mut Vec<PartitionId>,
    ) -> Result<(), PlacementError> {
        cells.clear();
        match &self.cells {
            Cells::Intervals(borders) => cells.extend(hashes.iter().map(|hash| borders.cell(*hash))),
            Cells::Remainders(product) => {
                cells.extend(hashes.iter().map(|hash| PartitionId((hash % product) as u32)));
            }
            Cells::Partitions => {
                if let Some(placement) = self.placements.first() {
                    placement.assign_hashes(hashes, columns, cells)?;
                }
            }
        }
        Ok(())
    }
}

fn least_common_multiple(a: u64, count: PartitionCount) -> Option<u64> {
    let count = u64::from(count.get());
    let (mut divisor, mut rest) = (a, count);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor).checked_mul(count)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{TimestampMicrosecondArray, UInt64Array};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn cells_give_the_partitions_of_every_placement(
            counts in proptest::collection::vec(1u64..300, 1..6), keys in proptest::collection::vec(any::<u64>(), 1..60),
            function in 0usize..3,
        ) {
            let functions =
                [PlacementFunction::Ydb, PlacementFunction::YdbModulo, PlacementFunction::CLOUD_LOGS_DEFAULT];
            let function = functions[function];
            let counts: Vec<PartitionCount> = counts.iter().map(|n| PartitionCount::new(*n).unwrap()).collect();
            let types = [ColumnType::Timestamp, ColumnType::Uint64];
            let times: TimestampMicrosecondArray = keys.iter().map(|key| Some((key >> 12).cast_signed())).collect();
            let columns: Vec<ArrayRef> = vec![Arc::new(times), Arc::new(UInt64Array::from(keys.clone()))];
            let groups = JointPlacement::group(function, &counts, &types);
            let mut all: u64 = groups.iter().map(|group| group.cells() as u64).sum();
            let mut expected = counts.iter();
            let mut hashes = Placement::new(function, counts[0], types.to_vec()).hash(&columns).unwrap();
            // Put hashes at the borders, to reveal off-by-one errors.
            for (place, hash) in hashes.iter_mut().enumerate() {
                let count = u64::from(counts[place % counts.len()].get());
                match place % 3 {
                    1 => *hash = (*hash % count) * (u64::MAX / count),
                    2 => *hash = ((*hash % count) * (u64::MAX / count)).wrapping_sub(1),
                    _ => {}
                }
            }
            for group in &groups {
                let mut cells = Vec::new();
                group.assign_hashes(&hashes, &columns, &mut cells).unwrap();
                for (count, partitions) in group.counts().iter().zip(group.partitions()) {
                    prop_assert_eq!(Some(count), expected.next());
                    let mut plain = Vec::new();
                    let placement = Placement::new(function, *count, types.to_vec());
                    placement.assign_hashes(&hashes, &columns, &mut plain).unwrap();
                    let actual: Vec<PartitionId> = cells.iter().map(|cell| partitions[cell.index()]).collect();
                    prop_assert_eq!(actual, plain);
                    all -= u64::from(count.get()).min(all);
                }
            }
            prop_assert_eq!((expected.next(), all), (None, 0));
            prop_assert!(groups.len() == 1 || function != PlacementFunction::Ydb);
        }
    }
}
