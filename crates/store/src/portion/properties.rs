//! Encoding choices for the columns of a portion.

use ahash::AHashSet;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DECIMAL64_MAX_PRECISION, DataType, Decimal128Type, Int64Type};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue as MetadataEntry, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::ColumnPath;

use evenkeel_model::table::{FORMAT_VERSION, FORMAT_WITHOUT_DELETES, TableSpec};
use evenkeel_model::units::PartitionId;

/// Metadata of a file whose rows are deletes.
pub(super) const DELETES: &str = "evenkeel.deletes";

/// Maximum rows of a page. Queries locate the rows that they need in a portion page by page.
pub(super) const PAGE_ROWS: usize = 1 << 13;

/// Returns the settings with which the library writes the file. They also cover the columns that
/// the library encodes itself: columns in `differences`, and types that only it can write. Bloom
/// filters of these columns are sized for `most_values`.
pub(super) fn writer_properties(
    spec: &TableSpec,
    partition: PartitionId,
    most_values: usize,
    differences: &[bool],
    deletes: bool,
) -> WriterProperties {
    let primary_key: Vec<&str> = spec.primary_key_columns().map(|column| column.name.as_str()).collect();
    let format = if deletes { FORMAT_VERSION } else { FORMAT_WITHOUT_DELETES };
    let mut metadata = vec![
        MetadataEntry::new("evenkeel.format".to_owned(), format.to_string()),
        MetadataEntry::new("evenkeel.partition".to_owned(), partition.to_string()),
        MetadataEntry::new("evenkeel.primary_key".to_owned(), serde_json::json!(primary_key).to_string()),
    ];
    metadata.extend(deletes.then(|| MetadataEntry::new(DELETES.to_owned(), "true".to_owned())));
    let sorting = spec
        .primary_key()
        .iter()
        .filter_map(|index| i32::try_from(*index).ok())
        .map(|column_idx| SortingColumn { column_idx, descending: false, nulls_first: true })
        .collect();
    let builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_key_value_metadata(Some(metadata))
        .set_sorting_columns(Some(sorting));
    let builder = with_bloom_filters(builder, spec, most_values);
    with_differences(builder, spec, differences).build()
}

/// Adds the Bloom filters, sized for `most_values`.
fn with_bloom_filters(
    mut builder: WriterPropertiesBuilder,
    spec: &TableSpec,
    most_values: usize,
) -> WriterPropertiesBuilder {
    for (index, column) in spec.columns().iter().enumerate() {
        if has_bloom_filter(spec, index) {
            let path = ColumnPath::new(vec![column.name.clone()]);
            builder = builder
                .set_column_bloom_filter_enabled(path.clone(), true)
                .set_column_bloom_filter_max_ndv(path, most_values as u64);
        }
    }
    builder
}

/// Stores the columns in `differences` as such.
fn with_differences(
    mut builder: WriterPropertiesBuilder,
    spec: &TableSpec,
    differences: &[bool],
) -> WriterPropertiesBuilder {
    for (column, is_smaller) in spec.columns().iter().zip(differences) {
        if *is_smaller {
            // A dictionary of values that rarely repeat costs time and stores them twice.
            let path = ColumnPath::new(vec![column.name.clone()]);
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_compression(path.clone(), Compression::UNCOMPRESSED)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    builder
}

/// Whether a column has a Bloom filter: partition-key columns do, except the leading primary-key
/// column, whose ranges already prune.
pub(super) fn has_bloom_filter(spec: &TableSpec, column: usize) -> bool {
    spec.partition_key().contains(&column) && spec.primary_key().first() != Some(&column)
}

/// Returns which columns are stored as differences, judging by the first rows of row groups of
/// `rows` rows.
pub(super) fn stored_as_differences(spec: &TableSpec, first: &RecordBatch, rows: usize) -> Vec<bool> {
    let is_smaller = |(index, array): (usize, &ArrayRef)| {
        let sample = array.slice(0, array.len().min(SAMPLE_ROWS));
        let Some(values) = stored_integers(&sample) else { return false };
        // A Bloom filter contains the values of a dictionary, or else of all rows.
        let is_enough =
            if has_bloom_filter(spec, index) { hardly_repeat } else { are_smaller_as_differences };
        is_enough(&values, rows)
    };
    first.columns().iter().enumerate().map(is_smaller).collect()
}

/// Rows sampled to choose an encoding.
const SAMPLE_ROWS: usize = 1 << 13;
/// Largest size of differences, which are not compressed, as a share of the dictionary encoding's
/// size.
const OF_A_DICTIONARY: f64 = 0.8;
/// Number of values whose differences share a width, and number that share a least difference.
const NARROW: usize = 32;
const BLOCK: usize = 128;
/// Bits of the length of a run.
const LENGTH_OF_RUN: f64 = 16.0;
/// Minimum number of bits of a block in addition to its values.
const BLOCK_HEADER: usize = 40;

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

fn hardly_repeat(values: &[i64], _rows: usize) -> bool {
    distinct(values) > values.len() / 2
}

/// Whether the differences of values take fewer bytes than a dictionary of `rows` such values.
fn are_smaller_as_differences(values: &[i64], rows: usize) -> bool {
    let (Some(least), Some(greatest)) = (values.iter().min(), values.iter().max()) else { return false };
    let known = distinct(values).max(1) as f64;
    // Each doubling of the rows adds as many new values as the second half of the sample.
    let growth = known / distinct(values.get(..values.len() / 2).unwrap_or_default()).max(1) as f64;
    let doublings = (rows.max(values.len()) as f64 / values.len() as f64).log2();
    let possible = greatest.abs_diff(*least) as f64 + 1.0;
    let distinct = (known * growth.min(2.0).powf(doublings)).min(possible).min(rows as f64);
    let bits = distinct.log2().ceil();
    // Numbers are packed, or stored once for each run.
    let runs = values.chunk_by(|one, other| one == other).count() as f64;
    let numbers = (bits * values.len() as f64).min((bits + LENGTH_OF_RUN) * runs);
    // Its sorted values compress to about the bits of their range.
    let dictionary = distinct * possible.log2() * values.len() as f64 / rows.max(values.len()) as f64;
    (bits_of_differences(values) as f64) < OF_A_DICTIONARY * (numbers + dictionary)
}

fn distinct(values: &[i64]) -> usize {
    values.iter().collect::<AHashSet<_>>().len()
}

/// Bits that the differences of values take, as Parquet packs them.
fn bits_of_differences(values: &[i64]) -> usize {
    let differences: Vec<i64> = values
        .windows(2)
        .map(|pair| pair.iter().rev().copied().reduce(i64::wrapping_sub).unwrap_or(0))
        .collect();
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
    use super::*;

    #[test]
    fn the_smaller_encoding_is_chosen() {
        let rows = 1_000_000;
        let hash = |row: i64| (row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()) as u64 >> 20) as i64;
        let sample = |value: &dyn Fn(i64) -> i64| (0..8192).map(value).collect::<Vec<i64>>();
        for (name, values, expected) in [
            ("distinct numbers", sample(&|row| hash(row)), true),
            ("prices", sample(&|row| hash(row) % 10_000_000), true),
            ("sorted orders of four lines", sample(&|row| row / 4 * 16), true),
            ("quantities", sample(&|row| hash(row) % 50), false),
            ("line numbers", sample(&|row| row % 7), false),
            ("dates of seven years", sample(&|row| hash(row) % 2_500), false),
            ("few large numbers", sample(&|row| (hash(row) % 90) * 1_000_000_007), false),
            ("campaigns", sample(&|row| hash(row) % 1_000), false),
            ("one value", sample(&|_| 7), false),
            ("sorted months", sample(&|row| row / 3_000), false),
            ("sorted hours", sample(&|row| row / 900 * 3_600_000_000), false),
        ] {
            assert_eq!(are_smaller_as_differences(&values, rows), expected, "{name}");
        }
        assert!(!are_smaller_as_differences(&[], rows));
    }

    #[test]
    fn differences_of_extremes_do_not_overflow() {
        assert_eq!(bits_of_differences(&[i64::MIN, i64::MAX, i64::MIN, 0]), BLOCK_HEADER + 3 * 64);
        assert_eq!(bits_of_differences(&[5, 6, 7, 8]), BLOCK_HEADER);
        assert_eq!(bits_of_differences(&[5, 6, 9]), BLOCK_HEADER + 2 * 2);
        assert_eq!(bits_of_differences(&[]), 0);
    }
}
