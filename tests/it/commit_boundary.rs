//! An ingest that fails or dies around its commit: all of it is visible, or nothing.

use std::ops::Range;
use std::path::Path as FsPath;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use evenkeel::Table;
use evenkeel::ingest::IngestOptions;
use evenkeel::storage::TableStorage;
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::PartitionCount;

use crate::common::{Run, arguments, done, evenkeel, json, objects};
use crate::scripted_store::{Fault, ScriptedStore};

fn spec() -> TableSpec {
    TableSpec::new(TableDefinition {
        name: "t".into(),
        columns: vec![Column::required("k", ColumnType::Int64)],
        primary_key: vec!["k".into()],
        partition_key: vec![],
        partitions: PartitionCount::new(4).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap()
}

async fn ingest(table: &mut Table, keys: Range<i64>) -> std::result::Result<(), evenkeel::TableError> {
    let batch = RecordBatch::try_from_iter([("k", Arc::new(Int64Array::from_iter_values(keys)) as ArrayRef)])
        .unwrap();
    let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch)]);
    table.ingest(stream, &IngestOptions::default()).await.map(|_| ())
}

/// Files of one ingest of 100 rows: four portions and the commit.
const FILES_OF_INGEST: usize = 5;
/// The first commit and one ingest.
const FILES_BEFORE: usize = 1 + FILES_OF_INGEST;

#[tokio::test]
async fn every_put_of_an_ingest_may_fail_before_or_after_it_is_done() {
    for (put, fault) in (0..FILES_OF_INGEST).flat_map(|put| [(put, Fault::Before), (put, Fault::After)]) {
        let store = Arc::new(ScriptedStore::failing(objects(), FILES_BEFORE + put, fault));
        let storage = TableStorage::new(store, "t".into());
        let mut table = Table::create_at(storage.clone(), &spec()).await.unwrap();
        ingest(&mut table, 0..100).await.unwrap();
        // Where the commit itself was written and only its answer lost, the writer finds it and has
        // succeeded.
        let committed = put == FILES_OF_INGEST - 1 && fault == Fault::After;
        let outcome = ingest(&mut table, 100..200).await;
        assert_eq!(outcome.is_ok(), committed, "{put} {fault:?}: {outcome:?}");

        let mut reopened = Table::open_at(storage.clone()).await.unwrap();
        let rows = reopened.inspect().await.unwrap().rows;
        assert_eq!(rows, if committed { 200 } else { 100 }, "{put} {fault:?}");

        ingest(&mut reopened, 100..200).await.unwrap();
        assert_eq!(reopened.inspect().await.unwrap().rows, 200, "{put} {fault:?}");
        assert_eq!(Table::open_at(storage).await.unwrap().inspect().await.unwrap().rows, 200);
    }
}

#[tokio::test]
async fn two_writers_who_began_at_one_version_both_land() {
    let storage = TableStorage::new(objects(), "t".into());
    let mut first = Table::create_at(storage.clone(), &spec()).await.unwrap();
    let mut second = Table::open_at(storage.clone()).await.unwrap();
    ingest(&mut first, 0..50).await.unwrap();
    ingest(&mut second, 50..100).await.unwrap();
    let table = Table::open_at(storage).await.unwrap();
    assert_eq!(table.inspect().await.unwrap().rows, 100);
    assert_eq!(table.snapshot().version().0, 2);
    // The first writer still sees what it saw, until it looks again.
    assert_eq!(first.inspect().await.unwrap().rows, 50);
    first.refresh().await.unwrap();
    assert_eq!(first.inspect().await.unwrap().rows, 100);
}

fn kill_after(dir: &FsPath, table: &str, delay: Duration) -> Option<Run> {
    let mut child = evenkeel()
        .args(arguments(dir, &format!("ingest {table} {{}}/in")))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(delay);
    let killed = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    (!killed).then(|| Run::from(output))
}

#[test]
fn a_killed_ingest_leaves_all_or_nothing_and_can_be_run_again() {
    const ROWS: u64 = 30_000;
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), &format!("generate ad-events --rows {ROWS} --rows-per-file 10000 --out {{}}/in"));
    let mut outcomes = [0, 0];
    for step in 0..12 {
        let table = format!("{{}}/t{step}");
        done(dir.path(), &format!("create {table} --ddl data/ad_events.sql"));
        let finished = kill_after(dir.path(), &table, Duration::from_millis(step * step * 6));
        let inspect = format!("inspect {table} --format json");
        let rows = json(dir.path(), &inspect)["rows"].as_u64().unwrap();
        assert!(rows == 0 || rows == ROWS, "step {step}: {rows} rows");
        if let Some(run) = finished {
            assert_eq!((run.code, rows), (0, ROWS), "{}", run.stderr);
        }
        outcomes[usize::from(rows > 0)] += 1;
        done(dir.path(), &format!("ingest {table} {{}}/in"));
        let rows = json(dir.path(), &inspect)["rows"].as_u64().unwrap();
        assert_eq!(rows, ROWS, "step {step}, after the ingest was run again");
    }
    println!("killed before its commit: {}, after it: {}", outcomes[0], outcomes[1]);
}
