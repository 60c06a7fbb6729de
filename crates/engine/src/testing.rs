//! Small tables for unit tests.

pub(crate) mod joins;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use evenkeel_model::table::{TableSpec, parse_create_table};
use evenkeel_store::ingest::IngestOptions;
use tempfile::TempDir;

use crate::Table;
use crate::query::TableSession;

/// A row of the table of scores: player, game, points.
pub(crate) type Score = (i64, i64, i64);

const SCORES: &str = "CREATE TABLE scores (
    player Int64 NOT NULL, game Int64 NOT NULL, points Int64, PRIMARY KEY (player, game)
) PARTITION BY HASH(player) WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 4)";

pub(crate) async fn create(ddl: &str) -> (TempDir, Table) {
    let spec = TableSpec::new(parse_create_table(ddl).unwrap().definition).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let table = Table::create(folder.path().join("table"), &spec).await.unwrap();
    (folder, table)
}

/// A session on the table that plans for a number of cores. A partitioned one builds the table of
/// no join from all rows of a side.
pub(crate) fn session_on(table: &Table, cores: usize, is_partitioned: bool) -> TableSession {
    let session = table.session().unwrap();
    let state = session.context().state_ref();
    let mut state = state.write();
    let config = state.config_mut();
    *config = config.clone().with_target_partitions(cores);
    if is_partitioned {
        let optimizer = &mut config.options_mut().optimizer;
        optimizer.hash_join_single_partition_threshold = 0;
        optimizer.hash_join_single_partition_threshold_rows = 0;
    }
    drop(state);
    session
}

/// Creates the table of scores, partitioned by player, with one commit for each slice of rows.
pub(crate) async fn scores(commits: &[Vec<Score>]) -> (TempDir, Table) {
    let (folder, mut table) = create(SCORES).await;
    for commit in commits {
        ingest(&mut table, batch(commit)).await;
    }
    (folder, table)
}

pub(crate) async fn ingest(table: &mut Table, batch: RecordBatch) {
    let batches = futures::stream::iter([Ok::<_, std::io::Error>(batch)]);
    table.ingest(batches, &IngestOptions::default()).await.unwrap();
}

pub(crate) fn batch(scores: &[Score]) -> RecordBatch {
    let column = |value: fn(&Score) -> i64| {
        Arc::new(Int64Array::from_iter_values(scores.iter().map(value))) as ArrayRef
    };
    let columns = [("player", column(|s| s.0)), ("game", column(|s| s.1)), ("points", column(|s| s.2))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Rows of three columns of whole numbers.
pub(crate) fn rows(batches: &[RecordBatch]) -> Vec<Score> {
    let of_batch = |batch: &RecordBatch| {
        let column = |index: usize| batch.column(index).as_primitive::<Int64Type>().values().to_vec();
        let (players, games, points) = (column(0), column(1), column(2));
        (0..batch.num_rows()).map(move |row| (players[row], games[row], points[row]))
    };
    batches.iter().flat_map(of_batch).collect()
}

/// The latest row of each key, in key order.
pub(crate) fn latest(commits: &[Vec<Score>]) -> Vec<Score> {
    let scores = commits.iter().flatten();
    let latest: BTreeMap<(i64, i64), i64> = scores.map(|s| ((s.0, s.1), s.2)).collect();
    latest.into_iter().map(|((player, game), points)| (player, game, points)).collect()
}

/// Commits whose keys overlap in part, with points that distinguish all rows.
pub(crate) fn overlapping_commits() -> Vec<Vec<Score>> {
    let commit = |number: i64| {
        let score = |index: i64| (index * (number + 3) % 17, index % 5 + 2 * number, number * 1000 + index);
        (0..40).map(score).collect()
    };
    (0..5).map(commit).collect()
}
