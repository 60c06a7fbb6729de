//! Plans of every shape on a table whose scan says how it is partitioned and sorted: the answers
//! are those of a naive engine.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use evenkeel::Table;
use evenkeel::ingest::IngestOptions;
use evenkeel::query::Params;
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::PartitionCount;

use crate::common::{naive, rows, sorted_rows, states};

fn batch(range: std::ops::Range<i64>, round: i64) -> RecordBatch {
    let at: Int64Array = range.clone().map(|i| i / 3).collect::<Vec<_>>().into();
    let user: StringArray = range.clone().map(|i| Some(format!("u{}", (i * 7) % 41))).collect();
    let value: Int64Array = range.map(|i| i * 10 + round).collect::<Vec<_>>().into();
    RecordBatch::try_from_iter_with_nullable([
        ("at", Arc::new(at) as ArrayRef, false),
        ("user", Arc::new(user) as ArrayRef, false),
        ("value", Arc::new(value) as ArrayRef, true),
    ])
    .unwrap()
}

fn spec(partition_key: &str) -> TableSpec {
    TableSpec::new(TableDefinition {
        name: "events".into(),
        columns: vec![
            Column::required("at", ColumnType::Int64),
            Column::required("user", ColumnType::Utf8),
            Column::nullable("value", ColumnType::Int64),
        ],
        primary_key: vec!["at".into(), "user".into()],
        partition_key: partition_key.split(',').map(str::to_owned).collect(),
        partitions: PartitionCount::new(7).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap()
}

/// Every shape that could go wrong where one hash is taken for another, or one order for another.
const SHAPES: [&str; 22] = [
    "SELECT user, count(*), sum(value) FROM t GROUP BY user",
    "SELECT user, at, count(*), max(value) FROM t GROUP BY user, at",
    "SELECT at, count(*) FROM t GROUP BY at",
    "SELECT count(DISTINCT user), count(*) FROM t",
    "SELECT DISTINCT user FROM t",
    "SELECT user, count(DISTINCT value) FROM t GROUP BY user HAVING count(*) > 20",
    "SELECT n, count(*) FROM (SELECT user, count(*) AS n FROM t GROUP BY user) GROUP BY n",
    "SELECT a.user, a.value, b.value FROM t a JOIN t b ON a.user = b.user AND a.at = b.at",
    "SELECT a.user, count(*) FROM t a JOIN t b ON a.user = b.user WHERE a.at < 20 AND b.at > 90 GROUP BY a.user",
    "SELECT a.user, b.n FROM t a JOIN (SELECT user, count(*) AS n FROM t GROUP BY user) b ON a.user = b.user",
    "SELECT a.user, a.n, b.n FROM (SELECT user, count(*) AS n FROM t WHERE at < 50 GROUP BY user) a
     FULL OUTER JOIN (SELECT user, count(*) AS n FROM t WHERE user IN ('u1', 'u2', 'u40') GROUP BY user) b ON a.user = b.user",
    "SELECT a.user, a.at FROM t a LEFT JOIN t b ON a.user = b.user AND b.at = a.at + 41 WHERE b.user IS NULL",
    "SELECT user, value FROM t WHERE user IN (SELECT user FROM t WHERE value % 100 = 1)",
    "SELECT user, at FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.user = a.user AND b.at > a.at + 60)",
    "SELECT user, at, value FROM t WHERE value > (SELECT avg(value) FROM t)",
    "SELECT user FROM t UNION SELECT user FROM t WHERE at > 70",
    "SELECT user, count(*) FROM (SELECT user FROM t WHERE at < 9 UNION ALL SELECT user FROM t WHERE at > 90) GROUP BY user",
    "SELECT user FROM t WHERE at < 30 INTERSECT SELECT user FROM t WHERE at > 80",
    "SELECT user, at, row_number() OVER (PARTITION BY user ORDER BY at) FROM t",
    "SELECT user, at, sum(value) OVER (PARTITION BY user ORDER BY at ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT user, lag(value) OVER (PARTITION BY user ORDER BY at), rank() OVER (ORDER BY at, user) FROM t",
    "WITH u AS (SELECT user, max(at) AS last FROM t GROUP BY user) SELECT t.user, value FROM t JOIN u ON t.user = u.user AND t.at = u.last",
];

/// Shapes whose rows have an order.
const ORDERED: [&str; 6] = [
    "SELECT at, user, value FROM t ORDER BY at, user",
    "SELECT at, user, value FROM t ORDER BY at, user LIMIT 17",
    "SELECT at, user FROM t WHERE user = 'u7' ORDER BY at DESC LIMIT 5",
    "SELECT at, user, value FROM t ORDER BY at DESC, user DESC LIMIT 9",
    "SELECT user, at FROM t ORDER BY user, at LIMIT 30 OFFSET 11",
    "SELECT at, count(*), sum(value) FROM t GROUP BY at ORDER BY at",
];

async fn answers(table: &Table, sql: &str, target_partitions: usize) -> Vec<RecordBatch> {
    let session = table.session().unwrap();
    let state = session.context().state_ref();
    state.write().config_mut().options_mut().execution.target_partitions = target_partitions;
    session.collect(sql, &Params::default()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shape_gives_the_rows_of_a_naive_engine() {
    let batches =
        [batch(0..180, 0), batch(120..300, 1), batch(300..420, 2), batch(10..40, 3), batch(400..420, 4)];
    let mut compared = 0;
    for key in ["user", "user,at", "at"] {
        let dir = tempfile::tempdir().unwrap();
        let spec = spec(key);
        let mut table = Table::create(dir.path().join("t"), &spec).await.unwrap();
        for batch in &batches {
            let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch.clone())]);
            table.ingest(stream, &IngestOptions::default()).await.unwrap();
        }
        let naive = naive(&spec, &batches).await;
        let states = states(table).await;
        for sql in SHAPES.iter().chain(&ORDERED) {
            let expected = naive.sql(sql).await.unwrap().collect().await.unwrap();
            for (state, table) in &states {
                for target_partitions in [1, 3, 16] {
                    let found = answers(table, sql, target_partitions).await;
                    let what = format!("{sql}\nHASH({key}), {state}, {target_partitions} at one time");
                    assert_eq!(sorted_rows(&found), sorted_rows(&expected), "{what}");
                    if ORDERED.contains(sql) {
                        assert_eq!(rows(&found), rows(&expected), "{what}");
                    }
                    compared += 1;
                }
            }
        }
    }
    println!("{compared} answers compared");
}
