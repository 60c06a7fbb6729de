//! Plans made of a template are those that are optimized for their partitions alone.

use arrow::array::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;

use super::*;
use crate::Table;
use crate::query::local_joins::PartitionwiseExec;
use crate::query::{Database, Params, QueryLimits, TableSession};
use crate::testing::joins::answer;
use crate::testing::{Score, batch, create, ingest};

const COLUMNS: &str = "player Int64 NOT NULL, game Int64 NOT NULL, points Int64";

/// Creates a table partitioned by player, with one commit for each slice of rows.
async fn table(name: &str, partitions: usize, commits: &[Vec<Score>]) -> (tempfile::TempDir, Table) {
    let (folder, mut table) = create(&format!(
        "CREATE TABLE {name} ({COLUMNS}, PRIMARY KEY (player, game)) PARTITION BY HASH(player)
         WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = {partitions})"
    ))
    .await;
    for commit in commits {
        ingest(&mut table, batch(commit)).await;
    }
    (folder, table)
}

/// Rows of some players, with games from `first` on.
fn rows(players: std::ops::Range<i64>, first: i64) -> Vec<Score> {
    players.flat_map(|player| (first..first + 5).map(move |game| (player, game, player * game % 7))).collect()
}

/// Rows of which the partition with the most players has other games than the rest.
async fn uneven_rows() -> Vec<Score> {
    let (_folder, table) = table("players", 8, &[rows(0..400, 0)]).await;
    let session = table.session().unwrap();
    let largest = "SELECT ydb_partition(8, player) AS p FROM t GROUP BY p ORDER BY count(*) DESC LIMIT 1";
    let sql = format!("SELECT DISTINCT player, 0, 0 FROM t WHERE ydb_partition(8, player) = ({largest})");
    let found = session.collect(&sql, &Params::default()).await.unwrap();
    let players: std::collections::HashSet<i64> =
        crate::testing::rows(&found).into_iter().map(|(player, ..)| player).collect();
    let games = |player: i64| if players.contains(&player) { [0, 1, 2, 3, 4] } else { [0, 2, 4, 5, 6] };
    (0..400).flat_map(|player| games(player).map(|game| (player, game, -game))).collect()
}

/// Tables whose partitions have one file, several in order, several that overlap, or none.
async fn session() -> (Vec<tempfile::TempDir>, TableSession) {
    let (mut database, mut folders) = (Database::default(), Vec::new());
    let uneven = uneven_rows().await;
    let some = uneven.iter().copied().filter(|(_, game, _)| [0, 4].contains(game)).collect();
    for (name, partitions, commits) in [
        ("even", 8, vec![rows(0..400, 0)]),
        ("parted", 8, vec![rows(0..200, 0), rows(200..400, 0)]),
        ("merged", 8, vec![rows(0..400, 0), rows(0..3, 2)]),
        ("sparse", 8, vec![rows(0..5, 0)]),
        ("fine", 32, vec![rows(0..400, 0)]),
        ("uneven", 8, vec![uneven]),
        ("some", 8, vec![some]),
    ] {
        let (folder, table) = table(name, partitions, &commits).await;
        database.add_table(name, table.provider().unwrap()).unwrap();
        folders.push(folder);
    }
    let session = database.session_with(&QueryLimits::default()).unwrap();
    session.context().state_ref().write().config_mut().options_mut().execution.target_partitions = 3;
    (folders, session)
}

/// Returns the plans of the part of a query that is computed by partition.
async fn plans_of(session: &TableSession, sql: &str) -> Arc<PartitionPlans> {
    let plan = session.physical_plan(sql, &Params::default()).await.unwrap();
    let mut found = None;
    plan.apply(|node| {
        if let Some(node) = node.downcast_ref::<PartitionwiseExec>() {
            found = Some(Arc::clone(node.plans()));
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    found.unwrap_or_else(|| panic!("{sql}"))
}

#[tokio::test]
async fn plans_of_a_template_are_those_of_partitions_alone() {
    let (_folders, session) = session().await;
    let one_core = session.context().state();
    let one_core = SessionStateBuilder::new_from_existing(one_core.clone())
        .with_config(one_core.config().clone().with_target_partitions(1))
        .build();
    let one_core = SessionContext::new_with_state(one_core);
    let state = session.context().state();
    let config = state.config_options();
    let (mut by_template, mut alone) = (0, 0);
    let lines = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for sql in [
        "SELECT a.game, b.points FROM even a JOIN parted b ON a.player = b.player WHERE b.game = 3",
        "SELECT a.game, b.points FROM parted a LEFT JOIN even b ON a.player = b.player AND a.game = b.game",
        "SELECT a.player, count(*) FROM even a JOIN even b ON a.player = b.player AND a.points < b.points
         WHERE a.game > 2 GROUP BY a.player",
        "SELECT * FROM even a FULL JOIN merged b ON a.player = b.player AND a.game = b.game",
        "SELECT player, points FROM even a WHERE EXISTS (SELECT 1 FROM parted b WHERE a.player = b.player
         AND b.points > a.points)",
        "SELECT * FROM even a LEFT JOIN sparse b ON a.player = b.player",
        "SELECT * FROM even a JOIN fine b ON a.player = b.player AND a.points = b.points",
        "SELECT a.player, b.game, row_number() OVER (PARTITION BY a.player ORDER BY a.game, b.game)
         FROM even a JOIN even b ON a.player = b.player",
        "SELECT a.points FROM even a JOIN parted b ON a.player = b.player JOIN even c ON b.player = c.player
         WHERE c.points < 2 AND a.game = c.game",
        // In the largest partition alone, 4 is the only game above 3.
        "SELECT player, game, row_number() OVER (PARTITION BY player ORDER BY game) AS rn, r, points
         FROM (SELECT a.player, a.game, b.points,
                      row_number() OVER (PARTITION BY a.player ORDER BY b.points, a.game DESC) AS r
               FROM uneven a LEFT JOIN some b ON a.player = b.player AND a.game = b.game)
         WHERE game >= 4",
        // A sort of one side of a join.
        "SELECT a.player, a.n, b.points FROM (SELECT player, game, points, row_number() OVER (
         PARTITION BY player ORDER BY points, game) AS n FROM uneven WHERE points > -100) a
         JOIN some b ON a.player = b.player AND a.game = b.game",
    ] {
        let (found, expected) = (answer(session.context(), sql).await, answer(&one_core, sql).await);
        assert_eq!(lines(found), lines(expected), "{sql}");
        let plans = plans_of(&session, sql).await;
        let own = PartitionPlans {
            whole: Arc::clone(&plans.whole),
            scans: plans.scans.clone(),
            tables: plans.tables.clone(),
            rules: plans.rules.clone(),
            partitions: plans.partitions.clone(),
            template: None,
        };
        for position in 0..plans.len() {
            let of = |plans: &PartitionPlans| plans.plan(position, &[], config).unwrap();
            let shown = |plan| displayable(Arc::as_ref(plan)).indent(true).to_string();
            let (one, other) = (of(&plans), of(&own));
            // The largest partition alone needs no sort by a column that has one value there.
            assert!(shown(&one) == shown(&other) || sql.contains("game >= 4"), "{sql}, {position}");
            let rows = async |plan| {
                let batches: Vec<RecordBatch> = collect(plan, state.task_ctx()).await.unwrap();
                arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string()
            };
            assert_eq!(rows(one).await, rows(other).await, "{sql}, {position}");
            let (partition, _) = plans.partitions[position];
            let scans = plans.scans.of_partition(partition);
            let is_made = plans.template.as_ref().is_some_and(|of| of.with_scans(&scans).unwrap().is_some());
            by_template += usize::from(is_made);
            alone += usize::from(!is_made);
        }
    }
    assert!(by_template > 30 && alone > 10, "{by_template} by template, {alone} alone");
}

#[tokio::test]
async fn rows_of_partitions_are_counted_once() {
    let (_folders, session) = session().await;
    let sql = "SELECT count(*) FROM even a JOIN parted b ON a.player = b.player";
    let result = session.query(sql, &Params::default()).await.unwrap();
    let progress = result.progress.unwrap();
    let batches: Vec<RecordBatch> = result.batches.try_collect().await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    assert_eq!((progress.rows_read(), progress.rows_to_read()), (4_000, 4_000));
    assert!(progress.bytes_read() <= progress.bytes_of_tables());
}
