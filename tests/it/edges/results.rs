//! Results at the edge: their formats, their pipes, and messages about unknown names.

use std::process::Stdio;

use crate::common::{Run, done, evenkeel, json, run};
use crate::edges::CREATE;

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
