//! A whole export as one stream of batches, with the columns that it declares itself.

mod blocks;
mod contents;
mod kept_copy;
mod opening;
mod places;
mod reading;
mod sampled_lines;

pub use crate::source::export::blocks::{RowSpan, row_counts};
pub use crate::source::export::contents::Export;
pub use crate::source::export::places::{Extent, RowsAcross};
pub use crate::source::export::reading::{ExportPlace, OnUnreadable, Unreadable};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::ops::Range;
    use std::path::Path;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use arrow::compute::concat_batches;
    use arrow::datatypes::Schema;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    use super::*;
    use crate::source::error::SourceError;
    use crate::source::input_path::InputPath;
    use crate::source::options::InputOptions;
    use evenkeel_model::table::ColumnType;

    /// Writes one file per number of rows, in row groups of 100; the row numbers continue from file
    /// to file.
    fn files(folder: &Path, rows: &[i64]) -> Vec<InputPath> {
        let mut begin = 0;
        let file = |(number, rows): (usize, &i64)| {
            let numbers = begin..begin + rows;
            begin += rows;
            let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers.clone()));
            let texts: ArrayRef =
                Arc::new(StringArray::from_iter_values(numbers.map(|id| format!("row {id}"))));
            let batch = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
            let path = folder.join(format!("{number}.parquet"));
            let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100)).build();
            let file = File::create(&path).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            InputPath::File(path)
        };
        rows.iter().enumerate().map(file).collect()
    }

    fn read(
        export: &Export,
        span: Option<&RowSpan>,
        projection: &[bool],
    ) -> Result<RecordBatch, SourceError> {
        let mut batches = Vec::new();
        let each = |block: Vec<RecordBatch>| {
            batches.extend(block);
            true
        };
        match span {
            Some(span) => export.read_span::<SourceError>(span, OnUnreadable::Fail, projection, each)?,
            None => export.read_blocks::<SourceError>(OnUnreadable::Fail, projection, each)?,
        };
        let Some(first) = batches.first() else {
            return Ok(RecordBatch::new_empty(Arc::new(Schema::empty())));
        };
        Ok(concat_batches(&first.schema(), &batches).unwrap())
    }

    #[test]
    fn stretches_are_the_rows_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut inputs = files(folder.path(), &[250, 0, 1000, 7, 333]);
        let empty = folder.path().join("empty.parquet");
        std::fs::write(&empty, "").unwrap();
        inputs.insert(2, InputPath::File(empty));
        let options = InputOptions { batch_rows: 64, ..InputOptions::default() };
        let export = Export::open(&inputs, options.clone(), &BTreeMap::new()).unwrap();
        let there = Export::with_columns(inputs.clone(), options.clone(), export.columns().to_vec());
        let counts = row_counts(&inputs, &options).unwrap().unwrap();
        assert_eq!(counts, [250, 0, 0, 1000, 7, 333]);
        for projection in [[true, true], [true, false], [false, true]] {
            let whole = read(&export, None, &projection).unwrap();
            assert_eq!(whole.num_rows(), 1590);
            for length in [1, 99, 100, 251, 1590, 5000] {
                // Reading one row at a time would take too long, so only some are read.
                let step = if length == 1 { 123 } else { length };
                for begin in (0..1590).step_by(step as usize) {
                    let rows = begin..(begin + length).min(1590);
                    let expected = whole.slice(begin as usize, (rows.end - begin) as usize);
                    let span = RowSpan { rows: rows.clone(), row_counts: counts.clone() };
                    assert_eq!(
                        read(&there, Some(&span), &projection).unwrap(),
                        expected,
                        "{rows:?} {projection:?}"
                    );
                }
            }
        }
        let beyond = RowSpan { rows: 1590..2000, row_counts: counts };
        assert_eq!(read(&there, Some(&beyond), &[true, true]).unwrap().num_rows(), 0);
    }

    #[test]
    fn what_is_no_plain_parquet_has_no_row_counts() {
        let folder = tempfile::tempdir().unwrap();
        let mut inputs = files(folder.path(), &[10]);
        let options = InputOptions::default();
        let unpacked = std::fs::read(folder.path().join("0.parquet")).unwrap();
        let packed = folder.path().join("packed.parquet.zst");
        std::fs::write(&packed, zstd::encode_all(unpacked.as_slice(), 1).unwrap()).unwrap();
        let text = folder.path().join("text.csv");
        std::fs::write(&text, "id,text\n1,a\n").unwrap();
        assert_eq!(row_counts(&inputs, &options).unwrap(), Some(vec![10]));
        for other in [InputPath::File(packed), InputPath::File(text), InputPath::Stdin] {
            inputs.truncate(1);
            inputs.push(other);
            assert_eq!(row_counts(&inputs, &options).unwrap(), None, "{inputs:?}");
        }
        let nothing = folder.path().join("nothing.parquet");
        std::fs::write(&nothing, "").unwrap();
        let nothing = row_counts(&[InputPath::File(nothing)], &options);
        assert!(matches!(nothing, Err(SourceError::Empty { .. })));
    }

    #[test]
    fn a_file_that_changed_is_told_and_a_row_is_told_by_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = files(folder.path(), &[250, 400]);
        let types = BTreeMap::from([("id".to_owned(), ColumnType::Int16)]);
        let export = Export::open(&inputs, InputOptions::default(), &types).unwrap();
        let span = |rows: Range<u64>, counts: [u64; 2]| RowSpan { rows, row_counts: counts.to_vec() };
        let changed = read(&export, Some(&span(0..300, [250, 399])), &[true, true]);
        assert!(matches!(changed, Err(SourceError::Changed { expected: 399, found: Some(400), .. })));
        let types = BTreeMap::from([("id".to_owned(), ColumnType::Uint8)]);
        let export = Export::open(&inputs, InputOptions::default(), &types).unwrap();
        let problem = |span: Option<&RowSpan>| read(&export, span, &[false, true]).unwrap_err().to_string();
        let second = span(270..650, [250, 400]);
        assert!(problem(None).contains("1.parquet, row 7"), "{}", problem(None));
        assert!(problem(Some(&second)).contains("1.parquet, row 21"), "{}", problem(Some(&second)));
    }

    #[test]
    fn what_was_left_out_travels_and_adds_up() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = files(folder.path(), &[300]);
        let types = BTreeMap::from([("id".to_owned(), ColumnType::Uint8)]);
        let export = Export::open(&inputs, InputOptions::default(), &types).unwrap();
        let left_out = |rows: Range<u64>| {
            let span = RowSpan { rows, row_counts: vec![300] };
            let read: Result<Unreadable, SourceError> =
                export.read_span(&span, OnUnreadable::Skip, &[true, true], |_| true);
            let text = serde_json::to_string(&read.unwrap()).unwrap();
            serde_json::from_str::<Unreadable>(&text).unwrap()
        };
        let whole = left_out(0..300);
        let mut together = left_out(0..100);
        assert_eq!((together.rows, &together.first), (0, &None));
        together.merge(left_out(100..270));
        together.merge(left_out(270..300));
        assert_eq!((together.rows, &together), (44, &whole));
    }

    #[test]
    fn a_column_without_a_value_at_the_beginning_has_the_type_of_its_values_further_on() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            InputPath::File(path)
        };
        let rows = |begin: usize, at: &str, n: &str| -> String {
            (begin..begin + 50).map(|id| format!("{id},{at},{n},\n")).collect()
        };
        let first = write("1.csv", format!("id,at,n,never\n{}", rows(0, "", "")));
        let second = write("2.csv", format!("id,at,n,never\n{}", rows(50, "2026-01-31T10:00:00Z", "")));
        let third = write("3.csv", format!("id,at,n,never\n{}", rows(100, "2026-02-01T10:00:00Z", "7")));
        let types = |inputs: &[InputPath]| {
            let export = Export::open(inputs, InputOptions::default(), &BTreeMap::new()).unwrap();
            export.columns().iter().map(|column| column.column_type.to_string()).collect::<Vec<_>>()
        };
        let all = [first.clone(), second, third];
        assert_eq!(types(&all), ["Int64", "Timestamp", "Int64", "Utf8"]);
        assert_eq!(types(&all[..1]), ["Int64", "Utf8", "Utf8", "Utf8"]);
        // A given type is kept.
        let given = BTreeMap::from([("n".to_owned(), ColumnType::Double)]);
        let export = Export::open(&all, InputOptions::default(), &given).unwrap();
        assert_eq!(export.columns()[2].column_type, ColumnType::Double);
        let lines = write("1.ndjson", "{\"id\": 1, \"at\": null, \"s\": null}\n".repeat(10));
        let more =
            write("2.ndjson", "{\"id\": 2, \"at\": \"2026-01-31T10:00:00Z\", \"s\": \"7\"}\n".to_owned());
        let export = Export::open(&[lines, more], InputOptions::default(), &BTreeMap::new()).unwrap();
        let type_of =
            |name: &str| export.columns().iter().find(|column| column.name == name).unwrap().column_type;
        assert_eq!((type_of("at"), type_of("s")), (ColumnType::Timestamp, ColumnType::Int64));
    }
}
