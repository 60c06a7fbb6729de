//! Declaration and size of a table.

use std::collections::HashSet;

use serde::Serialize;

use crate::inspect::partitions::{PartitionOverview, stored_partitions};
use crate::query::{PartitionKeys, QueryError, SnapshotTable, count_visible_rows};
use evenkeel_model::table::Column;
use evenkeel_model::units::Version;
use evenkeel_store::log::{Operation, Snapshot};

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

/// Returns an overview of a table. Portions are read only if their key ranges overlap.
///
/// # Errors
/// [`QueryError`] if a portion cannot be read.
pub(crate) async fn overview(table: &SnapshotTable) -> Result<TableOverview, QueryError> {
    let snapshot = table.snapshot();
    let visible = count_visible_rows(table, PartitionKeys::Skip).await?;
    let mut partitions = stored_partitions(snapshot);
    for (partition, rows) in partitions.iter_mut().zip(&visible.rows_per_partition) {
        partition.rows = *rows;
    }
    let others = other_files(table).await?;
    let definition = snapshot.spec().definition();
    let sum = |figure: fn(&PartitionOverview) -> u64| partitions.iter().map(figure).sum();
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
    let bytes = |counts: fn(Operation) -> bool| -> u64 {
        let commits = snapshot.commits().iter().filter(|commit| counts(commit.info.operation));
        commits.map(|commit| commit.bytes).sum()
    };
    let rewritten = bytes(|operation| operation == Operation::Compact);
    rewritten as f64 / bytes(Operation::changes_rows).max(1) as f64
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

#[cfg(test)]
mod tests {
    use crate::compact::{CompactionOptions, Scope};
    use crate::testing::{latest, overlapping_commits, scores};

    #[tokio::test]
    async fn an_overview_counts_visible_and_stored_rows() {
        let commits = overlapping_commits();
        let (_folder, mut table) = scores(&commits).await;
        let stored: usize = commits.iter().map(|commit| latest(std::slice::from_ref(commit)).len()).sum();
        let before = table.inspect().await.unwrap();
        assert_eq!(before.rows, latest(&commits).len() as u64);
        assert_eq!(before.stored_rows, stored as u64);
        assert_eq!(before.partitions.iter().map(|partition| partition.rows).sum::<u64>(), before.rows);
        assert_eq!(before.portions, table.files().files.len() as u64);
        assert_eq!(before.bytes, table.files().files.iter().map(|file| file.bytes).sum::<u64>());
        let deepest = before.partitions.iter().map(|partition| partition.overlap.max_depth).max();
        assert_eq!(deepest, Some(table.files().max_depth));
        assert_eq!((before.write_amplification, before.other_files), (0.0, 0));
        let options = CompactionOptions { scope: Scope::Everything, ..CompactionOptions::default() };
        table.compact(&options, &|_| ()).await.unwrap();
        let after = table.inspect().await.unwrap();
        assert_eq!((after.rows, after.stored_rows), (before.rows, before.rows));
        // Of each ingested byte, the bytes of the compacted files were written again.
        let ratio = after.bytes as f64 / before.bytes as f64;
        assert!((after.write_amplification - ratio).abs() < 1e-9, "{} {ratio}", after.write_amplification);
        // The files of earlier versions stay until the table is cleaned.
        assert_eq!((after.other_files, after.other_bytes), (before.portions, before.bytes));
    }

    #[tokio::test]
    async fn a_table_without_rows_has_empty_partitions() {
        let (_folder, table) = scores(&[]).await;
        let overview = table.inspect().await.unwrap();
        assert_eq!((overview.rows, overview.portions, overview.partitions.len()), (0, 0, 4));
        assert_eq!((overview.primary_key.len(), overview.partition_key.len()), (2, 1));
        assert_eq!(overview.write_amplification, 0.0);
    }
}
