use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::prelude::SessionContext;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use crate::Table;
use crate::testing::joins::{Names, Statement, answer, plan, tables};
use crate::testing::{create, ingest};

/// A session in which two tables are called `a` and `b`.
fn named(tables: &[(TempDir, Table)]) -> SessionContext {
    let context = tables[0].1.session().unwrap().context().clone();
    for (name, (_, table)) in ["a", "b"].into_iter().zip(tables) {
        context.register_table(name, table.provider().unwrap()).unwrap();
    }
    context
}

#[tokio::test]
async fn joins_find_zeros_of_either_sign() {
    let ddl = "CREATE TABLE zeros (k Int64 NOT NULL, f Double, PRIMARY KEY (k)) PARTITION BY HASH(k) \
               WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 2)";
    let mut tables = Vec::new();
    for zero in [-0.0, 0.0] {
        let (folder, mut table) = create(ddl).await;
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20));
        let values: ArrayRef = Arc::new(Float64Array::from_iter_values([zero; 20]));
        ingest(&mut table, RecordBatch::try_from_iter([("k", keys), ("f", values)]).unwrap()).await;
        tables.push((folder, table));
    }
    let context = &named(&tables);
    for (sql, expected) in [
        ("SELECT count(*) FROM a JOIN b ON a.f = b.f", 400),
        ("SELECT count(*) FROM b JOIN a ON b.f * 2 = a.f", 400),
        ("SELECT count(*) FROM a JOIN b ON a.f = b.f AND a.k = b.k", 20),
        ("SELECT count(*) FROM a WHERE f IN (SELECT f FROM b)", 20),
        ("SELECT count(*) FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.f = b.f)", 0),
    ] {
        let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
        assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), expected, "{sql}");
    }
}

#[tokio::test]
async fn lists_and_structs_with_nulls_are_found() {
    let ddl = "CREATE TABLE nested (k Int64 NOT NULL, v Int64, w Int64, PRIMARY KEY (k)) \
               PARTITION BY HASH(k) \
               WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 2)";
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut tables = Vec::new();
    for rows in [40, 3000] {
        let (folder, mut table) = create(ddl).await;
        let mut drawn = || {
            let value = || random.random_bool(0.7).then(|| random.random_range(-3..4));
            Arc::new(Int64Array::from_iter(std::iter::repeat_with(value).take(rows))) as ArrayRef
        };
        let (v, w) = (drawn(), drawn());
        let k: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
        ingest(&mut table, RecordBatch::try_from_iter([("k", k), ("v", v), ("w", w)]).unwrap()).await;
        tables.push((folder, table));
    }
    let context = &named(&tables);
    let same = "(a.v IS NOT DISTINCT FROM b.v) AND (a.w IS NOT DISTINCT FROM b.w)";
    for nested in
        ["make_array(T.v, T.w)", "named_struct('x', T.v, 'y', T.w)", "make_array(make_array(T.v, T.w))"]
    {
        let equal = format!("{} = {}", nested.replace("T.", "a."), nested.replace("T.", "b."));
        for query in [
            "SELECT count(*) AS n FROM a JOIN b ON ?",
            "SELECT count(*) AS n FROM b JOIN a ON ?",
            "SELECT count(*) AS n FROM a LEFT JOIN b ON ? WHERE b.k IS NULL",
            "SELECT count(*) AS n FROM b WHERE EXISTS (SELECT 1 FROM a WHERE ?)",
            "SELECT count(*) AS n FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE ?)",
        ] {
            let found = answer(context, &query.replace('?', &equal)).await;
            assert_eq!(found, answer(context, &query.replace('?', same)).await, "{query} {equal}");
        }
        let nested = nested.replace("T.", "");
        for order in ["", "DESC", "NULLS FIRST", "DESC NULLS LAST"] {
            let sorted = format!("SELECT {nested} AS n FROM b ORDER BY n {order}");
            let numbered = format!(
                "SELECT n, row_number() OVER \
                 (ORDER BY n {order} ROWS UNBOUNDED PRECEDING) AS r FROM ({sorted})"
            );
            let first = format!("SELECT n, count(*) FROM ({sorted} LIMIT 900) GROUP BY n ORDER BY n");
            let all = format!("SELECT n, count(*) FROM ({numbered}) WHERE r <= 900 GROUP BY n ORDER BY n");
            assert_eq!(answer(context, &first).await, answer(context, &all).await, "{sorted}");
        }
    }
}

#[tokio::test]
async fn conditions_stay_with_their_columns_although_tables_share_names() {
    let tables = tables().await;
    let mut random = ChaCha8Rng::seed_from_u64(11);
    for _ in 0..150 {
        let statement = Statement::new(&mut random);
        let sql = statement.sql(Names::Shared);
        let expected = answer(&tables.plain, &statement.sql(Names::Distinct)).await;
        assert_eq!(answer(&tables.ours, &sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn a_random_column_is_filtered_by_the_values_that_it_returns() {
    let tables = tables().await;
    for contradiction in [
        "SELECT count(*) FROM (SELECT random() AS x FROM big) WHERE x > 0.5 AND x < 0.1",
        "SELECT count(*) FROM (SELECT x AS a, x AS b FROM (SELECT random() AS x FROM big)) WHERE a <> b",
        "SELECT count(*) FROM (SELECT x FROM (SELECT random() AS x FROM big) WHERE x > 0.3) WHERE x < 0.3",
        "SELECT count(*) FROM (SELECT points, random() AS x FROM big WHERE points > 0) WHERE x < 0",
    ] {
        let printed = answer(&tables.ours, contradiction).await;
        assert!(printed.contains("| 0 "), "{contradiction}\n{printed}");
    }
}

#[tokio::test]
async fn only_filters_on_shared_names_stay_above() {
    let tables = tables().await;
    let joined = "SELECT a.player, b.points FROM small a RIGHT JOIN big b ON a.player = b.game";
    for (condition, is_pushed) in
        [("b.player + coalesce(b.points, 0) > 3", true), ("b.points IS NULL OR b.points > a.points", false)]
    {
        let plan = plan(&tables.ours, &format!("{joined} WHERE {condition}")).await;
        assert_eq!(plan.contains("FilterExec"), !is_pushed, "{plan}");
        assert!(!plan.contains("Barrier"), "{plan}");
    }
}
