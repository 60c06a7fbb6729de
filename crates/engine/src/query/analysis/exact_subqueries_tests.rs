//! Subqueries of `IN` and aggregations, with NULLs as in SQL.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::prelude::SessionContext;

use super::*;
use crate::query::Params;
use crate::testing::{Score, latest, overlapping_commits, scores};

const TABLES: &str = "WITH t AS (SELECT * FROM (VALUES (1, 10), (2, 20), (NULL, 30), (4, 40)) AS t(k, v)),
        u AS (SELECT * FROM (VALUES (1, 15), (NULL, 5), (7, 100)) AS u(k, v)),
        o AS (SELECT * FROM (VALUES (1), (2), (3)) AS o(k)),
        i AS (SELECT * FROM (VALUES (1, 10), (1, 11), (3, 20)) AS i(k, v)) ";

fn context() -> SessionContext {
    let context = SessionContext::new();
    context.add_analyzer_rule(Arc::new(ExactSubqueries));
    context
}

async fn run(context: &SessionContext, sql: &str) -> Result<Vec<Option<i64>>> {
    let batches = context.sql(&format!("{TABLES}{sql} ORDER BY 1 NULLS LAST")).await?.collect().await?;
    let of_batch = |batch: &arrow::array::RecordBatch| {
        batch.column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>()
    };
    Ok(batches.iter().flat_map(of_batch).collect())
}

#[tokio::test]
async fn a_value_beside_null_is_neither_in_nor_not_in_a_list() {
    let context = context();
    let all = [Some(10), Some(20), Some(30), Some(40)];
    for (condition, expected) in [
        ("k NOT IN (SELECT k FROM u)", vec![]),
        ("k NOT IN (SELECT k FROM u WHERE u.v > t.v)", vec![Some(20), Some(40)]),
        ("NOT (k IN (SELECT k FROM u WHERE u.v > t.v)) OR v = 1", vec![Some(20), Some(40)]),
        ("k NOT IN (SELECT k FROM u) OR v = 10", vec![Some(10)]),
        ("k NOT IN (SELECT k FROM u WHERE false) OR v = 1", all.to_vec()),
        ("(k NOT IN (SELECT k FROM u)) IS NULL", vec![Some(20), Some(30), Some(40)]),
        ("coalesce(k IN (SELECT k FROM u), true)", all.to_vec()),
        ("NOT (k IN (SELECT k FROM u) AND v < 15)", vec![Some(20), Some(30), Some(40)]),
        ("NOT (v = 20 OR k IN (SELECT k FROM u WHERE u.v > t.v))", vec![Some(40)]),
        ("NOT (NOT (k IN (SELECT k FROM u WHERE u.v > t.v)) AND v > 0)", vec![Some(10)]),
        ("NOT (v < 40 AND NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k))", vec![Some(10), Some(40)]),
        ("3 NOT IN (SELECT k FROM u)", vec![]),
        ("3 NOT IN (SELECT k FROM u WHERE u.v < t.v)", vec![]),
        ("(3 NOT IN (SELECT k FROM u)) IS NULL", all.to_vec()),
        ("3 NOT IN (SELECT k FROM u WHERE u.v = t.v)", all.to_vec()),
        ("k IN (SELECT k FROM u) OR v = 30", vec![Some(10), Some(30)]),
        ("k + 1 NOT IN (SELECT k FROM u WHERE k IS NOT NULL)", vec![Some(10), Some(20), Some(40)]),
        ("NOT (k NOT IN (SELECT max(k) FROM u WHERE k > 0 GROUP BY v) AND v > 0)", vec![Some(10)]),
        ("k IN (SELECT nullif(k, 2) FROM u GROUP BY nullif(k, 2)) OR v = 30", vec![Some(10), Some(30)]),
        ("k NOT IN (SELECT max(k) FROM u GROUP BY v ORDER BY v) OR v = 10", vec![Some(10)]),
        ("k IN (SELECT k FROM u ORDER BY v) OR v = 30", vec![Some(10), Some(30)]),
        ("k IN (SELECT DISTINCT k FROM u ORDER BY k) OR v = 30", vec![Some(10), Some(30)]),
        (
            "k NOT IN (SELECT k + 6 FROM u WHERE u.v > t.v ORDER BY k + 6) OR v = 10",
            vec![Some(10), Some(20), Some(40)],
        ),
    ] {
        let found = run(&context, &format!("SELECT v FROM t WHERE {condition}")).await.unwrap();
        assert_eq!(found, expected, "{condition}");
    }
}

#[tokio::test]
async fn columns_without_null_need_no_join_that_knows_it() {
    let (_folder, table) = scores(&overlapping_commits()).await;
    let session = table.session().unwrap();
    let rows = latest(&overlapping_commits());
    let is_in = |a: &Score| rows.iter().any(|b| b.0 == a.0 && b.2 > 2_000 && b.1 == a.1 + 2);
    let selected = "a.game + 2 IN (SELECT b.game FROM t b WHERE b.player = a.player AND b.points > 2000)";
    type Keeps<'k> = &'k dyn Fn(&Score) -> bool;
    let cases: [(String, Keeps<'_>); 4] = [
        (format!("NOT (a.points = 7 OR {selected})"), &|a| !(a.2 == 7 || is_in(a))),
        (format!("NOT (a.points > 7 AND NOT ({selected}))"), &|a| a.2 <= 7 || is_in(a)),
        (format!("({selected}) = (a.points > 1000)"), &|a| is_in(a) == (a.2 > 1_000)),
        (format!("CASE WHEN {selected} THEN false ELSE true END"), &|a| !is_in(a)),
    ];
    for (condition, keeps) in cases {
        let sql = format!("SELECT count(*) FROM t a WHERE {condition}");
        let batches = session.collect(&sql, &Params::default()).await.unwrap();
        let found = batches[0].column(0).as_primitive::<Int64Type>().value(0);
        let expected = rows.iter().filter(|row| keeps(row)).count() as i64;
        assert!(expected > 0 && expected < rows.len() as i64, "{condition}: {expected}");
        assert_eq!(found, expected, "{condition}");
    }
}

#[tokio::test]
async fn an_aggregation_without_groups_has_a_row_for_each_row_of_the_query() {
    let context = context();
    let of_i = "FROM i WHERE i.k = o.k";
    for (condition, expected) in [
        (format!("EXISTS (SELECT count(*) {of_i})"), vec![1, 2, 3]),
        (format!("NOT EXISTS (SELECT count(*) {of_i})"), vec![]),
        (format!("EXISTS (SELECT * FROM (SELECT max(v) {of_i}) AS x)"), vec![1, 2, 3]),
        (format!("0 IN (SELECT count(*) {of_i})"), vec![2]),
        (format!("0 NOT IN (SELECT count(*) {of_i})"), vec![1, 3]),
        (format!("11 NOT IN (SELECT max(v) {of_i})"), vec![3]),
        (format!("EXISTS (SELECT count(*) {of_i} HAVING count(*) < 2)"), vec![2, 3]),
        (format!("NOT EXISTS (SELECT max(v) {of_i} HAVING count(*) < 2)"), vec![1]),
        (format!("EXISTS (SELECT 1 {of_i} GROUP BY ROLLUP (i.k))"), vec![1, 2, 3]),
        (format!("EXISTS (SELECT 1 {of_i} GROUP BY GROUPING SETS ((i.k), (i.v)))"), vec![1, 3]),
        (format!("EXISTS (SELECT row_number() OVER (ORDER BY v) {of_i})"), vec![1, 3]),
        (format!("2 IN (SELECT row_number() OVER (PARTITION BY i.k ORDER BY v) {of_i})"), vec![1]),
        (format!("EXISTS (SELECT * {of_i} OFFSET 1)"), vec![1]),
        (format!("EXISTS (SELECT * {of_i} ORDER BY v OFFSET 1)"), vec![1]),
        (format!("NOT EXISTS (SELECT * {of_i} OFFSET 1)"), vec![2, 3]),
        (format!("EXISTS (SELECT * {of_i} ORDER BY v LIMIT 1)"), vec![1, 3]),
        (format!("EXISTS (SELECT * {of_i} LIMIT 0)"), vec![]),
        (format!("(SELECT count(*) IS NULL {of_i}) = false"), vec![1, 2, 3]),
    ] {
        let found = run(&context, &format!("SELECT k FROM o WHERE {condition}")).await;
        let found = found.unwrap_or_else(|error| panic!("{condition}: {error}"));
        assert_eq!(found, expected.into_iter().map(Some).collect::<Vec<_>>(), "{condition}");
    }
}

#[tokio::test]
async fn what_a_join_cannot_look_below_is_refused() {
    let context = context();
    for condition in [
        "k IN (SELECT row_number() OVER (ORDER BY i.v) FROM i WHERE i.k = o.k)",
        "k NOT IN (SELECT rank() OVER (PARTITION BY i.v ORDER BY i.v) FROM i WHERE i.k = o.k)",
        "EXISTS (SELECT 1 FROM (SELECT row_number() OVER (ORDER BY v) AS n FROM i WHERE i.k = o.k) a WHERE n = 2)",
        "EXISTS (SELECT 1 FROM (SELECT * FROM i WHERE i.k = o.k) a JOIN (SELECT k FROM o LIMIT 1) b ON a.k = b.k)",
        "EXISTS (SELECT 1 FROM (SELECT * FROM i WHERE i.k = o.k ORDER BY v LIMIT 1) a WHERE a.v > 10)",
        "EXISTS (SELECT 1 FROM (SELECT count(*) AS n FROM i WHERE i.k = o.k) a JOIN u ON a.n = u.k)",
    ] {
        let error = run(&context, &format!("SELECT k FROM o WHERE {condition}")).await.unwrap_err();
        assert!(error.to_string().contains("join the tables instead"), "{condition}: {error}");
    }
}
