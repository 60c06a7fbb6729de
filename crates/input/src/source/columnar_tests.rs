//! Parquet files whose columns are decoded by several threads, against one reader of all columns.

use std::path::Path;

use arrow::array::{Int64Array, ListArray, StringArray, StructArray};
use arrow::datatypes::Field;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use super::*;

const ROWS: usize = 5_000;

/// Numbers, texts that repeat and texts that do not, a list and a struct, all but the first with
/// NULLs.
fn rows() -> RecordBatch {
    let numbers = || (0..ROWS as i64).map(|row| (row % 11 != 3).then_some(row * row));
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let few: ArrayRef =
        Arc::new(numbers().map(|n| n.map(|n| format!("few {}", n % 7))).collect::<StringArray>());
    let many: ArrayRef = Arc::new(numbers().map(|n| n.map(|n| format!("{n:080}"))).collect::<StringArray>());
    let lists = numbers().map(|n| n.map(|n| (0..n % 4).map(Some).collect::<Vec<_>>()));
    let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
    let inner: ArrayRef = Arc::new(numbers().collect::<Int64Array>());
    let field = |name: &str, data_type: DataType| Arc::new(Field::new(name, data_type, true));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![
        (field("a", DataType::Int64), Arc::clone(&inner)),
        (field("b", DataType::Utf8), Arc::clone(&many)),
    ]));
    let columns =
        [("id", id), ("few", few), ("many", many), ("list", list), ("nested", nested), ("n", inner)];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn write(path: &Path, batch: &RecordBatch) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1_700))
        .set_data_page_row_count_limit(300)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn open(path: &Path, columns: &[&str], options: &InputOptions, most: usize) -> ParquetReader {
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    let decoders = Decoders { most, least_bytes: 1 };
    let source = SeekableFile::Kept(path.to_owned());
    let reader = ParquetReader::open_with_decoders(&decoders, "x", source, &columns, options).unwrap();
    match &reader.reader {
        Batches::Parts(_) => assert!(most > 1 && columns.len() > 1),
        _ => assert!(most == 1 || columns.len() <= 1),
    }
    reader
}

fn next(reader: &mut ParquetReader) -> Result<Option<RecordBatch>, SourceError> {
    let batch = reader.next_batch()?;
    Ok(batch.map(|raw| match raw.cells {
        RawCells::Arrow(batch) => batch,
        RawCells::Text(_) => panic!("Parquet has no cells of text"),
    }))
}

#[test]
fn the_parts_together_are_the_rows_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    write(&path, &rows());
    let requests: [&[&str]; 5] = [
        &["id", "few", "many", "list", "nested", "n"],
        &["n", "few"],
        &["nested", "list", "id"],
        &["many"],
        &[],
    ];
    for columns in requests {
        for (range, views) in [
            (None, false),
            (None, true),
            (Some(1_650..1_800), true),
            (Some(10..11), false),
            (Some(3_400..9_000), true),
            (Some(7..7), false),
        ] {
            let options =
                InputOptions { rows: range.clone(), views, batch_rows: 450, ..InputOptions::default() };
            let mut whole = open(&path, columns, &options, 1);
            let mut expected = Vec::new();
            while let Some(batch) = next(&mut whole).unwrap() {
                expected.push(batch);
            }
            let count: usize = expected.iter().map(RecordBatch::num_rows).sum();
            let range = range.map_or(0..ROWS, |range| range.start as usize..ROWS.min(range.end as usize));
            assert_eq!(count, range.len());
            for most in [2, 3, 6] {
                let mut parts = open(&path, columns, &options, most);
                let mut found = Vec::new();
                while let Some(batch) = next(&mut parts).unwrap() {
                    found.push(batch);
                }
                assert_eq!(found, expected, "{columns:?} {range:?} {most}");
                assert!(next(&mut parts).unwrap().is_none());
            }
        }
    }
}

#[test]
fn a_file_that_is_replaced_is_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("x.parquet"), dir.path().join("y.parquet"));
    write(&path, &rows());
    write(&other, &rows().slice(0, 10));
    let columns = ["id", "few", "many", "n"];
    for most in [1, 4] {
        let mut reader = open(&path, &columns, &InputOptions::default(), most);
        let kept = dir.path().join(format!("kept {most}"));
        std::fs::hard_link(&path, &kept).unwrap();
        std::fs::copy(&other, dir.path().join("new")).unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        let mut count = 0;
        while let Some(batch) = next(&mut reader).unwrap() {
            count += batch.num_rows();
        }
        assert_eq!(count, ROWS);
        std::fs::rename(kept, &path).unwrap();
    }
}

#[test]
fn a_damaged_column_is_an_error_and_not_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    write(&path, &rows());
    let metadata = ArrowReaderMetadata::load(&File::open(&path).unwrap(), Default::default()).unwrap();
    let groups = metadata.metadata().row_groups();
    // Every byte of the texts in the last row group, whose leaf is the third of the file.
    let chunk = groups.last().unwrap().column(2).byte_range();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[chunk.0 as usize..(chunk.0 + chunk.1) as usize].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    for most in [1, 3] {
        let options = InputOptions { batch_rows: 450, ..InputOptions::default() };
        let mut parts = open(&path, &["id", "few", "many"], &options, most);
        let mut read = 0;
        let error = loop {
            match next(&mut parts) {
                Ok(Some(batch)) => {
                    let first = batch.column(0).as_primitive::<Int64Type>().value(0);
                    assert_eq!(first, read as i64);
                    read += batch.num_rows();
                }
                Ok(None) => panic!("the file ended after {read} rows"),
                Err(error) => break error,
            }
        };
        assert!(read < ROWS && matches!(error, SourceError::Format { .. }), "{error}");
    }
}
