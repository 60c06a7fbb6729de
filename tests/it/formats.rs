//! Every format, compression and way to name inputs gives the same table.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, TimestampMicrosecondArray,
    TimestampMillisecondArray,
};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::DataType;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_avro::writer::AvroWriter;
use evenkeel::generate::AdEvents;
use evenkeel::sink::{OutputFormat, Sink};
use evenkeel::source::{Export, InputOptions, InputPath, OnUnreadable, SourceError};
use parquet::arrow::ArrowWriter;

use serde_json::Value;

use crate::common::{Run, done, evenkeel, json, run};

const CREATE: &str = "create {}/t --ddl data/ad_events.sql --partitions 4";
const CONTENT: &str =
    "query {}/t --format csv -c SELECT%*%FROM%t%ORDER%BY%event_timestamp,%user_id,%campaign_id";

fn events() -> RecordBatch {
    AdEvents { rows: 500, ..AdEvents::default() }.batches(500).unwrap().next().unwrap().unwrap()
}

fn plain(format: OutputFormat) -> Vec<u8> {
    let batch = events();
    let mut sink = Sink::new(Vec::new(), format, &batch.schema()).unwrap();
    sink.write(&batch).unwrap();
    sink.finish().unwrap()
}

fn arrow_file() -> Vec<u8> {
    let batch = events();
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn arrow_stream() -> Vec<u8> {
    let batch = events();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn content(dir: &Path) -> String {
    let (arguments, sql) = CONTENT.split_once(" -c ").unwrap();
    let arguments = arguments.replace("{}", &dir.display().to_string());
    let output = evenkeel().args(arguments.split(' ')).args(["-c", &sql.replace('%', " ")]).output().unwrap();
    let run = Run::from(output);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stdout
}

fn write(path: &Path, bytes: &[u8]) -> PathBuf {
    File::create(path).unwrap().write_all(bytes).unwrap();
    path.to_owned()
}

fn inputs() -> Vec<(&'static str, Vec<u8>)> {
    let csv = plain(OutputFormat::Csv);
    let tsv = String::from_utf8(csv.clone()).unwrap().replace(',', "\t").into_bytes();
    let ndjson = plain(OutputFormat::Ndjson);
    vec![
        ("a.parquet", plain(OutputFormat::Parquet)),
        ("a.parquet.gz", gzip(&plain(OutputFormat::Parquet))),
        ("a.csv.gz", gzip(&csv)),
        ("a.csv.zst", zstd::encode_all(csv.as_slice(), 0).unwrap()),
        ("a.tsv", tsv),
        ("with-bom.csv", [b"\xef\xbb\xbf".as_slice(), &csv].concat()),
        ("crlf.csv", String::from_utf8(csv.clone()).unwrap().replace('\n', "\r\n").into_bytes()),
        ("a.csv", csv),
        ("a.ndjson.gz", gzip(&ndjson)),
        ("a.jsonl", ndjson),
        ("a.arrow", arrow_file()),
        ("a.arrows", arrow_stream()),
        ("a.arrow.zst", zstd::encode_all(arrow_file().as_slice(), 0).unwrap()),
    ]
}

/// Writes the events below `folder` with the column `name` in the names of folders, not in the
/// files.
fn write_by_folder(folder: &Path, name: &str, format: OutputFormat, file: &str) -> usize {
    let batch = events();
    let position = batch.schema().index_of(name).unwrap();
    let formatter =
        ArrayFormatter::try_new(batch.column(position).as_ref(), &FormatOptions::default()).unwrap();
    let values: Vec<String> = (0..batch.num_rows()).map(|row| formatter.value(row).to_string()).collect();
    let distinct: BTreeSet<&String> = values.iter().collect();
    for value in &distinct {
        let rows: BooleanArray = values.iter().map(|other| Some(other == *value)).collect();
        let mut part = filter_record_batch(&batch, &rows).unwrap();
        part.remove_column(position);
        let folder = folder.join(format!("{name}={}", value.replace(' ', "%20").replace(':', "%3A")));
        std::fs::create_dir_all(&folder).unwrap();
        let mut sink = Sink::new(Vec::new(), format, &part.schema()).unwrap();
        sink.write(&part).unwrap();
        write(&folder.join(file), &sink.finish().unwrap());
    }
    distinct.len()
}

#[test]
fn folders_named_by_values_give_columns() {
    let whole = tempfile::tempdir().unwrap();
    done(whole.path(), CREATE);
    write(&whole.path().join("a.parquet"), &plain(OutputFormat::Parquet));
    done(whole.path(), "ingest {}/t {}/a.parquet");
    let keys = "--partition-key user_id --partition-key campaign_id --partitions 16 --format json";
    let report = |dir: &Path, path: &str| json(dir, &format!("evaluate {{}}/{path} {keys}"));
    let expected = report(whole.path(), "a.parquet");
    for (format, file) in [
        (OutputFormat::Parquet, "a.parquet"),
        (OutputFormat::Csv, "a.csv"),
        (OutputFormat::Ndjson, "a.ndjson"),
    ] {
        for column in ["campaign_id", "event_timestamp"] {
            let dir = tempfile::tempdir().unwrap();
            let folders = write_by_folder(&dir.path().join("in"), column, format, file);
            assert!(folders > 5, "{folders}");
            done(dir.path(), CREATE);
            done(dir.path(), "ingest {}/t {}/in");
            assert_eq!(content(dir.path()), content(whole.path()), "{file} by {column}");
            let found = report(dir.path(), "in");
            assert_eq!(found["rows"], expected["rows"]);
            for key in [0, 1] {
                let rows =
                    |report: &Value| report["candidates"][key]["placements"][0]["rows_per_partition"].clone();
                assert_eq!(rows(&found), rows(&expected), "{file} by {column}, key {key}");
            }
        }
    }
}

#[test]
fn years_that_date_does_not_have_are_read_in_every_columnar_format() {
    let (days, micros): (Vec<i32>, Vec<i64>) =
        (-800_000..).step_by(20_000).take(100).map(|day| (day, i64::from(day) * 86_400_000_000)).unzip();
    let days: ArrayRef = Arc::new(Date32Array::from(days));
    let millis: ArrayRef =
        Arc::new(TimestampMillisecondArray::from_iter_values(micros.iter().map(|micros| micros / 1000)));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let micros: ArrayRef = Arc::new(TimestampMicrosecondArray::from(micros));
    let day_times: ArrayRef = cast(&days, &DataType::Date64).unwrap();
    let columns = [("id", ids), ("day", days), ("at", micros), ("at_millis", millis)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let times = RecordBatch::try_from_iter([("id", batch.column(0).clone()), ("day", day_times)]).unwrap();
    let arrow = |batch: &RecordBatch| {
        let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.into_inner().unwrap()
    };
    let mut parquet = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    parquet.write(&batch).unwrap();
    let mut avro = AvroWriter::new(Vec::new(), batch.schema().as_ref().clone()).unwrap();
    avro.write(&batch).unwrap();
    avro.finish().unwrap();
    let files = [
        ("a.parquet", parquet.into_inner().unwrap()),
        ("a.arrow", arrow(&batch)),
        ("a.avro", avro.into_inner()),
        ("b.arrow", arrow(&times)),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        write(&dir.path().join(name), &bytes);
        let report = json(dir.path(), &format!("evaluate {{}}/{name} --format json"));
        assert_eq!(report["rows"], 100, "{name}");
        for column in report["columns"].as_array().unwrap().iter().skip(1) {
            let wide = if column["name"] == "day" { "Date32" } else { "Timestamp64" };
            assert_eq!(column["type"], wide, "{name}: {column}");
        }
    }
}

#[test]
fn the_type_of_a_folder_fits_the_values_of_all_folders() {
    let dir = tempfile::tempdir().unwrap();
    let types = |folders: &[&str], file: &str, text: &str| -> Vec<String> {
        let root = tempfile::tempdir_in(dir.path()).unwrap();
        for folder in folders {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
            write(&root.path().join(folder).join(file), text.as_bytes());
        }
        let report = json(root.path(), "evaluate {} --format json");
        assert_eq!(report["rows"], 2 * folders.len());
        let columns = report["columns"].as_array().unwrap().iter();
        columns.map(|column| format!("{} {}", column["name"], column["type"]).replace('"', "")).collect()
    };
    for (file, text) in [("a.csv", "id\n1\n2\n"), ("a.ndjson", "{\"id\":1}\n{\"id\":2}\n")] {
        let of = |folders: &[&str]| types(folders, file, text);
        assert_eq!(of(&["n=1", "n=20"]), ["id Int64", "n Int64"]);
        assert_eq!(of(&["n=1", "n=two"]), ["id Int64", "n Utf8"]);
        assert_eq!(of(&["n=01", "n=12"]), ["id Int64", "n Utf8"]);
        let days = ["dt=2026-01-31/h=7", "dt=2026-02-01/h=__HIVE_DEFAULT_PARTITION__"];
        assert_eq!(of(&days), ["id Int64", "dt Date", "h Int64"]);
        // A column of the file itself is that of the file.
        assert_eq!(of(&["id=a"]), ["id Int64"]);
    }
}

#[test]
fn every_format_gives_the_same_table() {
    let mut expected = None;
    for (name, bytes) in inputs() {
        let dir = tempfile::tempdir().unwrap();
        done(dir.path(), CREATE);
        write(&dir.path().join(name), &bytes);
        done(dir.path(), &format!("ingest {{}}/t {{}}/{name}"));
        let found = content(dir.path());
        assert_eq!(found.lines().count(), 501, "{name}");
        assert_eq!(*expected.get_or_insert_with(|| found.clone()), found, "{name}");
    }
}

#[test]
fn what_has_been_read_is_known_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in inputs() {
        let path = write(&dir.path().join(name), &bytes);
        let inputs = [InputPath::File(path.clone()), InputPath::File(path)];
        let options = InputOptions { batch_rows: 500, ..InputOptions::default() };
        let export = Export::open(&inputs, options, &Default::default()).unwrap();
        let reading = export.reading().unwrap();
        assert_eq!(reading.bytes, 2 * bytes.len() as u64);
        for _ in 0..2 {
            let (mut shares, mut rows) = (Vec::new(), 0);
            let read = export.read::<SourceError>(OnUnreadable::Fail, |_, batch| {
                rows += batch.num_rows();
                shares.push((rows, reading.share()));
                Ok(true)
            });
            read.unwrap();
            assert!(shares.is_sorted_by_key(|(_, share)| *share), "{name}: {shares:?}");
            assert!(reading.share() > 0.99, "{name}: {}", reading.share());
            // When the second file begins, the first one counts as a whole.
            let (_, half) = shares.iter().find(|(read, _)| *read > rows / 2).unwrap();
            assert!(*half >= 0.49, "{name}: {half}");
        }
    }
}

#[test]
fn standard_input_is_read_in_every_format_and_known_again() {
    for (name, bytes) in inputs() {
        // Without a name, a tab cannot be told from the name.
        if name == "a.tsv" {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        done(dir.path(), CREATE);
        let ingest = || {
            let table = dir.path().join("t");
            let mut child = evenkeel()
                .arg("ingest")
                .arg(&table)
                .arg("-")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(&bytes).unwrap();
            Run::from(child.wait_with_output().unwrap())
        };
        let first = ingest();
        assert_eq!(first.code, 0, "{name}: {}", first.stderr);
        assert!(first.stdout.starts_with("version 1: 500 rows"), "{name}: {}", first.stdout);
        let second = ingest();
        assert_eq!(second.code, 0, "{name}: {}", second.stderr);
        assert!(second.stdout.contains("already ingested as version 1"), "{name}: {}", second.stdout);
    }
}

#[test]
fn folders_and_globs_land_with_one_commit_and_the_same_content_once() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    std::fs::create_dir(dir.path().join("in")).unwrap();
    for name in ["1.csv", "2.csv"] {
        write(&dir.path().join("in").join(name), &plain(OutputFormat::Csv));
    }
    write(&dir.path().join("in/3.ndjson"), &plain(OutputFormat::Ndjson));
    let out = done(dir.path(), "ingest {}/t {}/in");
    // Within one ingest the same content may come again: a later file wins over one between them.
    assert!(out.contains("version 1: 1,500 rows"), "{out}");
    assert!(out.contains("1,000 of them were superseded by later rows"), "{out}");
    // The same file under another name is still the same content.
    write(&dir.path().join("copy.csv"), &plain(OutputFormat::Csv));
    let out = done(dir.path(), "ingest {}/t {}/c*.csv");
    assert!(out.contains("already ingested as version 1; nothing to do"), "{out}");
    let out = done(dir.path(), "ingest {}/t {}/c*.csv --again");
    assert!(out.starts_with("version 2: 500 rows"), "{out}");
    assert_eq!(content(dir.path()).lines().count(), 501);
}

#[test]
fn a_damaged_input_commits_nothing_and_is_named() {
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("cut.csv.gz", gzip(&plain(OutputFormat::Csv))[..2000].to_vec(), "cut.csv.gz: cannot read"),
        (
            "cut.parquet",
            plain(OutputFormat::Parquet)[..2000].to_vec(),
            "cut.parquet: is not readable as Parquet",
        ),
        ("cut.arrow", arrow_file()[..2000].to_vec(), "cut.arrow: is not readable as Arrow IPC"),
        ("array.json", b"[{\"user_id\": \"a\"}]".to_vec(), "array.json: is one JSON array"),
        ("empty.csv", Vec::new(), "empty.csv: is empty"),
        ("noise.bin", vec![0, 1, 2, 3], "noise.bin: cannot tell the format"),
        (
            "twice.csv",
            b"user_id,user_id\na,b\n".to_vec(),
            "twice.csv: the header names column 'user_id' twice; rename one of the two",
        ),
        ("other.csv", b"x,y\n1,2\n".to_vec(), "other.csv: it has none of the expected columns"),
        ("less.csv", b"user_id,Campaign_id\na,1\n".to_vec(), "less.csv: has no column 'event_timestamp'"),
    ];
    for (name, bytes, message) in cases {
        let dir = tempfile::tempdir().unwrap();
        done(dir.path(), CREATE);
        write(&dir.path().join(name), &bytes);
        let run = run(dir.path(), &format!("ingest {{}}/t {{}}/{name}"));
        assert_eq!(run.code, 1, "{name}");
        assert!(run.stderr.contains(message), "{name}: {}", run.stderr);
        assert_eq!(content(dir.path()).lines().count(), 1, "{name}");
        let left: Vec<_> = walk(&dir.path().join("t"));
        assert_eq!(left.len(), 1, "{name}: only the first commit is left, not {left:?}");
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
