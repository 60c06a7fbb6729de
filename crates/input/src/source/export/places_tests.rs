//! Samples from every part of an export, in every format.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use super::*;
use crate::source::export::sampled_lines::next_record;

const MOST: (usize, usize) = (1_000, 64 << 20);

/// Rows of an export that is sorted by tenant (there are 40): a number, a tenant and a text
/// that contains line ends.
fn batch(rows: Range<i64>, total: i64) -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone()));
    let tenant: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone().map(|id| id * 40 / total)));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(rows.map(text_of)));
    RecordBatch::try_from_iter([("id", id), ("tenant", tenant), ("text", text)]).unwrap()
}

fn text_of(id: i64) -> String {
    format!("a \"{id}\",\nb, longer than a view")
}

fn parquet(path: &Path, batch: &RecordBatch, group_rows: usize) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn csv(batch: &RecordBatch) -> Vec<u8> {
    separated(batch, b',')
}

fn separated(batch: &RecordBatch, by: u8) -> Vec<u8> {
    let builder = arrow::csv::WriterBuilder::new().with_header(true).with_delimiter(by);
    let mut writer = builder.build(Vec::new());
    writer.write(batch).unwrap();
    writer.into_inner()
}

fn ndjson(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow::json::LineDelimitedWriter::new(Vec::new());
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn arrow_file(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow::ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn across(paths: &[PathBuf]) -> RowsAcross {
    across_within(paths, MOST)
}

fn across_within(paths: &[PathBuf], most: (usize, usize)) -> RowsAcross {
    let inputs: Vec<InputPath> = paths.iter().cloned().map(InputPath::File).collect();
    let export = Export::open(&inputs, InputOptions::default(), &BTreeMap::new()).unwrap();
    let read =
        || export.rows_across::<SourceError>(OnUnreadable::Fail, most, &AtomicBool::new(false)).unwrap();
    let (first, again) = (read(), read());
    assert_eq!(first.batches, again.batches);
    first
}

fn numbers(rows: &RowsAcross, column: usize) -> Vec<i64> {
    let of_batch = |batch: &RecordBatch| batch.column(column).as_primitive::<Int64Type>().values().to_vec();
    rows.batches.iter().flat_map(of_batch).collect()
}

/// Checks that the rows are the export's own, from everywhere in it, and include all tenants.
fn check(rows: &RowsAcross, total: i64, name: &str) {
    let (ids, tenants) = (numbers(rows, 0), numbers(rows, 1));
    assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] < pair[1]), "{name}");
    assert!((500..=1_000).contains(&ids.len()), "{name}: {}", ids.len());
    assert_eq!(ids.len() as u64, rows.extent.rows, "{name}");
    assert!(!rows.extent.whole && rows.extent.places >= 50, "{name}: {:?}", rows.extent);
    assert!(tenants.iter().collect::<BTreeSet<_>>().len() == 40, "{name}");
    assert!(ids[0] < total / 40 && ids[ids.len() - 1] >= total - total / 40, "{name}");
    for (id, tenant) in ids.iter().zip(&tenants) {
        assert_eq!(*tenant, id * 40 / total, "{name}");
    }
    let texts: Vec<String> = rows
        .batches
        .iter()
        .flat_map(|batch| {
            batch.column(2).as_string_view().iter().map(|text| text.unwrap().to_owned()).collect::<Vec<_>>()
        })
        .collect();
    assert!(ids.iter().zip(&texts).all(|(id, text)| *text == text_of(*id)), "{name}");
    // A place does not hold on to the text of the rows around it.
    let held = rows.batches.iter().flat_map(|batch| batch.column(2).as_string_view().data_buffers());
    let held: usize = held.map(|buffer| buffer.capacity()).sum();
    let used: usize = texts.iter().map(String::len).sum();
    assert!(held <= 4 * used, "{name}: {held} bytes are held for {used} bytes of text");
}

#[test]
fn rows_of_every_format_come_from_everywhere_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let rows = 20_000;
    let batch = batch(0..rows, rows);
    let path = |name: &str| folder.path().join(name);
    for (name, group_rows) in [("many.parquet", 100), ("one.parquet", 1 << 20), ("odd.parquet", 7_777)] {
        parquet(&path(name), &batch, group_rows);
        check(&across(&[path(name)]), rows, name);
    }
    let (text, lines) = (csv(&batch), ndjson(&batch));
    let packed = std::fs::read(path("one.parquet")).unwrap();
    let files = [
        ("a.csv", text.clone()),
        ("a.csv.gz", gzip(&text)),
        ("semicolons.csv", separated(&batch, b';')),
        ("tabs.csv", separated(&batch, b'\t')),
        ("tabs.tsv", separated(&batch, b'\t')),
        ("bars.txt", separated(&batch, b'|')),
        ("a.ndjson", lines.clone()),
        ("a.jsonl.gz", gzip(&lines)),
        ("a.parquet.gz", gzip(&packed)),
        ("a.arrow", arrow_file(&batch)),
    ];
    for (name, bytes) in files {
        std::fs::write(path(name), bytes).unwrap();
        check(&across(&[path(name)]), rows, name);
    }
}

#[test]
fn each_of_several_files_has_a_place_and_of_very_many_some_have() {
    let folder = tempfile::tempdir().unwrap();
    let path = |number: i64, ending: &str| folder.path().join(format!("{number:04}.{ending}"));
    // A large file first, then small ones in alternating formats.
    let rows = 20_000;
    parquet(&path(0, "parquet"), &batch(0..19_000, rows), 500);
    for (number, ending) in [(1, "csv"), (2, "ndjson"), (3, "csv"), (4, "ndjson")] {
        let batch = batch(18_750 + 250 * number..19_000 + 250 * number, rows);
        let bytes = if ending == "csv" { csv(&batch) } else { ndjson(&batch) };
        std::fs::write(path(number, ending), bytes).unwrap();
    }
    let paths = [path(0, "parquet"), path(1, "csv"), path(2, "ndjson"), path(3, "csv"), path(4, "ndjson")];
    let sample = across(&paths);
    assert_eq!((sample.extent.inputs, sample.extent.of_inputs), (5, 5));
    let ids = numbers(&sample, 0);
    for begin in [0, 19_000, 19_250, 19_500, 19_750] {
        assert!(ids.iter().any(|id| (begin..begin + 250).contains(id)), "{begin}");
    }
    let many: Vec<PathBuf> = (100..400).map(|number| path(number, "csv")).collect();
    for (number, path) in (0..).zip(&many) {
        std::fs::write(path, csv(&batch(number * 10..number * 10 + 10, 3_000))).unwrap();
    }
    let sample = across(&many);
    assert_eq!((sample.extent.inputs, sample.extent.of_inputs), (200, 300));
    assert_eq!(numbers(&sample, 1).iter().collect::<BTreeSet<_>>().len(), 40);
}

#[test]
fn the_sample_is_the_same_in_every_format_of_arrow() {
    let folder = tempfile::tempdir().unwrap();
    let rows = 20_000;
    let plain = batch(0..rows, rows);
    let of_type = |text: DataType| {
        let arrays = [plain.column(0), plain.column(1), &cast(plain.column(2), &text).unwrap()];
        RecordBatch::try_from_iter(["id", "tenant", "text"].into_iter().zip(arrays.map(Arc::clone))).unwrap()
    };
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let forms = [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, dictionary];
    // About a quarter of the values, and more than all of them.
    for bytes in [250_000, 1 << 20] {
        let samples = forms.each_ref().map(|form| {
            let path = folder.path().join("a.arrow");
            // The batches of a file share the buffers of their text.
            let whole = of_type(form.clone());
            let mut writer = arrow::ipc::writer::FileWriter::try_new(Vec::new(), &whole.schema()).unwrap();
            for begin in (0..20_000).step_by(1_000) {
                writer.write(&whole.slice(begin, 1_000)).unwrap();
            }
            std::fs::write(&path, writer.into_inner().unwrap()).unwrap();
            let sample = across_within(&[path], (1 << 20, bytes));
            (numbers(&sample, 0), sample.extent.whole)
        });
        assert_eq!(samples[0].1, bytes > 500_000);
        for (sample, form) in samples.iter().zip(&forms) {
            assert!(*sample == samples[0], "{form} within {bytes}");
        }
    }
}

#[test]
fn a_small_export_is_all_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, csv(&batch(0..1_000, 1_000))).unwrap();
    let sample = across(&[path]);
    assert!(sample.extent.whole, "{:?}", sample.extent);
    assert_eq!(numbers(&sample, 0), (0..1_000).collect::<Vec<_>>());
}

#[test]
fn places_are_divided_by_bytes_and_cover_a_file() {
    assert_eq!(shares_of(&[1_000, 1, 1], 10), [8, 1, 1]);
    assert_eq!(shares_of(&[5, 5], 1).iter().sum::<usize>(), 1);
    assert_eq!(shares_of(&[u64::MAX, u64::MAX], 200), [100, 100]);
    for count in [1, 3, 200, 201, 1_000] {
        assert_eq!(shares_of(&vec![7; count], 200).iter().sum::<usize>(), 200, "{count}");
    }
    for (rows, places, length) in
        [(1_000, 10, 10), (101, 10, 10), (100, 10, 10), (7, 3, 2), (u64::MAX, 200, 500)]
    {
        let ranges = places_of_rows(rows, places, length);
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{ranges:?}");
        assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, rows));
    }
}

#[test]
fn quotes_hold_records_together_as_the_parser_has_it() {
    let texts = [
        "a,\"b\nc\",d\ne,f,g\n",
        "a,b\"c\nd,e\n",
        "\"a\"\"\nb\",c\n\"d\"e\nf\n",
        "\"a,\n\",\"\"\n\"\"\n",
        "a;\"b\nc\n",
    ];
    for text in texts {
        let mut parser =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let expected = parser.byte_records().count();
        let (mut stream, mut record, mut count) = (text.as_bytes(), Vec::new(), 0);
        while next_record(&mut stream, Some(b','), &mut record).unwrap() {
            count += 1;
        }
        assert_eq!(count, expected, "{text:?}");
    }
}
