//! Settings with which the library writes a portion.

use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{KeyValue as MetadataEntry, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::ColumnPath;

use crate::portion::compression::zstd;
use crate::portion::encodings::{ChunkCompression, ColumnEncoding};
use evenkeel_model::table::{FORMAT_VERSION, FORMAT_WITHOUT_DELETES, TableSpec};
use evenkeel_model::units::PartitionId;

/// Metadata of a file whose rows are deletes.
pub(super) const DELETES: &str = "evenkeel.deletes";

/// Maximum rows of a page. Queries locate the rows that they need in a portion page by page.
pub(super) const PAGE_ROWS: usize = 1 << 13;

/// Returns the settings with which the library writes the file. They also cover the columns that
/// the library encodes itself: differences, and types that only it can write. Bloom filters of
/// these columns are sized for `most_values`.
pub(super) fn writer_properties(
    spec: &TableSpec,
    partition: PartitionId,
    most_values: usize,
    encodings: &[ColumnEncoding],
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
        .set_compression(zstd())
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_key_value_metadata(Some(metadata))
        .set_sorting_columns(Some(sorting));
    let builder = with_bloom_filters(builder, spec, most_values);
    with_encodings(builder, spec, encodings).build()
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

/// Sets the encodings of the columns.
fn with_encodings(
    mut builder: WriterPropertiesBuilder,
    spec: &TableSpec,
    encodings: &[ColumnEncoding],
) -> WriterPropertiesBuilder {
    for (column, encoding) in spec.columns().iter().zip(encodings) {
        let path = ColumnPath::new(vec![column.name.clone()]);
        let (of_values, chunks) = match encoding {
            ColumnEncoding::Dictionary(chunks) => (None, *chunks),
            ColumnEncoding::Differences(chunks) => (Some(Encoding::DELTA_BINARY_PACKED), *chunks),
            ColumnEncoding::Plain(chunks) => (Some(Encoding::PLAIN), *chunks),
        };
        if chunks == ChunkCompression::Uncompressed {
            builder = builder.set_column_compression(path.clone(), Compression::UNCOMPRESSED);
        }
        if let Some(encoding) = of_values {
            // A dictionary of values that rarely repeat costs time and stores them twice.
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, encoding);
        }
    }
    builder
}

/// Whether a column has a Bloom filter: partition-key columns do, except the leading primary-key
/// column, whose ranges already prune.
pub(super) fn has_bloom_filter(spec: &TableSpec, column: usize) -> bool {
    spec.partition_key().contains(&column) && spec.primary_key().first() != Some(&column)
}
