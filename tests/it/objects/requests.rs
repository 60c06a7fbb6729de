//! Requests that a table makes to a store, and how the newest version is found by them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use async_trait::async_trait;
use evenkeel::Table;
use evenkeel::ingest::IngestOptions;
use evenkeel::maintenance::CleanOptions;
use evenkeel::query::Params;
use evenkeel::storage::TableStorage;
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::{Micros, PartitionCount};
use object_store::path::Path;

use crate::common::objects;
use crate::hooked_store::{Fate, HookedStore, Hooks, Request};

/// Requests that read, and what they read.
#[derive(Debug, Default)]
struct Counts {
    gets: AtomicU64,
    bytes: AtomicU64,
    lists: AtomicU64,
}

impl Counts {
    /// Reading requests and listings since the last time.
    fn take(&self) -> (u64, u64) {
        (self.gets.swap(0, Ordering::SeqCst), self.lists.swap(0, Ordering::SeqCst))
    }
}

#[async_trait]
impl Hooks for Counts {
    async fn fate(&self, request: Request, _location: &Path) -> Fate {
        match request {
            Request::Get => self.gets.fetch_add(1, Ordering::SeqCst),
            Request::List => self.lists.fetch_add(1, Ordering::SeqCst),
            Request::Put | Request::Upload | Request::Delete => 0,
        };
        Fate::Answered
    }

    fn read(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }
}

fn spec() -> TableSpec {
    TableSpec::new(TableDefinition {
        name: "t".into(),
        columns: vec![Column::required("k", ColumnType::Int64), Column::required("v", ColumnType::Int64)],
        primary_key: vec!["k".into()],
        partition_key: vec![],
        partitions: PartitionCount::new(2).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap()
}

async fn ingest(table: &mut Table, keys: Range<i64>) {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
    let batch = RecordBatch::try_from_iter([("k", Arc::clone(&keys)), ("v", keys)]).unwrap();
    let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch)]);
    table.ingest(stream, &IngestOptions::default()).await.unwrap();
}

fn counted() -> (Arc<Counts>, TableStorage) {
    let store = HookedStore::new(objects(), Counts::default());
    let counts = Arc::clone(&store.hooks);
    (counts, TableStorage::new(Arc::new(store), "t".into()))
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_ingesting_and_querying_list_nothing() {
    let (counts, storage) = counted();
    let mut table = Table::create_at(storage.clone(), &spec()).await.unwrap();
    counts.take();
    let rows = async |table: &Table| {
        let rows = table.session().unwrap().collect("SELECT v FROM t", &Params::default()).await.unwrap();
        rows.iter().map(RecordBatch::num_rows).sum::<usize>()
    };
    // Checkpoints are written at versions 64 and 128, and then the log is listed once.
    for version in 1..150 {
        ingest(&mut table, version..version + 2).await;
        let (_, lists) = counts.take();
        assert_eq!(lists, u64::from(version == 64 || version == 128), "version {version}");
        if [10, 63, 65, 149].contains(&version) {
            let opened = Table::open_at(storage.clone()).await.unwrap();
            assert_eq!(opened.snapshot().version().0, u64::try_from(version).unwrap());
            let (gets, lists) = counts.take();
            // The pointer twice, where to begin, the commits since, and those behind the end that
            // are asked for beside them.
            assert!(lists == 0 && gets <= 3 + (version as u64 % 64) + 8, "{gets} gets at {version}");
            assert_eq!(rows(&opened).await, usize::try_from(version).unwrap() + 1);
            assert_eq!(counts.take().1, 0);
        }
    }
    // Of a log that was copied without its hint, and is long, one listing tells where to begin.
    storage.delete("_log/latest.json").await.unwrap();
    assert_eq!(Table::open_at(storage).await.unwrap().snapshot().version().0, 149);
    assert_eq!(counts.take().1, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_reads_the_columns_and_portions_that_it_needs() {
    let (counts, storage) = counted();
    let mut table = Table::create_at(storage, &spec()).await.unwrap();
    ingest(&mut table, 0..400_000).await;
    let stored: u64 = table.snapshot().portions().iter().map(|portion| portion.bytes).sum();
    counts.bytes.store(0, Ordering::SeqCst);
    let session = table.session().unwrap();
    session.collect("SELECT max(v) FROM t WHERE k BETWEEN 5 AND 10", &Params::default()).await.unwrap();
    let read = counts.bytes.load(Ordering::SeqCst);
    assert!(read < stored / 2, "{read} of {stored} bytes");
    // The ends of the files are known by now.
    counts.take();
    table.session().unwrap().collect("SELECT count(v) FROM t WHERE k < 0", &Params::default()).await.unwrap();
    assert_eq!(counts.take(), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_version_is_found_whatever_was_cleaned_or_lost() {
    let storage = TableStorage::new(objects(), "t".into());
    let mut table = Table::create_at(storage.clone(), &spec()).await.unwrap();
    let newest = async || Table::open_at(storage.clone()).await.unwrap().snapshot().version().0;
    for version in 1..70 {
        ingest(&mut table, version..version + 1).await;
    }
    let mut slow = table.clone();
    let all = CleanOptions { keep: None, unnamed_age: Micros::DAY, ..CleanOptions::default() };
    table.clean(&all).await.unwrap();
    assert_eq!(newest().await, 69);
    ingest(&mut table, 0..1).await;
    assert_eq!(newest().await, 70);
    // A handle from before the cleaning goes on where the log is.
    slow.refresh().await.unwrap();
    assert_eq!(slow.snapshot().version().0, 70);
    // The pointer is a hint: without it, or with nonsense in it, the log is listed.
    storage.delete("_log/latest.json").await.unwrap();
    assert_eq!(newest().await, 70);
    storage.replace("_log/latest.json", "{".into()).await.unwrap();
    assert_eq!(newest().await, 70);
    let nowhere = r#"{"checkpoint": 12, "id": "x"}"#;
    storage.replace("_log/latest.json", nowhere.into()).await.unwrap();
    assert_eq!(newest().await, 70);
    // A commit that is gone is told, although what comes before it could be read.
    storage.delete("_log/latest.json").await.unwrap();
    ingest(&mut table, 0..1).await;
    ingest(&mut table, 0..1).await;
    storage.delete("_log/00000000000000000071.json").await.unwrap();
    let error = Table::open_at(storage.clone()).await.unwrap_err().to_string();
    assert!(error.contains("commit 71 is missing while commit 72 exists"), "{error}");
}
