//! Scans by shared plans return the rows that DataFusion returns, file by file.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::util::pretty::pretty_format_batches;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::{ExecutionPlan, collect};
use evenkeel_model::table::{Column, ColumnType};

use crate::Table;
use crate::query::scan::density::Place;
use crate::query::scan::ordered_scan::OrderedScan;
use crate::query::scan::portion_source::SMALL_READS;
use crate::query::{Params, TableSession};
use crate::testing::{create, ingest, session_on};

/// Statement of the table with a primary key and a number of partitions. If `k` is not the first
/// column of the key, files have Bloom filters.
pub(in crate::query::scan) fn ddl(primary_key: &str, partitions: usize) -> String {
    let columns = "k Int64 NOT NULL, line Int32 NOT NULL, name Utf8, kind Utf8, f Double, n Int32";
    format!(
        "CREATE TABLE t ({columns}, PRIMARY KEY ({primary_key})) PARTITION BY HASH(k)
         WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = {partitions})"
    )
}

/// Rows `from..to`, with NULLs, NaN and repeated texts, and the columns that the table has.
fn rows(table: &Table, from: i64, to: i64) -> RecordBatch {
    let all = || from..to;
    let column = |name: &str| -> ArrayRef {
        match name {
            "k" => Arc::new(Int64Array::from_iter_values(all().map(|row| row / 3))),
            "line" => Arc::new(Int32Array::from_iter_values(all().map(|row| (row % 3) as i32))),
            "name" => Arc::new(StringArray::from_iter(
                all().map(|row| (row % 11 != 0).then(|| format!("name {:05}", row * 7_919 % 30_011))),
            )),
            "kind" => Arc::new(StringArray::from_iter_values(
                all().map(|row| ["a", "b", "", "d"][(row % 4) as usize]),
            )),
            "f" => Arc::new(Float64Array::from_iter(all().map(|row| match row % 9 {
                0 => None,
                1 => Some(f64::NAN),
                rest => Some(row as f64 / rest as f64),
            }))),
            "n" => Arc::new(Int32Array::from_iter(
                all().map(|row| (row % 5 != 0).then_some((row % 1_000) as i32)),
            )),
            _ => Arc::new(Int64Array::from_iter(all().map(|row| (row % 2 == 0).then_some(row)))),
        }
    };
    let names = table.spec().schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    RecordBatch::try_from_iter_with_nullable(names.iter().map(|name| (name.as_str(), column(name), true)))
        .unwrap()
}

pub(in crate::query::scan) async fn add(table: &mut Table, from: i64, to: i64) {
    let batch = rows(table, from, to);
    ingest(table, batch).await;
}

/// A table with several portions in each partition, some of which overlap, and some of which were
/// written before a column was added.
async fn table(primary_key: &str) -> (tempfile::TempDir, Table) {
    let (folder, mut table) = create(&ddl(primary_key, 3)).await;
    add(&mut table, 0, 90_000).await;
    add(&mut table, 60_000, 100_000).await;
    let added = Column { name: "extra".to_owned(), column_type: ColumnType::Int64, nullable: true };
    table.alter(|definition| definition.columns.push(added.clone())).await.unwrap();
    add(&mut table, 99_000, 150_000).await;
    add(&mut table, 150_000, 150_030).await;
    (folder, table)
}

/// Number of scans of a plan to which something applies.
fn scans(plan: &Arc<dyn ExecutionPlan>, applies: impl Fn(&OrderedScan) -> bool) -> usize {
    let mut found = 0;
    plan.apply(|node| {
        found += usize::from(OrderedScan::from_plan(node.as_ref()).is_some_and(&applies));
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    found
}

/// Scans that a query has run.
#[derive(Debug)]
pub(in crate::query::scan) struct Scans {
    /// Those opened by shared plans.
    pub(in crate::query::scan) prepared: usize,
    /// Those that filter decoded rows.
    late: usize,
    /// Those that evaluate several conditions as one in the reader, but not on decoded rows.
    together: usize,
    /// Those that decode all columns of a few rows.
    small: usize,
}

async fn returned(session: &TableSession, plan: Arc<dyn ExecutionPlan>) -> String {
    let batches = collect(plan, session.context().task_ctx()).await.unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

/// Returns the rows of a query, and its scans, after comparing the rows with those of the scans
/// that DataFusion opens.
pub(in crate::query::scan) async fn compared(session: &TableSession, sql: &str) -> (String, Scans) {
    let params = Params::default();
    let prepared = session.physical_plan(sql, &params).await.unwrap();
    let left_to_datafusion = |node: Arc<dyn ExecutionPlan>| {
        let scan = OrderedScan::from_plan(node.as_ref()).map(OrderedScan::left_to_datafusion);
        Ok(scan.map_or_else(|| Transformed::no(node), Transformed::yes))
    };
    let plain =
        session.physical_plan(sql, &params).await.unwrap().transform_up(left_to_datafusion).unwrap().data;
    let rows = returned(session, Arc::clone(&prepared)).await;
    assert_eq!(rows, returned(session, Arc::clone(&plain)).await, "{sql}");
    assert_eq!(scans(&plain, OrderedScan::was_prepared), 0, "{sql}");
    let places = |expected: fn(Place) -> bool| scans(&prepared, |scan| scan.place().is_some_and(expected));
    let late = places(|place| place == Place::Decoded);
    let together = places(|place| matches!(place, Place::Reader { together: 2.. }));
    let mut small = 0;
    prepared
        .apply(|node| {
            let metrics = node.metrics().and_then(|metrics| metrics.sum_by_name(SMALL_READS));
            small += usize::from(metrics.is_some_and(|reads| reads.as_usize() > 0));
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
    (rows, Scans { prepared: scans(&prepared, OrderedScan::was_prepared), late, together, small })
}

pub(in crate::query::scan) const CONDITIONS: [&str; 40] = [
    "true",
    "k = 20011",
    "k = 20011 AND line = 1",
    "k BETWEEN 29990 AND 30010",
    "k IN (5, 7000, 33000, 49999, 90000)",
    "name = 'name 00777'",
    "name = 'no such name'",
    "name IN ('name 00777', 'name 29000')",
    "name > 'name 29990' AND kind <> 'b'",
    "name IS NULL AND k < 50",
    "kind = '' AND n < 3",
    "n > 997 OR k = 3",
    "n IS NULL AND line = 2 AND k > 49000",
    "f > 49000 AND n < 100",
    "f = 'NaN'::double AND k < 30",
    "extra = 120000",
    "extra IS NULL AND k BETWEEN 32990 AND 33010",
    "extra > 149990",
    "extra + k > 199990",
    "100 / n > 40 AND n <> 0",
    "k > 9999999",
    "line = 5",
    "line <> 1",
    "kind <> 'b'",
    "n < 700 AND line <> 2",
    "name > 'name 10000' AND kind <> 'd' AND n > 100",
    "extra > 120000 OR extra IS NULL AND line = 1",
    "n IS NOT NULL AND name LIKE '%7%'",
    "n < 600 AND kind = 'a' AND name LIKE '%777%'",
    "n < 600 AND kind IN ('a', 'd') AND name BETWEEN 'name 10000' AND 'name 10060'",
    "kind <> 'b' AND name = 'no such name'",
    "line <> 1 AND kind <> 'b' AND name LIKE '%00%' AND f > 3",
    "upper(kind) = 'D' AND length(name) = 10 AND name > 'name 29'",
    "kind IS DISTINCT FROM 'a' AND kind <> 'd' AND k < 700",
    "upper(kind) = 'B' AND n < 3 OR name LIKE '%01' AND k > 20000 OR n IS NULL AND name IS NULL",
    "(kind = 'a' OR n > 990) AND (name IS NULL OR name < 'name 01') AND NOT (line = 1 OR kind = 'd')",
    "kind || name = 'dname 00777' OR kind = 'a' AND k = 4",
    "name ~ '(77|13)$' AND kind NOT IN ('a', 'b')",
    "coalesce(name, 'none') IN ('none', 'name 00777') AND k < 20100",
    "line = 1 AND CASE WHEN name LIKE 'name 000%' THEN CAST(substr(name, 6) AS INT) > 44 ELSE false END",
];

/// Compares queries with all conditions, each on two lists of columns; returns how many scans
/// filter decoded rows, evaluate several conditions as one, and read few rows.
async fn compare_all(session: &TableSession) -> (usize, usize, usize) {
    let lists = [
        "*",
        "name, k, line",
        "k, line, extra + 1 AS x, upper(kind) AS u",
        "k, line, 'constant' AS c",
        "k, line, kind, arrow_cast(name, 'Dictionary(UInt32, Utf8)') AS d, kind AS again",
    ];
    let (mut some, mut none, mut opened, mut late, mut together, mut small) = (0, 0, 0, 0, 0, 0);
    for (position, condition) in CONDITIONS.iter().enumerate() {
        for list in lists.iter().cycle().skip(position).take(2) {
            let sql = format!("SELECT {list} FROM t WHERE {condition} ORDER BY k, line");
            let (rows, scans) = compared(session, &sql).await;
            let has_rows = rows.lines().count() > 4;
            opened += scans.prepared;
            late += scans.late;
            together += scans.together;
            small += scans.small;
            some += usize::from(has_rows);
            none += usize::from(!has_rows);
        }
        let sql =
            format!("SELECT count(*), sum(k), min(name), max(f), count(extra) FROM t WHERE {condition}");
        compared(session, &sql).await;
    }
    assert!(some > 30 && none > 6, "{some} with rows, {none} without");
    // A scan that reads row groups in the order of the statement is left to DataFusion.
    assert!(opened >= some / 2, "{opened} scans");
    (late, together, small)
}

#[tokio::test]
async fn rows_are_those_of_datafusion_whatever_the_conditions_and_columns() {
    let (_folder, table) = table("k, line").await;
    let (late, together, _) = compare_all(&table.session().unwrap()).await;
    assert!(late > 10 && together > 2, "{late} and {together} scans");
}

#[tokio::test]
async fn files_with_bloom_filters_and_files_in_pieces_return_the_same_rows() {
    let (_folder, table) = table("line, k").await;
    let session = session_on(&table, 4, false);
    session.context().state_ref().write().config_mut().options_mut().optimizer.repartition_file_min_size = 1;
    compare_all(&session).await;
}

#[tokio::test]
async fn small_files_return_the_same_rows() {
    let (_folder, mut table) = create(&ddl("k, line", 16)).await;
    add(&mut table, 0, 30_000).await;
    let added = Column { name: "extra".to_owned(), column_type: ColumnType::Int64, nullable: true };
    table.alter(|definition| definition.columns.push(added.clone())).await.unwrap();
    add(&mut table, 99_000, 150_000).await;
    let (_, _, small) = compare_all(&table.session().unwrap()).await;
    assert!(small > 40, "{small} scans");
}

#[tokio::test]
async fn columns_with_one_value_in_a_file_are_known_without_reading_them() {
    let (_folder, mut table) = create(&ddl("line, k", 3)).await;
    for line in [7, 8] {
        let batch = rows(&table, line * 1_000, line * 1_000 + 500);
        let mut columns = batch.columns().to_vec();
        columns[1] = Arc::new(Int32Array::from_iter_values((0..500).map(|_| line as i32)));
        let keys = Int64Array::from_iter_values(0..500);
        columns[0] = Arc::new(keys);
        if line == 7 {
            columns[3] = Arc::new(StringArray::from_iter_values((0..500).map(|_| "d")));
        }
        ingest(&mut table, RecordBatch::try_new(batch.schema(), columns).unwrap()).await;
    }
    let session = table.session().unwrap();
    for (sql, expected) in [
        ("SELECT sum(line) FROM t WHERE n > 990", "sum"),
        ("SELECT line, count(*) FROM t WHERE line = 7 GROUP BY line", "| 7 "),
        ("SELECT line + 1 AS next, k FROM t WHERE line < 9 AND k > 497 ORDER BY 1, 2", "| 9 "),
        ("SELECT count(*) FROM t WHERE line > 7 AND name > 'name 1'", "count"),
        ("SELECT kind, count(*) FROM t WHERE kind <> 'b' GROUP BY kind ORDER BY kind", "| d "),
        ("SELECT kind, count(*), min(k) FROM t WHERE kind >= 'b' AND n > 400 GROUP BY 1 ORDER BY 1", "| b "),
        ("SELECT kind, count(*) FROM t WHERE kind = 'd' AND n > 490 GROUP BY kind, line ORDER BY 2", "| d "),
    ] {
        let (rows, scans) = compared(&session, sql).await;
        assert!(scans.prepared > 0 && rows.contains(expected), "{sql}: {rows}");
    }
}

#[tokio::test]
async fn limits_and_conditions_that_change_return_the_same_rows() {
    let (_folder, table) = table("k, line").await;
    let session = table.session().unwrap();
    for (sql, is_prepared) in [
        ("SELECT k, line FROM t ORDER BY k, line LIMIT 7", true),
        ("SELECT k, line FROM t WHERE n > 500 ORDER BY k, line LIMIT 7 OFFSET 3", true),
        ("SELECT k, line FROM t WHERE n > 500 ORDER BY k DESC, line DESC LIMIT 7", false),
        // More rows than a scan looks for.
        ("SELECT k, line FROM t WHERE k > 40000 ORDER BY n DESC, k, line LIMIT 20000", false),
        ("SELECT k, line, name FROM t ORDER BY name DESC NULLS LAST, k, line LIMIT 9", true),
        ("SELECT count(*) FROM (SELECT k FROM t WHERE kind = 'd' LIMIT 1000)", true),
        // The value of the condition is known only when the query runs.
        ("SELECT k, name FROM t WHERE k = (SELECT max(extra) / 3 FROM t WHERE n < 10) ORDER BY 1, 2", true),
    ] {
        let (_, scans) = compared(&session, sql).await;
        assert_eq!(scans.prepared > 0, is_prepared, "{sql}");
    }
    // A join knows the keys before it asks for rows: those of few rows, and those of many.
    for sql in [
        "SELECT a.k, b.name FROM t a JOIN t b ON a.extra = b.k WHERE a.n = 8 AND b.line = 0 ORDER BY 1, 2",
        "SELECT count(*) FROM t WHERE k IN (SELECT extra FROM t WHERE n < 9)",
        "SELECT count(*), max(b.kind) FROM t a JOIN t b ON a.kind = b.kind WHERE a.k = 9 AND b.n > 500",
        "SELECT count(*), sum(b.n) FROM t a JOIN t b ON a.name = b.name WHERE a.k < 900 AND a.kind = 'd'",
    ] {
        let (_, scans) = compared(&session, sql).await;
        assert!(scans.prepared >= 1, "{sql}: {scans:?}");
    }
    for sql in [
        "SELECT count(*) FROM t a JOIN t b ON a.n = b.n WHERE a.k < 200",
        "SELECT count(*), max(b.name) FROM t a JOIN t b ON a.n = b.n AND a.line = b.line WHERE a.k < 200",
        "SELECT count(*), max(b.f) FROM t a JOIN t b ON a.n = b.n WHERE a.k < 90 AND b.kind <> 'a'",
    ] {
        let (_, scans) = compared(&session, sql).await;
        assert!(scans.late + scans.small >= 1, "{sql}: {scans:?}");
    }
}

#[tokio::test]
async fn text_columns_are_read_with_dictionaries_if_conditions_are_on_them_alone() {
    let (_folder, table) = table("k, line").await;
    let session = table.session().unwrap();
    for (sql, expected) in [
        ("SELECT count(*) FROM t WHERE kind <> 'b'", "kind"),
        ("SELECT kind, name FROM t WHERE kind LIKE '%d' AND n > 3", "kind"),
        ("SELECT * FROM t WHERE kind = 'a' AND n > 3 OR kind > 'b' OR n < 2", "kind"),
        ("SELECT sum(n) FROM t WHERE upper(kind) = 'A' OR kind IS NULL", "kind"),
        // Others need the texts of rows, too.
        ("SELECT count(*) FROM t WHERE kind < name", ""),
        ("SELECT count(*) FROM t WHERE kind <> 'b' AND (kind < name OR k < 5)", ""),
        ("SELECT k FROM t WHERE kind <> 'b' ORDER BY kind, k, line LIMIT 5", ""),
        ("SELECT kind FROM t WHERE n > 3", ""),
    ] {
        let plan = session.physical_plan(sql, &Params::default()).await.unwrap();
        returned(&session, Arc::clone(&plan)).await;
        assert_eq!(OrderedScan::coded_columns(&plan).join(","), expected, "{sql}");
    }
}
