//! Files that the Delta log names: cleaned, damaged, expired, listed, and exported twice at once.

use std::path::PathBuf;

use evenkeel::delta::DeltaOptions;
use evenkeel::{Table, TableError};
use serde_json::Value;

use crate::common::{done, json, run};
use crate::delta::{export, ingest, log_file};

#[test]
fn cleaning_keeps_what_the_newest_version_names_until_the_next_export() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "create {}/t --column k:int64:not-null --column v:utf8 --primary-key k --partitions 2");
    for commit in 0..3 {
        let rows: String = (0..20).map(|k| format!("{k},{commit}\n")).collect();
        ingest(dir, &format!("k,v\n{rows}"));
    }
    export(dir, "--compact");
    let rows: String = (10..30).map(|k| format!("{k},new\n")).collect();
    ingest(dir, &format!("k,v\n{rows}"));
    done(dir, "compact {}/t --full");
    let named = || -> Vec<PathBuf> {
        let text = std::fs::read_to_string(log_file(dir, 0)).unwrap();
        let adds = text.lines().filter_map(|line| {
            serde_json::from_str::<Value>(line).ok()?["add"]["path"].as_str().map(str::to_owned)
        });
        adds.map(|path| dir.join("t").join(path)).collect()
    };
    let planned = json(dir, "clean {}/t --keep 0s --dry-run --format json");
    let cleaned = json(dir, "clean {}/t --keep 0s --format json");
    for report in [&planned, &cleaned] {
        assert_eq!((&report["delta_files"], &report["portions"]), (&2.into(), &8.into()), "{report}");
    }
    assert!(named().iter().all(|file| file.exists()) && named().len() == 2);
    let text = done(dir, "clean {}/t --keep 0s");
    assert!(text.contains("kept for readers of the Delta log, until its next export: "), "{text}");
    // Neither other command takes the Delta log for its own, or for somebody's.
    let overview = json(dir, "inspect {}/t --format json");
    assert_eq!((&overview["rows"], &overview["other_files"]), (&30.into(), &2.into()));
    assert!(done(dir, "check {}/t --all").contains("0 damaged"));
    assert!(
        run(dir, "create {}/t --column k:int64:not-null --primary-key k")
            .stderr
            .contains("is a table already")
    );
    export(dir, "");
    let cleaned = json(dir, "clean {}/t --keep 0s --format json");
    assert_eq!((&cleaned["delta_files"], &cleaned["portions"]), (&0.into(), &2.into()), "{cleaned}");
    assert!(named().iter().all(|file| !file.exists()));
    assert!(log_file(dir, 1).exists());
}

#[test]
fn a_file_that_is_not_as_it_was_committed_is_not_exported() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "create {}/t --column k:int64:not-null --primary-key k --partitions 1");
    ingest(dir, "k\n1\n");
    let files = json(dir, "inspect {}/t --files --format json");
    let file = dir.join("t").join(files["files"][0]["path"].as_str().unwrap());
    let whole = std::fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    let length = flipped.len();
    flipped[length - 6] ^= 1;
    for (bytes, expected) in
        [(&whole[1..], "bytes instead of"), (&flipped, "is not the portion that the log names")]
    {
        std::fs::write(&file, bytes).unwrap();
        let refused = run(dir, "export delta {}/t");
        assert_eq!(refused.code, 1);
        assert!(
            refused.stderr.contains(expected) && refused.stderr.contains("evenkeel check"),
            "{}",
            refused.stderr
        );
    }
    std::fs::remove_file(&file).unwrap();
    assert!(run(dir, "export delta {}/t").stderr.contains("is missing"));
    assert!(!dir.join("t/_delta_log").exists());
    std::fs::write(&file, whole).unwrap();
    export(dir, "");
}

#[test]
fn expired_rows_are_told_until_a_compaction_drops_them() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "create {}/t --column at:timestamp:not-null --primary-key at --partitions 1 --ttl at=30d");
    ingest(dir, "at\n2001-01-01\n");
    let now = chrono::Utc::now().format("%Y-%m-%dT%H:%M:%S");
    ingest(dir, &format!("at\n{now}\n"));
    let report = export(dir, "");
    assert_eq!((&report["rows"], &report["expired_rows"]), (&2.into(), &1.into()));
    let merged = export(dir, "--compact");
    assert_eq!(
        (&merged["rows"], &merged["expired_rows"], &merged["removed"]),
        (&1.into(), &0.into(), &1.into())
    );
}

#[test]
fn the_files_that_a_query_reads_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "create {}/t --column k:int64:not-null --primary-key k --partitions 1");
    assert!(done(dir, "inspect {}/t --files").starts_with("t: version 0, 0 files"));
    ingest(dir, "k\n1\n5\n");
    ingest(dir, "k\n3\n");
    let text = done(dir, "inspect {}/t --files");
    assert!(text.contains("up to 2 of them share keys") && text.contains("(1) .. (5)"), "{text}");
    done(dir, "compact {}/t --max-depth 1");
    let files = json(dir, "inspect {}/t --files --format json");
    assert_eq!((&files["max_depth"], files["files"].as_array().unwrap().len()), (&1.into(), 1));
    assert_eq!((&files["files"][0]["rows"], &files["files"][0]["keys"]), (&3.into(), &"(1) .. (5)".into()));
    let path = dir.join("t").join(files["files"][0]["path"].as_str().unwrap());
    assert_eq!(files["files"][0]["bytes"].as_u64(), Some(path.metadata().unwrap().len()));
    assert!(done(dir, "inspect {}/t --files").contains("each row is in exactly one of them"));
    assert_eq!(json(dir, "inspect {}/t --files --version 1 --format json")["files"][0]["rows"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_exports_at_one_time_one_writes_and_both_end_at_the_newest_version() -> Result<(), TableError>
{
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "create {}/t --column k:int64:not-null --primary-key k --partitions 2");
    let mut old = Table::open(dir.join("t")).await?;
    for round in 0..5 {
        ingest(dir, &format!("k\n{round}\n"));
        let (mut a, mut b) = (Table::open(dir.join("t")).await?, old.clone());
        let options = DeltaOptions::default();
        let (first, second) = tokio::join!(a.export_delta(&options), b.export_delta(&options));
        let (first, second) = (first?, second?);
        assert!(first.written != second.written, "{first:?} {second:?}");
        assert_eq!((first.delta_version, second.delta_version, second.rows), (round, round, round + 1));
        // The handle moved on, though it was opened before.
        assert_eq!(b.snapshot().version(), a.snapshot().version());
        old.refresh().await?;
    }
    Ok(())
}
