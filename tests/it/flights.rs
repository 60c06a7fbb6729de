//! A real export: all flights that left New York City in 2013.

use std::fs::File;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::cast;
use evenkeel::ingest::{IngestMode, IngestOptions};
use evenkeel::query::Params;
use evenkeel::source::{InputOptions, infer_columns};
use evenkeel::table::{PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::PartitionCount;
use evenkeel::{Table, TableError};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{json, naive, plan, project, rows, run, sorted_rows, states};

const FLIGHTS: &str = "data/nycflights13-flights.parquet";

fn spec(not_null: &[&str]) -> TableSpec {
    let mut columns = infer_columns(&project(FLIGHTS), &InputOptions::default()).unwrap().columns;
    let key = ["time_hour", "carrier", "flight"];
    for column in &mut columns {
        column.nullable = !key.contains(&column.name.as_str()) && !not_null.contains(&column.name.as_str());
    }
    TableSpec::new(TableDefinition {
        name: "flights".into(),
        columns,
        primary_key: key.map(str::to_owned).to_vec(),
        partition_key: vec!["carrier".into(), "flight".into()],
        partitions: PartitionCount::new(16).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap()
}

/// The export, read by the Parquet library alone and cast by Arrow alone.
fn raw(spec: &TableSpec) -> Vec<RecordBatch> {
    let file = File::open(project(FLIGHTS)).unwrap();
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(100_000).build().unwrap();
    reader
        .map(|batch| {
            let batch = batch.unwrap();
            let columns =
                spec.schema().fields().iter().map(|field| {
                    cast(batch.column_by_name(field.name()).unwrap(), field.data_type()).unwrap()
                });
            RecordBatch::try_new(Arc::clone(spec.schema()), columns.collect()).unwrap()
        })
        .collect()
}

const CHECKS: [&str; 6] = [
    "SELECT count(*), count(tailnum), count(dep_time), sum(distance), min(time_hour), max(time_hour) FROM t",
    "SELECT carrier, count(*), sum(dep_delay), count(DISTINCT tailnum) FROM t GROUP BY carrier",
    "SELECT origin, month, count(*), avg(arr_delay) FROM t GROUP BY origin, month",
    "SELECT * FROM t WHERE carrier = 'UA' AND flight = 1545",
    "SELECT * FROM t WHERE time_hour >= TIMESTAMP '2013-07-04T12:00:00' AND time_hour < TIMESTAMP '2013-07-04T13:00:00'",
    "SELECT carrier, flight, time_hour FROM t WHERE tailnum IS NULL AND month = 2",
];

async fn assert_equals_naive(table: &Table, arrived: &[RecordBatch]) {
    let naive = naive(table.spec(), arrived).await;
    let session = table.session().unwrap();
    for sql in CHECKS {
        let expected = naive.sql(sql).await.unwrap().collect().await.unwrap();
        let found = session.collect(sql, &Params::default()).await.unwrap();
        assert_eq!(sorted_rows(&found), sorted_rows(&expected), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flights_ingested_twice_are_there_once() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(&[]);
    let raw = raw(&spec);
    let mut table = Table::create(dir.path().join("flights"), &spec).await.unwrap();
    let files = plan(&[project(FLIGHTS)]);
    let report = table.ingest_files(files.clone(), &|_| {}).await.unwrap();
    assert_eq!((report.rows, report.replaced), (336_776, 0));
    assert_equals_naive(&table, &raw).await;

    let same = table.ingest_files(files.clone(), &|_| {}).await.unwrap();
    assert_eq!((same.version, same.rows), (None, 0));
    assert_eq!(same.sources[0].skipped_since, report.version);

    let mut again = files;
    again.again = true;
    let twice = table.ingest_files(again, &|_| {}).await.unwrap();
    assert_eq!(twice.rows, 336_776);
    let overview = table.inspect().await.unwrap();
    assert_eq!((overview.rows, overview.stored_rows), (336_776, 2 * 336_776));
    let both: Vec<RecordBatch> = raw.iter().chain(&raw).cloned().collect();
    assert_equals_naive(&table, &both).await;
    for (_, state) in states(table.clone()).await {
        assert_equals_naive(&state, &both).await;
    }
    let skew = table.skew().await.unwrap();
    assert_eq!(skew.rows_per_partition, report.rows_per_partition);
    assert_eq!(skew.noise_floor.unwrap().distinct_keys, 5_725);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_the_second_ingest_win() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(&[]);
    let raw = raw(&spec);
    let mut table = Table::create(dir.path().join("flights"), &spec).await.unwrap();
    table.ingest_files(plan(&[project(FLIGHTS)]), &|_| {}).await.unwrap();
    // The first batch once more, with every distance doubled.
    let distance = spec.schema().index_of("distance").unwrap();
    let mut columns = raw[0].columns().to_vec();
    columns[distance] =
        arrow::compute::kernels::numeric::add(&columns[distance], &columns[distance]).unwrap();
    let changed = RecordBatch::try_new(Arc::clone(spec.schema()), columns).unwrap();
    let stream = futures::stream::iter([Ok::<_, std::io::Error>(changed.clone())]);
    table.ingest(stream, &IngestOptions::default()).await.unwrap();
    let arrived: Vec<RecordBatch> = raw.iter().cloned().chain([changed.clone()]).collect();
    assert_equals_naive(&table, &arrived).await;

    let insert = IngestOptions { mode: IngestMode::Insert, ..IngestOptions::default() };
    let stream = futures::stream::iter([Ok::<_, std::io::Error>(changed)]);
    let refused = table.ingest(stream, &insert).await.unwrap_err();
    assert!(
        matches!(refused, TableError::Ingest(evenkeel::ingest::IngestError::ExistingKey { .. })),
        "{refused}"
    );
    assert_equals_naive(&table, &arrived).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_repeated_keys_the_same_is_told_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(&[]);
    let raw = raw(&spec);
    // Each partition has many, and each is written in several portions.
    let twice: Vec<RecordBatch> = raw.iter().flat_map(|batch| [batch.clone(), batch.clone()]).collect();
    let mut told = std::collections::BTreeSet::new();
    for number in 0..4 {
        let mut table = Table::create(dir.path().join(format!("t{number}")), &spec).await.unwrap();
        let stream = futures::stream::iter(twice.clone().into_iter().map(Ok::<_, std::io::Error>));
        let insert = IngestOptions { mode: IngestMode::Insert, ..IngestOptions::default() };
        told.insert(table.ingest(stream, &insert).await.unwrap_err().to_string());
        assert_eq!(table.inspect().await.unwrap().rows, 0);
    }
    assert_eq!(told.len(), 1, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_null_tailnums_rejects_those_rows_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = Table::create(dir.path().join("flights"), &spec(&["tailnum"])).await.unwrap();
    let failed = table.ingest_files(plan(&[project(FLIGHTS)]), &|_| {}).await.unwrap_err().to_string();
    assert!(failed.contains("row 1783, column 'tailnum': is NULL, the column is NOT NULL"), "{failed}");
    assert_eq!(table.inspect().await.unwrap().rows, 0);

    let mut reject = plan(&[project(FLIGHTS)]);
    reject.rejects = Some(dir.path().join("rejects.ndjson"));
    let report = table.ingest_files(reject, &|_| {}).await.unwrap();
    assert_eq!((report.rows, report.rejected), (336_776 - 2_512, 2_512));
    let rejects = std::fs::read_to_string(dir.path().join("rejects.ndjson")).unwrap();
    assert_eq!(rejects.lines().count(), 2_512);
    let session = table.session().unwrap();
    let counted =
        session.collect("SELECT count(*), count(tailnum) FROM t", &Params::default()).await.unwrap();
    assert_eq!(rows(&counted), [["334264", "334264"]]);
}

#[test]
fn the_commands_of_the_readme_work_on_the_export() {
    let dir = tempfile::tempdir().unwrap();
    let create = "create {}/flights --like data/nycflights13-flights.parquet \
                  --primary-key time_hour,carrier,flight --partition-key carrier,flight --nodes 4";
    assert_eq!(run(dir.path(), create).code, 0);
    assert_eq!(run(dir.path(), &format!("ingest {{}}/flights {FLIGHTS}")).code, 0);
    let inspect = json(dir.path(), "inspect {}/flights --format json");
    assert_eq!(inspect["rows"], 336_776);
    assert_eq!(inspect["primary_key"], serde_json::json!(["time_hour", "carrier", "flight"]));
    assert_eq!(inspect["partition_key"], serde_json::json!(["carrier", "flight"]));
    assert_eq!(inspect["placement"], "ydb");
    let partitions = inspect["partitions"].as_array().unwrap();
    assert_eq!(partitions.len(), 16);
    let sum: u64 = partitions.iter().map(|p| p["rows"].as_u64().unwrap()).sum();
    assert_eq!(sum, 336_776);
    let skew = json(dir.path(), "skew {}/flights --format json");
    assert_eq!(skew["partitions"], 16);
    for figure in ["max_over_mean", "cv", "idle_fraction", "effective_partitions"] {
        assert!(skew[figure].is_number(), "{figure}");
    }
    assert_eq!(skew["rows_per_partition"][3], partitions[3]["rows"]);
}
