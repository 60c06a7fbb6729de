//! Queries that are referenced several times and computed once.

use std::sync::Arc;

use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, collect};
use evenkeel_model::units::ByteSize;

use crate::query::{Params, QueryLimits, TableSession};
use crate::testing::{Score, rows, scores};

/// Rows of several portions and batches.
fn many_rows() -> Vec<Vec<Score>> {
    let rows: Vec<Score> = (0..60_000).map(|row| (row % 5_000, row / 5_000, row * row % 1_009)).collect();
    rows.chunks(20_000).map(<[Score]>::to_vec).collect()
}

async fn answer(session: &TableSession, sql: &str) -> Vec<Score> {
    rows(&session.collect(sql, &Params::default()).await.unwrap_or_else(|error| panic!("{sql}: {error}")))
}

/// Without the step that recognizes copies of a query.
async fn separately(session: &TableSession, sql: &str) -> Vec<Score> {
    rows(&session.context().sql(sql).await.unwrap().collect().await.unwrap())
}

async fn plan(session: &TableSession, sql: &str) -> String {
    session.explain(sql, &Params::default()).await.unwrap().plan
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn references_to_a_query_agree() {
    let (_folder, table) = scores(&many_rows()).await;
    let session = table.session().unwrap();
    for (sql, expected) in [
        // Drawn once, also through another query.
        (
            "WITH d AS (SELECT random() AS x FROM t) SELECT count(*), 0, 1 FROM d a JOIN d b ON a.x = b.x",
            60_000,
        ),
        (
            "WITH d AS (SELECT random() AS x FROM t), e AS (SELECT x FROM d) \
             SELECT count(*), 0, 1 FROM e a JOIN e b ON a.x = b.x",
            60_000,
        ),
        (
            "WITH d AS (SELECT random() AS x FROM t) \
             SELECT count(*), 0, 1 FROM d WHERE x NOT IN (SELECT x FROM d)",
            0,
        ),
        (
            "WITH d(x) AS (SELECT random() FROM t) SELECT count(*), 0, 1 FROM d WHERE x = (SELECT max(x) FROM d)",
            1,
        ),
        // Any 100 rows, but the same.
        (
            "WITH d AS (SELECT * FROM t LIMIT 100) SELECT count(*), 0, 1 FROM d a JOIN d b \
             ON a.player = b.player AND a.game = b.game WHERE b.points >= 0",
            100,
        ),
        (
            "WITH d AS (SELECT player, game, row_number() OVER (ORDER BY points) AS n FROM t) \
             SELECT count(*), 0, 1 FROM d a JOIN d b ON a.n = b.n AND a.player = b.player",
            60_000,
        ),
    ] {
        assert_eq!(answer(&session, sql).await, [(expected, 0, 1)], "{sql}");
    }
    for (condition, few) in [
        ("random() < -1", 0),
        ("(SELECT max(points) FROM t) < 0", 0),
        ("random() >= 0 AND player < 7", 7),
        ("1 = 2", 0),
    ] {
        // A condition without a column at one reference is not a condition of the query.
        let query = "WITH q AS (SELECT player, count(*) AS n FROM t GROUP BY player) SELECT";
        let (all, some) =
            ("(SELECT count(*) FROM q) AS a", format!("(SELECT count(*) FROM q WHERE {condition}) AS s"));
        for sql in [
            format!("{query} {all}, {some}, 0 AS z"),
            format!("{query} 5000 AS a, {some}, {all} - 5000 AS z"),
        ] {
            let sql = sql.replace("AS a - 5000", "- 5000");
            assert_eq!(answer(&session, &sql).await, [(5_000, few, 0)], "{sql}");
        }
    }
    let drawn = "WITH a AS (SELECT random() AS x FROM t), b AS (SELECT random() AS x FROM t) \
        SELECT count(*) AS n, (SELECT count(*) FROM a) AS of_a, (SELECT count(*) FROM b) AS of_b FROM a JOIN b ON a.x = b.x";
    assert_eq!(answer(&session, drawn).await, [(0, 60_000, 60_000)], "two queries are not one");
}

/// Statements that name a query several times.
const STATEMENTS: [&str; 9] = [
    "WITH q AS (SELECT player, count(*) AS n, sum(points) AS s FROM t GROUP BY player) \
     SELECT player, n, s FROM q WHERE s = (SELECT max(s) FROM q) OR player < 3",
    "WITH q AS (SELECT player, sum(points) AS s FROM t GROUP BY player) \
     SELECT a.player, b.player, a.s FROM q a JOIN q b ON a.s = b.s WHERE a.player < 40 AND b.player > 30 AND b.player < 90",
    "WITH q AS (SELECT player, game, rank() OVER (PARTITION BY player ORDER BY points) AS r FROM t) \
     SELECT a.player, a.game, b.game FROM q a LEFT JOIN q b ON a.player = b.player AND a.r = b.r + 1 WHERE b.r < 2",
    "WITH q AS (SELECT DISTINCT points % 7 AS p FROM t) \
     SELECT a.p, b.p, (SELECT count(*) FROM q) FROM q a, q b WHERE a.p < b.p",
    "WITH p AS (SELECT player, sum(points) AS s FROM t GROUP BY player), \
          q AS (SELECT a.player, a.s - b.s AS d FROM p a JOIN p b ON a.player = b.player + 1) \
     SELECT player, d, (SELECT min(s) FROM p) FROM q WHERE d > (SELECT avg(d) + 2000 FROM q)",
    "WITH q AS (SELECT player, game, points FROM t ORDER BY points, player, game LIMIT 500 OFFSET 3) \
     SELECT player, game, points FROM q WHERE points > 3 UNION ALL SELECT player, game, -points FROM q WHERE game = 2",
    "WITH q AS (SELECT player, max(game) AS g FROM t GROUP BY player) \
     SELECT t.player, t.game, t.points FROM t WHERE EXISTS (SELECT * FROM q WHERE q.player = t.player AND q.g = t.game) \
     AND t.player IN (SELECT player FROM q WHERE player % 100 = 7)",
    "WITH RECURSIVE q AS (SELECT player, max(game) AS g FROM t WHERE player < 20 GROUP BY player), \
          r AS (SELECT 0 AS player, 0 AS g UNION ALL SELECT q.player, q.g FROM r JOIN q ON q.player = r.player + 1) \
     SELECT r.player, r.g, q.g FROM r JOIN q ON q.player = r.player",
    "SELECT player, game, points FROM t WHERE points = (WITH q AS (SELECT max(points) AS m, min(points) AS n FROM t) \
     SELECT a.m - b.n FROM q a, q b)",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_separate_computations() {
    let (_folder, table) = scores(&many_rows()).await;
    let session = table.session().unwrap();
    for sql in STATEMENTS {
        let mut expected = separately(&session, sql).await;
        expected.sort_unstable();
        assert!(!expected.is_empty(), "{sql}");
        let mut found = answer(&session, sql).await;
        found.sort_unstable();
        assert_eq!(found, expected, "{sql}");
    }
}

#[tokio::test]
async fn a_query_is_planned_once_if_that_saves_work() {
    let (_folder, table) = scores(&many_rows()).await;
    let session = table.session().unwrap();
    let scans = async |sql: &str| {
        let explanation = session.explain(sql, &Params::default()).await.unwrap();
        let scanned = explanation.plan.matches("DataSourceExec").count();
        assert_eq!(explanation.scans.len(), scanned, "{sql}\n{}", explanation.plan);
        scanned
    };
    let joined =
        |query: &str| format!("WITH q AS ({query}) SELECT a.player FROM q a JOIN q b ON a.player = b.player");
    assert_eq!(scans(&joined("SELECT player, count(*) AS n FROM t GROUP BY player")).await, 1);
    let selected = scans(&joined("SELECT player FROM t WHERE game = 3")).await;
    assert_eq!(selected, 2, "its conditions reach the table");
    let nested = "WITH a AS (SELECT player, count(*) AS n FROM t GROUP BY player), b AS (SELECT x.n FROM a x, a y LIMIT 9), \
        c AS (SELECT x.n FROM b x, b y LIMIT 9) SELECT x.n FROM c x, c y, a z";
    assert_eq!(scans(nested).await, 1);
}

#[tokio::test]
async fn conditions_of_all_references_reach_the_tables() {
    let (_folder, table) = scores(&many_rows()).await;
    let session = table.session().unwrap();
    let query = "WITH q AS (SELECT player, count(*) AS n FROM t GROUP BY player) SELECT a.n FROM q a JOIN q b ON a.n = b.n";
    let both = plan(&session, &format!("{query} WHERE a.player = 7 AND b.player = 8 AND b.n > 0")).await;
    assert!(both.contains("predicate=player@0 = 7 OR player@0 = 8"), "{both}");
    let columns = "WITH q AS (SELECT player, count(*) AS n FROM t GROUP BY player) \
        SELECT b.n FROM q a JOIN q b ON a.player = b.player WHERE a.player < 7 AND b.player < 9";
    let columns = plan(&session, columns).await;
    assert!(columns.contains("predicate=player@0"), "{columns}");
    let one = plan(&session, &format!("{query} WHERE a.player = 7")).await;
    assert!(!one.contains("predicate="), "{one}");
    let drawn = plan(
        &session,
        "WITH q AS (SELECT player, random() AS x FROM t) SELECT 1 FROM q a JOIN q b ON a.player = b.player \
         WHERE a.x > 0.5 AND b.x > 0.5",
    );
    assert!(!drawn.await.contains("predicate="));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_spilled_beyond_the_memory() {
    let (folder, table) = scores(&many_rows()).await;
    let spill = folder.path().join("spill");
    std::fs::create_dir(&spill).unwrap();
    let sql = "WITH q AS (SELECT player + game * 7 AS k, game, max(points) AS m FROM t GROUP BY 1, 2) \
        SELECT game, count(*), sum(m) FROM (SELECT game, m FROM q UNION ALL SELECT game + 100, m FROM q) GROUP BY game";
    let mut expected = separately(&table.session().unwrap(), sql).await;
    expected.sort_unstable();
    let limits = QueryLimits { memory: ByteSize::mib(16), spill: Some(spill), ..QueryLimits::default() };
    let session = table.session_with(&limits).unwrap();
    let physical = session.physical_plan(sql, &Params::default()).await.unwrap();
    for _ in 0..2 {
        // A plan may run several times, each time in a separate context.
        let plan = reset_plan_states(Arc::clone(&physical)).unwrap();
        let batches = collect(Arc::clone(&plan), session.context().task_ctx()).await.unwrap();
        let mut found = rows(&batches);
        found.sort_unstable();
        assert_eq!(found, expected);
        assert!(spilled_rows(&plan) > 0, "the test needs more rows");
    }
}

fn spilled_rows(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().filter(|_| plan.name() == "ComputedOnceExec");
    let own = own.and_then(|metrics| metrics.spilled_rows()).unwrap_or(0);
    own + plan.children().into_iter().map(spilled_rows).sum::<usize>()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_reach_every_reader_and_readers_may_stop() {
    let (_folder, table) = scores(&many_rows()).await;
    let session = table.session().unwrap();
    let failing = "WITH q AS (SELECT player, sum(10 / (points - 5)) AS s FROM t GROUP BY player) \
        SELECT a.s, b.s, 0 FROM q a JOIN q b ON a.player = b.player";
    let error = session.collect(failing, &Params::default()).await.unwrap_err().to_string();
    assert!(error.contains("ivide by zero"), "{error}");
    let few = "WITH q AS (SELECT a.player, b.game, a.points FROM t a, t b LIMIT 100000000) \
        SELECT * FROM (SELECT * FROM q LIMIT 3) UNION ALL SELECT * FROM (SELECT * FROM q LIMIT 2)";
    assert_eq!(answer(&session, few).await.len(), 5);
}
