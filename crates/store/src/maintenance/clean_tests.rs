//! Files that a cleaning deletes and keeps.

use std::sync::Arc;

use object_store::memory::InMemory;

use super::*;
use crate::log::{Operation, PortionEntry, Sequence};
use evenkeel_model::table::{
    Column, ColumnType, KeyRange, KeyValue, PlacementFunction, TableDefinition, TableSpec,
};
use evenkeel_model::units::{PartitionCount, PartitionId};
use evenkeel_storage::TableStorage;

fn portion(path: &str) -> PortionEntry {
    let key_range = KeyRange { min: vec![KeyValue::Int(0)], max: vec![KeyValue::Int(9)] };
    PortionEntry {
        path: path.into(),
        partition: PartitionId(0),
        sequence: Sequence { version: Version(1), ordinal: 0 },
        rows: 10,
        bytes: 7,
        column_ranges: vec![key_range.clone()],
        key_range,
        xxh3: String::new(),
        deletes: false,
    }
}

const OLD: &str = "partition=0000/old.parquet";
const MERGED: &str = "partition=0000/merged.parquet";
const UNNAMED: &str = "partition=0000/unnamed.parquet";
const FOREIGN: &str = "partition=0000/notes.txt";

async fn commit(log: &TableLog, base: &Snapshot, draft: CommitDraft) -> Snapshot {
    match log.try_commit(base, &draft).await.unwrap() {
        CommitOutcome::Committed(snapshot) => snapshot,
        CommitOutcome::Lost(newest) => panic!("lost to version {}", newest.version()),
    }
}

/// A table whose version 2 has merged the portion of version 1, with two files that no commit
/// names.
async fn compacted() -> (TableLog, Snapshot) {
    let spec = TableSpec::new(TableDefinition {
        name: "t".into(),
        columns: vec![Column::required("k", ColumnType::Int64)],
        primary_key: vec!["k".into()],
        partition_key: vec![],
        partitions: PartitionCount::ONE,
        placement: PlacementFunction::Ydb,
        ttl: None,
    });
    let storage = TableStorage::new(Arc::new(InMemory::new()), "t".into());
    let (log, first) = TableLog::create(storage, &spec.unwrap()).await.unwrap();
    for path in [OLD, MERGED, UNNAMED, FOREIGN] {
        log.storage().put_new(path, "content".into()).await.unwrap();
    }
    let rows = CommitDraft::rows(Operation::Upsert, vec![portion(OLD)], Vec::new());
    let filled = commit(&log, &first, rows).await;
    let merged =
        commit(&log, &filled, CommitDraft::compaction(vec![OLD.into()], vec![portion(MERGED)])).await;
    (log, merged)
}

fn options(keep: Option<Micros>, unnamed_age: Micros) -> CleanOptions {
    CleanOptions { keep, unnamed_age, ..CleanOptions::default() }
}

async fn files(log: &TableLog) -> Vec<String> {
    let files = log.storage().list_all().await.unwrap().into_iter().map(|file| file.path);
    let mut files: Vec<_> = files.filter(|path| path.starts_with("partition=")).collect();
    files.sort();
    files
}

#[tokio::test]
async fn only_what_the_newest_version_has_is_kept_if_nothing_else_is_wanted() {
    let (log, base) = compacted().await;
    let report = clean(&log, &base, &options(None, Micros::new(0))).await.unwrap();
    assert_eq!((report.portions, report.portion_bytes), (1, 7));
    assert_eq!((report.unnamed_files, report.unnamed_bytes, report.young_files), (1, 7, 0));
    // Version 3 gives up the file that no commit names.
    assert_eq!((report.version, report.oldest_version, report.log_files), (Version(3), Version(2), 2));
    assert_eq!(files(&log).await, [MERGED, FOREIGN]);
    let (_, opened) = TableLog::open(log.storage().clone()).await.unwrap();
    assert!(opened.portion(MERGED).is_some() && opened.is_swept(UNNAMED));
    assert!(matches!(log.at(Version(1)).await, Err(LogError::Cleaned { .. })));
    let late = CommitDraft::rows(Operation::Upsert, vec![portion(UNNAMED)], Vec::new());
    assert!(matches!(log.try_commit(&opened, &late).await, Err(LogError::Swept { .. })));
}

#[tokio::test]
async fn young_versions_and_young_files_are_kept() {
    let (log, base) = compacted().await;
    let report = clean(&log, &base, &options(Some(Micros::DAY), Micros::DAY)).await.unwrap();
    assert_eq!((report.portions, report.unnamed_files, report.young_files), (0, 0, 1));
    assert_eq!((report.version, report.oldest_version, report.log_files), (Version(2), Version(0), 0));
    assert_eq!(files(&log).await, [MERGED, FOREIGN, OLD, UNNAMED]);
    // The same a week later.
    let later = chrono::Utc::now().timestamp_micros() + 7 * Micros::DAY.get();
    let options = CleanOptions { now: Some(later), ..options(Some(Micros::DAY), Micros::DAY) };
    let report = clean(&log, &base, &options).await.unwrap();
    assert_eq!((report.portions, report.unnamed_files, report.young_files), (1, 1, 0));
    assert_eq!(files(&log).await, [MERGED, FOREIGN]);
}

#[tokio::test]
async fn a_dry_run_counts_what_a_cleaning_deletes_and_deletes_nothing() {
    let (log, base) = compacted().await;
    let options = options(None, Micros::new(0));
    let before = log.storage().list_all().await.unwrap().len();
    let dry = clean(&log, &base, &CleanOptions { dry_run: true, ..options }).await.unwrap();
    assert_eq!(log.storage().list_all().await.unwrap().len(), before);
    let cleaned = clean(&log, &base, &options).await.unwrap();
    assert_eq!(CleanReport { dry_run: false, version: cleaned.version, ..dry }, cleaned);
}
