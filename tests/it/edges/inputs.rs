//! Inputs at the edge: streams, pipes, damaged and odd files.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use evenkeel::source::{Input, InputOptions, InputPath, infer_columns};

use crate::common::{Run, done, evenkeel, json, run};
use crate::edges::{CREATE, piped};

fn batch(rows: i64) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let values: ArrayRef = Arc::new((0..rows).map(|i| Some(format!("value {i}"))).collect::<StringArray>());
    RecordBatch::try_from_iter_with_nullable([("k", keys, false), ("v", values, true)]).unwrap()
}

fn arrow_stream(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn arrow_file(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn a_second_arrow_stream_is_not_dropped_in_silence() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let one = arrow_stream(&batch(5));
    let failed = piped(dir.path(), &["-"], &[one.as_slice(), &one].concat());
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("an input is one stream; does it hold several?"), "{}", failed.stderr);
    assert_eq!(json(dir.path(), "inspect {}/t --format json")["rows"], 0);
}

#[test]
fn a_pipe_with_a_name_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let first = piped(dir.path(), &["/dev/stdin", "--input-format", "csv"], b"k,v\n1,a\n2,b\n");
    assert_eq!(first.code, 0, "{}", first.stderr);
    let again = piped(dir.path(), &["/dev/stdin", "--input-format", "csv"], b"k,v\n1,a\n2,b\n");
    assert!(again.stdout.contains("already ingested as version 1"), "{}{}", again.stdout, again.stderr);
    assert_eq!(json(dir.path(), "inspect {}/t --format json")["rows"], 2);
}

#[test]
fn the_same_column_twice_is_refused_in_arrow_too() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let field = |name: &str| Field::new(name, DataType::Int64, false);
    let schema = Arc::new(Schema::new(vec![field("k"), field("v"), field("v")]));
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let twice = RecordBatch::try_new(schema, vec![column.clone(), column.clone(), column]).unwrap();
    std::fs::write(dir.path().join("a.arrow"), arrow_file(&twice)).unwrap();
    let failed = run(dir.path(), "ingest {}/t {}/a.arrow");
    assert!(failed.stderr.contains("names column 'v' twice"), "{}", failed.stderr);
}

/// Reads everything there is to read; only a panic fails.
fn read_whatever(path: &Path) {
    let _ = infer_columns(path, &InputOptions::default());
    let columns = ["k".to_owned(), "v".to_owned()];
    if let Ok(mut input) = Input::open(&InputPath::File(path.to_owned()), &columns, &InputOptions::default())
    {
        while let Ok(Some(_)) = input.next_batch() {}
    }
}

#[test]
fn no_damage_to_an_arrow_file_is_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.arrow");
    let batch = batch(50);
    for whole in [arrow_file(&batch), arrow_stream(&batch)] {
        for position in (0..whole.len()).step_by(3) {
            let mut flipped = whole.clone();
            flipped[position] ^= 0xff;
            std::fs::write(&path, &flipped).unwrap();
            read_whatever(&path);
        }
        for end in (0..whole.len()).step_by(41) {
            std::fs::write(&path, &whole[..end]).unwrap();
            read_whatever(&path);
        }
    }
}

#[test]
fn a_record_without_end_is_refused_before_it_fills_the_memory() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let mut csv = b"k,v\n1,\"never closed\n".to_vec();
    csv.resize(70 << 20, b'x');
    std::fs::write(dir.path().join("a.csv"), &csv).unwrap();
    let failed = run(dir.path(), "ingest {}/t {}/a.csv");
    assert!(
        failed.stderr.contains("a record has more than 64 MiB; is a quote not closed?"),
        "{}",
        failed.stderr
    );
    std::fs::write(dir.path().join("a.ndjson"), &csv).unwrap();
    let failed = run(dir.path(), "ingest {}/t {}/a.ndjson --on-error reject");
    assert!(failed.stderr.contains("line 3: a record has more than 64 MiB"), "{}", failed.stderr);
}

#[test]
fn wide_rows_come_in_small_batches() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let wide = "x".repeat(200_000);
    let lines: Vec<String> = (0..200).map(|k| format!("{k},{wide}")).collect();
    std::fs::write(dir.path().join("a.csv"), format!("k,v\n{}\n", lines.join("\n"))).unwrap();
    done(dir.path(), "ingest {}/t {}/a.csv --memory 256MiB");
    std::fs::write(dir.path().join("q.sql"), "SELECT count(*) AS n, min(length(v)) AS m FROM t").unwrap();
    assert_eq!(done(dir.path(), "query {}/t -f {}/q.sql --format csv"), "n,m\n200,200000\n");
}

#[test]
fn an_empty_file_among_others_is_noted() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    std::fs::create_dir(dir.path().join("in")).unwrap();
    std::fs::write(dir.path().join("in/a.csv"), "k,v\n1,a\n").unwrap();
    std::fs::write(dir.path().join("in/b.csv"), "").unwrap();
    let out = done(dir.path(), "ingest {}/t {}/in");
    assert!(out.contains("b.csv is empty") && out.starts_with("version 1: 1 row in"), "{out}");
}

#[test]
fn a_table_is_not_taken_for_a_folder_of_exports() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let failed = run(dir.path(), "ingest {}/t {}/t");
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("is a table; its files contain superseded rows"), "{}", failed.stderr);
}

#[test]
fn a_quote_that_is_never_closed_always_fails() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    std::fs::write(dir.path().join("a.csv"), "k,v\n1,\"two\nlines\"\n2,\"open\n3,a\n4,b\n").unwrap();
    for more in ["", "--on-error reject"] {
        let failed = run(dir.path(), &format!("ingest {{}}/t {{}}/a.csv {more}"));
        assert!(
            failed.stderr.contains("a.csv, line 4: a quote is opened here and never closed"),
            "{}",
            failed.stderr
        );
    }
    std::fs::write(dir.path().join("b.csv"), "k,v\n1,\"two\nlines\"\n2,5\" disk\n").unwrap();
    done(dir.path(), "ingest {}/t {}/b.csv");
    assert_eq!(json(dir.path(), "inspect {}/t --format json")["rows"], 2);
}

#[test]
fn german_exports_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let csv = "Kunde;Datum;Zeitpunkt;Betrag\nK1;31.01.2026;31.01.2026 10:00:00;1.234,50\n";
    std::fs::write(dir.path().join("a.csv"), csv).unwrap();
    // Lines of which some have other numbers of fields do not say what separates them.
    std::fs::write(dir.path().join("doubtful.csv"), format!("{csv}K2;01.02.2026\nK3\n")).unwrap();
    let doubtful = run(dir.path(), "create {}/t --like {}/doubtful.csv --primary-key Kunde");
    assert!(doubtful.stderr.contains("Try --delimiter ';'"), "{}", doubtful.stderr);
    let reading = dir.path().join("reading");
    std::fs::write(&reading, "").unwrap();
    let options = [
        "--decimal-comma",
        "--timestamp-format",
        "Datum=%d.%m.%Y",
        "--timestamp-format",
        "Zeitpunkt=%d.%m.%Y %H:%M:%S",
    ];
    let with = |arguments: &[&str]| {
        let output = evenkeel().args(arguments).args(options).output().unwrap();
        let run = Run::from(output);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    };
    let (table, file) =
        (dir.path().join("t").display().to_string(), dir.path().join("a.csv").display().to_string());
    let created =
        with(&["create", &table, "--like", &file, "--primary-key", "Kunde,Zeitpunkt", "--nodes", "1"]);
    for line in ["Datum Date,", "Zeitpunkt Timestamp NOT NULL,", "Betrag Double,"] {
        assert!(created.contains(line), "{created}");
    }
    with(&["ingest", &table, &file]);
    std::fs::write(dir.path().join("q.sql"), "SELECT Datum, Zeitpunkt, Betrag FROM t WHERE Betrag > 1000")
        .unwrap();
    let found = done(dir.path(), "query {}/t -f {}/q.sql --format csv");
    assert_eq!(found, "Datum,Zeitpunkt,Betrag\n2026-01-31,2026-01-31T10:00:00,1234.5\n");
}
