//! Facts about a stored table: its contents, and how even it is.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;

use crate::query::{PartitionKeys, QueryError, SnapshotTable, count_visible_rows};
use evenkeel_model::table::Column;
use evenkeel_model::units::{PartitionId, Version};
use evenkeel_stats::overlap::OverlapDepth;
use evenkeel_stats::skew::{AtATime, NoiseFloor, SkewFigures, Verdict, are_enough_rows, balance, median};
use evenkeel_store::log::{CommitSummary, Operation, PortionEntry, Snapshot, overlap_depths};

/// One partition of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionOverview {
    /// The partition.
    pub partition: PartitionId,
    /// Rows that a query sees.
    pub rows: u64,
    /// Rows in its portions; more than `rows` if newer portions supersede rows of older ones.
    pub stored_rows: u64,
    /// Bytes of its portions.
    pub bytes: u64,
    /// Number of its portions.
    pub portions: u64,
    /// Depth to which its portions overlap.
    pub overlap: OverlapDepth,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommitOverview {
    /// Version that it created.
    pub version: Version,
    /// Time of the commit, in microseconds since 1970 by the writer's clock.
    pub at_micros: i64,
    /// Operation that it recorded.
    pub operation: Operation,
    /// Rows that it added; for a compaction, rows that it rewrote.
    pub rows: u64,
    /// Bytes of the portions that it added.
    pub bytes: u64,
    /// Portions that it added.
    pub portions: u64,
    /// Portions that it removed.
    pub removed: u64,
    /// Names of the inputs committed with it.
    pub sources: Vec<String>,
}

/// The commits of a table, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableHistory {
    /// Name of the table.
    pub name: String,
    /// The commits.
    pub commits: Vec<CommitOverview>,
}

/// The commits of a table up to the version of `snapshot`.
#[must_use]
pub fn history(snapshot: &Snapshot) -> TableHistory {
    let commit = |commit: &Arc<CommitSummary>| CommitOverview {
        version: commit.info.version,
        at_micros: commit.info.at_micros,
        operation: commit.info.operation,
        rows: commit.rows(),
        bytes: commit.bytes,
        portions: commit.portions,
        removed: commit.removed,
        sources: commit.sources.iter().map(|source| source.name.clone()).collect(),
    };
    let commits = snapshot.commits().iter().map(commit).collect();
    TableHistory { name: snapshot.spec().name().to_owned(), commits }
}

/// One portion that a query reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VisibleFile {
    /// Path relative to the table.
    pub path: String,
    /// Partition whose rows it holds.
    pub partition: PartitionId,
    /// Rows in it.
    pub rows: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// First and last primary key in it.
    pub keys: String,
}

/// The files of a table at one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableFiles {
    /// Name of the table.
    pub name: String,
    /// Version of the table.
    pub version: Version,
    /// Most files that cover one key. If it is more than 1, the files may hold superseded rows.
    pub max_depth: u64,
    /// The files, by partition and age.
    pub files: Vec<VisibleFile>,
}

/// The files of a table at the version of `snapshot`.
#[must_use]
pub fn files(snapshot: &Snapshot) -> TableFiles {
    let types = snapshot.spec().primary_key_types();
    let file = |portion: Arc<PortionEntry>| VisibleFile {
        path: portion.path.clone(),
        partition: portion.partition,
        rows: portion.rows,
        bytes: portion.bytes,
        keys: portion.key_range.display(&types),
    };
    TableFiles {
        name: snapshot.spec().name().to_owned(),
        version: snapshot.version(),
        max_depth: snapshot.max_depth(),
        files: snapshot.portions().into_iter().map(file).collect(),
    }
}

/// Declaration, size and partitions of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableOverview {
    /// Name of the table.
    pub name: String,
    /// Newest version.
    pub version: Version,
    /// Rows that a query sees.
    pub rows: u64,
    /// Rows in all portions.
    pub stored_rows: u64,
    /// Bytes of all portions.
    pub bytes: u64,
    /// Number of portions.
    pub portions: u64,
    /// Bytes that compactions wrote for each byte that was ingested.
    pub write_amplification: f64,
    /// Files in partition folders that this version does not name: files of earlier versions,
    /// leftovers of ingests that died, or files still being written.
    pub other_files: u64,
    /// Bytes of those files.
    pub other_bytes: u64,
    /// Columns in declared order.
    pub columns: Vec<Column>,
    /// Names of the primary-key columns.
    pub primary_key: Vec<String>,
    /// Names of the partition-key columns.
    pub partition_key: Vec<String>,
    /// Time to live of the rows, as `column=length`; `None` if rows are kept forever.
    pub ttl: Option<String>,
    /// The placement function, with its parameters if they are not the defaults.
    pub placement: String,
    /// The partitions in order.
    pub partitions: Vec<PartitionOverview>,
}

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

/// Stored rows, bytes and portions of each partition.
fn stored(snapshot: &Snapshot) -> Vec<PartitionOverview> {
    let mut partitions: Vec<PartitionOverview> = snapshot
        .spec()
        .partitions()
        .ids()
        .map(|partition| PartitionOverview {
            partition,
            rows: 0,
            stored_rows: 0,
            bytes: 0,
            portions: 0,
            overlap: OverlapDepth::default(),
        })
        .collect();
    let portions = snapshot.portions();
    for of_partition in portions.chunk_by(|a, b| a.partition == b.partition) {
        let index = of_partition.first().map(|portion| portion.partition.index());
        if let Some(partition) = index.and_then(|index| partitions.get_mut(index)) {
            partition.overlap = OverlapDepth::from_depths(overlap_depths(of_partition));
        }
    }
    for portion in portions {
        if let Some(partition) = partitions.get_mut(portion.partition.index()) {
            partition.stored_rows += portion.rows;
            partition.bytes += portion.bytes;
            partition.portions += 1;
        }
    }
    partitions
}

/// Returns an overview of a table. Portions are read only if their key ranges overlap.
///
/// # Errors
/// [`QueryError`] if a portion cannot be read.
pub async fn inspect(table: &SnapshotTable) -> Result<TableOverview, QueryError> {
    let snapshot = table.snapshot();
    let visible = count_visible_rows(table, PartitionKeys::Skip).await?;
    let mut partitions = stored(snapshot);
    for (partition, rows) in partitions.iter_mut().zip(&visible.rows_per_partition) {
        partition.rows = *rows;
    }
    let others = other_files(table).await?;
    let definition = snapshot.spec().definition();
    let sum = |of: fn(&PartitionOverview) -> u64| partitions.iter().map(of).sum();
    Ok(TableOverview {
        name: definition.name.clone(),
        version: snapshot.version(),
        rows: sum(|partition| partition.rows),
        stored_rows: sum(|partition| partition.stored_rows),
        bytes: sum(|partition| partition.bytes),
        portions: sum(|partition| partition.portions),
        write_amplification: write_amplification(snapshot),
        other_files: others.len() as u64,
        other_bytes: others.iter().sum(),
        columns: definition.columns.clone(),
        primary_key: definition.primary_key.clone(),
        partition_key: definition.partition_key.clone(),
        ttl: definition.ttl.as_ref().map(ToString::to_string),
        placement: definition.placement.to_string(),
        partitions,
    })
}

/// Bytes that compactions wrote for each byte that was ingested; 0 if nothing was.
fn write_amplification(snapshot: &Snapshot) -> f64 {
    let sum = |of: fn(Operation) -> bool| -> u64 {
        snapshot.commits().iter().filter(|c| of(c.info.operation)).map(|commit| commit.bytes).sum()
    };
    let again = sum(|operation| operation == Operation::Compact);
    again as f64 / sum(Operation::brings_rows).max(1) as f64
}

/// Sizes of the Parquet files in partition folders that the snapshot does not name.
async fn other_files(table: &SnapshotTable) -> Result<Vec<u64>, QueryError> {
    let named: HashSet<String> =
        table.snapshot().portions().iter().map(|portion| portion.path.clone()).collect();
    let files = table.storage().list_all().await?;
    let others = files
        .into_iter()
        .filter(|file| !file.staging && file.path.starts_with("partition=") && !named.contains(&file.path));
    Ok(others.map(|file| file.bytes).collect())
}

/// Measures how even a table is. With [`PartitionKeys::Count`], the partition-key columns are read
/// to compute the noise floor.
///
/// # Errors
/// [`QueryError`] if a portion cannot be read.
pub async fn skew(table: &SnapshotTable, keys: PartitionKeys) -> Result<TableSkew, QueryError> {
    let snapshot = table.snapshot();
    let visible = count_visible_rows(table, keys).await?;
    let figures = SkewFigures::from_counts(&visible.rows_per_partition);
    let noise_floor = visible.keys.map(|keys| NoiseFloor::from_weights(&figures, &keys));
    let over_commits: Vec<CommitBalance> = snapshot
        .commits()
        .iter()
        .filter(|commit| commit.info.operation.brings_rows() && commit.rows() > 0)
        .map(|commit| {
            let figures = SkewFigures::from_counts(&commit.rows_per_partition);
            CommitBalance {
                version: commit.info.version,
                rows: figures.rows,
                share_of_fullest: figures.share_of_fullest,
                fullest_partition: figures.fullest_partition,
                effective_partitions: figures.effective_partitions,
            }
        })
        .collect();
    let partitions = stored(snapshot);
    let at_a_time =
        median_effective(&over_commits, figures.partitions).map_or(AtATime::Spread, |effective| {
            let in_total = balance(figures.effective_partitions, figures.partitions);
            AtATime::from_balances(balance(effective, figures.partitions), in_total)
        });
    let verdict = Verdict::from_skew(&figures, noise_floor.as_ref(), at_a_time);
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

/// Fewest commits that allow a judgement over time.
const FEWEST_COMMITS: usize = 4;

/// Median over the commits with enough rows to be judged; `None` if there are too few of them.
fn median_effective(commits: &[CommitBalance], partitions: usize) -> Option<f64> {
    let judged = commits.iter().filter(|commit| are_enough_rows(commit.rows, partitions));
    let effective: Vec<f64> = judged.map(|commit| commit.effective_partitions).collect();
    if effective.len() < FEWEST_COMMITS { None } else { median(effective) }
}
