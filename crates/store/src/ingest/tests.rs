//! Ingests into tables in memory, whose visible rows are compared with a map from key to value.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::memory::InMemory;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::sync::Arc;
use tokio::sync::Notify;

use super::*;
use crate::log::{LogError, PortionEntry, Snapshot, SourceEntry, TableLog};
use evenkeel_input::source::{InputOptions, InputPath};
use evenkeel_model::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel_model::units::{ByteSize, PartitionCount, Version};
use evenkeel_storage::TableStorage;

async fn table() -> (TableLog, Snapshot) {
    table_with(vec![Column::required("k", ColumnType::Int64), Column::nullable("v", ColumnType::Utf8)]).await
}

/// A table in memory with the primary key k.
pub(super) async fn table_with(columns: Vec<Column>) -> (TableLog, Snapshot) {
    let spec = TableSpec::new(TableDefinition {
        name: "t".into(),
        columns,
        primary_key: vec!["k".into()],
        partition_key: vec![],
        partitions: PartitionCount::new(3).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    });
    let storage = TableStorage::new(Arc::new(InMemory::new()), "t".into());
    TableLog::create(storage, &spec.unwrap()).await.unwrap()
}

fn options(mode: IngestMode) -> IngestOptions {
    IngestOptions { mode, memory: MIN_MEMORY }
}

fn batch(base: &Snapshot, rows: &[(i64, &str)]) -> RecordBatch {
    let keys = Int64Array::from_iter_values(rows.iter().map(|row| row.0));
    let values = StringArray::from_iter_values(rows.iter().map(|row| row.1));
    RecordBatch::try_new(Arc::clone(base.spec().schema()), vec![Arc::new(keys), Arc::new(values)]).unwrap()
}

/// Visible rows of all portions; newer ones replace older ones.
async fn rows(log: &TableLog, snapshot: &Snapshot) -> BTreeMap<i64, String> {
    let mut portions = snapshot.portions();
    portions.sort_by_key(|portion| portion.sequence);
    let mut rows = BTreeMap::new();
    for portion in portions {
        let bytes = log.storage().read(&portion.path).await.unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let keys = batch.column(0).as_primitive::<Int64Type>().values();
            let values = batch.column(1).as_string::<i32>().iter();
            rows.extend(keys.iter().copied().zip(values.map(|value| value.unwrap().to_owned())));
        }
    }
    rows
}

fn expected(rows: &[(i64, &str)]) -> BTreeMap<i64, String> {
    rows.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
}

/// Ingests one batch as one commit.
async fn ingest(
    log: &TableLog,
    base: &Snapshot,
    mode: IngestMode,
    rows: &[(i64, &str)],
) -> Result<Committed, IngestError> {
    let mut ingest = Ingest::new(log.clone(), base.clone(), &options(mode))?;
    ingest.push(batch(base, rows)).await?;
    ingest.finish(Vec::new()).await
}

async fn portion_files(log: &TableLog) -> usize {
    let files = log.storage().list_all().await.unwrap();
    files.iter().filter(|file| file.path.starts_with("partition=")).count()
}

#[tokio::test]
async fn one_commit_has_the_last_row_of_each_key() {
    let (log, base) = table().await;
    let mut ingest = Ingest::new(log.clone(), base.clone(), &options(IngestMode::Upsert)).unwrap();
    let (first, second) = ([(1, "a"), (2, "b"), (1, "c")], [(3, "d"), (2, "e")]);
    for rows in [&first[..], &[], &second] {
        ingest.push(batch(&base, rows)).await.unwrap();
    }
    assert_eq!(log.newest().await.unwrap().version(), Version(0), "nothing is visible before the commit");
    let committed = ingest.finish(Vec::new()).await.unwrap();
    assert_eq!((committed.version, committed.rows, committed.replaced), (Version(1), 5, 2));
    assert_eq!(committed.rows_per_partition().iter().sum::<u64>(), 3);
    assert_eq!(committed.portions(), committed.snapshot.portion_count() as u64);
    assert_eq!(rows(&log, &log.newest().await.unwrap()).await, expected(&[(1, "c"), (2, "e"), (3, "d")]));
}

#[tokio::test]
async fn a_later_ingest_replaces_rows_if_the_mode_is_upsert_and_fails_if_it_is_insert() {
    let (log, base) = table().await;
    let first = ingest(&log, &base, IngestMode::Insert, &[(1, "a"), (2, "b")]).await.unwrap().snapshot;
    let files = portion_files(&log).await;
    let known = ingest(&log, &first, IngestMode::Insert, &[(3, "c"), (2, "c")]).await.unwrap_err();
    assert!(matches!(&known, IngestError::ExistingKey { key } if key == "(2)"), "{known}");
    let twice = ingest(&log, &first, IngestMode::Insert, &[(4, "d"), (4, "e")]).await.unwrap_err();
    assert!(matches!(&twice, IngestError::RepeatedKey { key } if key == "(4)"), "{twice}");
    assert_eq!(log.newest().await.unwrap().version(), Version(1));
    assert_eq!(portion_files(&log).await, files, "what a failed ingest wrote is deleted");
    let second = ingest(&log, &first, IngestMode::Upsert, &[(2, "f"), (5, "g")]).await.unwrap().snapshot;
    assert_eq!(rows(&log, &second).await, expected(&[(1, "a"), (2, "f"), (5, "g")]));
}

#[tokio::test]
async fn an_insert_sees_the_keys_that_another_writer_committed_in_the_meantime() {
    let (log, base) = table().await;
    let mut late = Ingest::new(log.clone(), base.clone(), &options(IngestMode::Insert)).unwrap();
    late.push(batch(&base, &[(1, "late"), (2, "late")])).await.unwrap();
    ingest(&log, &base, IngestMode::Upsert, &[(2, "early")]).await.unwrap();
    let error = late.finish(Vec::new()).await.unwrap_err();
    assert!(matches!(&error, IngestError::ExistingKey { key } if key == "(2)"), "{error}");
    assert_eq!(rows(&log, &log.newest().await.unwrap()).await, expected(&[(2, "early")]));
}

#[tokio::test]
async fn of_two_writers_of_one_input_the_second_fails_unless_it_takes_it_again() {
    let (log, base) = table().await;
    let source = |name: &str| {
        vec![SourceEntry { name: name.into(), bytes: 1, xxh3: "content".into(), rows: 1, rejected: 0 }]
    };
    let writer = async |rows: &[(i64, &str)]| {
        let mut ingest = Ingest::new(log.clone(), base.clone(), &options(IngestMode::Upsert)).unwrap();
        ingest.push(batch(&base, rows)).await.unwrap();
        ingest
    };
    let (first, second, mut third) =
        (writer(&[(1, "a")]).await, writer(&[(1, "b")]).await, writer(&[(1, "c")]).await);
    first.finish(source("first")).await.unwrap();
    let error = second.finish(source("second")).await.unwrap_err();
    assert!(matches!(&error, IngestError::TakenMeanwhile { version: Version(1), .. }), "{error}");
    assert_eq!(portion_files(&log).await, 1);
    third.take_again();
    let committed = third.finish(source("third")).await.unwrap();
    assert_eq!(committed.version, Version(2));
    assert_eq!(rows(&log, &committed.snapshot).await, expected(&[(1, "c")]));
}

#[tokio::test]
async fn a_batch_with_other_columns_and_a_budget_that_is_too_small_are_refused() {
    let (log, base) = table().await;
    let mut ingest = Ingest::new(log.clone(), base.clone(), &options(IngestMode::Upsert)).unwrap();
    let error = ingest.push(batch(&base, &[(1, "a")]).project(&[0]).unwrap()).await.unwrap_err().to_string();
    assert_eq!(error, "a batch has the columns (k Int64), the table has (k Int64, v Utf8)");
    assert_eq!(ingest.rows(), 0);
    let memory = ByteSize(MIN_MEMORY.0 - 1);
    let small = Ingest::new(log, base, &IngestOptions { mode: IngestMode::Upsert, memory });
    assert!(matches!(small.unwrap_err(), IngestError::Memory { .. }));
}

/// Plan to ingest CSV files with these contents; `rejects` names the file for rejected rows.
fn plan(folder: &tempfile::TempDir, contents: &[&str], rejects: Option<&str>) -> IngestFiles {
    let write = |(number, content): (usize, &&str)| {
        let path = folder.path().join(format!("{number}.csv"));
        std::fs::write(&path, content).unwrap();
        InputPath::File(path)
    };
    IngestFiles {
        inputs: contents.iter().enumerate().map(write).collect(),
        input: InputOptions::default(),
        ingest: options(IngestMode::Upsert),
        rejects: rejects.map(|name| folder.path().join(name)),
        again: false,
        interrupt: Arc::new(Notify::new()),
    }
}

#[tokio::test]
async fn files_become_one_commit_in_which_the_later_row_wins() {
    let folder = tempfile::tempdir().unwrap();
    let (log, base) = table().await;
    let plan = plan(&folder, &["k,v\n1,a\n2,b\n", "", "v,k,more\nc,2,x\nd,3,y\n"], None);
    let names: std::sync::Mutex<Vec<String>> = std::sync::Mutex::default();
    let progress = |at: &IngestProgress| names.lock().unwrap().push(format!("{} {}", at.number, at.rows));
    let (report, snapshot) = ingest_files(log.clone(), base, plan, &progress).await.unwrap();
    assert_eq!(rows(&log, &snapshot).await, expected(&[(1, "a"), (2, "c"), (3, "d")]));
    assert_eq!((report.version, report.rows, report.rejected), (Some(Version(1)), 4, 0));
    assert_eq!(report.sources.iter().map(|source| source.rows).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(report.bytes_read, "k,v\n1,a\n2,b\nv,k,more\nc,2,x\nd,3,y\n".len() as u64);
    assert_eq!(report.portions, snapshot.portion_count() as u64);
    assert_eq!(report.notes[0].code(), "input_empty");
    assert!(report.notes[0].text().ends_with("1.csv is empty"), "{:?}", report.notes);
    assert_eq!(report.notes[1].code(), "columns_left_out");
    assert_eq!(report.notes[1].text(), "columns that the table does not have were left out: more");
    assert_eq!(names.lock().unwrap().last().unwrap(), "3 4");
}

#[tokio::test]
async fn known_content_is_skipped_under_any_name_unless_it_is_taken_again() {
    let folder = tempfile::tempdir().unwrap();
    let (log, base) = table().await;
    let run =
        async |base: &Snapshot, plan| ingest_files(log.clone(), base.clone(), plan, &|_| ()).await.unwrap();
    let (_, first) = run(&base, plan(&folder, &["k,v\n1,a\n"], None)).await;
    let (report, second) = run(&first, plan(&folder, &["k,v\n1,b\n", "k,v\n1,a\n"], None)).await;
    let skipped: Vec<_> = report.sources.iter().map(|source| source.skipped_since).collect();
    assert_eq!(skipped, [None, Some(Version(1))]);
    assert_eq!(rows(&log, &second).await, expected(&[(1, "b")]));
    let (report, third) = run(&second, plan(&folder, &["k,v\n1,a\n"], None)).await;
    assert_eq!((report.version, third.version()), (None, Version(2)));
    let again = IngestFiles { again: true, ..plan(&folder, &["k,v\n1,a\n"], None) };
    let (report, fourth) = run(&third, again).await;
    assert_eq!(report.version, Some(Version(3)));
    assert_eq!(rows(&log, &fourth).await, expected(&[(1, "a")]));
}

#[tokio::test]
async fn a_row_that_cannot_be_taken_fails_the_ingest_or_goes_to_the_file_for_such_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (log, base) = table().await;
    let run = async |plan| ingest_files(log.clone(), base.clone(), plan, &|_| ()).await;
    let mixed = ["k,v\n1,a\nx,b\n,c\n"];
    let error = run(plan(&folder, &mixed, None)).await.unwrap_err();
    assert!(
        matches!(&error, IngestError::Row { reject } if reject.column.as_deref() == Some("k")),
        "{error}"
    );
    let none = run(plan(&folder, &["k,v\nx,b\n"], Some("all"))).await.unwrap_err();
    assert!(matches!(none, IngestError::AllRejected { count: 1, .. }), "{none}");
    assert!(!folder.path().join("all").exists(), "the file of an ingest that commits nothing is removed");
    assert_eq!((log.newest().await.unwrap().version(), portion_files(&log).await), (Version(0), 0));
    let (report, snapshot) = run(plan(&folder, &mixed, Some("rejects"))).await.unwrap();
    assert_eq!((report.rows, report.rejected, report.sources[0].rejected), (1, 2, 2));
    assert_eq!(rows(&log, &snapshot).await, expected(&[(1, "a")]));
    let path: PathBuf = folder.path().join("rejects");
    assert_eq!(report.rejects_file.as_ref(), Some(&path));
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    let exists = run(plan(&folder, &mixed, Some("rejects"))).await.unwrap_err();
    assert!(matches!(exists, IngestError::RejectsExist { .. }), "{exists}");
}

#[tokio::test]
async fn an_interrupted_ingest_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (log, base) = table().await;
    let plan = plan(&folder, &["k,v\n1,a\n"], None);
    plan.interrupt.notify_one();
    let error = ingest_files(log.clone(), base, plan, &|_| ()).await.unwrap_err();
    assert!(matches!(error, IngestError::Interrupted), "{error}");
    assert_eq!((log.newest().await.unwrap().version(), portion_files(&log).await), (Version(0), 0));
}

/// Portions of a table that hold these rows, as if they were written elsewhere.
async fn written(log: &TableLog, base: &Snapshot, rows: &[(i64, &str)]) -> Vec<PortionEntry> {
    let snapshot = ingest(log, base, IngestMode::Upsert, rows).await.unwrap().snapshot;
    snapshot.portions().iter().map(|portion| portion.as_ref().clone()).collect()
}

/// Machines that have written this, or failed.
struct RemoteWriter(std::sync::Mutex<Option<Result<UncommittedIngest, IngestError>>>);

impl RemoteWriter {
    fn new(written: Result<UncommittedIngest, IngestError>) -> Self {
        Self(std::sync::Mutex::new(Some(written)))
    }

    fn is_requested(&self) -> bool {
        self.0.lock().unwrap().is_none()
    }
}

impl WritePortions for RemoteWriter {
    fn write_portions<'a>(
        &'a self,
        _: &'a TableStorage,
        _: &'a Snapshot,
        _: &'a IngestFiles,
    ) -> BoxFuture<'a, Result<UncommittedIngest, IngestError>> {
        std::future::ready(self.0.lock().unwrap().take().unwrap()).boxed()
    }
}

#[tokio::test]
async fn portions_written_elsewhere_are_committed_or_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let (log, base) = table().await;
    let uncommitted = |portions: Vec<PortionEntry>, rows| UncommittedIngest {
        portions,
        entries: vec![SourceEntry { name: "f".into(), bytes: 9, xxh3: "x".into(), rows, rejected: 0 }],
        sources: Vec::new(),
        rejects: Box::new(std::iter::once(Err(std::io::Error::other("the file is gone")))),
        rows,
        replaced: 1,
        notes: vec![empty_input("a.csv")],
    };
    // Portions of another table in the same kind of store, stored here under their names.
    let (other, empty) = table().await;
    let portions = written(&other, &empty, &[(1, "a"), (2, "b")]).await;
    for portion in &portions {
        let bytes = other.storage().read(&portion.path).await.unwrap();
        log.storage().put_new(&portion.path, bytes).await.unwrap();
    }
    let taken = plan(&folder, &[], None);
    let (report, snapshot) = ingest_files_with(
        log.clone(),
        base,
        &taken,
        &RemoteWriter::new(Ok(uncommitted(portions.clone(), 3))),
    )
    .await
    .unwrap();
    assert_eq!((report.rows, report.replaced, report.notes.len()), (3, 1, 1));
    assert_eq!(report.rows_per_partition.iter().sum::<u64>(), 2);
    assert_eq!(rows(&log, &snapshot).await, expected(&[(1, "a"), (2, "b")]));
    // A failure leaves the table as it is. Without a place for rejected rows, no machine starts.
    let broken = || RemoteWriter::new(Err(IngestError::Elsewhere { reason: "no machine is left".into() }));
    let failed = ingest_files_with(log.clone(), snapshot.clone(), &taken, &broken()).await;
    assert_eq!(failed.unwrap_err().to_string(), "no machine is left");
    std::fs::write(folder.path().join("occupied"), "").unwrap();
    let (occupied, idle) = (plan(&folder, &[], Some("occupied")), broken());
    let failed = ingest_files_with(log.clone(), snapshot.clone(), &occupied, &idle).await;
    assert!(matches!(failed.unwrap_err(), IngestError::RejectsExist { .. }));
    assert!(!idle.is_requested());
    assert_eq!(log.newest().await.unwrap().version(), snapshot.version());
    assert_eq!(rows(&log, &snapshot).await, expected(&[(1, "a"), (2, "b")]));
    // With a file for rejected rows, these are read, and the portions deleted if that fails.
    let failing = plan(&folder, &[], Some("rejects"));
    let writer = RemoteWriter::new(Ok(uncommitted(portions, 3)));
    let failed = ingest_files_with(log.clone(), snapshot, &failing, &writer).await;
    assert!(matches!(failed.unwrap_err(), IngestError::Rejects { .. }));
    assert_eq!(portion_files(&log).await, 0);
    assert!(!matches!(log.newest().await, Err(LogError::NotATable { .. })));
}
