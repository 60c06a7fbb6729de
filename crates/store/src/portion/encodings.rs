//! Chooses how each column of a portion is encoded, from a sample of its rows.

use std::hash::Hash;
use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{cast, filter, is_not_null};
use arrow::datatypes::{
    DECIMAL64_MAX_PRECISION, DataType, Decimal128Type, Float32Type, Float64Type, Int64Type,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use evenkeel_model::table::TableSpec;

use crate::portion::compression::{Sizes, zstd};
use crate::portion::dictionary::{DictionaryColumn, hybrid};
use crate::portion::properties::has_bloom_filter;

/// Encoding of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnEncoding {
    /// A dictionary, or plain values where these are smaller.
    Dictionary(Chunks),
    /// Differences of integers.
    Differences(Chunks),
    /// Each value by itself.
    Plain(Chunks),
    /// The first bytes of all numbers of a page, then the second ones, and so on: the bytes of sign
    /// and exponent compress, even if no number repeats.
    ByteStreams,
}

/// Whether the column chunks that the library writes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    Compressed,
    Uncompressed,
}

impl Chunks {
    fn of(sizes: Sizes) -> Self {
        if sizes.are_worth_it() { Self::Compressed } else { Self::Uncompressed }
    }
}

/// Rows sampled to choose an encoding.
const SAMPLE_ROWS: usize = 1 << 13;
/// Rows whose values are compressed to choose an encoding.
const FIXED_WIDTH_ROWS: usize = 1 << 12;
/// Values that a sample needs to show how a column can be encoded.
const LEAST_VALUES: usize = 64;
/// Largest size of uncompressed differences as a share of the dictionary encoding's size.
const OF_A_DICTIONARY: f64 = 0.8;
/// The encoding of values as a dictionary is not compared with others if it takes this part of their
/// bytes, or less.
const SMALL: usize = 4;
/// Maximum bytes of a dictionary that the library writes.
const LIBRARY_DICTIONARY_BYTES: f64 = (1 << 20) as f64;
/// Bytes of a difference from which compression is tried: what it saves of narrow ones is little.
const WIDE_DIFFERENCE_BYTES: usize = 2;
/// Number of differences for each distinct one from which they may compress.
const FEW_DIFFERENCES: usize = 8;
/// Number of values whose differences share a width, and number that share a least difference.
const NARROW: usize = 32;
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
    let encoding = |(index, array): (usize, &ArrayRef)| {
        let sample = array.slice(0, array.len().min(SAMPLE_ROWS));
        column_encoding(&sample, rows, has_bloom_filter(spec, index))
    };
    first.columns().iter().enumerate().map(encoding).collect()
}

fn column_encoding(
    sample: &ArrayRef,
    rows: usize,
    bloom_filter: bool,
) -> Result<ColumnEncoding, ParquetError> {
    if let Some(values) = stored_integers(sample) {
        // A Bloom filter contains the values of a dictionary, or else of all rows.
        let chunks = match bloom_filter {
            true => hardly_repeat(&values).then_some(Chunks::Uncompressed),
            false => as_differences(&values, rows)?,
        };
        if let Some(chunks) = chunks {
            return Ok(ColumnEncoding::Differences(chunks));
        }
    }
    if DictionaryColumn::can_hold(sample.data_type()) {
        // Each chunk decides by itself.
        return Ok(ColumnEncoding::Dictionary(Chunks::Compressed));
    }
    let Some(values) = FixedWidth::of(&sample.slice(0, sample.len().min(FIXED_WIDTH_ROWS)))? else {
        return Ok(ColumnEncoding::Dictionary(Chunks::Compressed));
    };
    values.encoding(rows, bloom_filter)
}

/// Values of a sample that take equally many bytes, as Parquet stores them, without NULLs.
struct FixedWidth {
    bytes: Vec<u8>,
    width: usize,
    /// Whether the values are floating-point numbers.
    float: bool,
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
        let float = present.data_type().is_floating();
        Ok(Some(Self { bytes, width, float }))
    }

    fn encoding(&self, rows: usize, bloom_filter: bool) -> Result<ColumnEncoding, ParquetError> {
        if self.width == 1 {
            return Ok(ColumnEncoding::Plain(Chunks::of(Sizes::of(&self.bytes)?)));
        }
        let (numbers, distinct) = self.numbers();
        // A Bloom filter contains the values of a dictionary, or else of all rows.
        if numbers.len() < LEAST_VALUES || bloom_filter && distinct <= numbers.len() / 2 {
            return Ok(ColumnEncoding::Dictionary(Chunks::Compressed));
        }
        let dictionary = self.as_dictionary(&numbers, rows)?;
        let small = (self.bytes.len() / SMALL) as f64;
        if let Some((_, chunks)) = dictionary.filter(|(cost, _)| *cost <= small) {
            return Ok(ColumnEncoding::Dictionary(chunks));
        }
        let plain = Sizes::of(&self.bytes)?;
        let mut best = (plain.cost() as f64, ColumnEncoding::Plain(Chunks::of(plain)));
        if self.float {
            let streams = Sizes::of(&self.byte_streams())?;
            if streams.are_worth_it() && (streams.cost() as f64) < best.0 {
                best = (streams.cost() as f64, ColumnEncoding::ByteStreams);
            }
        }
        Ok(match dictionary {
            Some((cost, chunks)) if cost < best.0 => ColumnEncoding::Dictionary(chunks),
            _ => best.1,
        })
    }

    /// Returns the cost of the values with a dictionary of `rows` such values, and how it is
    /// stored; `None` if the dictionary would be too large.
    fn as_dictionary(&self, numbers: &[u32], rows: usize) -> Result<Option<(f64, Chunks)>, ParquetError> {
        let possible = if self.width < 8 { 256_f64.powi(self.width as i32) } else { f64::INFINITY };
        let distinct = expected_distinct(numbers, rows, possible);
        let bytes = distinct * self.width as f64;
        if bytes > LIBRARY_DICTIONARY_BYTES {
            return Ok(None);
        }
        let mut page = Vec::new();
        hybrid::encode(numbers, hybrid::width_of((distinct as u32).saturating_sub(1)), &mut page);
        let sizes = Sizes::of(&page)?;
        // Of the whole dictionary, the sample bears its share.
        let share = numbers.len() as f64 / rows.max(numbers.len()).max(1) as f64;
        Ok(Some((sizes.cost() as f64 + bytes * share, Chunks::of(sizes))))
    }

    /// Numbers the values in the order of their first appearance; returns the number of each, and
    /// how many there are.
    fn numbers(&self) -> (Vec<u32>, usize) {
        let mut known: AHashMap<&[u8], u32> = AHashMap::new();
        let numbers = self.bytes.chunks_exact(self.width).map(|value| {
            let next = known.len() as u32;
            *known.entry(value).or_insert(next)
        });
        let numbers = numbers.collect();
        (numbers, known.len())
    }

    /// The first byte of each value, then the second of each, and so on.
    fn byte_streams(&self) -> Vec<u8> {
        (0..self.width).flat_map(|byte| self.bytes.iter().skip(byte).step_by(self.width)).copied().collect()
    }
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
        // Those of 10^precision, with a sign.
        _ => ((f64::from(precision) * std::f64::consts::LOG2_10 + 1.0) / 8.0).ceil() as usize,
    }
}

/// Number of distinct values to expect in `rows` rows, of which at most `possible` exist.
fn expected_distinct<T: Hash + Eq>(sample: &[T], rows: usize, possible: f64) -> f64 {
    let known = distinct(sample).max(1) as f64;
    // Each doubling of the rows adds as many new values as the second half of the sample.
    let growth = known / distinct(sample.get(..sample.len() / 2).unwrap_or_default()).max(1) as f64;
    let doublings = (rows.max(sample.len()) as f64 / sample.len().max(1) as f64).log2();
    (known * growth.min(2.0).powf(doublings)).min(possible).min(rows as f64)
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

fn hardly_repeat(values: &[i64]) -> bool {
    distinct(values) > values.len() / 2
}

/// Returns how differences of the values are stored, if that costs less than a dictionary of `rows`
/// such values.
fn as_differences(values: &[i64], rows: usize) -> Result<Option<Chunks>, ParquetError> {
    let sizes = sizes_of_differences(values)?;
    let chunks = Chunks::of(sizes);
    // The cost of compressed ones already includes that they take longer to read.
    let share = if chunks == Chunks::Compressed { 1.0 } else { OF_A_DICTIONARY };
    let is_less = 8.0 * (sizes.cost() as f64) < share * bits_with_dictionary(values, rows);
    Ok(is_less.then_some(chunks))
}

/// Bits that the values take with a dictionary of `rows` such values.
fn bits_with_dictionary(values: &[i64], rows: usize) -> f64 {
    let (Some(least), Some(greatest)) = (values.iter().min(), values.iter().max()) else { return 0.0 };
    let possible = greatest.abs_diff(*least) as f64 + 1.0;
    let distinct = expected_distinct(values, rows, possible);
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
    let differences = differences(values);
    let bytes = bits_of(&differences).div_ceil(8);
    let mut sizes = Sizes::default();
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
        BLOCK_HEADER + block.chunks(NARROW).map(width).sum::<usize>()
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
            ("distinct numbers", sample(&|row| hash(row)), Some(Chunks::Uncompressed)),
            ("prices", sample(&|row| hash(row) % 10_000_000), Some(Chunks::Uncompressed)),
            ("sorted orders of four lines", sample(&|row| row / 4 * 16), Some(Chunks::Uncompressed)),
            ("sorted hours of few rows", sample(&|row| row / 4 * 3_600_000_000), Some(Chunks::Compressed)),
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

    fn doubles(value: impl Fn(u64) -> f64) -> ArrayRef {
        Arc::new(Float64Array::from_iter_values((0..8192).map(value)))
    }

    #[test]
    fn values_of_fixed_width_are_stored_at_the_least_cost() {
        use Chunks::{Compressed, Uncompressed};
        use ColumnEncoding::{ByteStreams, Dictionary, Plain};
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
            ("whole numbers", doubles(|row| (hashed(row) % 1_000_000) as f64), ByteStreams),
            ("temperatures", doubles(|row| (hashed(row) % 400) as f64 / 10.0), Dictionary(Uncompressed)),
            (
                "rarely not zero",
                doubles(|row| (hashed(row) % 500 / 499 * 7) as f64),
                Dictionary(Uncompressed),
            ),
            ("a cycle", doubles(|row| (row * 7 % 1_000) as f64), Dictionary(Compressed)),
            ("runs", doubles(|row| noise(row / 40)), Dictionary(Compressed)),
            (
                "random identifiers",
                Arc::new(FixedSizeBinaryArray::try_from_iter(ids).unwrap()),
                Plain(Uncompressed),
            ),
            ("large decimals", Arc::new(large), Plain(Compressed)),
            ("flags", flags(500), Plain(Uncompressed)),
            ("rare flags", flags(3), Plain(Compressed)),
            ("few rows", doubles(noise).slice(0, LEAST_VALUES - 1), Dictionary(Compressed)),
            ("no rows", arrow::array::new_null_array(&DataType::Float64, 8192), Dictionary(Compressed)),
        ];
        for (name, sample, expected) in cases {
            let chosen = column_encoding(&sample, 1_000_000, false).unwrap();
            assert_eq!(chosen, expected, "{name}");
        }
        let repeated = doubles(|row| (hashed(row) % 1_000) as f64);
        assert!(matches!(column_encoding(&repeated, 8192, true).unwrap(), Dictionary(_)));
        assert_eq!(column_encoding(&doubles(noise), 8192, true).unwrap(), Plain(Uncompressed));
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
