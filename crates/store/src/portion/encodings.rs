//! Chooses how each column of a portion is encoded, from a sample of its rows.

use std::hash::Hash;
use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{cast, concat, filter, is_not_null};
use arrow::datatypes::{
    DECIMAL64_MAX_PRECISION, DataType, Decimal128Type, Float32Type, Float64Type, Int64Type,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::file::properties::{DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT, WriterProperties};

use evenkeel_model::table::TableSpec;

use crate::portion::compression::{Compressor, Sizes, zstd};
use crate::portion::dictionary::{DictionaryColumn, hybrid};
use crate::portion::properties::has_bloom_filter;

/// Encoding of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnEncoding {
    /// A dictionary; plain values if they are smaller.
    Dictionary(ChunkCompression),
    /// Differences of integers.
    Differences(ChunkCompression),
    /// Each value by itself.
    Plain(ChunkCompression),
}

/// Whether the column chunks that the library writes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkCompression {
    Compressed,
    Uncompressed,
}

impl ChunkCompression {
    fn of(sizes: Sizes) -> Self {
        if sizes.compression_pays() { Self::Compressed } else { Self::Uncompressed }
    }
}

/// Rows sampled to choose an encoding.
const SAMPLE_ROWS: usize = 1 << 13;
/// Rows whose values are compressed to choose an encoding.
const FIXED_WIDTH_ROWS: usize = 1 << 12;
/// Blocks of rows of which a sample consists.
const SAMPLED_BLOCKS: usize = 4;
/// Largest size of uncompressed differences as a share of the dictionary encoding's size.
const SHARE_OF_DICTIONARY: f64 = 0.8;
/// A dictionary is not compared with plain values if it takes this part of their bytes, or less.
const CLEARLY_SMALLER: usize = 4;
/// Distinct values of half of a sample, as a share of the expected ones, from which its values count
/// as drawn at random.
const AS_DRAWN: f64 = 0.95;
/// Maximum bytes of a dictionary that the library writes.
const LIBRARY_DICTIONARY_BYTES: f64 = DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT as f64;
/// Bytes of a difference from which compression is tried: what it saves of narrow ones is little.
const WIDE_DIFFERENCE_BYTES: usize = 2;
/// Number of differences for each distinct one from which they may compress.
const FEW_DIFFERENCES: usize = 8;
/// Number of values whose differences share a width, and number that share a least difference.
const MINIBLOCK: usize = 32;
const BLOCK: usize = 128;
/// Bits of the length of a run.
const LENGTH_OF_RUN: f64 = 16.0;
/// Minimum number of bits of a block in addition to its values.
const BLOCK_HEADER: usize = 40;

/// Returns the encoding of each column, judging by the first rows of row groups of `rows` rows.
pub(super) fn column_encodings(
    spec: &TableSpec,
    first: &RecordBatch,
    rows: usize,
) -> Result<Vec<ColumnEncoding>, ParquetError> {
    let mut compressor = Compressor::new();
    let encoding = |(index, array): (usize, &ArrayRef)| {
        column_encoding(array, rows, has_bloom_filter(spec, index), &mut compressor)
    };
    first.columns().iter().enumerate().map(encoding).collect()
}

fn column_encoding(
    array: &ArrayRef,
    rows: usize,
    bloom_filter: bool,
    compressor: &mut Compressor,
) -> Result<ColumnEncoding, ParquetError> {
    if let Some(values) = stored_integers(&array.slice(0, array.len().min(SAMPLE_ROWS))) {
        // A Bloom filter contains the values of a dictionary, or else of all rows.
        let chunks = match bloom_filter {
            true => (!repeat(distinct(&values), values.len())).then_some(ChunkCompression::Uncompressed),
            false => as_differences(&values, rows)?,
        };
        if let Some(chunks) = chunks {
            return Ok(ColumnEncoding::Differences(chunks));
        }
    }
    if DictionaryColumn::can_hold(array.data_type()) {
        // Each chunk decides by itself; later ones without a dictionary are the library's.
        return Ok(ColumnEncoding::Dictionary(ChunkCompression::Compressed));
    }
    let chosen = match FixedWidth::of(&blocks_of(array)?)? {
        // As few values as this show nothing, and take little space.
        Some(values) if values.count >= FIXED_WIDTH_ROWS / 2 => {
            values.encoding(rows, bloom_filter, compressor)?
        }
        _ => ColumnEncoding::Dictionary(ChunkCompression::Compressed),
    };
    Ok(chosen)
}

/// Returns some blocks of rows, which are spread over all.
fn blocks_of(array: &ArrayRef) -> Result<ArrayRef, ParquetError> {
    if array.len() <= FIXED_WIDTH_ROWS {
        return Ok(Arc::clone(array));
    }
    let rows = FIXED_WIDTH_ROWS / SAMPLED_BLOCKS;
    let step = (array.len() - rows) / (SAMPLED_BLOCKS - 1);
    let blocks: Vec<ArrayRef> = (0..SAMPLED_BLOCKS).map(|block| array.slice(block * step, rows)).collect();
    let blocks: Vec<&dyn Array> = blocks.iter().map(AsRef::as_ref).collect();
    Ok(concat(&blocks)?)
}

/// Values of a sample that take equally many bytes, as Parquet stores them, without NULLs.
struct FixedWidth {
    bytes: Vec<u8>,
    /// Bytes of a value; 1 for flags, of which a byte has eight.
    width: usize,
    count: usize,
}

impl FixedWidth {
    fn of(sample: &ArrayRef) -> Result<Option<Self>, ParquetError> {
        let present = filter(sample, &is_not_null(sample)?)?;
        let (bytes, width) = match present.data_type() {
            DataType::Boolean => (packed(present.as_boolean().values()), 1),
            DataType::Float32 => (
                present.as_primitive::<Float32Type>().values().iter().flat_map(|v| v.to_le_bytes()).collect(),
                4,
            ),
            DataType::Float64 => (
                present.as_primitive::<Float64Type>().values().iter().flat_map(|v| v.to_le_bytes()).collect(),
                8,
            ),
            DataType::Decimal128(precision, _) => {
                let width = bytes_of_digits(*precision);
                let values = present.as_primitive::<Decimal128Type>().values().iter();
                let bytes = values.flat_map(|v| v.to_be_bytes().into_iter().skip(16 - width));
                (bytes.collect(), width)
            }
            DataType::FixedSizeBinary(width) => {
                let values = present.as_fixed_size_binary().iter().flatten();
                (values.flatten().copied().collect(), usize::try_from(*width).unwrap_or(1))
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { bytes, width, count: present.len() }))
    }

    fn encoding(
        &self,
        rows: usize,
        bloom_filter: bool,
        compressor: &mut Compressor,
    ) -> Result<ColumnEncoding, ParquetError> {
        if self.width == 1 {
            return Ok(ColumnEncoding::Plain(ChunkCompression::of(compressor.sizes(&self.bytes)?)));
        }
        let numbers = self.numbers();
        let repeats = repeat(count_of(&numbers), numbers.len());
        // A Bloom filter contains the values of a dictionary, or else of all rows.
        if bloom_filter && repeats {
            return Ok(ColumnEncoding::Dictionary(ChunkCompression::Compressed));
        }
        let dictionary = self.as_dictionary(&numbers, rows, compressor)?;
        let small = (self.bytes.len() / CLEARLY_SMALLER) as f64;
        match dictionary {
            Some((cost, chunks)) if cost <= small => return Ok(ColumnEncoding::Dictionary(chunks)),
            // The library stops using a dictionary that becomes too large.
            None if repeats => return Ok(ColumnEncoding::Dictionary(ChunkCompression::Compressed)),
            _ => {}
        }
        let plain = compressor.sizes(&self.bytes)?;
        Ok(match dictionary {
            Some((cost, chunks)) if cost < plain.cost() as f64 => ColumnEncoding::Dictionary(chunks),
            _ => ColumnEncoding::Plain(ChunkCompression::of(plain)),
        })
    }

    /// Returns the cost of the values with a dictionary of `rows` such values, and how it is
    /// stored; `None` if the dictionary would be too large.
    fn as_dictionary(
        &self,
        numbers: &[u32],
        rows: usize,
        compressor: &mut Compressor,
    ) -> Result<Option<(f64, ChunkCompression)>, ParquetError> {
        let possible = if self.width < 8 { 256_f64.powi(self.width as i32) } else { f64::INFINITY };
        let half = numbers.get(..numbers.len() / 2).unwrap_or_default();
        let distinct = expected_distinct(count_of(numbers), count_of(half), numbers.len(), rows, possible);
        let bytes = distinct * self.width as f64;
        if bytes > LIBRARY_DICTIONARY_BYTES {
            return Ok(None);
        }
        let mut page = Vec::new();
        hybrid::encode(numbers, hybrid::width_of((distinct as u32).saturating_sub(1)), &mut page);
        let sizes = compressor.sizes(&page)?;
        // Of the whole dictionary, the sample bears its share.
        let share = numbers.len() as f64 / rows.max(numbers.len()).max(1) as f64;
        let cost = sizes.cost() as f64 + bytes * share;
        // Other rows may be less alike than the sample, so that the dictionary becomes too large.
        let is_certain = bytes * 2.0 < LIBRARY_DICTIONARY_BYTES && page.len() * 8 >= numbers.len();
        Ok(Some((cost, if is_certain { ChunkCompression::of(sizes) } else { ChunkCompression::Compressed })))
    }

    /// Numbers the values in the order of their first appearance.
    fn numbers(&self) -> Vec<u32> {
        let mut known: AHashMap<&[u8], u32> = AHashMap::new();
        let numbers = self.bytes.chunks_exact(self.width).map(|value| {
            let next = known.len() as u32;
            *known.entry(value).or_insert(next)
        });
        numbers.collect()
    }
}

/// Number of distinct values that were numbered in the order of their first appearance.
fn count_of(numbers: &[u32]) -> usize {
    numbers.iter().max().map_or(0, |last| *last as usize + 1)
}

/// Whether values, of which `distinct` of `count` are distinct, repeat.
fn repeat(distinct: usize, count: usize) -> bool {
    distinct <= count / 2
}

fn packed(bits: &BooleanBuffer) -> Vec<u8> {
    let bits: Vec<u8> = bits.iter().map(u8::from).collect();
    bits.chunks(8).map(|eight| eight.iter().fold(0, |all, bit| all << 1 | bit)).collect()
}

/// Number of bytes in which Parquet stores decimals of this precision.
fn bytes_of_digits(precision: u8) -> usize {
    match precision {
        2..=9 => 4,
        1 | 10..=DECIMAL64_MAX_PRECISION => 8,
        // Enough bits for 10^precision and a sign.
        _ => ((f64::from(precision) * std::f64::consts::LOG2_10 + 1.0) / 8.0).ceil() as usize,
    }
}

/// Number of distinct values to expect in `rows` rows, of which at most `possible` exist, if a sample
/// of `count` rows has `known`, and its first half `of_half`.
fn expected_distinct(known: usize, of_half: usize, count: usize, rows: usize, possible: f64) -> f64 {
    let [known, of_half, count] = [known, of_half, count].map(|number| number.max(1) as f64);
    let most = possible.min(rows as f64);
    if let Some(all) = drawn_from(known, count)
        && of_half >= AS_DRAWN * seen_of(all, count / 2.0)
    {
        return seen_of(all, rows as f64).max(known).min(most);
    }
    // Values come one after another, as in a sorted column: each doubling of the rows adds as many
    // new ones as the second half of the sample.
    let doublings = (rows as f64).max(count).log2() - count.log2();
    (known * (known / of_half).min(2.0).powf(doublings)).min(most)
}

/// Expected number of distinct values among `rows` draws from `all` values.
fn seen_of(all: f64, rows: f64) -> f64 {
    -all * (-rows / all).exp_m1()
}

/// Number of values from which `rows` draws have `seen` distinct ones; `None` if so few values occur
/// twice that the sample does not tell.
fn drawn_from(seen: f64, rows: f64) -> Option<f64> {
    if seen > rows * 0.99 {
        return None;
    }
    let (mut least, mut most) = (seen, rows * 100.0);
    for _ in 0..50 {
        let middle = f64::midpoint(least, most);
        if seen_of(middle, rows) < seen {
            least = middle;
        } else {
            most = middle;
        }
    }
    Some(most)
}

/// Values of a column that Parquet stores as integers, without NULLs.
fn stored_integers(array: &ArrayRef) -> Option<Vec<i64>> {
    match array.data_type() {
        DataType::Decimal128(precision, _) if *precision <= DECIMAL64_MAX_PRECISION => {
            let values = array.as_primitive::<Decimal128Type>();
            values.iter().flatten().map(|value| i64::try_from(value).ok()).collect()
        }
        DataType::Date32 | DataType::Timestamp(_, _) | DataType::Duration(_) => {
            Some(cast(array, &DataType::Int64).ok()?.as_primitive::<Int64Type>().iter().flatten().collect())
        }
        integers if integers.is_integer() => {
            Some(cast(array, &DataType::Int64).ok()?.as_primitive::<Int64Type>().iter().flatten().collect())
        }
        _ => None,
    }
}

/// Returns how differences of the values are stored, if that costs less than a dictionary of `rows`
/// such values.
fn as_differences(values: &[i64], rows: usize) -> Result<Option<ChunkCompression>, ParquetError> {
    let sizes = sizes_of_differences(values)?;
    let chunks = ChunkCompression::of(sizes);
    // The cost of compressed ones already includes that they take longer to read.
    let share = if chunks == ChunkCompression::Compressed { 1.0 } else { SHARE_OF_DICTIONARY };
    let is_less = 8.0 * (sizes.cost() as f64) < share * bits_with_dictionary(values, rows);
    Ok(is_less.then_some(chunks))
}

/// Bits that the values take with a dictionary of `rows` such values.
fn bits_with_dictionary(values: &[i64], rows: usize) -> f64 {
    let (Some(least), Some(greatest)) = (values.iter().min(), values.iter().max()) else { return 0.0 };
    let possible = greatest.abs_diff(*least) as f64 + 1.0;
    let half = values.get(..values.len() / 2).unwrap_or_default();
    let distinct = expected_distinct(distinct(values), distinct(half), values.len(), rows, possible);
    let bits = distinct.log2().ceil();
    // Numbers are packed, or stored once for each run.
    let runs = values.chunk_by(|one, other| one == other).count() as f64;
    let numbers = (bits * values.len() as f64).min((bits + LENGTH_OF_RUN) * runs);
    // Its sorted values compress to about the bits of their range.
    numbers + distinct * possible.log2() * values.len() as f64 / rows.max(values.len()) as f64
}

/// Bytes that the differences of values take, and those that compression leaves if few differences
/// occur again and again, such as those of sorted hours.
fn sizes_of_differences(values: &[i64]) -> Result<Sizes, ParquetError> {
    let mut sizes = Sizes::default();
    if values.is_empty() {
        return Ok(sizes);
    }
    let differences = differences(values);
    let bytes = bits_of(&differences).div_ceil(8);
    if bytes < values.len() * WIDE_DIFFERENCE_BYTES
        || distinct(&differences) * FEW_DIFFERENCES > differences.len()
    {
        sizes.add(1, bytes, bytes);
        return Ok(sizes);
    }
    let properties = WriterProperties::builder()
        .set_compression(zstd())
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .build();
    let array: ArrayRef = Arc::new(Int64Array::from_iter_values(values.iter().copied()));
    let sample = RecordBatch::try_from_iter([("v", array)])?;
    let mut writer = ArrowWriter::try_new(Vec::new(), sample.schema(), Some(properties))?;
    writer.write(&sample)?;
    for group in writer.finish()?.row_groups() {
        let bytes = |total: i64| usize::try_from(total).unwrap_or(0);
        let chunk = group.column(0);
        sizes.add(1, bytes(chunk.uncompressed_size()), bytes(chunk.compressed_size()));
    }
    Ok(sizes)
}

fn distinct<T: Hash + Eq>(values: &[T]) -> usize {
    values.iter().collect::<AHashSet<_>>().len()
}

fn differences(values: &[i64]) -> Vec<i64> {
    let difference = |pair: &[i64]| pair.iter().rev().copied().reduce(i64::wrapping_sub).unwrap_or(0);
    values.windows(2).map(difference).collect()
}

/// Bits that differences take, as Parquet packs them.
fn bits_of(differences: &[i64]) -> usize {
    let of_block = |block: &[i64]| {
        let least = block.iter().min().copied().unwrap_or(0);
        let width = |narrow: &[i64]| {
            let widest = narrow.iter().map(|value| value.wrapping_sub(least).cast_unsigned()).max();
            narrow.len() * widest.map_or(0, |widest| (u64::BITS - widest.leading_zeros()) as usize)
        };
        BLOCK_HEADER + block.chunks(MINIBLOCK).map(width).sum::<usize>()
    };
    differences.chunks(BLOCK).map(of_block).sum()
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array};
    use arrow::datatypes::{Field, Schema};
    use parquet::arrow::ArrowSchemaConverter;
    use parquet::basic::Type;
    use twox_hash::XxHash3_64;

    use super::*;

    #[test]
    fn the_smaller_encoding_is_chosen() {
        let rows = 1_000_000;
        let hash = |row: i64| (hashed(row.cast_unsigned()) >> 20).cast_signed();
        let sample = |value: &dyn Fn(i64) -> i64| (0..8192).map(value).collect::<Vec<i64>>();
        for (name, values, expected) in [
            ("distinct numbers", sample(&|row| hash(row)), Some(ChunkCompression::Uncompressed)),
            ("prices", sample(&|row| hash(row) % 10_000_000), Some(ChunkCompression::Uncompressed)),
            (
                "sorted orders of four lines",
                sample(&|row| row / 4 * 16),
                Some(ChunkCompression::Uncompressed),
            ),
            (
                "sorted hours of few rows",
                sample(&|row| row / 4 * 3_600_000_000),
                Some(ChunkCompression::Compressed),
            ),
            ("quantities", sample(&|row| hash(row) % 50), None),
            ("line numbers", sample(&|row| row % 7), None),
            ("dates of seven years", sample(&|row| hash(row) % 2_500), None),
            ("few large numbers", sample(&|row| (hash(row) % 90) * 1_000_000_007), None),
            ("campaigns", sample(&|row| hash(row) % 1_000), None),
            ("one value", sample(&|_| 7), None),
            ("sorted months", sample(&|row| row / 3_000), None),
            ("sorted hours", sample(&|row| row / 900 * 3_600_000_000), None),
        ] {
            assert_eq!(as_differences(&values, rows).unwrap(), expected, "{name}");
        }
        assert_eq!(as_differences(&[], rows).unwrap(), None);
    }

    fn bits_of_values(values: &[i64]) -> usize {
        bits_of(&differences(values))
    }

    #[test]
    fn differences_of_extremes_do_not_overflow() {
        assert_eq!(bits_of_values(&[i64::MIN, i64::MAX, i64::MIN, 0]), BLOCK_HEADER + 3 * 64);
        assert_eq!(bits_of_values(&[5, 6, 7, 8]), BLOCK_HEADER);
        assert_eq!(bits_of_values(&[5, 6, 9]), BLOCK_HEADER + 2 * 2);
        assert_eq!(bits_of_values(&[]), 0);
    }

    fn hashed(row: u64) -> u64 {
        XxHash3_64::oneshot(&row.to_le_bytes())
    }

    fn encoding_of(
        array: &ArrayRef,
        rows: usize,
        bloom_filter: bool,
    ) -> Result<ColumnEncoding, ParquetError> {
        column_encoding(array, rows, bloom_filter, &mut Compressor::new())
    }

    fn doubles(value: impl Fn(u64) -> f64) -> ArrayRef {
        Arc::new(Float64Array::from_iter_values((0..8192).map(value)))
    }

    #[test]
    fn values_of_fixed_width_are_stored_at_the_least_cost() {
        use ChunkCompression::{Compressed, Uncompressed};
        use ColumnEncoding::{Dictionary, Plain};
        let noise = |row: u64| hashed(row) as f64 / 1e12;
        let decimals = Decimal128Array::from_iter_values((0..8192).map(|row| i128::from(hashed(row)) << 20));
        let large = decimals.with_precision_and_scale(38, 9).unwrap();
        let ids = (0..8192).map(|row| [hashed(row), hashed(row + 9_999)].map(u64::to_be_bytes).concat());
        let flags = |share: u64| {
            Arc::new(BooleanArray::from_iter((0..8192).map(|row| Some(hashed(row) % 1000 < share))))
                as ArrayRef
        };
        let floats = Float32Array::from_iter_values((0..8192).map(|row| noise(row) as f32));
        let cases: Vec<(&str, ArrayRef, ColumnEncoding)> = vec![
            ("noise", doubles(noise), Plain(Uncompressed)),
            ("short noise", Arc::new(floats), Plain(Uncompressed)),
            ("whole numbers", doubles(|row| (hashed(row) % 1_000_000) as f64), Plain(Compressed)),
            ("temperatures", doubles(|row| (hashed(row) % 400) as f64 / 10.0), Dictionary(Uncompressed)),
            ("rarely not zero", doubles(|row| (hashed(row) % 500 / 499 * 7) as f64), Dictionary(Compressed)),
            ("a cycle", doubles(|row| (row * 7 % 128) as f64), Dictionary(Compressed)),
            ("runs", doubles(|row| noise(row / 40)), Dictionary(Compressed)),
            (
                "random identifiers",
                Arc::new(FixedSizeBinaryArray::try_from_iter(ids).unwrap()),
                Plain(Uncompressed),
            ),
            ("large decimals", Arc::new(large), Plain(Compressed)),
            ("flags", flags(500), Plain(Uncompressed)),
            ("rare flags", flags(3), Plain(Compressed)),
            ("few rows", doubles(noise).slice(0, FIXED_WIDTH_ROWS / 2 - 1), Dictionary(Compressed)),
            ("no rows", arrow::array::new_null_array(&DataType::Float64, 8192), Dictionary(Compressed)),
        ];
        for (name, sample, expected) in cases {
            let chosen = encoding_of(&sample, 1_000_000, false).unwrap();
            assert_eq!(chosen, expected, "{name}");
        }
        let repeated = doubles(|row| (hashed(row) % 1_000) as f64);
        assert!(matches!(encoding_of(&repeated, 8192, true).unwrap(), Dictionary(_)));
        assert_eq!(encoding_of(&doubles(noise), 8192, true).unwrap(), Plain(Uncompressed));
    }

    fn expected_of(sample: &[u64], rows: usize, possible: f64) -> f64 {
        let half = &sample[..sample.len() / 2];
        expected_distinct(distinct(sample), distinct(half), sample.len(), rows, possible)
    }

    #[test]
    fn the_number_of_distinct_values_is_estimated_from_a_sample() {
        let rows = 1_000_000;
        for distinct in [1, 50, 1_000, 5_000, 30_000, 100_000] {
            let drawn: Vec<u64> = (0..4096).map(|row| hashed(row) % distinct).collect();
            let estimate = expected_of(&drawn, rows, f64::INFINITY);
            let ratio = estimate / distinct as f64;
            assert!((0.6..1.7).contains(&ratio), "{estimate} of {distinct} drawn at random");
        }
        for repeats in [2, 4, 100] {
            let sorted: Vec<u64> = (0..4096).map(|row| row / repeats).collect();
            let estimate = expected_of(&sorted, rows, f64::INFINITY) * repeats as f64;
            assert!((0.8e6..1.2e6).contains(&estimate), "{estimate} rows, sorted, {repeats} of a value");
        }
        let different: Vec<u64> = (0..4096).map(hashed).collect();
        assert!(expected_of(&different, rows, f64::INFINITY) > 900_000.0);
        assert!(expected_of(&different, rows, 5_000.0) <= 5_000.0);
        assert!(expected_of(&[], 0, f64::INFINITY) <= 1.0);
    }

    #[test]
    fn numbers_that_repeat_keep_a_dictionary() {
        for distinct in [2, 1_000, 5_000, 30_000] {
            let numbers = doubles(|row| hashed(hashed(row) % distinct) as f64);
            let chosen = encoding_of(&numbers, 1_000_000, false).unwrap();
            assert!(matches!(chosen, ColumnEncoding::Dictionary(_)), "{distinct}: {chosen:?}");
        }
        // The first rows have one value, so that others are expected to have more.
        let first_alike = doubles(|row| if row < 6_000 { 0.0 } else { hashed(row) as f64 });
        let chosen = encoding_of(&first_alike, 1_000_000, false).unwrap();
        assert_eq!(chosen, ColumnEncoding::Dictionary(ChunkCompression::Compressed));
        let alike = encoding_of(&doubles(|_| 7.5), 1_000_000, false).unwrap();
        assert_eq!(alike, ColumnEncoding::Dictionary(ChunkCompression::Compressed));
    }

    #[test]
    fn decimals_take_as_many_bytes_as_the_library_gives_them() {
        for precision in 1..=38 {
            let field = Field::new("c", DataType::Decimal128(precision, 0), false);
            let schema = ArrowSchemaConverter::new().convert(&Schema::new(vec![field])).unwrap();
            let column = schema.column(0);
            let expected = match column.physical_type() {
                Type::INT32 => 4,
                Type::INT64 => 8,
                _ => column.type_length() as usize,
            };
            assert_eq!(bytes_of_digits(precision), expected, "{precision}");
        }
    }
}
