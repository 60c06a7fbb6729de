use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::graph::JoinGraph;
use super::parts::is_inner;
use super::relations::Relations;
use crate::testing::joins::{Names, Statement, Tables, answer, tables};

/// The tables of a logical plan, in the order in which they are joined.
async fn scans(context: &SessionContext, sql: &str) -> Vec<String> {
    let plan = context.sql(sql).await.unwrap().into_optimized_plan().unwrap();
    let lines = plan.display_indent().to_string();
    let table = |line: &str| line.trim().strip_prefix("TableScan: ")?.split(' ').next().map(str::to_owned);
    lines.lines().filter_map(table).collect()
}

/// The tree of joins of a statement, as the optimizer of DataFusion leaves it.
async fn joins(tables: &Tables, sql: &str) -> LogicalPlan {
    let mut plan = tables.plain.sql(sql).await.unwrap().into_optimized_plan().unwrap();
    while !matches!(plan, LogicalPlan::Join(_)) {
        let Some(input) = plan.inputs().first().map(|input| (*input).clone()) else { break };
        plan = input;
    }
    plan
}

/// Graphs of the inner joins of random statements, as the optimizer of DataFusion leaves them.
pub(super) async fn graphs(tables: &Tables, count: usize) -> Vec<JoinGraph> {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut graphs = Vec::new();
    while graphs.len() < count {
        let sql = Statement::with_inner_joins(&mut random).sql(Names::Distinct);
        let plan = joins(tables, &sql).await;
        if is_inner(&plan) {
            graphs.extend(JoinGraph::new(&plan).unwrap().filter(|graph| graph.relations().len() > 2));
        }
    }
    graphs
}

#[tokio::test]
async fn the_order_of_joins_changes_no_row() {
    let tables = tables().await;
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut moved = 0;
    for _ in 0..200 {
        let statement = Statement::with_inner_joins(&mut random);
        let sql = statement.sql(Names::Shared);
        let expected = answer(&tables.plain, &statement.sql(Names::Distinct)).await;
        assert_eq!(answer(&tables.ours, &sql).await, expected, "{sql}");
        moved += usize::from(scans(&tables.ours, &sql).await != scans(&tables.plain, &sql).await);
    }
    assert!(moved >= 30, "{moved}");
}

#[tokio::test]
async fn few_rows_come_first_and_columns_stay_in_their_places() {
    let tables = tables().await;
    let joined = "SELECT * FROM middle a JOIN big b ON a.game = b.game JOIN small c ON a.player = c.player";
    for (conditions, is_moved) in [("c.points < 2", true), ("a.points = 2 AND a.player = 9", false)] {
        let sql = format!("{joined} WHERE {conditions} ORDER BY a.player, b.player, c.player");
        assert_eq!(answer(&tables.ours, &sql).await, answer(&tables.plain, &sql).await, "{sql}");
        let scans = scans(&tables.ours, &sql).await;
        let place = |table: &str| scans.iter().position(|scan| scan == table).unwrap();
        assert_eq!(place("small") < place("big"), is_moved, "{conditions}: {scans:?}");
    }
}

#[tokio::test]
async fn columns_equal_to_the_same_column_are_joined() {
    let tables = tables().await;
    // Only through b is c joined with a.
    let sql = "SELECT count(*), sum(a.points), sum(b.points), sum(c.points) FROM middle a
        JOIN big b ON a.game = b.game JOIN small c ON b.game = c.game AND c.points < 2 AND c.player = 1";
    assert_eq!(answer(&tables.ours, sql).await, answer(&tables.plain, sql).await);
    let scans = scans(&tables.ours, sql).await;
    assert_eq!(scans.last().map(String::as_str), Some("big"), "{scans:?}");
}

#[tokio::test]
async fn joins_that_may_not_be_ordered_stay() {
    let tables = tables().await;
    for from in [
        // A key has columns of two tables.
        "big a JOIN middle b ON a.player = b.player JOIN small c ON a.points + b.points = c.points",
        "big a JOIN middle b ON a.game = b.game CROSS JOIN small c",
        // A condition and a key fail on rows that the join before removes.
        "big a JOIN middle b ON a.player = b.player AND a.game = b.game + 100
         JOIN small c ON a.game = c.game AND 1 / (a.points - a.points) > c.player",
        "big a JOIN middle b ON a.player = b.player AND a.points = b.points
         JOIN small c ON CAST(CAST(a.player AS VARCHAR) AS BIGINT) = c.player",
    ] {
        let sql = format!(
            "SELECT count(*), sum(a.points), sum(b.points), sum(c.points) FROM {from} WHERE c.points < 2"
        );
        assert_eq!(answer(&tables.ours, &sql).await, answer(&tables.plain, &sql).await, "{from}");
        assert_eq!(scans(&tables.ours, &sql).await, scans(&tables.plain, &sql).await, "{from}");
    }
}

#[tokio::test]
async fn conditions_and_keys_of_any_form_keep_their_rows() {
    let tables = tables().await;
    for from in [
        "big a JOIN middle b ON a.game = b.game JOIN small c ON c.player = b.player AND a.points < c.points",
        "big a JOIN middle b ON a.game = b.game JOIN small c ON c.player = b.player AND a.points < b.points",
        // A condition depends on chance, though not on much of it.
        "big a JOIN middle b ON a.game = b.game AND random() < 2 + b.game JOIN small c ON c.player = b.player",
        "big a JOIN middle b ON a.game IS NOT DISTINCT FROM b.game JOIN small c ON c.player = b.player",
        // Two columns of a table must equal one of another.
        "small a JOIN big b ON a.game = b.game AND a.game = b.points JOIN small c ON c.game = b.game",
        "big a JOIN middle b ON a.player = b.player AND a.game = b.player JOIN small c ON c.player = b.player",
        "big a JOIN middle b ON CAST(a.game AS DECIMAL(30, 2)) = CAST(b.game AS DECIMAL(30, 2))
         JOIN small c ON c.player = b.player",
        "big a JOIN middle b ON a.game * 0.5::double = b.game * 0.5::double JOIN small c ON c.player = b.player",
    ] {
        let sql = format!(
            "SELECT count(*), sum(a.points), sum(b.points), sum(c.points) FROM {from} AND c.points < 2"
        );
        assert_eq!(answer(&tables.ours, &sql).await, answer(&tables.plain, &sql).await, "{from}");
    }
}

#[tokio::test]
async fn tables_are_joined_in_their_partitions_if_that_costs_no_more() {
    let tables = tables().await;
    for (from, are_local) in [
        ("big a JOIN middle b ON a.player = b.player JOIN small c ON c.game = b.game", true),
        ("big a JOIN middle b ON a.game = b.game JOIN small c ON c.player = b.player", false),
        (
            "(SELECT points AS x, player AS y FROM big) a JOIN middle b ON a.y = b.player JOIN small c ON c.game = b.game",
            true,
        ),
        (
            "(SELECT player + 0 AS y FROM big) a JOIN middle b ON a.y = b.player JOIN small c ON c.game = b.game",
            false,
        ),
    ] {
        let sql = format!("SELECT * FROM {from}");
        let graph = JoinGraph::new(&joins(&tables, &sql).await).unwrap();
        let partitions = graph.map(|graph| graph.partitions_joined(Relations::first(2)));
        assert_eq!(partitions.is_some_and(|partitions| partitions > 1), are_local, "{from}");
    }
}

#[tokio::test]
async fn trees_of_many_tables_keep_their_rows() {
    let tables = tables().await;
    let mut from = "big t0".to_owned();
    for at in 1..13 {
        let other = if at % 3 == 0 { 0 } else { at - 1 };
        from.push_str(&format!(
            " JOIN small t{at} ON t{at}.player = t{other}.player AND t{at}.points < {at}"
        ));
    }
    let sql = format!("SELECT count(*), sum(t0.points), sum(t12.points) FROM {from}");
    assert_eq!(answer(&tables.ours, &sql).await, answer(&tables.plain, &sql).await);
    assert_ne!(scans(&tables.ours, &sql).await, scans(&tables.plain, &sql).await);
}

#[tokio::test]
async fn only_keys_are_expected_to_have_many_values() {
    let tables = tables().await;
    let sql = "SELECT * FROM big a JOIN middle b ON a.game = b.game JOIN small c ON c.player = b.player AND c.game = b.game";
    let graph = JoinGraph::new(&joins(&tables, sql).await).unwrap().unwrap();
    let share = |one, other| graph.share_of_pairs(Relations::one(one), Relations::one(other));
    // The smallest table has 6 rows, and the primary key of all is (player, game).
    assert!((share(0, 1) - 1.0 / 6f64.sqrt()).abs() < 1e-9, "{}", share(0, 1));
    assert!((share(1, 2) - 1.0 / 40.0).abs() < 1e-9, "{}", share(1, 2));
}
