//! Placements whose partitions lie within the partitions of a coarser one.

use crate::placement::assign::{Placement, hash_interval};
use crate::placement::function::Function;
use evenkeel_model::table::PlacementFunction;
use evenkeel_model::units::{PartitionCount, PartitionId};

/// The partitions of a placement as parts of the partitions of a coarser one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nesting {
    /// Coarse partition of each fine one.
    pub coarse: Vec<PartitionId>,
    /// Whether each key of a fine partition is in its coarse one. Otherwise a few hashes at the
    /// edges of the fine partitions are in the neighbour of that, because both bounds were rounded.
    pub is_exact: bool,
}

impl Placement {
    /// Returns the partition of `count` in which each partition lies; `None` if partitions of the
    /// two placements overlap in other ways.
    ///
    /// - `ydb`: hash ranges nest if `count` divides the number of partitions, but for their edges:
    ///   the length of a range is rounded down, so that 4 of 64 ranges are shorter than 1 of 16 by
    ///   three hashes of 2^60.
    /// - `ydb-modulo`: remainders nest if `count` divides the number of partitions.
    /// - all: equal counts.
    #[must_use]
    pub fn nesting(&self, count: PartitionCount) -> Option<Nesting> {
        let fine = self.partitions();
        if fine == count {
            return Some(Nesting { coarse: fine.ids().collect(), is_exact: true });
        }
        let width = fine.get().checked_div(count.get()).filter(|_| fine.get().is_multiple_of(count.get()))?;
        match self.function() {
            Function::Ydb(PlacementFunction::Ydb) => {
                let coarse: Vec<PartitionId> = fine.ids().map(|id| PartitionId(id.0 / width)).collect();
                let length = u64::MAX / u64::from(fine.get());
                let is_within = |(id, coarse): (PartitionId, &PartitionId)| {
                    let first = u64::from(id.0) * length;
                    let is_last = id.0 + 1 == fine.get();
                    let last = if is_last { u64::MAX } else { first + length - 1 };
                    hash_interval(first, count) == *coarse && hash_interval(last, count) == *coarse
                };
                let is_exact = fine.ids().zip(&coarse).all(is_within);
                Some(Nesting { coarse, is_exact })
            }
            Function::Ydb(PlacementFunction::YdbModulo) => {
                let coarse = fine.ids().map(|id| PartitionId(id.0 % count.get())).collect();
                Some(Nesting { coarse, is_exact: true })
            }
            Function::Ydb(PlacementFunction::YdbCloudLogs { .. }) | Function::System(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, UInt64Array};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use evenkeel_model::table::ColumnType;

    fn placement(function: PlacementFunction, count: u32) -> Placement {
        let count = PartitionCount::new(u64::from(count)).unwrap();
        Placement::new(function, count, vec![ColumnType::Uint64])
    }

    #[test]
    fn equal_counts_nest_whatever_the_function_and_others_only_if_one_divides_the_other() {
        let nesting_of = |function, fine, coarse: u64| {
            placement(function, fine).nesting(PartitionCount::new(coarse).unwrap())
        };
        let functions =
            [PlacementFunction::Ydb, PlacementFunction::YdbModulo, PlacementFunction::CLOUD_LOGS_DEFAULT];
        for function in functions {
            let same = nesting_of(function, 12, 12).unwrap();
            assert!(same.is_exact && same.coarse.iter().map(|id| id.0).eq(0..12), "{function}");
            assert_eq!(nesting_of(function, 64, 24), None, "{function}");
            assert_eq!(nesting_of(function, 16, 64), None, "{function}");
        }
        assert_eq!(nesting_of(PlacementFunction::CLOUD_LOGS_DEFAULT, 64, 16), None);
        assert!(nesting_of(PlacementFunction::YdbModulo, 64, 16).unwrap().is_exact);
        // 2^64 - 1 is a multiple of 3, 5 and 15, so nothing is rounded.
        assert!(nesting_of(PlacementFunction::Ydb, 15, 5).unwrap().is_exact);
        assert!(!nesting_of(PlacementFunction::Ydb, 64, 16).unwrap().is_exact);
        assert!(nesting_of(PlacementFunction::Ydb, 64, 1).unwrap().is_exact);
    }

    #[test]
    fn hashes_at_the_edges_are_those_that_are_not_exact() {
        let (fine, coarse) = (PartitionCount::new(64).unwrap(), PartitionCount::new(16).unwrap());
        let edge = 4 * (u64::MAX / 64);
        assert_eq!((hash_interval(edge, fine).0, hash_interval(edge, coarse).0), (4, 0));
        assert_eq!((hash_interval(edge + 3, fine).0, hash_interval(edge + 3, coarse).0), (4, 1));
    }

    proptest! {
        #[test]
        fn keys_are_in_the_coarse_partition_of_their_fine_one(
            keys in proptest::collection::vec(any::<u64>(), 1..200), coarse in 1u32..40, times in 1u32..20,
        ) {
            let array = [Arc::new(UInt64Array::from(keys)) as ArrayRef];
            for function in [PlacementFunction::Ydb, PlacementFunction::YdbModulo] {
                let (fine, coarse) = (placement(function, coarse * times), placement(function, coarse));
                let nesting = fine.nesting(coarse.partitions()).unwrap();
                prop_assert!(nesting.coarse.len() == fine.partitions().len());
                let actual: Vec<_> =
                    fine.assign(&array).unwrap().into_iter().map(|id| nesting.coarse[id.index()]).collect();
                prop_assert_eq!(actual, coarse.assign(&array).unwrap());
            }
        }
    }
}
