//! From hash to partition.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};

use crate::placement::function::Function;
use crate::placement::key_bytes::PlacementError;
use crate::placement::systems::Status;
use evenkeel_model::table::{ColumnType, PlacementFunction, TableSpec};
use evenkeel_model::units::{PartitionCount, PartitionId};

/// Placement of rows: a placement function with its partition count and the types of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    function: Function,
    partitions: PartitionCount,
    key: Vec<ColumnType>,
}

/// Returns the partition of `hash` among `partitions` equal intervals of the 64-bit hash space:
/// min(hash / ((2^64 - 1) / N), N - 1), with integer division.
#[must_use]
pub(super) fn hash_interval(hash: u64, partitions: PartitionCount) -> PartitionId {
    let count = u64::from(partitions.get());
    let interval = u64::MAX / count;
    // The quotient is at most the count, which is 32 bits wide.
    PartitionId((hash / interval).min(count - 1) as u32)
}

/// [`hash_interval`] without a division per hash: the quotient is computed by multiplying with the
/// reciprocal, which makes it at most one too small, and then by a comparison.
#[derive(Debug, Clone, Copy)]
struct HashIntervals {
    interval: u64,
    /// floor(2^64 / interval), for at least two partitions.
    reciprocal: u64,
    last: u64,
}

impl HashIntervals {
    fn new(partitions: PartitionCount) -> Self {
        let count = u64::from(partitions.get());
        let interval = u64::MAX / count;
        let reciprocal = ((1u128 << 64) / u128::from(interval)) as u64;
        Self { interval, reciprocal, last: count - 1 }
    }

    #[inline]
    fn partition_of(self, hash: u64) -> PartitionId {
        let quotient = ((u128::from(hash) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = hash.wrapping_sub(quotient.wrapping_mul(self.interval));
        let quotient = quotient + u64::from(rest >= self.interval);
        // The result is at most the count, which is 32 bits wide.
        PartitionId(quotient.min(self.last) as u32)
    }
}

impl Placement {
    /// Creates a placement for keys of the given types, in hash order.
    #[must_use]
    pub fn new(function: impl Into<Function>, partitions: PartitionCount, key: Vec<ColumnType>) -> Self {
        Self { function: function.into(), partitions, key }
    }

    /// Returns the placement that a table declares.
    #[must_use]
    pub fn for_table(spec: &TableSpec) -> Self {
        Self::new(spec.placement(), spec.partitions(), spec.partition_key_types())
    }

    /// Returns the placement function.
    #[must_use]
    pub fn function(&self) -> Function {
        self.function
    }

    /// Returns the types of the key, in hash order.
    #[must_use]
    pub fn key(&self) -> &[ColumnType] {
        &self.key
    }

    /// Returns how well the function is verified for such keys.
    #[must_use]
    pub fn status(&self) -> Status {
        self.function.status(&self.key)
    }

    /// Returns the number of partitions.
    #[must_use]
    pub fn partitions(&self) -> PartitionCount {
        self.partitions
    }

    /// Returns the placement hash of every row. `columns` are the key columns in hash order.
    ///
    /// # Errors
    /// [`PlacementError`] if the columns do not match the key.
    pub fn hash(&self, columns: &[ArrayRef]) -> Result<Vec<u64>, PlacementError> {
        if columns.len() != self.key.len() {
            return Err(PlacementError::ColumnCount { expected: self.key.len(), found: columns.len() });
        }
        self.function.hash(&self.key, columns)
    }

    /// Returns the partition of every row. `columns` are the key columns in hash order.
    ///
    /// # Errors
    /// [`PlacementError`] if the columns do not match the key.
    pub fn assign(&self, columns: &[ArrayRef]) -> Result<Vec<PartitionId>, PlacementError> {
        let hashes = self.hash(columns)?;
        let mut partitions = Vec::new();
        self.assign_hashes(&hashes, columns, &mut partitions)?;
        Ok(partitions)
    }

    /// Writes the partition of every row into `partitions`, from hashes that are already known.
    ///
    /// - `ydb`: min(hash / ((2^64 - 1) / N), N - 1), with integer division.
    /// - `ydb-modulo`: hash % N.
    /// - `ydb-cloud-logs` with A active partitions and period P: with i = (time / P) as 32 bits and
    ///   g = max(1, N / A), the partition is ((hash % A) + (i % g) x A) % N.
    /// - Other systems: [`System::partition`](crate::placement::systems::System::partition).
    ///
    /// # Errors
    /// [`PlacementError`] if the function needs the columns themselves and they do not match the
    /// key.
    pub fn assign_hashes(
        &self,
        hashes: &[u64],
        columns: &[ArrayRef],
        partitions: &mut Vec<PartitionId>,
    ) -> Result<(), PlacementError> {
        partitions.clear();
        let count = u64::from(self.partitions.get());
        let function = match self.function {
            Function::Ydb(function) => function,
            Function::System(system) => {
                system.assign(hashes, self.partitions.get(), partitions);
                return Ok(());
            }
        };
        match function {
            PlacementFunction::Ydb => {
                let intervals = HashIntervals::new(self.partitions);
                partitions.extend(hashes.iter().map(|hash| intervals.partition_of(*hash)));
            }
            PlacementFunction::YdbModulo => {
                partitions.extend(hashes.iter().map(|hash| PartitionId((hash % count) as u32)));
            }
            PlacementFunction::YdbCloudLogs { active, period_micros } => {
                let times = self.first_column_micros(columns)?;
                let active = u64::from(active).clamp(1, count);
                let groups = (count / active).max(1);
                let period = period_micros.max(1);
                let place = |(hash, time): (&u64, u64)| {
                    let interval = u64::from((time / period) as u32);
                    PartitionId((((hash % active) + (interval % groups) * active) % count) as u32)
                };
                partitions.extend(hashes.iter().zip(times).map(place));
            }
        }
        Ok(())
    }

    fn first_column_micros(&self, columns: &[ArrayRef]) -> Result<Vec<u64>, PlacementError> {
        let (Some(ColumnType::Timestamp), Some(first), true) =
            (self.key.first(), columns.first(), columns.len() >= 2)
        else {
            return Err(PlacementError::CloudLogsKey);
        };
        let zone = match first.data_type() {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => return Err(PlacementError::CloudLogsKey),
        };
        let micros = cast(first, &DataType::Timestamp(TimeUnit::Microsecond, zone))
            .map_err(|_| PlacementError::CloudLogsKey)?;
        if micros.null_count() > 0 {
            return Err(PlacementError::CloudLogsKey);
        }
        Ok(micros
            .as_primitive::<TimestampMicrosecondType>()
            .values()
            .iter()
            .map(|v| v.cast_unsigned())
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BinaryArray, Date32Array, Decimal128Array, DictionaryArray, Int32Array, Int64Array, LargeStringArray,
        StringArray, StringViewArray, TimestampMicrosecondArray, TimestampMillisecondArray,
        TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt32Array, UInt64Array,
    };
    use arrow::datatypes::Int32Type;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::placement::hash::hash_keys;

    fn place(function: PlacementFunction, count: u64, keys: &[(ColumnType, ArrayRef)]) -> Vec<u32> {
        let (types, arrays): (Vec<_>, Vec<_>) = keys.iter().cloned().unzip();
        let placement = Placement::new(function, PartitionCount::new(count).unwrap(), types);
        placement.assign(&arrays).unwrap().into_iter().map(|p| p.0).collect()
    }

    fn hash(keys: &[(ColumnType, ArrayRef)]) -> Vec<u64> {
        hash_keys(keys).unwrap()
    }

    #[test]
    fn every_published_vector_holds() {
        let uint64 = (ColumnType::Uint64, Arc::new(UInt64Array::from(vec![0, 1, 42, 1 << 63])) as ArrayRef);
        let keys = [uint64];
        assert_eq!(
            hash(&keys),
            [0x34c9_6acd_cadb_1bbb, 0x9f29_cb17_a2a4_9995, 0xb556_806f_b6d1_4353, 0x3f42_5eac_f015_44e0]
        );
        assert_eq!(place(PlacementFunction::Ydb, 12, &keys), [2, 7, 8, 2]);
        assert_eq!(place(PlacementFunction::Ydb, 64, &keys), [13, 39, 45, 15]);
        assert_eq!(place(PlacementFunction::YdbModulo, 12, &keys), [11, 1, 3, 0]);
        assert_eq!(place(PlacementFunction::YdbModulo, 64, &keys), [59, 21, 19, 32]);

        let others: [(ColumnType, ArrayRef, u64, u32, u32); 3] = [
            (ColumnType::Int64, Arc::new(Int64Array::from(vec![-1])), 9_642_548_396_912_002_761, 6, 9),
            (ColumnType::Uint32, Arc::new(UInt32Array::from(vec![42])), 15_516_826_743_637_085_169, 10, 9),
            (ColumnType::Utf8, Arc::new(StringArray::from(vec!["abc"])), 0x44bc_2cf5_ad77_0999, 3, 9),
        ];
        for (column_type, array, expected, interval, modulo) in others {
            let keys = [(column_type, array)];
            assert_eq!(hash(&keys), [expected], "{column_type}");
            assert_eq!(place(PlacementFunction::Ydb, 12, &keys), [interval], "{column_type}");
            assert_eq!(place(PlacementFunction::YdbModulo, 12, &keys), [modulo], "{column_type}");
        }
    }

    #[test]
    fn columns_are_concatenated_without_separator_and_null_adds_nothing() {
        let text = |values: Vec<Option<&str>>| Arc::new(StringArray::from(values)) as ArrayRef;
        let first = (ColumnType::Utf8, text(vec![Some("ab"), Some("a"), None, Some("abc"), None]));
        let second = (ColumnType::Utf8, text(vec![Some("c"), Some("bc"), Some("abc"), None, None]));
        let hashes = hash(&[first, second]);
        assert_eq!(hashes[..4], [crate::placement::hash_bytes(b"abc"); 4]);
        assert_eq!(hashes[4], crate::placement::hash_bytes(b""));
    }

    #[test]
    fn text_is_placed_alike_in_every_encoding() {
        let values = ["", "abc", "Größe", "日本語", "a text that is longer than thirty-two bytes, surely"];
        let plain = hash(&[(ColumnType::Utf8, Arc::new(StringArray::from(values.to_vec())) as ArrayRef)]);
        let twins: [ArrayRef; 4] = [
            Arc::new(LargeStringArray::from(values.to_vec())),
            Arc::new(StringViewArray::from(values.to_vec())),
            Arc::new(values.into_iter().collect::<DictionaryArray<Int32Type>>()),
            Arc::new(BinaryArray::from(values.iter().map(|v| v.as_bytes()).collect::<Vec<_>>())),
        ];
        for twin in twins {
            let actual = hash(&[(ColumnType::String, Arc::clone(&twin))]);
            assert_eq!(actual, plain, "{}", twin.data_type());
        }
        assert_eq!(plain[2], crate::placement::hash_bytes("Größe".as_bytes()));
    }

    #[test]
    fn a_timestamp_is_placed_alike_in_every_unit_and_zone() {
        let seconds = 1_357_034_400i64;
        let expected = crate::placement::hash_bytes(&(seconds * 1_000_000).to_le_bytes());
        let units: [ArrayRef; 5] = [
            Arc::new(TimestampSecondArray::from(vec![seconds])),
            Arc::new(TimestampSecondArray::from(vec![seconds]).with_timezone("+03:00")),
            Arc::new(TimestampMillisecondArray::from(vec![seconds * 1000])),
            Arc::new(TimestampMicrosecondArray::from(vec![seconds * 1_000_000]).with_timezone("UTC")),
            Arc::new(TimestampNanosecondArray::from(vec![seconds * 1_000_000_000])),
        ];
        for array in units {
            assert_eq!(
                hash(&[(ColumnType::Timestamp, Arc::clone(&array))]),
                [expected],
                "{}",
                array.data_type()
            );
            let as_datetime = crate::placement::hash_bytes(&(seconds as u32).to_le_bytes());
            assert_eq!(hash(&[(ColumnType::Datetime, array)]), [as_datetime]);
        }
    }

    #[test]
    fn each_type_has_the_width_of_ydb() {
        let days = Arc::new(Date32Array::from(vec![15_706])) as ArrayRef;
        assert_eq!(
            hash(&[(ColumnType::Date, Arc::clone(&days))]),
            [crate::placement::hash_bytes(&15_706u16.to_le_bytes())]
        );
        assert_eq!(
            hash(&[(ColumnType::Date32, days)]),
            [crate::placement::hash_bytes(&15_706i32.to_le_bytes())]
        );
        let byte = Arc::new(UInt8Array::from(vec![7])) as ArrayRef;
        assert_eq!(hash(&[(ColumnType::Uint8, byte)]), [crate::placement::hash_bytes(&[7])]);
    }

    #[test]
    fn a_decimal_key_sends_every_row_to_one_partition() {
        let decimals =
            Arc::new(Decimal128Array::from(vec![1, 2, 3]).with_precision_and_scale(22, 9).unwrap());
        let column_type = ColumnType::Decimal { precision: 22, scale: 9 };
        assert_eq!(hash(&[(column_type, decimals)]), [crate::placement::hash_bytes(b""); 3]);
    }

    #[test]
    fn a_date_outside_the_width_of_ydb_is_refused() {
        let days = Arc::new(Date32Array::from(vec![Some(0), None, Some(-1)])) as ArrayRef;
        let error = hash_keys(&[(ColumnType::Date, days)]).unwrap_err();
        assert_eq!(error.to_string(), "key column 0: value -1 is outside Date");
    }

    #[test]
    fn cloud_logs_moves_to_the_next_group_when_the_period_is_over() {
        let period = 300_000_000i64;
        let times = [0, period - 1, period, 2 * period, 6 * period];
        let keys = [
            (ColumnType::Timestamp, Arc::new(TimestampMicrosecondArray::from(times.to_vec())) as ArrayRef),
            (ColumnType::Int32, Arc::new(Int32Array::from(vec![5; 5])) as ArrayRef),
        ];
        let hashes = hash(&keys);
        let partitions = place(PlacementFunction::CLOUD_LOGS_DEFAULT, 64, &keys);
        for (row, partition) in partitions.iter().enumerate() {
            // 64 partitions of 10 active ones make 6 groups.
            let group = (times[row] / period) as u64 % 6;
            assert_eq!(u64::from(*partition), hashes[row] % 10 + group * 10, "row {row}");
        }
        // With fewer partitions than active ones there is one group, spread over all partitions.
        let few = place(PlacementFunction::CLOUD_LOGS_DEFAULT, 4, &keys);
        assert!(few.iter().zip(&hashes).all(|(partition, hash)| u64::from(*partition) == hash % 4));
    }

    #[test]
    fn lengths_and_counts_that_differ_are_refused() {
        let placement = Placement::new(
            PlacementFunction::Ydb,
            PartitionCount::new(4).unwrap(),
            vec![ColumnType::Int32; 2],
        );
        let array = |n| Arc::new(Int32Array::from(vec![1; n])) as ArrayRef;
        assert!(matches!(placement.assign(&[array(1)]), Err(PlacementError::ColumnCount { .. })));
        assert!(matches!(placement.assign(&[array(1), array(2)]), Err(PlacementError::RowCount { .. })));
    }

    #[test]
    fn many_keys_spread_over_all_partitions() {
        let keys = [(ColumnType::Uint64, Arc::new(UInt64Array::from_iter_values(0..64_000)) as ArrayRef)];
        for function in [PlacementFunction::Ydb, PlacementFunction::YdbModulo] {
            let mut rows = vec![0u32; 64];
            for partition in place(function, 64, &keys) {
                rows[partition as usize] += 1;
            }
            // 1000 keys each on average; six standard deviations of a perfect hash are about 190.
            assert!(rows.iter().all(|n| n.abs_diff(1000) < 190), "{function}: {rows:?}");
        }
    }

    proptest! {
        #[test]
        fn the_reciprocal_gives_the_plain_quotient(hash in any::<u64>(), count in 1u64..100_000, near in 0u64..100_000) {
            let partitions = PartitionCount::new(count).unwrap();
            let intervals = HashIntervals::new(partitions);
            let edge = (u64::MAX / count).wrapping_mul(near % (count + 2));
            for hash in [hash, edge, edge.wrapping_sub(1), edge.wrapping_add(1), 0, u64::MAX] {
                prop_assert_eq!(intervals.partition_of(hash), hash_interval(hash, partitions));
            }
        }

        #[test]
        fn every_hash_has_exactly_one_partition_and_intervals_are_in_hash_order(
            a in any::<u64>(), b in any::<u64>(), count in 1u64..100_000,
        ) {
            let partitions = PartitionCount::new(count).unwrap();
            let (low, high) = (a.min(b), a.max(b));
            let (first, second) = (hash_interval(low, partitions), hash_interval(high, partitions));
            prop_assert!(first <= second);
            prop_assert!(u64::from(second.0) < count);
            prop_assert_eq!(hash_interval(0, partitions), PartitionId(0));
            prop_assert_eq!(u64::from(hash_interval(u64::MAX, partitions).0), count - 1);
        }
    }
}
