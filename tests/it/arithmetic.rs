//! Arithmetic of SQL gives the number or an error, never another number.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use evenkeel::Table;
use evenkeel::query::{Params, QueryError, TableSession};
use proptest::prelude::*;

use crate::common::{done, rows};

const EXTREMES: [i64; 9] =
    [i64::MIN, i64::MIN + 1, -3_037_000_500, -2, 0, 1, 3_037_000_500, i64::MAX - 1, i64::MAX];

/// A table with the columns k, a (Int64), b (Int64) and g, with all pairs of extreme numbers.
async fn session(dir: &tempfile::TempDir) -> TableSession {
    let pairs = EXTREMES.iter().flat_map(|a| EXTREMES.iter().map(move |b| (a, b)));
    let lines: String = pairs.zip(0..).map(|((a, b), k)| format!("{k},{a},{b},{}\n", k % 3)).collect();
    std::fs::write(dir.path().join("a.csv"), format!("k,a,b,g\n{lines}")).unwrap();
    done(
        dir.path(),
        "create {}/table --column k:int64:not-null --column a:int64 --column b:int64 --column g:int64 --primary-key k --partitions 2",
    );
    done(dir.path(), "ingest {}/table {}/a.csv");
    Table::open(dir.path().join("table")).await.unwrap().session().unwrap()
}

async fn answer(session: &TableSession, sql: &str) -> Result<Vec<RecordBatch>, QueryError> {
    session.collect(sql, &Params::default()).await
}

/// The one value of a query; none if it fails because of an overflow.
async fn value(session: &TableSession, sql: &str) -> Option<String> {
    match answer(session, sql).await {
        Ok(batches) => Some(rows(&batches).remove(0).remove(0)),
        Err(error) => {
            let text = error.to_string().to_lowercase();
            let of_range = ["overflow", "beyond the range", "out of range", "can't cast", "too large"];
            assert!(of_range.iter().any(|part| text.contains(part)), "{sql}: {text}");
            None
        }
    }
}

#[tokio::test]
async fn every_pair_of_extremes_has_its_result_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(&dir).await;
    for a in EXTREMES {
        for b in EXTREMES {
            let (x, y) = (i128::from(a), i128::from(b));
            for (sign, exact) in [("+", x + y), ("-", x - y), ("*", x * y)] {
                let expected = i64::try_from(exact).ok().map(|number| number.to_string());
                // Folded while it is planned; of columns; in a condition that is pushed into the
                // scan.
                let of_columns = format!("SELECT a {sign} b FROM t WHERE a = {a} AND b = {b}");
                assert_eq!(value(&session, &of_columns).await, expected, "{a} {sign} {b}");
                if let (Ok(_), true) = (u64::try_from(a), a < i64::MAX) {
                    let constant = format!("SELECT {a} {sign} ({b})");
                    if b > i64::MIN {
                        assert_eq!(value(&session, &constant).await, expected, "{constant}");
                    }
                }
            }
        }
    }
    for condition in ["a + 1 > a", "a - 1 < b", "a * 2 <> 7", "k + a <> b"] {
        let sql = format!("SELECT count(*) FROM t WHERE {condition}");
        assert_eq!(value(&session, &sql).await, None, "{sql}");
    }
}

#[tokio::test]
async fn overflow_fails_wherever_the_expression_stands() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(&dir).await;
    for sql in [
        "SELECT 9223372036854775807 + 1",
        "SELECT 9223372036854775807 - -1",
        "SELECT 4611686018427387904 * 2",
        "SELECT -(a - 1) FROM t WHERE a < -9223372036854775807",
        "SELECT abs(a) FROM t",
        "SELECT max(a + 1) FROM t",
        "SELECT count(*) FROM t GROUP BY a + 1",
        "SELECT k FROM t ORDER BY a * 2",
        "SELECT x.k FROM t x JOIN t y ON x.a + 1 = y.a",
        "SELECT k FROM t WHERE a IN (SELECT b + 1 FROM t)",
        "SELECT k, (SELECT max(y.a) FROM t y WHERE y.a = x.a + 1) FROM t x",
        "SELECT sum(a + 1) OVER (PARTITION BY g) FROM t",
        "SELECT sum(a) OVER (PARTITION BY g) FROM t WHERE a > 0",
        "SELECT sum(a) OVER (ORDER BY k ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM t WHERE a > 0",
        "SELECT sum(a) FROM t WHERE a > 0",
        "SELECT g, sum(a) FROM t WHERE a < 0 GROUP BY g",
        "SELECT sum(DISTINCT a), count(b) FROM t WHERE a > 0",
        "SELECT sum(DISTINCT a), sum(DISTINCT b) FROM t WHERE a > 0",
        "SELECT sum(CAST(a AS BIGINT UNSIGNED)) FROM t WHERE a > 0",
        "SELECT CAST(3 AS BIGINT UNSIGNED) - CAST(5 AS BIGINT UNSIGNED)",
        "SELECT CAST(127 AS TINYINT) + CAST(1 AS TINYINT)",
        "SELECT CAST(a AS INT) FROM t",
        "SELECT sum(x) FROM (VALUES (CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0))), (1)) AS v(x)",
        "SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)) * 10",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i * 2 FROM n) SELECT max(i) FROM n",
    ] {
        assert_eq!(value(&session, sql).await, None, "{sql}");
    }
}

#[tokio::test]
async fn sums_depend_on_their_values_alone() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(&dir).await;
    // The largest and the smallest come many times: partial sums leave the range, the sum does not.
    let exact: i128 = EXTREMES.iter().map(|a| i128::from(*a) * 9).sum();
    assert_eq!(value(&session, "SELECT sum(a) FROM t").await.unwrap(), exact.to_string());
    assert_eq!(value(&session, "SELECT sum(a) FROM t WHERE k < 0").await.unwrap(), "NULL");
    let distinct: i128 = EXTREMES.iter().map(|a| i128::from(*a)).sum();
    let sql = "SELECT sum(DISTINCT a), sum(DISTINCT b), count(*) FROM t";
    assert_eq!(value(&session, sql).await.unwrap(), distinct.to_string());
    let grouped = answer(
        &session,
        "SELECT g, sum(b) AS s, sum(b) FILTER (WHERE b > 5) AS f FROM t WHERE abs(b / 4) < 1000000000 GROUP BY g ORDER BY g",
    );
    let grouped = rows(&grouped.await.unwrap());
    assert_eq!(grouped.len(), 3);
    let sql = "SELECT sum(a) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM t WHERE a IN (1, 0) ORDER BY k";
    assert_eq!(rows(&answer(&session, sql).await.unwrap()).last().unwrap(), &["2"]);
    // A column of a result has the name that it has without the check.
    let named = answer(&session, "SELECT k + 1, sum(k * 2) OVER () FROM t LIMIT 1").await.unwrap();
    assert!(named[0].schema().field(0).name().ends_with("k + Int64(1)"), "{:?}", named[0].schema());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Sums of random numbers against 128 bits, over values of a list, with groups, and as a
    /// window.
    #[test]
    fn sums_are_exact_or_fail(numbers in prop::collection::vec(prop_oneof![any::<i64>(), -9i64..9, Just(i64::MAX), Just(i64::MIN + 1)], 1..12)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let session = session(&dir).await;
            let list: Vec<String> = numbers.iter().enumerate().map(|(k, n)| format!("({k}, CAST('{n}' AS BIGINT))")).collect();
            let from = format!("FROM (VALUES {}) AS v(k, n)", list.join(", "));
            let exact: i128 = numbers.iter().map(|n| i128::from(*n)).sum();
            let expected = i64::try_from(exact).ok().map(|sum| sum.to_string());
            assert_eq!(value(&session, &format!("SELECT sum(n) {from}")).await, expected);
            assert_eq!(value(&session, &format!("SELECT sum(n) OVER () {from}")).await, expected);
            assert_eq!(value(&session, &format!("SELECT sum(n) {from} GROUP BY k * 0")).await, expected);
        });
    }
}

#[tokio::test]
async fn unsigned_numbers_keep_their_range() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(&dir).await;
    let sql = "SELECT CAST(18446744073709551615 AS BIGINT UNSIGNED) AS u, CAST(a AS BIGINT) AS a FROM t WHERE a = 1 LIMIT 1";
    let batches = answer(&session, sql).await.unwrap();
    assert_eq!(batches[0].column(0).as_primitive::<UInt64Type>().value(0), u64::MAX);
    assert_eq!(batches[0].column(1).as_primitive::<Int64Type>().value(0), 1);
    assert_eq!(batches[0].column(0).null_count(), 0);
    assert!(answer(&session, "SELECT 18446744073709551616").await.is_err());
    assert!(answer(&session, "SELECT 1e999").await.is_err());
}
