//! Limits on ordered rows, over files, portions and row groups.

use evenkeel::query::Params;

use crate::common::rows;
use crate::ordered_reads::{batch, compare, compare_in_own_session, session_on, spec, tables};

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
