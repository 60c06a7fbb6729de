//! Inputs and moments at the edge: each of these was once answered wrongly.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use evenkeel::source::{Input, InputOptions, InputPath, infer_columns};

use crate::common::{Run, done, evenkeel, json, run};

const CREATE: &str = "create {}/t --column k:int64:not-null --column v:utf8 --primary-key k --partitions 2";

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

fn start(dir: &Path, arguments: &[&str]) -> Child {
    let mut command = evenkeel();
    command.arg("ingest").arg(dir.join("t")).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn piped(dir: &Path, arguments: &[&str], bytes: &[u8]) -> Run {
    let mut child = start(dir, arguments);
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    Run::from(child.wait_with_output().unwrap())
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
fn the_same_file_from_many_processes_lands_once_and_none_of_them_fails() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let lines: Vec<String> = (0..2_000).map(|k| format!("{k},a")).collect();
    let file = dir.path().join("a.csv");
    std::fs::write(&file, format!("k,v\n{}\n", lines.join("\n"))).unwrap();
    let file = file.display().to_string();
    let race = |more: &[&str]| {
        let children: Vec<Child> =
            (0..4).map(|_| start(dir.path(), &[&[file.as_str()], more].concat())).collect();
        for child in children {
            let run = Run::from(child.wait_with_output().unwrap());
            assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        }
    };
    race(&[]);
    let overview = json(dir.path(), "inspect {}/t --format json");
    assert_eq!((&overview["rows"], &overview["stored_rows"]), (&2_000.into(), &2_000.into()));
    race(&["--again"]);
    let overview = json(dir.path(), "inspect {}/t --format json");
    assert_eq!((&overview["rows"], &overview["stored_rows"]), (&2_000.into(), &10_000.into()));
    assert_eq!(overview["other_files"], 0, "{overview}");
}

#[test]
fn later_files_win_also_when_their_content_came_before() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    for (name, value) in [("a", "first"), ("b", "second"), ("c", "first")] {
        std::fs::write(dir.path().join(format!("{name}.csv")), format!("k,v\n1,{value}\n")).unwrap();
    }
    done(dir.path(), "ingest {}/t {}/a.csv {}/b.csv {}/c.csv");
    std::fs::write(dir.path().join("q.sql"), "SELECT v FROM t").unwrap();
    assert_eq!(done(dir.path(), "query {}/t -f {}/q.sql --format csv"), "v\nfirst\n");
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
fn a_rejects_file_stays_only_where_something_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let csv = b"k,v\n1,a\nx,b\n";
    let first = piped(dir.path(), &["-", "--on-error", "reject", "--input-format", "csv"], csv);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let rejects = || std::fs::read_dir(dir.path().join("t/_rejects")).unwrap().count();
    assert_eq!(rejects(), 1);
    let known = piped(dir.path(), &["-", "--on-error", "reject", "--input-format", "csv"], csv);
    assert!(known.stdout.contains("already ingested"), "{}", known.stdout);
    assert_eq!(rejects(), 1);
    std::fs::write(dir.path().join("taken"), "").unwrap();
    std::fs::write(dir.path().join("b.csv"), "k,v\n7,a\n").unwrap();
    let failed = run(dir.path(), "ingest {}/t {}/b.csv --on-error reject --rejects {}/taken");
    assert!(
        failed.stderr.contains("taken: exists already; name a new file for rejected rows"),
        "{}",
        failed.stderr
    );
}

#[test]
fn a_staging_file_of_a_crash_does_not_make_a_place_full() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("t/_log")).unwrap();
    std::fs::write(dir.path().join("t/_log/.staging-1"), "half").unwrap();
    done(dir.path(), CREATE);
}

#[test]
fn a_few_rows_per_commit_are_no_hotspot() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/t --column k:int64:not-null --column v:utf8 --primary-key k --partitions 16");
    for k in 0..6 {
        std::fs::write(dir.path().join("a.csv"), format!("k,v\n{k},a\n")).unwrap();
        done(dir.path(), "ingest {}/t {}/a.csv");
    }
    let skew = json(dir.path(), "skew {}/t --format json");
    assert_ne!(skew["verdict"], "moving", "{skew}");
}

#[test]
fn types_with_commas_can_be_placed() {
    let dir = tempfile::tempdir().unwrap();
    let placed = json(dir.path(), "place --types decimal(22,9),utf8 --partitions 12 --format json 1.5 abc");
    assert_eq!(placed["hash"], u64::from_str_radix("44bc2cf5ad770999", 16).unwrap().to_string());
}

#[test]
fn csv_into_a_closed_pipe_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 20000 --out {}/in");
    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    done(dir.path(), "ingest {}/t {}/in");
    for format in ["csv", "ndjson", "json", "parquet"] {
        let mut child = evenkeel()
            .arg("query")
            .arg(dir.path().join("t"))
            .args(["-c", "SELECT * FROM t", "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let run = Run::from(child.wait_with_output().unwrap());
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{format}");
    }
}

#[test]
fn bytes_survive_a_way_out_and_in_again() {
    let dir = tempfile::tempdir().unwrap();
    done(
        dir.path(),
        "create {}/t --column k:string:not-null --column d:interval --primary-key k --partitions 2",
    );
    std::fs::write(dir.path().join("a.csv"), "k,d\nada,5\nbob,-7\n").unwrap();
    done(dir.path(), "ingest {}/t {}/a.csv");
    std::fs::write(dir.path().join("q.sql"), "SELECT * FROM t ORDER BY k").unwrap();
    assert_eq!(done(dir.path(), "query {}/t -f {}/q.sql --format csv"), "k,d\nada,5\nbob,-7\n");
}

#[test]
fn results_come_as_json_from_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let created = json(dir.path(), "create {}/t --ddl data/ad_events.sql --format json");
    assert_eq!((&created["version"], &created["table"]["partitions"]), (&0.into(), &16.into()));
    let generated = json(dir.path(), "generate ad-events --rows 50 --out {}/in --format json");
    assert_eq!(generated["files"].as_array().unwrap().len(), 1);
    let story = json(dir.path(), "demo --rows 2000 --batches 2 --nodes 1 --format json");
    assert_eq!(story["keys"].as_array().unwrap().len(), 5);
    assert_eq!(story["skew"]["partitions"], 4);
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
fn an_ingest_that_rejects_every_row_fails_and_can_be_mended() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    std::fs::write(dir.path().join("a.csv"), "k,v\nx,1\ny,2\n").unwrap();
    let failed = run(dir.path(), "ingest {}/t {}/a.csv --on-error reject");
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("all 2 rows are rejected; the first: "), "{}", failed.stderr);
    assert_eq!(std::fs::read_dir(dir.path().join("t/_rejects")).unwrap().count(), 0);
    std::fs::write(dir.path().join("a.csv"), "k,v\nx,1\n7,2\n").unwrap();
    done(dir.path(), "ingest {}/t {}/a.csv --on-error reject");
    let known = done(dir.path(), "ingest {}/t {}/a.csv");
    assert!(known.contains("already ingested as version 1, less 1 row rejected"), "{known}");
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
fn an_output_file_has_the_format_of_its_ending_and_every_row() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let lines: Vec<String> = (0..2_500).map(|k| format!("{k},a")).collect();
    std::fs::write(dir.path().join("a.csv"), format!("k,v\n{}\n", lines.join("\n"))).unwrap();
    done(dir.path(), "ingest {}/t {}/a.csv");
    std::fs::write(dir.path().join("q.sql"), "SELECT * FROM t").unwrap();
    for (file, expected) in [("o.csv", 2_501), ("o.ndjson", 2_500), ("o.txt", 2_501), ("o.json", 1)] {
        done(dir.path(), &format!("query {{}}/t -f {{}}/q.sql -o {{}}/{file}"));
        assert_eq!(
            std::fs::read_to_string(dir.path().join(file)).unwrap().lines().count(),
            expected,
            "{file}"
        );
    }
    let unknown = run(dir.path(), "query {}/t -f {}/q.sql -o {}/o.xyz");
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("name the format of the file with --format"), "{}", unknown.stderr);
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

#[test]
fn unknown_tables_and_places_are_told_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    std::fs::write(dir.path().join("q.sql"), "WITH x AS (SELECT 1) SELECT * FROM x, events").unwrap();
    let unknown = run(dir.path(), "query {}/t -f {}/q.sql");
    let known = "there is no table 'events'; there are: t, ad_events, sys.partition_stats, sys.primary_index_portion_stats";
    assert!(unknown.stderr.contains(known), "{}", unknown.stderr);
    std::fs::write(dir.path().join("a.csv"), "k\n").unwrap();
    let swapped = run(dir.path(), "ingest {}/a.csv {}/t");
    assert!(
        swapped.stderr.contains("is a table") || swapped.stderr.contains("is a file"),
        "{}",
        swapped.stderr
    );
    let remote = run(dir.path(), "create ftp://bucket/table --ddl data/ad_events.sql");
    assert!(remote.stderr.contains("stores are s3://BUCKET/"), "{}", remote.stderr);
}

#[cfg(unix)]
#[test]
fn an_interrupted_ingest_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    // A pipe that stays open: the ingest is sure to be under way.
    let mut child = start(dir.path(), &["-", "--input-format", "csv"]);
    let mut input = child.stdin.take().unwrap();
    let interrupt = |pid: u32| {
        let killed =
            std::process::Command::new("sh").args(["-c", &format!("kill -INT {pid}")]).status().unwrap();
        assert!(killed.success());
    };
    input.write_all(b"k,v\n").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    interrupt(child.id());
    // Rows go on to come until the program has ended.
    while child.try_wait().unwrap().is_none() {
        let rows: String = (0..20_000).map(|k| format!("{k},a\n")).collect();
        if input.write_all(rows.as_bytes()).is_err() {
            break;
        }
    }
    drop(input);
    let ended = Run::from(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stderr.as_str()), (130, "error: interrupted; nothing was committed\n"));
    let overview = json(dir.path(), "inspect {}/t --format json");
    assert_eq!((&overview["version"], &overview["other_files"]), (&0.into(), &0.into()));
}

#[cfg(unix)]
#[test]
fn an_ingest_that_waits_for_input_can_be_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let mut child = start(dir.path(), &["-"]);
    let input = child.stdin.take().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let kill = format!("kill -INT {}", child.id());
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    // The pipe stays open until the program has ended by itself.
    let ended = Run::from(child.wait_with_output().unwrap());
    drop(input);
    assert_eq!((ended.code, ended.stderr.as_str()), (130, "error: interrupted; nothing was committed\n"));
}
