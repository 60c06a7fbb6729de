//! Encodes sorted batches as a portion.

use arrow::array::RecordBatch;
use bytes::Bytes;

use crate::portion::checksum::file_checksum;
use crate::portion::encodings::column_encodings;
use crate::portion::error::PortionError;
use crate::portion::key_ranges::KeyRanges;
use crate::portion::properties::writer_properties;
use crate::portion::row_group::PortionFile;
use evenkeel_model::table::{KeyRange, ROW_GROUP_ROWS, TableSpec};
use evenkeel_model::units::{ByteSize, PartitionId};

/// Approximate bytes held by a row group being written: the numbers of its rows, and its
/// dictionaries.
pub const GROUP_MEMORY: ByteSize = ByteSize::mib(48);

/// Rows gathered and encoded at a time.
pub const WRITE_BATCH_ROWS: usize = 1 << 15;

/// A portion, ready to be stored.
#[derive(Debug, Clone)]
pub struct EncodedPortion {
    /// Content of the file.
    pub bytes: Bytes,
    /// Number of rows, at least 1.
    pub rows: u64,
    /// First and last primary key.
    pub key_range: KeyRange,
    /// Smallest and largest value of each primary-key column, in key order.
    pub column_ranges: Vec<KeyRange>,
    /// XXH3 checksum of the file: 128 bits, seed 0, in hexadecimal.
    pub xxh3: String,
    /// Whether the rows are deletes.
    pub deletes: bool,
}

/// A portion being encoded.
pub struct PortionEncoder<'a> {
    spec: &'a TableSpec,
    partition: PartitionId,
    ranges: KeyRanges<'a>,
    rows: u64,
    /// Maximum number of rows, if known.
    most_rows: Option<usize>,
    group_memory: ByteSize,
    file: Option<PortionFile>,
    deletes: bool,
}

impl std::fmt::Debug for PortionEncoder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PortionEncoder")
            .field("partition", &self.partition)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl<'a> PortionEncoder<'a> {
    /// Starts a portion of `partition` without rows.
    #[must_use]
    pub fn new(spec: &'a TableSpec, partition: PartitionId) -> Self {
        let ranges = KeyRanges::new(spec, partition);
        Self {
            spec,
            partition,
            ranges,
            rows: 0,
            most_rows: None,
            group_memory: GROUP_MEMORY,
            file: None,
            deletes: false,
        }
    }

    /// Makes the rows deletes of their keys; their other columns have no meaning.
    #[must_use]
    pub fn for_deletes(self) -> Self {
        Self { deletes: true, ..self }
    }

    /// Ends each row group at `bytes` of row numbers and dictionaries, which saves memory; at most
    /// [`GROUP_MEMORY`].
    #[must_use]
    pub fn with_group_memory(self, bytes: ByteSize) -> Self {
        Self { group_memory: bytes.min(GROUP_MEMORY), ..self }
    }

    /// Sets the maximum number of rows, so that nothing is sized for more.
    #[must_use]
    pub fn for_rows(self, rows: usize) -> Self {
        Self { most_rows: Some(rows), ..self }
    }

    /// Adds rows in the schema of the table, which must follow the previous ones in key order.
    ///
    /// # Errors
    /// [`PortionError`] if they do not fit the spec.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), PortionError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let partition = self.partition;
        let failed = |source| PortionError::Encode { partition, source };
        self.rows += batch.num_rows() as u64;
        self.ranges.add(batch)?;
        let file = match self.file.as_mut() {
            Some(file) => file,
            None => {
                let most_values = self.most_rows.unwrap_or(ROW_GROUP_ROWS).clamp(1, ROW_GROUP_ROWS);
                let encodings = column_encodings(self.spec, batch, most_values).map_err(failed)?;
                let properties =
                    writer_properties(self.spec, partition, most_values, &encodings, self.deletes);
                let file = PortionFile::new(self.spec, properties, &encodings, self.group_memory.as_usize());
                self.file.insert(file.map_err(failed)?)
            }
        };
        file.push(batch).map_err(failed)
    }

    /// Number of rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of the file so far; the row group being written is estimated.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.bytes() as u64)
    }

    /// Finishes the portion.
    ///
    /// # Errors
    /// [`PortionError::Empty`] if it has no rows, and [`PortionError::Encode`] if it cannot be
    /// encoded.
    pub fn finish(self) -> Result<EncodedPortion, PortionError> {
        let partition = self.partition;
        let file = self.file.ok_or(PortionError::Empty { partition })?;
        let bytes = file.finish().map_err(|source| PortionError::Encode { partition, source })?;
        let (key_range, column_ranges) = self.ranges.finish()?;
        let xxh3 = file_checksum(&bytes);
        Ok(EncodedPortion {
            rows: self.rows,
            key_range,
            column_ranges,
            xxh3,
            bytes: bytes.into(),
            deletes: self.deletes,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float32Array,
        Float64Array, Int8Array, Int64Array, StringArray, TimestampMicrosecondArray,
    };
    use arrow::compute::concat_batches;
    use arrow::datatypes::{Decimal128Type, Int64Type};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::basic::Encoding;
    use parquet::file::properties::ReaderProperties;
    use parquet::file::reader::FileReader;
    use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
    use proptest::prelude::{Just, ProptestConfig, prop_assert, prop_oneof, proptest};
    use twox_hash::XxHash3_64;

    use super::*;
    use crate::portion::checksum::FileChecksum;
    use crate::portion::footer::{FooterError, PortionFooter};
    use evenkeel_model::table::{Column, ColumnType, KeyValue, PlacementFunction, TableDefinition};
    use evenkeel_model::units::PartitionCount;

    fn spec() -> TableSpec {
        TableSpec::new(TableDefinition {
            name: "t".into(),
            columns: vec![Column::required("k", ColumnType::Int64), Column::required("u", ColumnType::Utf8)],
            primary_key: vec!["k".into(), "u".into()],
            partition_key: vec!["u".into()],
            partitions: PartitionCount::new(2).unwrap(),
            placement: PlacementFunction::Ydb,
            ttl: None,
        })
        .unwrap()
    }

    fn batch(rows: &[(i64, &str)]) -> RecordBatch {
        let keys: Int64Array = rows.iter().map(|r| r.0).collect::<Vec<_>>().into();
        let users: StringArray = rows.iter().map(|r| r.1).collect::<Vec<_>>().into();
        RecordBatch::try_new(Arc::clone(spec().schema()), vec![Arc::new(keys), Arc::new(users)]).unwrap()
    }

    fn encoded(partition: u32, batches: &[RecordBatch]) -> Result<EncodedPortion, PortionError> {
        let spec = spec();
        let mut encoder = PortionEncoder::new(&spec, PartitionId(partition));
        batches.iter().try_for_each(|batch| encoder.push(batch))?;
        encoder.finish()
    }

    #[test]
    fn a_portion_reads_back_with_its_ranges_order_and_bloom_filter() {
        let batches = [batch(&[(1, "z"), (3, "m")]), batch(&[]), batch(&[(3, "n"), (7, "a")])];
        let portion = encoded(1, &batches).unwrap();
        let (int, text) = (KeyValue::Int, |t: &str| KeyValue::Text(t.into()));
        assert_eq!(
            portion.key_range,
            KeyRange { min: vec![int(1), text("z")], max: vec![int(7), text("a")] }
        );
        assert_eq!(portion.column_ranges[1], KeyRange { min: vec![text("a")], max: vec![text("z")] });
        assert_eq!(portion.xxh3, file_checksum(&portion.bytes));
        let mut pieces = FileChecksum::default();
        portion.bytes.chunks(7).for_each(|piece| pieces.add(piece));
        assert_eq!(portion.xxh3, pieces.finish());
        let size = portion.bytes.len();
        let footer = PortionFooter::read(&portion.bytes, size as u64).unwrap();
        assert_eq!(
            (footer.partition, footer.rows, footer.primary_key.concat().as_str()),
            (PartitionId(1), 4, "ku")
        );
        let tail = portion.bytes.slice(size - 20..);
        let needed = PortionFooter::read(&tail, size as u64).unwrap_err();
        assert!(
            matches!(needed, FooterError::NeedsMore { needed } if needed > 20 && needed <= size),
            "{needed}"
        );
        let reader = ParquetRecordBatchReaderBuilder::try_new(portion.bytes).unwrap();
        let group = reader.metadata().row_group(0);
        assert_eq!(group.sorting_columns().unwrap().len(), 2);
        assert!(group.column(0).bloom_filter_offset().is_none());
        assert!(group.column(1).bloom_filter_offset().is_some());
        let rows: usize = reader.build().unwrap().map(|b| b.unwrap().num_rows()).sum();
        assert_eq!(rows as u64, portion.rows);
    }

    #[test]
    fn integers_that_hardly_repeat_are_stored_as_differences() {
        let keys: Vec<(i64, &str)> = (0..100).map(|key| (key * 1_000_003, "u")).collect();
        let portion = encoded(0, &[batch(&keys)]).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(portion.bytes).unwrap();
        let group = reader.metadata().row_group(0);
        let encodings = |column: usize| group.column(column).encodings().collect::<Vec<_>>();
        assert!(encodings(0).contains(&Encoding::DELTA_BINARY_PACKED), "{:?}", encodings(0));
        assert!(encodings(1).contains(&Encoding::RLE_DICTIONARY), "{:?}", encodings(1));
        let read: Vec<i64> = reader
            .build()
            .unwrap()
            .flat_map(|batch| batch.unwrap().column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect();
        assert_eq!(read, keys.iter().map(|key| key.0).collect::<Vec<_>>());
    }

    #[test]
    fn prices_are_stored_as_differences_and_read_back() {
        let decimal = ColumnType::Decimal { precision: 12, scale: 2 };
        let definition = TableDefinition {
            columns: vec![Column::required("k", ColumnType::Int64), Column::nullable("price", decimal)],
            primary_key: vec!["k".into()],
            partition_key: vec!["k".into()],
            ..spec().definition().clone()
        };
        let spec = TableSpec::new(definition).unwrap();
        let price = |row: i64| (row % 97 != 5).then(|| i128::from(row * row % 1_000_003) - 400_000);
        let mut encoder = PortionEncoder::new(&spec, PartitionId(0)).for_rows(60_000);
        for first in (0..60_000).step_by(20_000) {
            let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 20_000));
            let prices: Decimal128Array = (first..first + 20_000).map(price).collect();
            let prices = prices.with_precision_and_scale(12, 2).unwrap();
            let batch = RecordBatch::try_new(Arc::clone(spec.schema()), vec![keys, Arc::new(prices)]);
            encoder.push(&batch.unwrap()).unwrap();
        }
        let reader = ParquetRecordBatchReaderBuilder::try_new(encoder.finish().unwrap().bytes).unwrap();
        let encodings: Vec<Encoding> = reader.metadata().row_group(0).column(1).encodings().collect();
        assert!(encodings.contains(&Encoding::DELTA_BINARY_PACKED), "{encodings:?}");
        let read: Vec<Option<i128>> = reader
            .build()
            .unwrap()
            .flat_map(|batch| {
                batch.unwrap().column(1).as_primitive::<Decimal128Type>().iter().collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(read, (0..60_000).map(price).collect::<Vec<_>>());
    }

    /// Columns of each type that only the library can write, and one of sorted times.
    fn table_of_numbers() -> TableSpec {
        let decimal = |precision| ColumnType::Decimal { precision, scale: 2 };
        let types = [
            ColumnType::Double,
            ColumnType::Float,
            ColumnType::Bool,
            ColumnType::Uuid,
            decimal(7),
            decimal(15),
            decimal(22),
        ];
        let mut columns =
            vec![Column::required("t", ColumnType::Timestamp), Column::required("k", ColumnType::Int64)];
        let named = types.into_iter().enumerate().map(|(at, of)| Column::nullable(format!("c{at}"), of));
        columns.extend(named);
        TableSpec::new(TableDefinition {
            columns,
            primary_key: vec!["t".into(), "k".into()],
            partition_key: vec!["k".into()],
            ..spec().definition().clone()
        })
        .unwrap()
    }

    /// Rows whose values repeat after `distinct` of them, of which `null` in 100 are NULL, and with
    /// `special` numbers: NaN, both zeros, infinities.
    fn numbers(spec: &TableSpec, rows: u64, distinct: u64, null: u64, special: bool) -> RecordBatch {
        let hash = |row: u64| XxHash3_64::oneshot(&row.to_le_bytes());
        let value = |row: u64, salt: u64| {
            let is_null = hash(row * 31 + salt) % 100 < null;
            (!is_null).then(|| hash(hash(row) % distinct + salt * 1_000_003))
        };
        let double = |row| {
            let value = value(row, 1)?;
            let specials = [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::MIN_POSITIVE];
            let number = if value % 3 == 0 { (value % 1_000_000) as f64 } else { f64::from_bits(value >> 2) };
            Some(if special && value % 5 == 0 { specials[(value / 5 % 6) as usize] } else { number })
        };
        let decimal = |salt: u64, precision: u8| {
            let values = (0..rows)
                .map(|row| value(row, salt).map(|v| i128::from(v) % 10_i128.pow(precision.into()) - 5));
            let values: Decimal128Array = values.collect();
            Arc::new(values.with_precision_and_scale(precision, 2).unwrap()) as ArrayRef
        };
        let ids = (0..rows)
            .map(|row| value(row, 4).map(|v| u128::from(v).wrapping_mul(u128::from(v)).to_be_bytes()));
        let times =
            TimestampMicrosecondArray::from_iter_values((0..rows as i64).map(|row| row / 3 * 3_600_000_000));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(times),
            Arc::new(Int64Array::from_iter_values(0..rows as i64)),
            Arc::new((0..rows).map(double).collect::<Float64Array>()),
            Arc::new((0..rows).map(|row| double(row).map(|v| v as f32)).collect::<Float32Array>()),
            Arc::new((0..rows).map(|row| value(row, 3).map(|v| v % 7 == 0)).collect::<BooleanArray>()),
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(ids, 16).unwrap()),
            decimal(5, 7),
            decimal(6, 15),
            decimal(7, 22),
        ];
        RecordBatch::try_new(Arc::clone(spec.schema()), columns).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn numbers_of_all_kinds_are_read_back_bit_by_bit(
            rows in 1_u64..30_000,
            distinct in prop_oneof![1_u64..20, 1_000_u64..100_000],
            null in prop_oneof![Just(0_u64), 1_u64..101],
            special in proptest::bool::ANY,
            batch_rows in 1_000_usize..20_000,
        ) {
            let spec = table_of_numbers();
            let written = numbers(&spec, rows, distinct, null, special);
            let mut encoder = PortionEncoder::new(&spec, PartitionId(0));
            for first in (0..written.num_rows()).step_by(batch_rows) {
                encoder.push(&written.slice(first, batch_rows.min(written.num_rows() - first))).unwrap();
            }
            let reader = ParquetRecordBatchReaderBuilder::try_new(encoder.finish().unwrap().bytes).unwrap();
            let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
            let read = concat_batches(&batches[0].schema(), &batches).unwrap();
            for (name, (written, read)) in spec.columns().iter().zip(written.columns().iter().zip(read.columns())) {
                // Data are compared by their bits, unlike floating-point numbers.
                prop_assert!(written.to_data() == read.to_data(), "{}", name.name);
            }
        }
    }

    #[test]
    fn a_bloom_filter_is_as_large_as_the_portion_needs_though_batches_are_small() {
        let definition = TableDefinition {
            columns: vec![Column::required("k", ColumnType::Int64), Column::required("u", ColumnType::Int64)],
            ..spec().definition().clone()
        };
        let spec = TableSpec::new(definition).unwrap();
        let id = |row: i64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
        let batch = |rows: std::ops::Range<i64>| {
            let keys = Int64Array::from_iter_values(rows.clone());
            let ids = Int64Array::from_iter_values(rows.map(id));
            RecordBatch::try_new(Arc::clone(spec.schema()), vec![Arc::new(keys), Arc::new(ids)])
        };
        let mut encoder = PortionEncoder::new(&spec, PartitionId(0)).for_rows(50_000);
        for first in (0..50_000).step_by(100) {
            encoder.push(&batch(first..first + 100).unwrap()).unwrap();
        }
        let portion = encoder.finish().unwrap();
        let properties = ReaderProperties::builder().set_read_bloom_filter(true).build();
        let options = ReadOptionsBuilder::new().with_reader_properties(properties).build();
        let reader = SerializedFileReader::new_with_options(portion.bytes, options).unwrap();
        let group = reader.get_row_group(0).unwrap();
        assert!(group.metadata().column(1).dictionary_page_offset().is_none());
        let filter = group.get_column_bloom_filter(1).unwrap();
        assert!((0..50_000).all(|row| filter.check(&id(row))));
        let wrong = (50_000..60_000).filter(|row| filter.check(&id(*row))).count();
        assert!(wrong < 1000, "{wrong} of 10000 that are not there");
    }

    #[test]
    fn a_row_group_ends_where_its_memory_does() {
        let names: Vec<String> = (0..60).map(|column| format!("c{column}")).collect();
        let mut columns = vec![Column::required("k", ColumnType::Int64)];
        columns.extend(names.iter().map(|name| Column::required(name, ColumnType::Int8)));
        let definition = TableDefinition {
            columns,
            primary_key: vec!["k".into()],
            partition_key: vec!["k".into()],
            ..spec().definition().clone()
        };
        let spec = TableSpec::new(definition).unwrap();
        let batch = |first: i64| {
            let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 5000));
            let small: ArrayRef = Arc::new(Int8Array::from_iter_values((0..5000).map(|row| (row % 7) as i8)));
            let columns = std::iter::once(keys).chain(std::iter::repeat_n(small, 60)).collect();
            RecordBatch::try_new(Arc::clone(spec.schema()), columns).unwrap()
        };
        let rows_of_groups = |memory: ByteSize| {
            let mut encoder = PortionEncoder::new(&spec, PartitionId(0)).with_group_memory(memory);
            (0..20).for_each(|number| encoder.push(&batch(number * 5000)).unwrap());
            let reader = ParquetRecordBatchReaderBuilder::try_new(encoder.finish().unwrap().bytes).unwrap();
            reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect::<Vec<_>>()
        };
        assert_eq!(rows_of_groups(GROUP_MEMORY), [100_000]);
        let small = rows_of_groups(ByteSize::mib(8));
        assert_eq!(small.iter().sum::<i64>(), 100_000);
        // 60 columns of 4 bytes each, plus the unused capacity of the vectors.
        assert!(small.iter().all(|rows| *rows <= 40_000) && small.len() <= 10, "{small:?}");
    }

    #[test]
    fn a_portion_without_rows_is_refused() {
        assert!(matches!(encoded(0, &[]), Err(PortionError::Empty { .. })));
        assert!(matches!(encoded(0, &[batch(&[])]), Err(PortionError::Empty { .. })));
    }
}
