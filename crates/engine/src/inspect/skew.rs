//! Balance of a table.

use serde::Serialize;

use crate::inspect::partitions::stored_partitions;
use crate::query::{PartitionKeys, QueryError, SnapshotTable, count_visible_rows};
use evenkeel_model::units::Version;
use evenkeel_stats::skew::{AtATime, NoiseFloor, SkewFigures, Verdict, are_enough_rows, balance, median};
use evenkeel_store::log::CommitSummary;

/// Balance of one commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommitBalance {
    /// Version of the commit.
    pub version: Version,
    /// Rows that it wrote.
    pub rows: u64,
    /// Share of these rows in the fullest partition.
    pub share_of_fullest: f64,
    /// The fullest partition.
    pub fullest_partition: usize,
    /// Effective number of partitions of these rows.
    pub effective_partitions: f64,
}

/// Balance of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableSkew {
    /// All figures, for the rows that a query sees.
    #[serde(flatten)]
    pub figures: SkewFigures,
    /// Rows that a query sees, per partition.
    pub rows_per_partition: Vec<u64>,
    /// Bytes of portions, per partition.
    pub bytes_per_partition: Vec<u64>,
    /// Number of portions, per partition.
    pub portions_per_partition: Vec<u64>,
    /// Balance that a perfect hash would reach with the table's keys; `None` if keys were not
    /// counted.
    pub noise_floor: Option<NoiseFloor>,
    /// Balance of each commit that wrote rows, oldest first.
    pub over_commits: Vec<CommitBalance>,
    /// Verdict on the balance.
    pub verdict: Verdict,
}

/// Measures how even a table is. The partition-key columns are read to compute the noise floor.
///
/// # Errors
/// [`QueryError`] if a portion cannot be read.
pub(crate) async fn skew(table: &SnapshotTable) -> Result<TableSkew, QueryError> {
    let snapshot = table.snapshot();
    let visible = count_visible_rows(table, PartitionKeys::Count).await?;
    let figures = SkewFigures::from_counts(&visible.rows_per_partition);
    let noise_floor = visible.keys.map(|keys| NoiseFloor::from_weights(&figures, &keys));
    let commits = snapshot.commits().iter();
    let with_rows = commits.filter(|commit| commit.info.operation.changes_rows() && commit.rows() > 0);
    let over_commits: Vec<CommitBalance> = with_rows.map(|commit| commit_balance(commit)).collect();
    let verdict =
        Verdict::from_skew(&figures, noise_floor.as_ref(), balance_at_a_time(&figures, &over_commits));
    let partitions = stored_partitions(snapshot);
    Ok(TableSkew {
        figures,
        rows_per_partition: visible.rows_per_partition,
        bytes_per_partition: partitions.iter().map(|partition| partition.bytes).collect(),
        portions_per_partition: partitions.iter().map(|partition| partition.portions).collect(),
        noise_floor,
        over_commits,
        verdict,
    })
}

fn commit_balance(commit: &CommitSummary) -> CommitBalance {
    let figures = SkewFigures::from_counts(&commit.rows_per_partition);
    CommitBalance {
        version: commit.info.version,
        rows: figures.rows,
        share_of_fullest: figures.share_of_fullest,
        fullest_partition: figures.fullest_partition,
        effective_partitions: figures.effective_partitions,
    }
}

/// Compares the balance of single commits with the balance of the whole table.
fn balance_at_a_time(figures: &SkewFigures, commits: &[CommitBalance]) -> AtATime {
    let Some(effective) = median_effective(commits, figures.partitions) else { return AtATime::Spread };
    let in_total = balance(figures.effective_partitions, figures.partitions);
    AtATime::from_balances(balance(effective, figures.partitions), in_total)
}

/// Fewest commits that allow a judgement over time.
const MIN_COMMITS: usize = 4;

/// Median over the commits with enough rows to be judged; `None` if there are too few of them.
fn median_effective(commits: &[CommitBalance], partitions: usize) -> Option<f64> {
    let judged = commits.iter().filter(|commit| are_enough_rows(commit.rows, partitions));
    let effective: Vec<f64> = judged.map(|commit| commit.effective_partitions).collect();
    if effective.len() < MIN_COMMITS { None } else { median(effective) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{latest, overlapping_commits, scores};

    #[tokio::test]
    async fn a_table_is_judged_by_the_rows_that_a_query_sees() {
        let commits = overlapping_commits();
        let (_folder, table) = scores(&commits).await;
        let skew = table.skew().await.unwrap();
        let overview = table.inspect().await.unwrap();
        let visible: Vec<u64> = overview.partitions.iter().map(|partition| partition.rows).collect();
        assert_eq!(skew.rows_per_partition, visible);
        assert_eq!(skew.figures, SkewFigures::from_counts(&visible));
        assert_eq!(skew.figures.rows, latest(&commits).len() as u64);
        assert!(skew.noise_floor.is_some());
        // The creation of the table wrote no rows.
        assert_eq!(skew.over_commits.len(), commits.len());
        for (balance, commit) in skew.over_commits.iter().zip(&commits) {
            let (_folder, alone) = scores(std::slice::from_ref(commit)).await;
            let alone = alone.skew().await.unwrap().figures;
            assert_eq!(balance.rows, alone.rows);
            assert_eq!(balance.fullest_partition, alone.fullest_partition);
            assert_eq!(balance.share_of_fullest, alone.max as f64 / alone.rows as f64);
        }
    }

    #[tokio::test]
    async fn one_partition_with_all_rows_has_them_at_any_time() {
        let commit = |number: i64| (0..500).map(|game| (7, number * 1000 + game, game)).collect();
        let commits: Vec<_> = (0..4).map(commit).collect();
        let (_folder, table) = scores(&commits).await;
        let skew = table.skew().await.unwrap();
        assert_eq!((skew.figures.max, skew.figures.effective_partitions), (2000, 1.0));
        assert_eq!(balance_at_a_time(&skew.figures, &skew.over_commits), AtATime::Stays);
        assert_eq!(balance_at_a_time(&skew.figures, &skew.over_commits[1..]), AtATime::Spread);
        let (_folder, empty) = scores(&[]).await;
        assert_eq!(empty.skew().await.unwrap().verdict, Verdict::Empty);
    }
}
