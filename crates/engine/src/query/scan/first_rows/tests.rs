//! The first rows that scans find are those of all rows sorted.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::{ExecutionPlan, collect};
use evenkeel_model::table::{Column, ColumnType};

use crate::query::scan::ordered_scan::OrderedScan;
use crate::query::scan::portion_source::tests::{CONDITIONS, add, compared, ddl};
use crate::query::{Params, TableSession};
use crate::testing::{create, ingest, session_on};

/// Returns the only batch of the rows of a query.
async fn batch_of(session: &TableSession, sql: &str) -> RecordBatch {
    let plan = session.physical_plan(sql, &Params::default()).await.unwrap();
    let schema = plan.schema();
    let batches = collect(plan, session.context().task_ctx()).await.unwrap();
    arrow::compute::concat_batches(&schema, &batches).unwrap()
}

const ORDERS: [&str; 16] = [
    "n DESC NULLS LAST, k, line",
    "n, k DESC, line",
    "n DESC NULLS FIRST, name, k, line",
    "n NULLS FIRST, k, line",
    "name DESC, k, line",
    "name NULLS FIRST, k, line",
    "kind, k, line",
    "kind DESC, n, k, line",
    "f DESC NULLS LAST, k, line",
    "f, k DESC, line",
    "f NULLS FIRST, k, line",
    "extra DESC NULLS LAST, k, line",
    "extra, k, line DESC",
    "k % 7 DESC, k, line",
    "k DESC, line DESC",
    "line DESC, name DESC, k",
];

/// Compares the first rows by all orders, under some conditions each, with those of all rows
/// sorted; returns how many scans looked for them.
async fn compare_first_rows(session: &TableSession) -> usize {
    let lists = ["k, line", "*", "name, k + 1 AS next, line", "upper(kind) AS u, f, extra, k, line"];
    let mut prepared = 0;
    for (position, order) in ORDERS.iter().enumerate() {
        let others = CONDITIONS.iter().skip(1).cycle().skip(position * 5).take(2);
        for (turn, condition) in std::iter::once(&CONDITIONS[0]).chain(others).enumerate() {
            let list = lists[(position + turn) % lists.len()];
            let sorted = format!("SELECT {list} FROM t WHERE {condition} ORDER BY {order}");
            let all = batch_of(session, &sorted).await;
            for (count, skipped) in [(1, 0), (7, 3), (600, 0)].into_iter().skip(turn % 2) {
                let sql = format!("{sorted} LIMIT {count} OFFSET {skipped}");
                let from = skipped.min(all.num_rows());
                let first = all.slice(from, count.min(all.num_rows() - from));
                assert_eq!(batch_of(session, &sql).await, first, "{sql}");
            }
            let limited = format!("{sorted} LIMIT 20");
            prepared += usize::from(compared(session, &limited).await.1.prepared > 0);
        }
    }
    prepared
}

#[tokio::test]
async fn first_rows_are_those_of_all_rows_sorted() {
    let added = Column { name: "extra".to_owned(), column_type: ColumnType::Int64, nullable: true };
    // Files overlap if rows are in the order of `line`: all are in one commit then.
    // Each of 40 partitions has a small file of each commit.
    for (primary_key, partitions, commits) in [
        ("k, line", 3, vec![0, 60_000, 120_000]),
        ("line, k", 3, vec![0, 120_000]),
        ("k, line", 40, vec![0, 60_000, 120_000]),
    ] {
        let (_folder, mut table) = create(&ddl(primary_key, partitions)).await;
        for commit in commits.windows(2) {
            if commit[1] == 120_000 {
                table.alter(|definition| definition.columns.push(added.clone())).await.unwrap();
            }
            add(&mut table, commit[0], commit[1]).await;
        }
        let prepared = compare_first_rows(&table.session().unwrap()).await;
        assert!(prepared > 40, "{prepared} of 48 with {primary_key}");
    }
}

fn scattered(row: i64) -> i64 {
    row * 7_919 % 1_000_003
}

fn rising(row: i64) -> Option<i64> {
    (row % 10 != 0).then_some(row / 1_000)
}

#[tokio::test]
async fn row_groups_and_pages_beyond_the_bound_are_not_read() {
    const ROWS: i64 = 2_100_000;
    let (_folder, mut table) = create(
        "CREATE TABLE t (k Int64 NOT NULL, v Int64 NOT NULL, rising Int64, PRIMARY KEY (k))
         PARTITION BY HASH(k) WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 1)",
    )
    .await;
    let columns: [(&str, ArrayRef); 3] = [
        ("k", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        ("v", Arc::new(Int64Array::from_iter_values((0..ROWS).map(scattered)))),
        ("rising", Arc::new(Int64Array::from_iter((0..ROWS).map(rising)))),
    ];
    ingest(&mut table, RecordBatch::try_from_iter(columns).unwrap()).await;
    // Of several streams, one may read what another would exclude a moment later.
    let session = session_on(&table, 1, false);
    let by = |key: fn(i64) -> (bool, i64, i64), keeps: fn(i64) -> bool| {
        let mut rows: Vec<i64> = (0..ROWS).filter(|row| keeps(*row)).collect();
        rows.sort_by_key(|row| key(*row));
        rows.truncate(10);
        rows
    };
    for (order, condition, expected, most) in [
        ("v, k", "true", by(|row| (false, scattered(row), row), |_| true), 70_000),
        (
            "v DESC, k DESC",
            "v < 900000",
            by(|row| (false, -scattered(row), -row), |row| scattered(row) < 900_000),
            70_000,
        ),
        (
            "rising DESC NULLS LAST, k",
            "true",
            by(|row| (rising(row).is_none(), -rising(row).unwrap_or(0), row), |_| true),
            20_000,
        ),
        (
            "rising DESC NULLS FIRST, k DESC",
            "k < 2000000",
            by(|row| (rising(row).is_some(), 0, -row), |row| row < 2_000_000),
            230_000,
        ),
        (
            "rising, v",
            "v > 500",
            by(
                |row| (rising(row).is_none(), rising(row).unwrap_or(0), scattered(row)),
                |row| scattered(row) > 500,
            ),
            20_000,
        ),
    ] {
        let sql = format!("SELECT k FROM t WHERE {condition} ORDER BY {order} LIMIT 10");
        let plan = session.physical_plan(&sql, &Params::default()).await.unwrap();
        let batches = collect(Arc::clone(&plan), session.context().task_ctx()).await.unwrap();
        let found: Vec<i64> = batches
            .iter()
            .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect();
        assert_eq!(found, expected, "{sql}");
        let returned = returned_by_scans(&plan);
        assert!(returned <= most, "{sql}: {returned} rows");
    }
}

/// Rows that the scans of a plan have returned.
fn returned_by_scans(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let mut returned = 0;
    plan.apply(|node| {
        if OrderedScan::from_plan(node.as_ref()).is_some() {
            returned += node.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0);
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    returned
}

/// A day, which is the same in all rows of a file, is a key that no file has to be read for.
#[tokio::test]
async fn files_of_one_key_are_left_out_as_a_whole() {
    let (_folder, mut table) = create(
        "CREATE TABLE t (day Int64 NOT NULL, k Int64 NOT NULL, PRIMARY KEY (day, k))
         PARTITION BY HASH(k) WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 2)",
    )
    .await;
    const ROWS: i64 = 50_000;
    for day in 0..4 {
        let columns: [(&str, ArrayRef); 2] = [
            ("day", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| day)))),
            ("k", Arc::new(Int64Array::from_iter_values((0..ROWS).map(scattered)))),
        ];
        ingest(&mut table, RecordBatch::try_from_iter(columns).unwrap()).await;
    }
    let session = session_on(&table, 2, false);
    // Files are in the order of their days. By an expression, the last is not known to be the best.
    for (order, most) in
        [("day DESC, k DESC", ROWS), ("day DESC, k", ROWS), ("day, k", ROWS), ("day + 1 DESC, k", 3 * ROWS)]
    {
        let sorted = format!("SELECT day, k FROM t ORDER BY {order}");
        let all = batch_of(&session, &sorted).await;
        let sql = format!("{sorted} LIMIT 20");
        let plan = session.physical_plan(&sql, &Params::default()).await.unwrap();
        let first = collect(Arc::clone(&plan), session.context().task_ctx()).await.unwrap();
        assert_eq!(
            arrow::compute::concat_batches(&plan.schema(), &first).unwrap(),
            all.slice(0, 20),
            "{sql}"
        );
        let returned = returned_by_scans(&plan);
        assert!(returned <= most as usize, "{sql}: {returned} rows of {}", 4 * ROWS);
    }
}
