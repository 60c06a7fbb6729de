//! Rows that depend on the order of a scan, or on what it leaves unread, on tables of several files
//! for each stream and several row groups for each file. The truth is a naive engine in memory.

mod groups;
mod limits;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::prelude::{SessionConfig, SessionContext};
use evenkeel::Table;
use evenkeel::ingest::IngestOptions;
use evenkeel::query::{Params, TableSession};
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::PartitionCount;

use crate::common::{naive, rows, states};

fn spec(partitions: u32, partition_key: &str) -> TableSpec {
    TableSpec::new(TableDefinition {
        name: "events".into(),
        columns: vec![
            Column::required("ts", ColumnType::Int64),
            Column::required("u", ColumnType::Utf8),
            Column::nullable("v", ColumnType::Int64),
            Column::nullable("f", ColumnType::Double),
        ],
        primary_key: vec!["ts".into(), "u".into()],
        partition_key: vec![partition_key.into()],
        partitions: PartitionCount::new(partitions.into()).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap()
}

/// A float of each kind that comparisons, statistics and sorting may treat differently.
fn float(i: i64) -> Option<f64> {
    match i % 101 {
        3 => Some(f64::NAN),
        5 => Some(-f64::NAN),
        7 => Some(f64::INFINITY),
        11 => Some(f64::NEG_INFINITY),
        13 => Some(-0.0),
        17 => Some(0.0),
        19 => None,
        rest => Some(rest as f64 * 1.5 - 20.0),
    }
}

fn batch(range: Range<i64>, users: i64) -> RecordBatch {
    let column = |array: ArrayRef| array;
    RecordBatch::try_from_iter([
        ("ts", column(Arc::new(Int64Array::from_iter_values(range.clone())))),
        (
            "u",
            column(Arc::new(StringArray::from_iter_values(range.clone().map(|i| format!("u{}", i % users))))),
        ),
        (
            "v",
            column(Arc::new(
                range.clone().map(|i| (i % 10 != 0).then_some(i % 1000)).collect::<Int64Array>(),
            )),
        ),
        ("f", column(Arc::new(range.map(float).collect::<Float64Array>()))),
    ])
    .unwrap()
}

/// The rows with NaN of one sign, as they are stored.
fn plain(batch: &RecordBatch) -> RecordBatch {
    let floats = batch["f"].as_any().downcast_ref::<Float64Array>().unwrap();
    let floats: Float64Array = floats.unary(|float| if float.is_nan() { f64::NAN } else { float });
    let mut columns = batch.columns().to_vec();
    columns[3] = Arc::new(floats);
    RecordBatch::try_new(batch.schema(), columns).unwrap()
}

/// A table of these batches, one commit each, in its three states, and the naive engine.
async fn tables(
    dir: &tempfile::TempDir,
    spec: &TableSpec,
    batches: &[RecordBatch],
) -> ([(&'static str, Table); 3], SessionContext) {
    let mut table = Table::create(dir.path().join("t"), spec).await.unwrap();
    for batch in batches {
        let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch.clone())]);
        table.ingest(stream, &IngestOptions::default()).await.unwrap();
    }
    let plain: Vec<RecordBatch> = batches.iter().map(plain).collect();
    (states(table).await, naive(spec, &plain).await)
}

/// Compares each statement, which has one right answer, in every state of the table: in the session
/// of the table, and in a session of somebody else that the table is registered in, with few and
/// many cores.
async fn compare(
    states: &[(&'static str, Table); 3],
    truth: &SessionContext,
    cores: &[usize],
    statements: &[&str],
) {
    compare_in_own_session(states, truth, cores, statements).await;
    for sql in statements {
        let expected = rows(&truth.sql(sql).await.unwrap().collect().await.unwrap());
        for (state, table) in states {
            for cores in cores.iter().copied() {
                let foreign =
                    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(cores));
                table.register(&foreign, "t").unwrap();
                let found = rows(&foreign.sql(sql).await.unwrap().collect().await.unwrap());
                assert!(
                    found == expected,
                    "{sql}, {state}, {cores} cores, registered: {found:?}\nnot {expected:?}"
                );
            }
        }
    }
}

/// A session of the table that plans for this many cores.
fn session_on(table: &Table, cores: usize) -> TableSession {
    let session = table.session().unwrap();
    session.context().state_ref().write().config_mut().options_mut().execution.target_partitions = cores;
    session
}

/// Compares each statement, which has one right answer, in every state of the table in its own
/// session.
async fn compare_in_own_session(
    states: &[(&'static str, Table); 3],
    truth: &SessionContext,
    cores: &[usize],
    statements: &[&str],
) {
    for sql in statements {
        let expected = rows(&truth.sql(sql).await.unwrap().collect().await.unwrap());
        for (state, table) in states {
            for cores in cores.iter().copied() {
                let session = session_on(table, cores);
                let found = rows(&session.collect(sql, &Params::default()).await.unwrap());
                assert!(found == expected, "{sql}, {state}, {cores} cores: {found:?}\nnot {expected:?}");
            }
        }
    }
}
