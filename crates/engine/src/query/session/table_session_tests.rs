//! Sessions: names of tables, the current time, explanations and time limits.

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};

use super::*;
use crate::testing::{create, ingest, latest, overlapping_commits, rows, scores, session_on};
use evenkeel_sql::ParamError;

#[tokio::test]
async fn a_table_has_an_alias_and_system_tables() {
    let commits = overlapping_commits();
    let (_folder, table) = scores(&commits).await;
    let session = table.session().unwrap();
    for name in ["t", "scores"] {
        let sql = format!("SELECT player, game, points FROM {name} ORDER BY player, game");
        assert_eq!(rows(&session.collect(&sql, &Params::default()).await.unwrap()), latest(&commits));
    }
    let stored: u64 = table.snapshot().portions().iter().map(|portion| portion.rows).sum();
    for system in [
        "sys.partition_stats",
        "sys.primary_index_portion_stats",
        "\"t/.sys/partition_stats\"",
        "\"scores/.sys/primary_index_portion_stats\"",
    ] {
        let sql = format!("SELECT CAST(sum(rows) AS BIGINT) FROM {system}");
        let sum = session.collect(&sql, &Params::default()).await.unwrap();
        assert_eq!(sum[0].column(0).as_ref(), &Int64Array::from(vec![i64::try_from(stored).unwrap()]));
    }
}

#[tokio::test]
async fn only_one_query_on_known_tables_is_run() {
    let (_folder, table) = scores(&[]).await;
    let session = table.session().unwrap();
    let error = async |sql: &str| session.query(sql, &Params::default()).await.unwrap_err();
    assert!(matches!(error(" \n").await, QueryError::Empty));
    assert!(matches!(error(";").await, QueryError::Empty));
    assert!(matches!(error("SELECT 1; SELECT 2").await, QueryError::Several { count: 2 }));
    for statement in [
        "DROP TABLE t",
        "INSERT INTO t VALUES (1, 1, 1)",
        "DELETE FROM nothing",
        "CREATE TABLE u AS SELECT * FROM t",
        "COPY t TO 'file.csv'",
        "SET datafusion.execution.batch_size = 1",
    ] {
        let refused = error(statement).await;
        assert!(matches!(refused, QueryError::NotAQuery { .. }), "{statement}: {refused}");
    }
    let QueryError::UnknownTable { name, known } = error("SELECT * FROM score").await else {
        panic!("there is no such table")
    };
    assert_eq!(name, "score");
    assert_eq!(known, "t, scores, sys.partition_stats, sys.primary_index_portion_stats");
    assert!(matches!(error("SELECT nothing FROM t").await, QueryError::DataFusion(_)));
    assert!(matches!(error("SELECT $x FROM t").await, QueryError::Param(ParamError::Missing { .. })));
    assert!(matches!(error("SELECT $now").await, QueryError::Param(ParamError::NoTime)));
    let deep = format!("SELECT {}1{}", "(".repeat(99), ")".repeat(99));
    assert!(matches!(error(&deep).await, QueryError::Sql(_)));
}

#[tokio::test]
async fn now_is_the_newest_visible_time() {
    let with = "WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 2)";
    for (key, times, newest) in [
        ("id, at", vec![30, 90, 20], Some(90)),
        // The second row supersedes the first one.
        ("id", vec![90, 30], Some(30)),
        ("id", vec![], None),
        ("id, at", vec![], None),
    ] {
        let ddl = format!(
            "CREATE TABLE visits (id Int64 NOT NULL, at Timestamp64 NOT NULL, PRIMARY KEY ({key}))
                 PARTITION BY HASH(id) {with}"
        );
        let (_folder, mut table) = create(&ddl).await;
        for time in times {
            let at = Arc::new(TimestampMicrosecondArray::from(vec![time])) as ArrayRef;
            let id = Arc::new(Int64Array::from(vec![7])) as ArrayRef;
            ingest(&mut table, RecordBatch::try_from_iter([("id", id), ("at", at)]).unwrap()).await;
        }
        let session = table.session().unwrap();
        let now = session.collect("SELECT $now", &Params::default()).await.unwrap();
        let now = now[0].column(0).as_primitive::<TimestampMicrosecondType>().iter().next();
        assert_eq!(now, Some(newest), "{key}");
        let given = Params::default().with("now", "1970-01-01T00:00:01Z");
        let given = session.collect("SELECT $now", &given).await.unwrap();
        assert_eq!(given[0].column(0).as_primitive::<TimestampMicrosecondType>().value(0), 1_000_000);
    }
}

#[tokio::test]
async fn an_explanation_has_the_scans_of_its_query_alone() {
    let (_folder, table) = scores(&overlapping_commits()).await;
    let session = table.session().unwrap();
    session.collect("SELECT count(*) FROM t", &Params::default()).await.unwrap();
    let sql = "SELECT points FROM t WHERE player = 3";
    let Explanation { scans, joins, plan } = session.explain(sql, &Params::default()).await.unwrap();
    assert_eq!((scans.len(), joins.len()), (1, 0));
    assert_eq!((scans[0].partitions_read, scans[0].partitions), (1, 4));
    assert!(plan.contains("NewestWinsExec"), "{plan}");
    assert!(session.explain("SELEC", &Params::default()).await.is_err());
}

#[tokio::test]
async fn a_query_ends_at_its_time_limit() {
    let (_folder, table) = scores(&overlapping_commits()).await;
    let session = table.session().unwrap().with_timeout(Some(Duration::ZERO));
    let ended = session.collect("SELECT * FROM t", &Params::default()).await.unwrap_err();
    let text = ended.to_string();
    assert!(text.contains("longer than its limit"), "{text}");
}

#[tokio::test]
async fn a_select_may_return_a_column_twice() {
    let (_folder, table) = scores(&overlapping_commits()).await;
    let session = table.session().unwrap();
    for (sql, expected) in [
        ("SELECT points, points, points FROM t", vec!["points", "points:1", "points:2"]),
        ("SELECT *, game FROM t ORDER BY game", vec!["player", "game", "points", "game:1"]),
        ("SELECT 0, 0", vec!["Int64(0)", "0:1"]),
        ("SELECT CAST(game AS INT), game::VARCHAR, game FROM t", vec!["t.game", "game:1", "game:2"]),
        ("SELECT count(*), (SELECT count(*) FROM t) FROM t", vec!["count(*)", "count(*):1"]),
        ("SELECT x, \"x:1\" FROM (SELECT 1 AS x, 2 AS x)", vec!["x", "x:1"]),
        ("SELECT *, points, game AS g FROM t ORDER BY g", vec!["player", "game", "points", "points:1", "g"]),
        ("WITH x AS (SELECT *, points + 1 AS z FROM t) SELECT z, z FROM x", vec!["z", "z:1"]),
        ("SELECT a.game, b.game FROM t a JOIN t b ON a.player = b.player", vec!["game", "game"]),
    ] {
        let rows = session.collect(sql, &Params::default()).await;
        let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let names: Vec<String> = rows[0].schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, expected, "{sql}");
    }
    let sql = "SELECT points, points FROM t WHERE nothing = 1";
    let error = session.collect(sql, &Params::default()).await.unwrap_err().to_string();
    assert!(error.contains("'nothing'"), "{error}");
}

/// A pattern means the same, whether it is known or computed.
#[tokio::test]
async fn computed_patterns_match_as_those_that_are_known() {
    let (_folder, table) = scores(&[]).await;
    let session = table.session().unwrap();
    let texts = ["a%b", "a/b", "axb", "a\\b", "a_b", "ab", "a//b", "a%%b"];
    for pattern in ["a/%b", "a//b", "a%b", "a/_b", "a\\b", "a//%", "a///%b", "a/%%b", "%", "a/xb"] {
        for text in texts {
            let sql = format!(
                "SELECT '{text}' LIKE '{pattern}' ESCAPE '/' AS known, '{text}' LIKE concat('{pattern}', '') ESCAPE '/' AS computed"
            );
            let rows = session.collect(&sql, &Params::default()).await.unwrap();
            assert_eq!(rows[0].column(0), rows[0].column(1), "{sql}");
        }
    }
}

/// The first rows have the least `a`, and others the least `b` and `c`; `b` is NULL for long.
#[tokio::test]
async fn extremes_are_those_of_all_rows_whatever_the_rows_before_them() {
    const ROWS: i64 = 60_000;
    let (_folder, mut table) = create(
        "CREATE TABLE t (k Int64 NOT NULL, a Int64, b Int64, c Int64, PRIMARY KEY (k)) PARTITION BY HASH(k)
         WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 4)",
    )
    .await;
    let b = |row: i64| (row > ROWS / 2).then_some(ROWS - row);
    for from in [0, ROWS / 3, ROWS / 3 * 2] {
        let rows = || from..from + ROWS / 3;
        let columns: [(&str, ArrayRef); 4] = [
            ("k", Arc::new(Int64Array::from_iter_values(rows()))),
            ("a", Arc::new(Int64Array::from_iter_values(rows()))),
            ("b", Arc::new(Int64Array::from_iter(rows().map(b)))),
            ("c", Arc::new(Int64Array::from_iter_values(rows().map(|row| row % 1_000 - row)))),
        ];
        let columns = columns.map(|(name, column)| (name, column, true));
        ingest(&mut table, RecordBatch::try_from_iter_with_nullable(columns).unwrap()).await;
    }
    let least_c = (0..ROWS).map(|row| row % 1_000 - row).min().unwrap();
    let least_b = (0..ROWS).filter_map(b).min().unwrap();
    let greatest_b = (0..ROWS).filter_map(b).max().unwrap();
    for cores in [1, 3] {
        let session = session_on(&table, cores, false);
        for (sql, expected) in [
            ("SELECT min(a), min(b + 1) FROM t", [0, least_b + 1]),
            ("SELECT min(a), min(b) FROM t", [0, least_b]),
            ("SELECT min(a), max(b) FROM t", [0, greatest_b]),
            ("SELECT min(c), max(k + a) FROM t", [least_c, 2 * (ROWS - 1)]),
            ("SELECT max(a), min(c - 1) FROM t WHERE k % 2 = 0 OR a > 5", [ROWS - 1, least_c - 1]),
            ("SELECT min(b), max(c) FROM t WHERE c <= 0", [least_b, 0]),
        ] {
            let batches = session.context().sql(sql).await.unwrap().collect().await.unwrap();
            let number = |column: usize| batches[0].column(column).as_primitive::<Int64Type>().value(0);
            assert_eq!([number(0), number(1)], expected, "{sql} on {cores} cores");
        }
    }
}
