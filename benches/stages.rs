//! Benches of each stage of an ingest, of the scenario queries, of an evaluation and of a store
//! that grows, on generated ad events with a fixed seed.
//!
//! `cargo bench` runs all; `cargo bench -- hash` one. Every bench checks the rows that it produced.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench that fails should stop")]

#[path = "parts/store.rs"]
mod store;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use evenkeel::Table;
use evenkeel::evaluate::{EvaluateOptions, Evaluator};
use evenkeel::generate::{AdEvents, ad_events_definition};
use evenkeel::ingest::IngestOptions;
use evenkeel::placement::{Function, JointPlacement, Placement, Scatter};
use evenkeel::portion::{PortionEncoder, WRITE_BATCH_ROWS};
use evenkeel::query::Params;
use evenkeel::sketch::{KeyCounter, fold};
use evenkeel::sort::{gather, sort_newest_wins};
use evenkeel::table::{ColumnType, PlacementFunction, TableSpec};
use evenkeel::units::{PartitionCount, PartitionId};

const ROWS: u64 = 200_000;
const BATCH_ROWS: usize = 16_384;

fn spec() -> TableSpec {
    TableSpec::new(ad_events_definition().unwrap()).unwrap()
}

fn events(late_share: f64) -> Vec<RecordBatch> {
    let options = AdEvents { rows: ROWS, late_share, ..AdEvents::default() };
    options.batches(BATCH_ROWS).unwrap().map(Result::unwrap).collect()
}

fn key(spec: &TableSpec, batch: &RecordBatch) -> Vec<ArrayRef> {
    spec.partition_key().iter().map(|index| Arc::clone(batch.column(*index))).collect()
}

fn primary_key(spec: &TableSpec, batch: &RecordBatch) -> Vec<ArrayRef> {
    spec.primary_key().iter().map(|index| Arc::clone(batch.column(*index))).collect()
}

fn stages(criterion: &mut Criterion) {
    let spec = spec();
    let placement = Placement::for_table(&spec);
    let batches = events(0.01);
    let mut group = criterion.benchmark_group("stage");
    group.throughput(Throughput::Elements(ROWS)).sample_size(20);

    let keys: Vec<Vec<ArrayRef>> = batches.iter().map(|batch| key(&spec, batch)).collect();
    group.bench_function("hash (user_id, event_timestamp)", |bench| {
        bench.iter(|| {
            let rows: usize = keys.iter().map(|key| black_box(placement.hash(key).unwrap()).len()).sum();
            assert_eq!(rows as u64, ROWS);
        });
    });
    let assigned: Vec<Vec<PartitionId>> = keys.iter().map(|key| placement.assign(key).unwrap()).collect();
    group.bench_function("scatter into 16 partitions", |bench| {
        bench.iter(|| {
            let scatters = assigned.iter().map(|ids| Scatter::new(ids, spec.partitions()));
            let rows: usize =
                scatters.map(|s| spec.partitions().ids().map(|id| s.rows(id).len()).sum::<usize>()).sum();
            assert_eq!(rows as u64, ROWS);
        });
    });
    let counts = [16, 32, 64, 128, 256].map(|count| PartitionCount::new(count).unwrap());
    let types = spec.partition_key_types();
    let joint = JointPlacement::group(PlacementFunction::Ydb, &counts, &types).remove(0);
    let hashes: Vec<u64> = keys.iter().flat_map(|key| placement.hash(key).unwrap()).collect();
    group.bench_function("cells of 5 numbers of partitions", |bench| {
        let mut cells = Vec::new();
        bench.iter(|| {
            joint.assign_hashes(&hashes, &[], &mut cells).unwrap();
            assert_eq!(black_box(&cells).len() as u64, ROWS);
        });
    });
    for (name, distinct) in [("count 100 keys", 100), ("count keys that come once", u64::MAX)] {
        let identities: Vec<u64> = hashes.iter().map(|hash| fold(hash % distinct, 1)).collect();
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let mut counter = KeyCounter::new();
                identities.chunks(BATCH_ROWS).for_each(|batch| counter.add(batch, |row| row));
                assert_eq!(counter.finish(10).unwrap().weights.rows, ROWS);
            });
        });
    }
    for (name, late_share) in [("sort, 1 % late", 0.01), ("sort, half late", 0.5)] {
        let rows = concat_batches(spec.schema(), &events(late_share)).unwrap();
        let key = primary_key(&spec, &rows);
        group.bench_function(name, |bench| {
            bench.iter(|| sort_newest_wins(&key).unwrap().replaced);
        });
    }
    let rows = concat_batches(spec.schema(), &batches).unwrap();
    let sorted = sort_newest_wins(&primary_key(&spec, &rows)).unwrap();
    group.bench_function("gather and write a portion", |bench| {
        bench.iter(|| {
            let chunks = gather(&rows, &sorted, WRITE_BATCH_ROWS);
            let mut encoder = PortionEncoder::new(&spec, PartitionId(0));
            chunks.for_each(|chunk| encoder.push(&chunk.unwrap()).unwrap());
            assert_eq!(encoder.finish().unwrap().rows, ROWS - sorted.replaced);
        });
    });
    group.finish();
}

fn stream(
    batches: &[RecordBatch],
) -> impl futures::Stream<Item = Result<RecordBatch, std::io::Error>> + use<> {
    futures::stream::iter(Vec::from(batches).into_iter().map(Ok))
}

fn whole_ingest(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let batches = events(0.01);
    let mut group = criterion.benchmark_group("ingest");
    group.throughput(Throughput::Elements(ROWS)).sample_size(10);
    group.bench_function("one commit into 16 partitions", |bench| {
        let fresh = || {
            let dir = tempfile::tempdir().unwrap();
            let table = runtime.block_on(Table::create(dir.path().join("t"), &spec())).unwrap();
            (dir, table)
        };
        let ingest = |(dir, mut table): (tempfile::TempDir, Table)| {
            let committed =
                runtime.block_on(table.ingest(stream(&batches), &IngestOptions::default())).unwrap();
            assert_eq!(committed.rows, ROWS);
            dir
        };
        bench.iter_batched(fresh, ingest, BatchSize::PerIteration);
    });
    group.finish();
}

fn queries(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut table = runtime.block_on(Table::create(dir.path().join("t"), &spec())).unwrap();
    for batch in events(0.01).chunks(3) {
        runtime.block_on(table.ingest(stream(batch), &IngestOptions::default())).unwrap();
    }
    let session = table.session().unwrap();
    let mut group = criterion.benchmark_group("query");
    group.sample_size(20);
    for (name, sql, params, rows) in [
        ("clicks of campaign", include_str!("../queries/clicks_of_campaign.sql"), Some(("campaign", "1")), 1),
        ("clicks per campaign", include_str!("../queries/clicks_per_campaign.sql"), None, 1),
        ("events of user", include_str!("../queries/events_of_user.sql"), Some(("user", "u600000007")), 1),
        ("events per user", include_str!("../queries/events_per_user.sql"), None, 10),
    ] {
        let params = params.map_or_else(Params::default, |(name, value)| Params::default().with(name, value));
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let found = runtime.block_on(session.collect(sql, &params)).unwrap();
                assert!(found.iter().map(RecordBatch::num_rows).sum::<usize>() >= rows);
            });
        });
    }
    group.finish();
}

/// Twenty partition keys, of which the first five are those of the YDB documentation.
const KEYS: [&str; 20] = [
    "date(event_timestamp)",
    "hour(event_timestamp)",
    "campaign_id",
    "user_id",
    "user_id, event_timestamp",
    "event_timestamp",
    "event_id",
    "ad_id",
    "event_type",
    "campaign_id, event_timestamp",
    "event_id, event_timestamp",
    "ad_id, event_timestamp",
    "user_id, campaign_id",
    "user_id, ad_id",
    "campaign_id, ad_id",
    "user_id, event_id",
    "trunc(event_timestamp, 5m)",
    "trunc(event_timestamp, 1m), campaign_id",
    "event_type, campaign_id",
    "event_type, user_id",
];

/// One pass for 1, 5 and 20 keys over 5 numbers of partitions: distinct and heavy values, rows,
/// bytes and windows of each.
fn evaluate(criterion: &mut Criterion) {
    let batches = events(0.01);
    let columns = ad_events_definition().unwrap().columns;
    let mut group = criterion.benchmark_group("evaluate");
    group.throughput(Throughput::Elements(ROWS)).sample_size(10);
    for keys in [1, 5, 20] {
        // The fourth key alone, so that one key is neither the cheapest nor the dearest.
        let skipped = if keys == 1 { 3 } else { 0 };
        let options = EvaluateOptions {
            partition_keys: KEYS.iter().skip(skipped).take(keys).map(|key| key.parse().unwrap()).collect(),
            partitions: [16, 32, 64, 128, 256].map(|count| PartitionCount::new(count).unwrap()).to_vec(),
            ..EvaluateOptions::default()
        };
        group.bench_function(format!("{keys} keys"), |bench| {
            bench.iter(|| {
                let mut evaluator = Evaluator::new(&columns, options.clone()).unwrap();
                batches.iter().for_each(|batch| evaluator.add(batch).unwrap());
                let evaluation = evaluator.finish().unwrap();
                assert_eq!((evaluation.rows, evaluation.candidates.len()), (ROWS, keys));
            });
        });
    }
    let primary_key = EvaluateOptions {
        primary_keys: vec!["event_timestamp, user_id, campaign_id".parse().unwrap()],
        partitions: vec![PartitionCount::new(16).unwrap()],
        ..EvaluateOptions::default()
    };
    group.bench_function("one primary key", |bench| {
        bench.iter(|| {
            let mut evaluator = Evaluator::new(&columns, primary_key.clone()).unwrap();
            batches.iter().for_each(|batch| evaluator.add(batch).unwrap());
            assert_eq!(evaluator.finish().unwrap().primary_keys.len(), 1);
        });
    });
    group.finish();
}

/// Hash and partition of keys by every placement function: numbers, and text of about ten bytes.
fn placements(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("placements");
    // There are fifty of them.
    group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(1));
    group.throughput(Throughput::Elements(ROWS));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(|id| id * 7919)));
    let texts = (0..ROWS).map(|id| format!("u{:09}", id * 7919));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let count = PartitionCount::new(16).unwrap();
    for function in Function::all() {
        for (name, column_type, key) in
            [("int64", ColumnType::Int64, &numbers), ("utf8", ColumnType::Utf8, &texts)]
        {
            let placement = Placement::new(function, count, vec![column_type]);
            let batches: Vec<[ArrayRef; 1]> = (0..ROWS as usize)
                .step_by(BATCH_ROWS)
                .map(|row| [key.slice(row, BATCH_ROWS.min(ROWS as usize - row))])
                .collect();
            // Not every function takes every type.
            if batches.first().is_none_or(|key| placement.assign(key).is_err()) {
                continue;
            }
            group.bench_function(format!("{function} {name}"), |bench| {
                bench.iter(|| {
                    let rows: usize =
                        batches.iter().map(|key| black_box(placement.assign(key).unwrap()).len()).sum();
                    assert_eq!(rows as u64, ROWS);
                });
            });
        }
    }
}

criterion_group!(
    benches,
    stages,
    placements,
    whole_ingest,
    queries,
    evaluate,
    store::portions,
    store::growth
);
criterion_main!(benches);
