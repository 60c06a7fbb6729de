//! Groups and windows over ordered rows.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use evenkeel::query::Params;

use crate::common::rows;
use crate::ordered_reads::{batch, compare_in_own_session, float, session_on, spec, tables};

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
