//! Encodes one column chunk of repeated values: each distinct value once, in order, and small
//! numbers for the rows.
//!
//! The alternative is the library's own writer, which encodes the other columns. This one differs
//! in cost and result: values are hashed once, as views; the dictionary is sorted, so that it
//! compresses well and the range of a page is that of its numbers; the Bloom filter takes each
//! distinct value once and is sized for them. If a dictionary would be larger than the plain
//! values, the plain values are written.

mod hybrid;
mod interner;
mod statistics;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::basic::{BoundaryOrder, Compression, Encoding, PageType, Type, ZstdLevel};
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::portion::PAGE_ROWS;
use crate::portion::dictionary::interner::{ByteValues, Interner, NULL, Values};
use crate::portion::dictionary::statistics::{Bound, chunk_statistics, lower, upper};
use evenkeel_stats::numbering::prefix;

/// Maximum bytes of plain values in a page, except for a single value that is larger.
const PAGE_BYTES: usize = 1 << 20;
/// Number of values at which a dictionary is full. It is also full at `FULL_BYTES`.
const FULL_VALUES: usize = 1 << 17;
const FULL_BYTES: usize = 4 << 20;
/// False-positive rate of a Bloom filter, which is the library's default.
const FALSE_POSITIVES: f64 = 0.05;

/// A column chunk being encoded.
#[derive(Debug)]
pub(super) struct DictionaryColumn {
    kind: Kind,
    bloom_filter: bool,
    interner: Interner,
    /// Number of each row's value, assigned in order of first appearance; `NULL` if it has none.
    numbers: Vec<u32>,
    nulls: usize,
}

/// Storage and order of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned,
    Text,
    Bytes,
}

impl Kind {
    fn of(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(TimeUnit::Millisecond | TimeUnit::Microsecond, _) => Some(Self::Signed),
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => Some(Self::Unsigned),
            DataType::Utf8 | DataType::Utf8View => Some(Self::Text),
            DataType::Binary | DataType::BinaryView => Some(Self::Bytes),
            _ => None,
        }
    }
}

/// An encoded column chunk.
pub(super) struct EncodedColumn {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
    /// Whether the dictionary was worth its size.
    pub(super) repeats: bool,
}

impl DictionaryColumn {
    /// Creates an empty chunk of a column of this type; `None` if only the library can write it.
    pub(super) fn new(data_type: &DataType, bloom_filter: bool) -> Option<Self> {
        let kind = Kind::of(data_type)?;
        let interner = match kind {
            Kind::Signed | Kind::Unsigned => Interner::of_numbers(),
            Kind::Text | Kind::Bytes => Interner::of_bytes(),
        };
        Some(Self { kind, bloom_filter, interner, numbers: Vec::new(), nulls: 0 })
    }

    /// Adds rows.
    pub(super) fn push(&mut self, array: &ArrayRef) -> Result<(), ArrowError> {
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
    pub(super) fn is_full(&self) -> bool {
        let values = self.interner.values();
        values.len() >= FULL_VALUES || values.bytes() >= FULL_BYTES
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.interner.memory() + self.numbers.capacity() * size_of::<u32>()
    }

    /// Estimated bytes of the chunk: values compress to about a half, as text of digits does;
    /// packed numbers hardly compress.
    pub(super) fn bytes(&self) -> usize {
        let values = self.interner.values();
        let width = hybrid::width_of(values.len() as u32) as usize;
        values.bytes() / 2 + self.numbers.len() * width / 8
    }

    /// Finishes the chunk of the column `descriptor`.
    pub(super) fn finish(self, descriptor: &ColumnDescPtr) -> Result<EncodedColumn, ParquetError> {
        let Self { kind, bloom_filter, interner, mut numbers, nulls } = self;
        let width = match descriptor.physical_type() {
            Type::INT32 => 4,
            _ => 8,
        };
        let (values, ranks) = Sorted::new(interner.into_values(), kind, width);
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
        if repeats {
            chunk.dictionary()?;
        }
        let mut rest = numbers.as_slice();
        while !rest.is_empty() {
            let rows = if repeats { rest.len().min(PAGE_ROWS) } else { chunk.plain_page_rows(rest) };
            let (page, after) = rest.split_at(rows);
            chunk.page(page, repeats.then_some(bits))?;
            rest = after;
        }
        chunk.finish(descriptor, numbers.len(), nulls, repeats, bloom_filter)
    }
}

/// Distinct values in order, indexed by rank.
enum Sorted {
    /// Little-endian integers of one width.
    Fixed { data: Vec<u8>, width: usize },
    /// Text and bytes in order of first appearance, and the number of each rank.
    Bytes { values: ByteValues, order: Vec<u32> },
}

impl Sorted {
    /// Returns the values in order, and the rank of each number.
    fn new(values: Values, kind: Kind, width: usize) -> (Self, Vec<u32>) {
        let sign = if kind == Kind::Signed { 1 << 63 } else { 0 };
        let mut order: Vec<(u64, u32)> = match &values {
            Values::Numbers(numbers) => numbers.iter().map(|value| value ^ sign).zip(0..).collect(),
            Values::Bytes(bytes) => {
                (0..values.len() as u32).map(|number| (prefix(bytes.get(number)), number)).collect()
            }
        };
        match &values {
            Values::Numbers(_) => order.sort_unstable(),
            Values::Bytes(bytes) => {
                order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| bytes.get(a.1).cmp(bytes.get(b.1))))
            }
        }
        let mut ranks = vec![NULL; order.len()];
        for (rank, (_, number)) in (0u32..).zip(&order) {
            if let Some(slot) = ranks.get_mut(*number as usize) {
                *slot = rank;
            }
        }
        let sorted = match values {
            Values::Numbers(_) => {
                let stored =
                    order.iter().flat_map(|(word, _)| (word ^ sign).to_le_bytes().into_iter().take(width));
                Self::Fixed { data: stored.collect(), width }
            }
            Values::Bytes(values) => {
                Self::Bytes { values, order: order.into_iter().map(|(_, number)| number).collect() }
            }
        };
        (sorted, ranks)
    }

    fn len(&self) -> u32 {
        match self {
            Self::Fixed { data, width } => (data.len() / width) as u32,
            Self::Bytes { order, .. } => order.len() as u32,
        }
    }

    fn get(&self, rank: u32) -> &[u8] {
        match self {
            Self::Fixed { data, width } => {
                let begin = rank as usize * width;
                data.get(begin..begin + width).unwrap_or_default()
            }
            Self::Bytes { values, order } => {
                order.get(rank as usize).map_or(&[], |number| values.get(*number))
            }
        }
    }

    /// Bytes of a value in plain encoding, which puts the length in front of text and bytes.
    fn plain_length(&self, rank: u32) -> usize {
        match self {
            Self::Fixed { width, .. } => *width,
            Self::Bytes { .. } => size_of::<u32>() + self.get(rank).len(),
        }
    }
}

/// Writes pages and collects their statistics.
struct ChunkWriter {
    values: Sorted,
    kind: Kind,
    nullable: bool,
    sink: TrackedWrite<Vec<u8>>,
    zstd: zstd::bulk::Compressor<'static>,
    uncompressed: usize,
    dictionary_bytes: Option<usize>,
    offsets: OffsetIndexBuilder,
    /// Ranks of the smallest and largest value of each page, and its NULLs; `None` if it has only
    /// NULLs.
    ranges: Vec<(Option<(u32, u32)>, i64)>,
}

impl ChunkWriter {
    fn new(values: Sorted, kind: Kind, nullable: bool) -> Self {
        let level = ZstdLevel::default().compression_level();
        Self {
            values,
            kind,
            nullable,
            sink: TrackedWrite::new(Vec::new()),
            zstd: zstd::bulk::Compressor::new(level).unwrap_or_default(),
            uncompressed: 0,
            dictionary_bytes: None,
            offsets: OffsetIndexBuilder::new(),
            ranges: Vec::new(),
        }
    }

    fn plain(&self, rank: u32, out: &mut Vec<u8>) {
        let value = self.values.get(rank);
        if matches!(self.kind, Kind::Text | Kind::Bytes) {
            out.extend_from_slice(&(value.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(value);
    }

    fn write(&mut self, body: &[u8], page: impl FnOnce(Bytes) -> Page) -> Result<(u64, usize), ParquetError> {
        let compressed = self.zstd.compress(body).map_err(|error| ParquetError::External(Box::new(error)))?;
        let page = CompressedPage::new(page(compressed.into()), body.len());
        let written = SerializedPageWriter::new(&mut self.sink).write_page(page)?;
        self.uncompressed += written.uncompressed_size;
        Ok((written.offset, written.compressed_size))
    }

    fn dictionary(&mut self) -> Result<(), ParquetError> {
        let mut body = Vec::new();
        let count = self.values.len();
        (0..count).for_each(|rank| self.plain(rank, &mut body));
        let page =
            |buf| Page::DictionaryPage { buf, num_values: count, encoding: Encoding::PLAIN, is_sorted: true };
        let (_, bytes) = self.write(&body, page)?;
        self.dictionary_bytes = Some(bytes);
        Ok(())
    }

    /// Number of rows that make a page of plain values, at least one.
    fn plain_page_rows(&self, ranks: &[u32]) -> usize {
        let mut bytes = 0;
        let fits = |rank: &&u32| {
            bytes += self.values.plain_length(**rank);
            bytes <= PAGE_BYTES
        };
        ranks.iter().take(PAGE_ROWS).take_while(fits).count().max(1)
    }

    /// Writes a page of rows: numbers of `bits` each, or plain values if `bits` is `None`.
    fn page(&mut self, ranks: &[u32], bits: Option<u32>) -> Result<(), ParquetError> {
        let mut body = Vec::new();
        if self.nullable {
            let levels: Vec<u32> = ranks.iter().map(|rank| u32::from(*rank != NULL)).collect();
            let mut encoded = Vec::new();
            hybrid::encode(&levels, 1, &mut encoded);
            body.extend_from_slice(&(encoded.len() as u32).to_le_bytes());
            body.extend_from_slice(&encoded);
        }
        let held: Vec<u32>;
        let present = if ranks.contains(&NULL) {
            held = ranks.iter().copied().filter(|rank| *rank != NULL).collect();
            held.as_slice()
        } else {
            ranks
        };
        let encoding = match bits {
            Some(bits) => {
                body.push(bits as u8);
                hybrid::encode(present, bits, &mut body);
                Encoding::RLE_DICTIONARY
            }
            None => {
                present.iter().for_each(|rank| self.plain(*rank, &mut body));
                Encoding::PLAIN
            }
        };
        let range = present.iter().min().copied().zip(present.iter().max().copied());
        self.ranges.push((range, (ranks.len() - present.len()) as i64));
        let page = |buf| Page::DataPage {
            buf,
            num_values: ranks.len() as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let (offset, bytes) = self.write(&body, page)?;
        self.offsets.append_row_count(ranks.len() as i64);
        self.offsets.append_offset_and_size(offset as i64, bytes as i32);
        Ok(())
    }

    fn bounds(&self, range: (u32, u32)) -> (Bound, Bound) {
        let (low, high) = (self.values.get(range.0), self.values.get(range.1));
        match self.kind {
            Kind::Signed | Kind::Unsigned => {
                (Bound { bytes: low.to_vec(), exact: true }, Bound { bytes: high.to_vec(), exact: true })
            }
            Kind::Text => (lower(low, true), upper(high, true)),
            Kind::Bytes => (lower(low, false), upper(high, false)),
        }
    }

    fn finish(
        self,
        descriptor: &ColumnDescPtr,
        rows: usize,
        nulls: usize,
        repeats: bool,
        bloom_filter: bool,
    ) -> Result<EncodedColumn, ParquetError> {
        let mut index = ColumnIndexBuilder::new(descriptor.physical_type());
        for (range, nulls) in &self.ranges {
            match range.map(|range| self.bounds(range)) {
                Some((min, max)) => index.append(false, min.bytes, max.bytes, *nulls),
                None => index.append(true, Vec::new(), Vec::new(), *nulls),
            }
        }
        index.set_boundary_order(boundary_order(&self.ranges));
        let whole = self.ranges.iter().filter_map(|(range, _)| *range);
        let whole = whole.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let unsigned = self.kind == Kind::Unsigned;
        let range = whole.map(|range| self.bounds(range));
        let statistics = chunk_statistics(descriptor.physical_type(), unsigned, range, nulls as u64);
        let filter = bloom_filter.then(|| {
            let mut filter = Sbbf::new_with_ndv_fpp(u64::from(self.values.len().max(1)), FALSE_POSITIVES)?;
            (0..self.values.len()).for_each(|rank| filter.insert(self.values.get(rank)));
            Ok::<_, ParquetError>(filter)
        });
        let filter = filter.transpose()?;
        let (encoding, mut encodings) = match repeats {
            true => (Encoding::RLE_DICTIONARY, vec![Encoding::PLAIN, Encoding::RLE]),
            false => (Encoding::PLAIN, vec![Encoding::RLE]),
        };
        encodings.push(encoding);
        let data_pages =
            PageEncodingStats { page_type: PageType::DATA_PAGE, encoding, count: self.ranges.len() as i32 };
        let dictionary_page =
            PageEncodingStats { page_type: PageType::DICTIONARY_PAGE, encoding: Encoding::PLAIN, count: 1 };
        let pages = if repeats { vec![dictionary_page, data_pages] } else { vec![data_pages] };
        let bytes = Bytes::from(self.sink.into_inner()?);
        let metadata = ColumnChunkMetaData::builder(ColumnDescPtr::clone(descriptor))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_encodings(encodings)
            .set_page_encoding_stats(pages)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_num_values(rows as i64)
            .set_data_page_offset(self.dictionary_bytes.unwrap_or(0) as i64)
            .set_dictionary_page_offset(self.dictionary_bytes.map(|_| 0))
            .set_statistics(statistics)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: filter,
            column_index: Some(index.build()?),
            offset_index: Some(self.offsets.build()),
        };
        Ok(EncodedColumn { bytes, close, repeats })
    }
}

/// Returns whether the ranges of pages rise or fall from page to page. Pages of NULLs have no
/// range.
fn boundary_order(ranges: &[(Option<(u32, u32)>, i64)]) -> BoundaryOrder {
    let known: Vec<(u32, u32)> = ranges.iter().filter_map(|(range, _)| *range).collect();
    if known.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1) {
        BoundaryOrder::ASCENDING
    } else if known.is_sorted_by(|a, b| a.0 >= b.0 && a.1 >= b.1) {
        BoundaryOrder::DESCENDING
    } else {
        BoundaryOrder::UNORDERED
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
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
    use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
    use parquet::file::page_index::column_index::ColumnIndexMetaData;
    use parquet::file::properties::{ReaderProperties, WriterProperties};
    use parquet::file::reader::FileReader;
    use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

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
            let (found, metadata) = read(&file);
            prop_assert_eq!(&found, &array);
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
