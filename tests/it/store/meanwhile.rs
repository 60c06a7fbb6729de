//! Changes by others while a compaction works, which it finds when it commits.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use evenkeel::Table;
use evenkeel::compact::{CompactionOptions, Scope};
use evenkeel::ingest::IngestOptions;
use evenkeel::maintenance::CleanOptions;
use evenkeel::storage::TableStorage;
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::{Micros, PartitionCount};
use object_store::ObjectStore;

use crate::common::objects;
use crate::scripted_store::ScriptedStore;

async fn table(store: &Arc<dyn ObjectStore>, ttl: Option<&str>) -> Table {
    let definition = TableDefinition {
        name: "t".into(),
        columns: vec![
            Column::required("at", ColumnType::Timestamp),
            Column::required("k", ColumnType::Int64),
        ],
        primary_key: vec!["at".into(), "k".into()],
        partition_key: vec!["k".into()],
        partitions: PartitionCount::ONE,
        placement: PlacementFunction::Ydb,
        ttl: ttl.map(|text| text.parse().unwrap()),
    };
    let storage = TableStorage::new(store.clone(), "t".into());
    let mut table = Table::create_at(storage, &TableSpec::new(definition).unwrap()).await.unwrap();
    for start in [0, 50] {
        let day = Micros::DAY.get();
        let at = TimestampMicrosecondArray::from_iter_values((start..start + 100).map(|k| k * day));
        let batch = RecordBatch::try_from_iter([
            ("at", Arc::new(at) as ArrayRef),
            ("k", Arc::new(Int64Array::from_iter_values(start..start + 100))),
        ]);
        let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch.unwrap())]);
        table.ingest(stream, &IngestOptions::default()).await.unwrap();
    }
    table
}

fn everything() -> CompactionOptions {
    let now = Some(200 * Micros::DAY.get());
    CompactionOptions { scope: Scope::Everything, now, ..CompactionOptions::default() }
}

/// Begins a compaction, waits until it stores its first portion, does `work`, and lets the
/// compaction go on.
async fn compacted_while(
    store: &Arc<dyn ObjectStore>,
    work: impl AsyncFnOnce(Table),
) -> (evenkeel::compact::CompactionReport, Table) {
    let waiting = Arc::new(ScriptedStore::waiting(store.clone()));
    let mut slow = Table::open_at(TableStorage::new(waiting.clone(), "t".into())).await.unwrap();
    let compaction = tokio::spawn(async move { (slow.compact(&everything(), &|_| {}).await.unwrap(), slow) });
    waiting.reached().await;
    work(Table::open_at(TableStorage::new(store.clone(), "t".into())).await.unwrap()).await;
    waiting.go_on();
    compaction.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_compaction_that_was_faster_wins() {
    let store = objects();
    table(&store, None).await;
    let (report, table) = compacted_while(&store, async |mut other: Table| {
        other.compact(&everything(), &|_| {}).await.unwrap();
        let all = CleanOptions { keep: None, unnamed_age: Micros::DAY, ..CleanOptions::default() };
        other.clean(&all).await.unwrap();
    })
    .await;
    assert_eq!((report.partitions_lost, report.versions.len()), (1, 0));
    assert_eq!((table.snapshot().version().0, table.snapshot().portion_count()), (3, 1));
    assert_eq!(table.inspect().await.unwrap().rows, 150);
    assert_eq!(table.inspect().await.unwrap().other_files, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_stay_whose_time_to_live_was_taken_away() {
    let store = objects();
    table(&store, Some("at=100d")).await;
    let (report, table) = compacted_while(&store, async |mut other: Table| {
        other.alter(|definition| definition.ttl = None).await.unwrap();
    })
    .await;
    assert_eq!((report.partitions_lost, report.rows_expired), (1, 0));
    let overview = table.inspect().await.unwrap();
    assert_eq!((overview.rows, overview.portions), (150, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_were_given_up_are_not_committed() {
    let store = objects();
    table(&store, None).await;
    let waiting = Arc::new(ScriptedStore::waiting(store.clone()));
    // The second put: the portion is stored, the commit waits.
    waiting.wait_at(1);
    let mut slow = Table::open_at(TableStorage::new(waiting.clone(), "t".into())).await.unwrap();
    let compaction = tokio::spawn(async move { slow.compact(&everything(), &|_| {}).await });
    waiting.reached().await;
    let mut other = Table::open_at(TableStorage::new(store.clone(), "t".into())).await.unwrap();
    let all = CleanOptions { keep: None, unnamed_age: Micros::new(1), ..CleanOptions::default() };
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    assert_eq!(other.clean(&all).await.unwrap().unnamed_files, 1);
    waiting.go_on();
    let refused = compaction.await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("was cleaned away before it was committed"), "{refused}");
    other.refresh().await.unwrap();
    assert_eq!(other.inspect().await.unwrap().rows, 150);
    other.compact(&everything(), &|_| {}).await.unwrap();
    assert_eq!(other.inspect().await.unwrap().portions, 1);
}
