//! The store as portions and commits pile up: opening, planning, point reads, time ranges and full
//! scans at 1, 100 and 1,000 portions per partition, before and after compaction; and a log of
//! 10,000 commits and portions.

use arrow::array::RecordBatch;
use criterion::{BenchmarkId, Criterion};
use evenkeel::Table;
use evenkeel::compact::{CompactionOptions, Scope};
use evenkeel::generate::{AdEvents, ad_events_definition};
use evenkeel::ingest::IngestOptions;
use evenkeel::log::{CommitDraft, CommitOutcome, Operation, PortionEntry, Sequence, SourceEntry, TableLog};
use evenkeel::query::Params;
use evenkeel::storage::TableStorage;
use evenkeel::table::{KeyRange, KeyValue, TableDefinition, TableSpec};
use evenkeel::units::{PartitionCount, PartitionId, Version};
use tokio::runtime::Runtime;

const ROWS: u64 = 100_000;

fn spec() -> TableSpec {
    let definition = ad_events_definition().unwrap();
    let partitions = PartitionCount::new(2).unwrap();
    let partition_key = vec!["user_id".to_owned()];
    TableSpec::new(TableDefinition { partition_key, partitions, ..definition }).unwrap()
}

fn wide_spec() -> TableSpec {
    let partitions = PartitionCount::new(16).unwrap();
    TableSpec::new(TableDefinition { partitions, ..spec().definition().clone() }).unwrap()
}

/// A table of `ROWS` rows in so many commits, each with one portion per partition; events come up
/// to an hour late.
async fn table(dir: &std::path::Path, commits: usize) -> Table {
    let rows_per_commit = ROWS as usize / commits;
    let options = AdEvents { rows: ROWS, late_share: 0.01, users: 5_000, ..AdEvents::default() };
    let mut table = Table::create(dir, &spec()).await.unwrap();
    for batch in options.batches(rows_per_commit).unwrap() {
        let stream = futures::stream::iter([batch]);
        table.ingest(stream, &IngestOptions::default()).await.unwrap();
    }
    table
}

const QUERIES: [(&str, &str); 3] = [
    ("point read", "SELECT * FROM t WHERE user_id = 'u600000007'"),
    (
        "time range",
        "SELECT campaign_id, count(*) FROM t WHERE event_timestamp > TIMESTAMP '2026-01-02T00:00:00' \
         AND event_timestamp <= TIMESTAMP '2026-01-02T01:00:00' GROUP BY campaign_id",
    ),
    ("full scan", "SELECT event_type, count(*), max(event_id) FROM t GROUP BY event_type"),
];

pub(crate) fn portions(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let mut group = criterion.benchmark_group("store");
    group.sample_size(10);
    for commits in [1, 100, 1000] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let mut table = runtime.block_on(table(&path, commits));
        for state in ["as ingested", "compacted"] {
            if state == "compacted" {
                let options = CompactionOptions { scope: Scope::Everything, ..CompactionOptions::default() };
                runtime.block_on(table.compact(&options, &|_| {})).unwrap();
            }
            let what = format!("{commits} portions per partition, {state}");
            group.bench_function(BenchmarkId::new("open", &what), |bench| {
                bench.iter(|| runtime.block_on(Table::open(&path)).unwrap().snapshot().portion_count());
            });
            let session = table.session().unwrap();
            group.bench_function(BenchmarkId::new("plan", &what), |bench| {
                bench.iter(|| {
                    runtime.block_on(session.explain(QUERIES[1].1, &Params::default())).unwrap().scans.len()
                });
            });
            for (name, sql) in QUERIES {
                let count =
                    |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
                group.bench_function(BenchmarkId::new(name, &what), |bench| {
                    bench.iter(|| {
                        let rows = runtime.block_on(session.collect(sql, &Params::default())).unwrap();
                        assert!(count(&rows) > 0, "{name}");
                    });
                });
            }
        }
    }
    group.finish();
}

const GROWN: u64 = 10_000;

/// A log on disk of 10,000 commits, each with an input and one portion whose file nobody needs to
/// see.
async fn grown(dir: &std::path::Path) -> TableStorage {
    let storage = TableStorage::create_local(dir).unwrap();
    let (log, mut snapshot) = TableLog::create(storage.clone(), &wide_spec()).await.unwrap();
    for number in 0..GROWN {
        let at = 1_767_225_600_000_000 + number as i64 * 60_000_000;
        let key = |at: i64| vec![KeyValue::Int(at), KeyValue::Text(format!("u{number}")), KeyValue::Uint(1)];
        let value = |value: KeyValue| KeyRange { min: vec![value.clone()], max: vec![value] };
        let portion = PortionEntry {
            path: format!("partition={:04}/{number:032x}.parquet", number % 16),
            partition: PartitionId((number % 16) as u32),
            sequence: Sequence { version: Version(0), ordinal: 0 },
            rows: 1000,
            bytes: 30_000,
            key_range: KeyRange { min: key(at), max: key(at + 59_000_000) },
            column_ranges: vec![
                KeyRange { min: vec![KeyValue::Int(at)], max: vec![KeyValue::Int(at + 59_000_000)] },
                value(KeyValue::Text(format!("u{number}"))),
                value(KeyValue::Uint(1)),
            ],
            xxh3: format!("{number:032x}"),
            deletes: false,
        };
        let source = SourceEntry {
            name: format!("exports/ad-events-{number:05}.parquet"),
            bytes: 200_000,
            xxh3: format!("{number:032x}"),
            rows: 1000,
            rejected: 0,
        };
        let draft = CommitDraft::rows(Operation::Upsert, vec![portion], vec![source]);
        snapshot = match log.try_commit(&snapshot, &draft).await.unwrap() {
            CommitOutcome::Committed(snapshot) => snapshot,
            CommitOutcome::Lost(newest) => newest,
        };
    }
    storage
}

pub(crate) fn growth(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let storage = runtime.block_on(grown(&dir.path().join("grown")));
    let mut group = criterion.benchmark_group("growth");
    group.sample_size(10);
    group.bench_function("open 10,000 commits and portions", |bench| {
        bench.iter(|| {
            let table = runtime.block_on(Table::open_at(storage.clone())).unwrap();
            assert_eq!(table.snapshot().portion_count() as u64, GROWN);
        });
    });
    let table = runtime.block_on(Table::open_at(storage.clone())).unwrap();
    for (name, sql) in [("all", QUERIES[2].1), ("an hour", QUERIES[1].1)] {
        let session = table.session().unwrap();
        group.bench_function(format!("plan {name} of 10,000 portions"), |bench| {
            bench.iter(|| runtime.block_on(session.explain(sql, &Params::default())).unwrap().scans.len());
        });
    }
    group.finish();
}
