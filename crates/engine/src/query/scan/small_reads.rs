//! Reads that are so small that decoding all columns of all rows takes less time than anything that
//! avoids it.
//!
//! The reader of Parquet prepares to decode a column once for each condition on it and once more for
//! the output, and fetches what conditions read before the rest. With 256 partitions, a table of a
//! million rows has 4,000 in each file, and preparing took longer than decoding.

use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

/// Values of a small read, at most.
const MOST_VALUES: usize = 1 << 15;

/// Bytes of its columns, uncompressed but encoded, at most.
const MOST_BYTES: f64 = 262_144.0;

/// Whether columns, as positions among those of a file, have few values in the selected rows.
pub(super) fn is_small(access: &ParquetAccessPlan, file: &ParquetMetaData, columns: &[usize]) -> bool {
    let schema = file.file_metadata().schema_descr();
    let leaves = (0..schema.num_columns())
        .filter(|leaf| columns.binary_search(&schema.get_column_root_idx(*leaf)).is_ok());
    let leaves: Vec<usize> = leaves.collect();
    let (mut values, mut bytes) = (0_usize, 0.0);
    for (row_group, access) in file.row_groups().iter().zip(access.inner()) {
        let all = usize::try_from(row_group.num_rows()).unwrap_or(0);
        let rows = match access {
            RowGroupAccess::Skip => 0,
            RowGroupAccess::Scan => all,
            RowGroupAccess::Selection(rows) => rows.row_count(),
        };
        values = values.saturating_add(rows.saturating_mul(leaves.len()));
        if values > MOST_VALUES {
            return false;
        }
        let chunks = leaves.iter().filter_map(|leaf| row_group.columns().get(*leaf));
        bytes += chunks.map(|chunk| decoded_bytes(chunk, rows as f64 / all.max(1) as f64)).sum::<f64>();
    }
    bytes <= MOST_BYTES
}

/// Bytes of a column chunk that are decoded for a share of its rows: its dictionary is read as a
/// whole. Dictionary and pages are taken to be compressed alike.
fn decoded_bytes(chunk: &ColumnChunkMetaData, share: f64) -> f64 {
    if share == 0.0 {
        return 0.0;
    }
    let start = chunk.dictionary_page_offset().filter(|start| *start > 0);
    let dictionary = start.map_or(0.0, |start| (chunk.data_page_offset() as f64 - start as f64).max(0.0));
    let of_dictionary = (dictionary / (chunk.compressed_size() as f64).max(1.0)).min(1.0);
    chunk.uncompressed_size() as f64 * (of_dictionary + (1.0 - of_dictionary) * share)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection, RowSelector};
    use parquet::file::properties::WriterProperties;

    use super::*;

    #[test]
    fn values_and_bytes_are_those_of_the_selected_rows_and_columns() {
        const ROWS: i64 = 100_000;
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| row % 100)));
        let texts = |width: usize, distinct: i64| -> ArrayRef {
            let texts = (0..ROWS).map(move |row| format!("{:0width$}", row % distinct));
            Arc::new(StringArray::from_iter_values(texts))
        };
        let columns =
            [("a", Arc::clone(&numbers)), ("b", numbers), ("c", texts(200, ROWS)), ("d", texts(500, 1_000))];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(20_000))
            .set_column_dictionary_enabled("c".into(), false)
            .build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let file = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
        let file = file.metadata();
        let groups = |selected: &[usize]| {
            let mut access = ParquetAccessPlan::new_none(5);
            selected.iter().for_each(|group| access.scan(*group));
            access
        };
        let some_of_first = |rows: usize| {
            let mut access = groups(&[0]);
            let selection = vec![RowSelector::select(rows), RowSelector::skip(20_000 - rows)];
            access.scan_selection(0, RowSelection::from(selection));
            access
        };
        for (access, columns, expected) in [
            (groups(&[3]), vec![0], true),
            (groups(&[3]), vec![0, 1], false),
            (groups(&[1, 3]), vec![1], false),
            (groups(&[]), vec![0, 1, 2], true),
            (some_of_first(16_000), vec![0, 1], true),
            (some_of_first(17_000), vec![0, 1], false),
            // 200 bytes each.
            (some_of_first(1_000), vec![0, 2], true),
            (some_of_first(1_500), vec![0, 2], false),
            // The dictionary is read as a whole.
            (some_of_first(10), vec![3], false),
            (ParquetAccessPlan::new_all(5), vec![0], false),
        ] {
            assert_eq!(is_small(&access, file, &columns), expected, "{access:?} {columns:?}");
        }
    }
}
