//! A column chunk being encoded.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;

use crate::portion::dictionary::chunk::{ChunkWriter, EncodedColumn};
use crate::portion::dictionary::hybrid;
use crate::portion::dictionary::interner::{Interner, NULL};
use crate::portion::dictionary::kind::Kind;
use crate::portion::dictionary::sorted::SortedValues;

/// Maximum number of values of a dictionary. It is also full at `FULL_BYTES`.
const FULL_VALUES: usize = 1 << 17;
const FULL_BYTES: usize = 4 << 20;

/// A column chunk being encoded.
#[derive(Debug)]
pub(in crate::portion) struct DictionaryColumn {
    kind: Kind,
    bloom_filter: bool,
    interner: Interner,
    /// Number of each row's value, assigned in order of first appearance; `NULL` for NULL.
    numbers: Vec<u32>,
    nulls: usize,
}

impl DictionaryColumn {
    /// Whether a column of this type can be encoded here.
    pub(in crate::portion) fn can_hold(data_type: &DataType) -> bool {
        Kind::from_type(data_type).is_some()
    }

    /// Creates an empty chunk of a column of this type; `None` if only the library can write it.
    pub(in crate::portion) fn new(data_type: &DataType, bloom_filter: bool) -> Option<Self> {
        let kind = Kind::from_type(data_type)?;
        let interner = match kind {
            Kind::Signed | Kind::Unsigned => Interner::for_numbers(),
            Kind::Text | Kind::Bytes => Interner::for_bytes(),
        };
        Some(Self { kind, bloom_filter, interner, numbers: Vec::new(), nulls: 0 })
    }

    /// Adds rows.
    pub(in crate::portion) fn push(&mut self, array: &ArrayRef) -> Result<(), ArrowError> {
        self.nulls += array.null_count();
        if matches!(self.kind, Kind::Text | Kind::Bytes) {
            let views = match array.data_type() {
                DataType::Utf8View => array.as_string_view().clone().to_binary_view(),
                _ => cast(array, &DataType::BinaryView)?.as_binary_view().clone(),
            };
            self.interner.bytes(&views, &mut self.numbers);
            return Ok(());
        }
        match array.data_type() {
            DataType::Int8 => self.integers::<Int8Type>(array, |v| i64::from(v).cast_unsigned()),
            DataType::Int16 => self.integers::<Int16Type>(array, |v| i64::from(v).cast_unsigned()),
            DataType::Int32 => self.integers::<Int32Type>(array, |v| i64::from(v).cast_unsigned()),
            DataType::Int64 => self.integers::<Int64Type>(array, i64::cast_unsigned),
            DataType::Date32 => self.integers::<Date32Type>(array, |v| i64::from(v).cast_unsigned()),
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                self.integers::<TimestampMillisecondType>(array, i64::cast_unsigned)
            }
            DataType::Timestamp(_, _) => self.integers::<TimestampMicrosecondType>(array, i64::cast_unsigned),
            DataType::UInt8 => self.integers::<UInt8Type>(array, u64::from),
            DataType::UInt16 => self.integers::<UInt16Type>(array, u64::from),
            DataType::UInt32 => self.integers::<UInt32Type>(array, u64::from),
            _ => self.integers::<UInt64Type>(array, |v| v),
        }
        Ok(())
    }

    fn integers<T: ArrowPrimitiveType>(&mut self, array: &ArrayRef, widen: impl Fn(T::Native) -> u64) {
        let Some(array) = array.as_primitive_opt::<T>() else { return };
        let interner = &mut self.interner;
        if array.null_count() == 0 {
            self.numbers.extend(array.values().iter().map(|value| interner.number(widen(*value))));
        } else {
            let number = |value: Option<T::Native>| value.map_or(NULL, |value| interner.number(widen(value)));
            self.numbers.extend(array.iter().map(number));
        }
    }

    /// Whether the row group should end here.
    pub(in crate::portion) fn is_full(&self) -> bool {
        let values = self.interner.values();
        values.len() >= FULL_VALUES || values.bytes() >= FULL_BYTES
    }

    /// Bytes in memory.
    pub(in crate::portion) fn memory(&self) -> usize {
        self.interner.memory() + self.numbers.capacity() * size_of::<u32>()
    }

    /// Estimated bytes of the chunk: values compress to about a half, as text of digits does, or not
    /// at all; packed numbers hardly compress.
    pub(in crate::portion) fn bytes(&self) -> usize {
        let values = self.interner.values();
        let width = hybrid::width_of(values.len() as u32) as usize;
        values.bytes() / 2 + self.numbers.len() * width / 8
    }

    /// Finishes the chunk of the column `descriptor`.
    pub(in crate::portion) fn finish(
        self,
        descriptor: &ColumnDescPtr,
    ) -> Result<EncodedColumn, ParquetError> {
        let Self { kind, bloom_filter, interner, mut numbers, nulls } = self;
        let width = match descriptor.physical_type() {
            Type::INT32 => 4,
            _ => 8,
        };
        let (values, ranks) = SortedValues::new(interner.into_values(), kind, width);
        let (mut plain_bytes, mut present) = (0, 0);
        for number in &mut numbers {
            if let Some(rank) = ranks.get(*number as usize) {
                *number = *rank;
                plain_bytes += values.plain_length(*rank);
                present += 1;
            }
        }
        drop(ranks);
        let dictionary_bytes: usize = (0..values.len()).map(|rank| values.plain_length(rank)).sum();
        let bits = hybrid::width_of(values.len().saturating_sub(1));
        let repeats = dictionary_bytes + present * bits as usize / 8 < plain_bytes;
        let nullable = descriptor.max_def_level() > 0;
        let mut chunk = ChunkWriter::new(values, kind, nullable);
        let pages = chunk.pages(&numbers, repeats);
        chunk.write(&pages, repeats.then_some(bits))?;
        chunk.finish(descriptor, numbers.len(), nulls, repeats, bloom_filter)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BinaryArray, Date32Array, Int8Array, Int64Array, RecordBatch, StringArray, StringViewArray,
        TimestampMillisecondArray, UInt32Array, UInt64Array,
    };
    use arrow::compute::concat_batches;
    use arrow::datatypes::{Field, Schema};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
    use parquet::file::page_index::column_index::ColumnIndexMetaData;
    use parquet::file::properties::{ReaderProperties, WriterProperties};
    use parquet::file::reader::FileReader;
    use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use twox_hash::XxHash3_64;

    use super::*;

    /// Writes a file of one column, with this module or entirely with the library.
    fn file(array: &ArrayRef, ours: bool) -> Bytes {
        let schema =
            Arc::new(Schema::new(vec![Field::new("c", array.data_type().clone(), array.null_count() > 0)]));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_bloom_filter_enabled(true)
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties)).unwrap();
        if !ours {
            writer.write(&RecordBatch::try_new(schema, vec![Arc::clone(array)]).unwrap()).unwrap();
            return writer.into_inner().unwrap().into();
        }
        let (mut file, _) = writer.into_serialized_writer().unwrap();
        let descriptor = Arc::clone(&file.schema_descr().columns()[0]);
        let mut column = DictionaryColumn::new(array.data_type(), true).unwrap();
        let half = array.len() / 2;
        column.push(&array.slice(0, half)).unwrap();
        column.push(&array.slice(half, array.len() - half)).unwrap();
        let encoded = column.finish(&descriptor).unwrap();
        let mut group = file.next_row_group().unwrap();
        group.append_column(&encoded.bytes, encoded.close).unwrap();
        group.close().unwrap();
        file.into_inner().unwrap().into()
    }

    fn read(file: &Bytes) -> (ArrayRef, Arc<ParquetMetaData>) {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap();
        let (schema, metadata) = (Arc::clone(builder.schema()), Arc::clone(builder.metadata()));
        let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
        (Arc::clone(concat_batches(&schema, &batches).unwrap().column(0)), metadata)
    }

    fn twins_agree(array: &ArrayRef) {
        let (ours, theirs) = (file(array, true), file(array, false));
        let ((our_values, our_metadata), (their_values, their_metadata)) = (read(&ours), read(&theirs));
        assert_eq!(&our_values, array);
        assert_eq!(&our_values, &their_values);
        let (our, their) = (our_metadata.row_group(0).column(0), their_metadata.row_group(0).column(0));
        assert_eq!(our.statistics(), their.statistics());
        assert_eq!(our.num_values(), their.num_values());
    }

    /// Whether the Bloom filter contains every one of `values`.
    fn filter_has(file: &Bytes, values: &[Vec<u8>]) -> bool {
        let properties = ReaderProperties::builder().set_read_bloom_filter(true).build();
        let options = ReadOptionsBuilder::new().with_reader_properties(properties).build();
        let reader = SerializedFileReader::new_with_options(file.clone(), options).unwrap();
        let group = reader.get_row_group(0).unwrap();
        let filter = group.get_column_bloom_filter(0).unwrap();
        values.iter().all(|value| filter.check(value.as_slice()))
    }

    proptest! {
        #[test]
        fn every_type_reads_as_the_library_writes_it(
            rows in proptest::collection::vec(proptest::option::weighted(0.9, -40i64..40), 1..300),
            spread in 1i64..1_000_000_007, kind in 0usize..10, nulls: bool,
        ) {
            let rows: Vec<Option<i64>> =
                rows.into_iter().map(|row| if nulls { row } else { Some(row.unwrap_or(1)) }).collect();
            let wide = || rows.iter().map(|row| row.map(|v| v * spread));
            let text = || rows.iter().map(|row| row.map(|v| "é".repeat((v + 40) as usize) + &(v * spread).to_string()));
            let array: ArrayRef = match kind {
                0 => Arc::new(wide().collect::<Int64Array>()),
                1 => Arc::new(wide().map(|v| v.map(i64::cast_unsigned)).collect::<UInt64Array>()),
                2 => Arc::new(wide().map(|v| v.map(|v| v as u32)).collect::<UInt32Array>()),
                3 => Arc::new(rows.iter().map(|row| row.map(|v| v as i8)).collect::<Int8Array>()),
                4 => Arc::new(wide().map(|v| v.map(|v| v as i32)).collect::<Date32Array>()),
                5 => Arc::new(wide().collect::<TimestampMillisecondArray>().with_timezone("UTC")),
                6 => Arc::new(text().collect::<StringArray>()),
                7 => Arc::new(text().collect::<StringViewArray>()),
                8 => Arc::new(text().map(|v| v.map(String::into_bytes)).collect::<BinaryArray>()),
                _ => Arc::new(rows.iter().map(|row| row.map(|v| v.to_string())).collect::<StringArray>()),
            };
            twins_agree(&array);
        }

    }

    proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]

        #[test]
        fn many_pages_keep_order_ranges_and_filter(
            rows in 1usize..90_000, distinct in 1u64..60_000, null_every in 2usize..50_000,
        ) {
            let value = |row: usize| (row as u64).wrapping_mul(0x9E37_79B9) % distinct;
            let present = |row: &usize| !row.is_multiple_of(null_every);
            let array: ArrayRef = Arc::new(
                (0..rows).map(|row| present(&row).then(|| format!("value {}", value(row)))).collect::<StringArray>(),
            );
            let file = file(&array, true);
            let (read_back, metadata) = read(&file);
            prop_assert_eq!(&read_back, &array);
            let ColumnIndexMetaData::BYTE_ARRAY(index) = &metadata.column_index().unwrap()[0][0] else { panic!() };
            let locations = metadata.offset_index().unwrap()[0][0].page_locations();
            for (page, location) in locations.iter().enumerate() {
                let end = locations.get(page + 1).map_or(rows, |next| next.first_row_index as usize);
                let of_page = location.first_row_index as usize..end;
                let texts: Vec<String> = of_page.filter(present).map(|row| format!("value {}", value(row))).collect();
                prop_assert_eq!(index.min_value(page), texts.iter().min().map(|text| text.as_bytes()));
                prop_assert_eq!(index.max_value(page), texts.iter().max().map(|text| text.as_bytes()));
            }
            let all: Vec<Vec<u8>> =
                (0..rows).filter(present).map(|row| format!("value {}", value(row)).into_bytes()).collect();
            prop_assert!(filter_has(&file, &all));
        }
    }

    #[test]
    fn a_dictionary_that_does_not_pay_is_not_written() {
        let unique: ArrayRef =
            Arc::new((0..50_000).map(|row| Some(format!("{row:020}"))).collect::<StringArray>());
        let repeated: ArrayRef =
            Arc::new((0..50_000).map(|row| Some(format!("{:020}", row % 9))).collect::<StringArray>());
        for (array, dictionary) in [(unique, false), (repeated, true)] {
            twins_agree(&array);
            let (_, metadata) = read(&file(&array, true));
            let column = metadata.row_group(0).column(0).clone();
            assert_eq!(column.dictionary_page_offset().is_some(), dictionary);
        }
    }

    #[test]
    fn a_chunk_is_compressed_if_that_saves_a_third() {
        let hash = |row: u64| XxHash3_64::oneshot(&row.to_le_bytes());
        let texts = |text: &dyn Fn(u64) -> String| {
            Arc::new((0..40_000).map(|row| Some(text(row))).collect::<StringArray>()) as ArrayRef
        };
        let noise =
            |row: u64| (0..24).map(|at| char::from(b'!' + (hash(row * 24 + at) >> 57) as u8 % 94)).collect();
        let pages = |path: u64| format!("https://example.org/articles/{:06}", hash(path) % 300_000);
        let numbers = |below: u64| {
            Arc::new((0..40_000).map(|row| Some((hash(row) >> 20) % below)).collect::<UInt64Array>())
                as ArrayRef
        };
        for (name, array, expected) in [
            ("different noise", texts(&noise), false),
            ("repeated noise", texts(&|row| noise(hash(row) % 1_000)), false),
            ("different addresses", texts(&|row| pages(row)), true),
            ("repeated addresses", texts(&|row| pages(hash(row) % 20_000)), true),
            ("numbers", numbers(1_000), false),
            ("one number", numbers(1), false),
        ] {
            twins_agree(&array);
            let (_, metadata) = read(&file(&array, true));
            let chunk = metadata.row_group(0).column(0);
            let compressed = chunk.compression() != Compression::UNCOMPRESSED;
            let share = chunk.compressed_size() as f64 / chunk.uncompressed_size() as f64;
            assert_eq!(compressed, expected, "{name}: {share}");
            assert!(if compressed { share < 0.7 } else { share == 1.0 }, "{name}: {share}");
        }
    }

    #[test]
    fn a_full_dictionary_says_so() {
        let mut column = DictionaryColumn::new(&DataType::UInt64, false).unwrap();
        let values = |first: u64| Arc::new(UInt64Array::from_iter_values(first..first + 70_000)) as ArrayRef;
        column.push(&values(0)).unwrap();
        assert!(!column.is_full());
        column.push(&values(70_000)).unwrap();
        assert!(column.is_full());
        assert!(DictionaryColumn::new(&DataType::Float64, false).is_none());
    }
}
