//! Rows that depend on the order of a scan, or on what it leaves unread, on tables of several files
//! for each stream and several row groups for each file. The truth is a naive engine in memory.

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

/// Statements whose answer is the same in every right engine, since each order is total.
const LIMITED: &[&str] = &[
    "SELECT ts FROM t ORDER BY ts LIMIT 5",
    "SELECT ts, u FROM t ORDER BY ts, u LIMIT 5",
    "SELECT ts, u, v FROM t ORDER BY ts, u LIMIT 7 OFFSET 899",
    "SELECT ts FROM t WHERE v >= 0 ORDER BY ts LIMIT 5",
    "SELECT ts FROM t WHERE v >= 0 AND u <> 'u3' ORDER BY ts LIMIT 9 OFFSET 3",
    "SELECT ts FROM t WHERE ts > 950 ORDER BY ts LIMIT 5",
    "SELECT ts FROM t WHERE v = 5 ORDER BY ts LIMIT 2",
    "SELECT ts FROM t ORDER BY ts DESC LIMIT 5",
    "SELECT ts FROM t WHERE v < 500 ORDER BY ts DESC, u LIMIT 6 OFFSET 2",
    "SELECT ts, v FROM t ORDER BY v NULLS FIRST, ts LIMIT 6",
    "SELECT ts, v FROM t ORDER BY v DESC NULLS LAST, ts LIMIT 6",
    "SELECT a.ts, b.v FROM (SELECT ts FROM t ORDER BY ts LIMIT 4) a JOIN t b ON a.ts = b.ts ORDER BY a.ts",
    "SELECT b.ts FROM t b WHERE b.ts IN (SELECT ts FROM t WHERE v > 3 ORDER BY ts LIMIT 4) ORDER BY 1",
    "(SELECT ts FROM t ORDER BY ts LIMIT 3) UNION ALL (SELECT ts FROM t ORDER BY ts DESC LIMIT 3) ORDER BY 1",
    "SELECT count(*), min(ts), max(ts) FROM (SELECT ts FROM t ORDER BY ts LIMIT 1000)",
    "SELECT sum(v) FROM (SELECT v FROM t WHERE v IS NOT NULL ORDER BY ts LIMIT 950)",
    "SELECT ts, row_number() OVER (ORDER BY ts) AS n FROM t ORDER BY ts LIMIT 4",
    "SELECT ts, n FROM (SELECT ts, u, row_number() OVER (PARTITION BY u ORDER BY ts) AS n FROM t) WHERE n = 1 ORDER BY ts LIMIT 5",
    "SELECT ts, sum(v) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM t ORDER BY ts LIMIT 5",
    "SELECT DISTINCT ts FROM t ORDER BY ts LIMIT 5",
    "SELECT ts, count(*) FROM t GROUP BY ts ORDER BY ts LIMIT 5",
    "SELECT ts FROM t EXCEPT SELECT ts FROM t WHERE v < 990 ORDER BY ts LIMIT 5",
    "SELECT x.ts FROM (SELECT ts FROM t ORDER BY ts LIMIT 900 OFFSET 100) x ORDER BY x.ts LIMIT 3 OFFSET 3",
    "(SELECT v FROM t ORDER BY ts LIMIT 40) INTERSECT (SELECT v FROM t ORDER BY ts DESC LIMIT 2) ORDER BY 1",
    "SELECT a.v FROM (SELECT v FROM t ORDER BY ts LIMIT 40) a JOIN (SELECT v FROM t WHERE v = 150 ORDER BY ts LIMIT 1) b ON a.v = b.v",
    "SELECT a.v FROM (SELECT v FROM t WHERE u <> 'u3' AND v % 2 = 0 ORDER BY ts LIMIT 40) a JOIN (SELECT v FROM t WHERE v = 150) b ON a.v = b.v ORDER BY 1",
    "SELECT v FROM (SELECT v, ts FROM t WHERE v IS NOT NULL ORDER BY ts LIMIT 40) ORDER BY v DESC, ts LIMIT 3",
    "SELECT max(v) FROM (SELECT v FROM t WHERE v % 3 = 0 ORDER BY ts LIMIT 40)",
    "SELECT first_value(ts ORDER BY ts), last_value(ts ORDER BY ts) FROM t",
];

/// Orders that begin with the key or contain it, in other directions or with NULLs elsewhere.
const SORTED: &[&str] = &[
    "SELECT ts, u, n FROM (SELECT ts, u, dense_rank() OVER (PARTITION BY v ORDER BY u NULLS FIRST, ts DESC NULLS FIRST) AS n FROM t) WHERE n <= 2 ORDER BY n, ts, u LIMIT 40",
    "SELECT ts, u, n FROM (SELECT ts, u, row_number() OVER (PARTITION BY v ORDER BY u, ts NULLS FIRST) AS n FROM t) WHERE n <= 5 ORDER BY n DESC, ts, u LIMIT 40",
    "SELECT v FROM t WHERE v IN (SELECT v FROM t ORDER BY ts DESC NULLS FIRST, u NULLS LAST LIMIT 1000) ORDER BY f NULLS LAST, u NULLS FIRST, ts NULLS LAST LIMIT 5 OFFSET 1",
    "SELECT ts, v FROM t WHERE v < 700 ORDER BY v NULLS LAST, u NULLS FIRST, ts DESC NULLS LAST LIMIT 30",
];

/// Groups by a prefix of the key with a condition that is only partly pushed down.
const GROUPED: &[&str] = &[
    "SELECT ts, count(*), min(v) FROM t WHERE (u <= u OR ts <> 18) AND v >= 7 GROUP BY ts ORDER BY ts NULLS LAST LIMIT 5",
    "SELECT ts, sum(v) AS s FROM t WHERE v + 1 > 7 GROUP BY ts ORDER BY ts",
    "SELECT ts, u, max(v) FROM t WHERE v % 3 = 1 AND f IS NOT NULL GROUP BY ts, u ORDER BY ts DESC LIMIT 50",
    "SELECT DISTINCT ts FROM t WHERE v >= 7 AND abs(ts) > 3 ORDER BY ts OFFSET 17",
];

/// Columns of filtered rows in another order than that of the scan, without the column they are
/// sorted by.
const FILTERED: &[&str] = &[
    "SELECT f, u, v FROM t WHERE ts = 18 AND v IS NOT NULL ORDER BY ts LIMIT 5",
    "SELECT v, u FROM t WHERE ts = 18 AND u <> 'x' ORDER BY ts LIMIT 5",
    "SELECT u, v FROM t WHERE ts = 18 AND v >= 0 AND u = 'u18' ORDER BY ts, u LIMIT 5",
    "SELECT f, v FROM t WHERE u = 'u18' AND v > 0 AND f IS NOT NULL ORDER BY u, ts LIMIT 5",
    "SELECT x.f, x.u FROM (SELECT f, u, v, ts FROM t WHERE ts = 18 AND v <> 3 ORDER BY ts LIMIT 5) x WHERE x.u <> 'y'",
];

/// What row groups and pages hold never decides whether a row matches.
const FLOATS: &[&str] = &[
    "SELECT count(*) FROM t WHERE f > 100",
    "SELECT count(*) FROM t WHERE NOT (f <= 100)",
    "SELECT count(*) FROM t WHERE f >= 1e308",
    "SELECT count(*) FROM t WHERE f < -1e300",
    "SELECT count(*) FROM t WHERE f IN ('NaN'::double, 1.0)",
    "SELECT count(*) FROM t WHERE f = 'NaN'::double",
    "SELECT count(*) FROM t WHERE f <> 1.0",
    "SELECT count(*) FROM t WHERE f = 0.0",
    "SELECT count(*) FROM t WHERE f = -0.0",
    "SELECT count(*) FROM t WHERE f BETWEEN 0 AND 'Infinity'::double",
    "SELECT count(*) FROM t WHERE isnan(f)",
    "SELECT count(*) FROM t WHERE f IS NULL",
    "SELECT count(*) FROM t WHERE f + 1 > 1e9",
    "SELECT count(*) FROM t WHERE CAST(f AS FLOAT) > 1e9 OR ts < 3",
    "SELECT max(f), min(f) FROM t WHERE f > 5",
    "SELECT f, ts FROM t ORDER BY f DESC NULLS LAST, ts LIMIT 5",
    "SELECT f, ts FROM t ORDER BY f NULLS LAST, ts LIMIT 5",
    "SELECT count(*) FROM t a JOIN (SELECT f FROM t WHERE ts < 40) b ON a.f = b.f WHERE a.ts < 300",
];

#[tokio::test(flavor = "multi_thread")]
async fn limits_over_several_files_of_each_stream_give_the_first_rows() {
    let dir = tempfile::tempdir().unwrap();
    let batches = [batch(0..900, 37), batch(1000..1900, 37), batch(2000..2900, 37)];
    let (states, truth) = tables(&dir, &spec(2, "u"), &batches).await;
    compare(&states, &truth, &[1, 2, 3, 8], LIMITED).await;
    compare(&states, &truth, &[1, 2, 3, 8], SORTED).await;
    compare_in_own_session(&states, &truth, &[1, 2, 3, 8], GROUPED).await;
    compare_in_own_session(&states, &truth, &[1, 2, 3, 8], FILTERED).await;
    compare(&states, &truth, &[1, 2, 3, 8], FLOATS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_over_portions_that_overlap_and_that_do_not_give_the_first_rows() {
    let dir = tempfile::tempdir().unwrap();
    let ranges = [500..1400, 0..900, 2000..2900, 880..1100, 5000..5100, 2500..2600];
    let batches: Vec<_> = ranges.into_iter().map(|range| batch(range, 11)).collect();
    let (states, truth) = tables(&dir, &spec(3, "u"), &batches).await;
    compare(&states, &truth, &[1, 2, 3, 8], LIMITED).await;
    compare(&states, &truth, &[1, 2, 3, 8], SORTED).await;
    compare_in_own_session(&states, &truth, &[1, 2, 3, 8], GROUPED).await;
    compare_in_own_session(&states, &truth, &[1, 2, 3, 8], FILTERED).await;
    compare(&states, &truth, &[1, 2, 3, 8], FLOATS).await;
}

/// NaN of either sign is above infinity, whichever row of a group comes first, and a group
/// of infinities alone has them.
#[tokio::test(flavor = "multi_thread")]
async fn extremes_of_groups_do_not_depend_on_the_order_of_rows() {
    let dir = tempfile::tempdir().unwrap();
    let batches = [batch(0..700, 37), batch(2000..2900, 37), batch(600..1300, 37)];
    let (states, _) = tables(&dir, &spec(2, "u"), &batches).await;
    let keys: std::collections::BTreeSet<i64> = (0..1300).chain(2000..2900).collect();
    for groups in [101, 7, 1] {
        let sql = format!("SELECT ts % {groups} AS g, min(f), max(f) FROM t GROUP BY g ORDER BY g");
        let mut expected: Vec<Vec<f64>> = vec![Vec::new(); usize::try_from(groups).unwrap()];
        for key in &keys {
            expected[usize::try_from(key % groups).unwrap()].extend(float(*key));
        }
        let text = |float: Option<&f64>| {
            float.map_or("NULL".to_owned(), |float| {
                rows(&[RecordBatch::try_from_iter([(
                    "f",
                    Arc::new(Float64Array::from(vec![*float])) as ArrayRef,
                )])
                .unwrap()])[0][0]
                    .clone()
            })
        };
        let expected: Vec<Vec<String>> = (0..)
            .zip(expected)
            .map(|(group, mut floats)| {
                floats.sort_by(|a, b| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())));
                vec![format!("{group}"), text(floats.first()), text(floats.last())]
            })
            .collect();
        for (state, table) in &states {
            for cores in [1, 3] {
                let session = session_on(table, cores);
                let found = rows(&session.collect(&sql, &Params::default()).await.unwrap());
                assert_eq!(found, expected, "{sql}, {state}, {cores} cores");
            }
        }
    }
}

/// A limit on groups of floats cuts the sorted groups, and never splits or loses those of NaN.
#[tokio::test(flavor = "multi_thread")]
async fn limited_groups_of_floats_are_the_first_of_all() {
    let dir = tempfile::tempdir().unwrap();
    let batches = [batch(0..700, 37), batch(2000..2900, 37), batch(600..1300, 37)];
    let (states, _) = tables(&dir, &spec(2, "u"), &batches).await;
    for (state, table) in &states {
        for (order, groups) in ["f NULLS LAST", "f NULLS FIRST", "f DESC NULLS LAST", "f DESC NULLS FIRST"]
            .into_iter()
            .flat_map(|order| [(order, "SELECT DISTINCT f"), (order, "SELECT f")])
        {
            let session = table.session().unwrap();
            let grouped = if groups.contains("DISTINCT") { "" } else { " GROUP BY f" };
            let sql = format!("{groups} FROM t{grouped} ORDER BY {order}");
            let all = rows(&session.collect(&sql, &Params::default()).await.unwrap());
            let nans = all.iter().filter(|row| row[0].contains("NaN")).count();
            assert!((1..=2).contains(&nans), "{sql}: {all:?}");
            for limit in [1, 2, 3, 5, 50, 1000] {
                let sql = format!("{sql} LIMIT {limit}");
                let found = rows(&session.collect(&sql, &Params::default()).await.unwrap());
                assert_eq!(found, all[..all.len().min(limit)], "{sql}, {state}");
            }
        }
    }
}

/// Eight rows share each time, and their streams are merged.
#[tokio::test(flavor = "multi_thread")]
async fn windows_over_the_key_keep_its_order_and_the_limit_above_them() {
    let dir = tempfile::tempdir().unwrap();
    let tied = |range: Range<i64>| {
        let batch = batch(range.clone(), 37);
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(range.map(|i| i / 8)));
        let columns = std::iter::once(times).chain(batch.columns()[1..].iter().cloned()).collect();
        RecordBatch::try_new(batch.schema(), columns).unwrap()
    };
    for (partitions, key) in [(3, "u"), (4, "ts")] {
        let dir = dir.path().join(key);
        std::fs::create_dir(&dir).unwrap();
        let dir = tempfile::tempdir_in(dir).unwrap();
        let batches = [tied(0..900), tied(1000..1900), tied(500..1300)];
        let (states, truth) = tables(&dir, &spec(partitions, key), &batches).await;
        let statements = [
            "SELECT ts, u, count(*) OVER (ORDER BY ts) AS n FROM t ORDER BY ts, u",
            "SELECT ts, u, count(*) OVER (ORDER BY ts) AS n FROM t ORDER BY ts, u LIMIT 5",
            "SELECT ts, u, rank() OVER (ORDER BY ts) AS n FROM t WHERE v > 3 ORDER BY ts, u LIMIT 5",
            "SELECT ts, u, count(*) OVER (ORDER BY ts GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM t \
             ORDER BY ts, u LIMIT 12 OFFSET 3",
            "SELECT * FROM (SELECT ts, u, dense_rank() OVER (ORDER BY ts DESC) AS n FROM t) WHERE n < 4 \
             ORDER BY ts DESC, u DESC LIMIT 9",
            "SELECT ts, u, n FROM (SELECT ts, u, min(v) OVER (PARTITION BY ts) AS n FROM t) ORDER BY ts, u LIMIT 9",
            "SELECT ts, max(u), count(*) FROM t GROUP BY ts ORDER BY ts LIMIT 4",
        ];
        compare_in_own_session(&states, &truth, &[1, 2, 3, 8], &statements).await;
    }
}

/// A column that a set of groups leaves out is NULL, even if a condition makes it constant.
#[tokio::test(flavor = "multi_thread")]
async fn groups_of_several_sets_are_sorted_by_what_is_constant_below() {
    let dir = tempfile::tempdir().unwrap();
    let batches = [batch(0..900, 7), batch(500..1400, 7)];
    let (states, truth) = tables(&dir, &spec(3, "u"), &batches).await;
    // DataFusion in memory has the same fault, unless it cannot see that a column is constant.
    let statements = [
        "SELECT u, v % 3 AS w, count(*) AS n FROM t WHERE u = 'u3' GROUP BY CUBE (u, v % 3) \
         ORDER BY u DESC NULLS LAST, w DESC NULLS LAST, grouping(u), grouping(v % 3)",
        "SELECT u, sum(n) AS n FROM (SELECT u, v, count(*) AS n FROM t WHERE u = 'u3' GROUP BY ROLLUP (u, v)) \
         GROUP BY u ORDER BY u NULLS LAST",
        "SELECT u, row_number() OVER (ORDER BY u NULLS FIRST) AS n \
         FROM (SELECT u FROM t WHERE u = 'u3' GROUP BY ROLLUP (u)) ORDER BY n",
        "SELECT DISTINCT ON (ts) ts, u FROM t WHERE u = 'u3' ORDER BY ts, u, ts LIMIT 4",
    ];
    for sql in statements {
        let hidden = sql.replace("u = 'u3'", "u || '' = 'u3'").replace("ts, u, ts LIMIT", "ts, u LIMIT");
        let expected = rows(&truth.sql(&hidden).await.unwrap().collect().await.unwrap());
        for (state, table) in &states {
            for cores in [1, 2, 8] {
                let found = session_on(table, cores).collect(sql, &Params::default()).await.unwrap();
                assert_eq!(rows(&found), expected, "{sql}, {state}, {cores} cores");
            }
        }
    }
}

/// The limit of a subquery holds below a join, whatever limit is above it.
#[tokio::test(flavor = "multi_thread")]
async fn an_outer_limit_does_not_replace_that_of_a_subquery() {
    let dir = tempfile::tempdir().unwrap();
    let batches = [batch(0..900, 37), batch(500..1400, 37)];
    let (states, _) = tables(&dir, &spec(1, "u"), &batches).await;
    let sql =
        "SELECT ts FROM t WHERE ts IN (SELECT ts FROM t ORDER BY ts DESC LIMIT 100) ORDER BY ts LIMIT 10";
    let expected: Vec<Vec<String>> = (1300..1310).map(|ts| vec![format!("{ts}")]).collect();
    for (state, table) in &states {
        for cores in [1, 2, 8] {
            let session = session_on(table, cores);
            let found = rows(&session.collect(sql, &Params::default()).await.unwrap());
            assert_eq!(found, expected, "{state}, {cores} cores");
        }
    }
}

/// More distinct texts than a dictionary holds: each portion has several row groups.
#[tokio::test(flavor = "multi_thread")]
async fn limits_over_several_row_groups_give_the_first_rows() {
    let dir = tempfile::tempdir().unwrap();
    let batches = [batch(0..150_000, i64::MAX), batch(150_000..160_000, i64::MAX)];
    let (states, truth) = tables(&dir, &spec(1, "u"), &batches).await;
    let few: Vec<&str> = LIMITED.iter().copied().filter(|sql| !sql.contains("JOIN")).collect();
    compare(&states, &truth, &[2], &few).await;
    compare(&states, &truth, &[2], &FLOATS[..FLOATS.len() - 1]).await;
}
