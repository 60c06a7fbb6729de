//! Checks whether the files of a table equal the committed ones.

use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use serde::Serialize;

use crate::log::{DamagedLogFile, LogError, PortionDamage, PortionEntry, Snapshot, TableLog};
use evenkeel_model::units::{PartitionId, Version};

/// Files read concurrently.
const CONCURRENT_READS: usize = 8;

/// Versions to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckScope {
    /// The version that is opened.
    OneVersion,
    /// Every version up to it that can be read.
    EveryVersion,
}

/// A portion whose file differs from the committed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedPortion {
    /// Path relative to the table.
    pub file: String,
    /// Partition of the portion.
    pub partition: PartitionId,
    /// Number of rows in the portion.
    pub rows: u64,
    /// Kind of damage.
    pub damage: PortionDamage,
}

/// Result of reading every file of the log and the portions of one or all versions, and comparing
/// their checksums.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableCheck {
    /// Name of the table.
    pub name: String,
    /// The oldest version whose portions were read.
    pub oldest_version: Version,
    /// The newest version whose portions were read.
    pub version: Version,
    /// Number of portions read.
    pub portions: usize,
    /// Bytes that those portions should have.
    pub bytes: u64,
    /// Damaged portions, by partition.
    pub damaged: Vec<DamagedPortion>,
    /// Number of commits and checkpoints read.
    pub log_files: u64,
    /// Files of the log that are damaged or missing.
    pub damaged_log: Vec<DamagedLogFile>,
}

/// Checks the log, and the portions of the snapshot or of every version up to it. `progress` is
/// called with the number of bytes checked so far.
///
/// # Errors
/// [`LogError`] if the log cannot be listed.
pub async fn check(
    log: &TableLog,
    snapshot: &Snapshot,
    scope: CheckScope,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<TableCheck, LogError> {
    let files = log.files().await?;
    let damaged_log = log.damaged_files(&files).await;
    let mut portions = snapshot.portions();
    let mut oldest_version = snapshot.version();
    if scope == CheckScope::EveryVersion {
        oldest_version = files.oldest().unwrap_or(snapshot.version());
        let mut seen: HashMap<String, Arc<PortionEntry>> = HashMap::new();
        seen.extend(portions.drain(..).map(|portion| (portion.path.clone(), portion)));
        // The oldest kept version, and the additions since; damaged commits are reported above.
        let oldest = log.at(oldest_version).await.map(|oldest| oldest.portions()).unwrap_or_default();
        let added = log.portions_added(&files, oldest_version, snapshot.version()).await;
        let earlier = oldest.into_iter().chain(added.into_iter().map(Arc::new));
        seen.extend(earlier.map(|portion| (portion.path.clone(), portion)));
        portions = seen.into_values().collect();
        portions.sort_by(|a, b| (a.partition, &a.path).cmp(&(b.partition, &b.path)));
    }
    let key = &snapshot.spec().definition().primary_key;
    let mut checked = stream::iter(portions.iter())
        .map(|portion| async move {
            let damage = match log.damage(portion).await {
                // The file equals the committed one; now check its content.
                None => log.misplaced(portion, key).await,
                damage => damage,
            };
            (portion, damage)
        })
        .buffered(CONCURRENT_READS);
    let (mut damaged, mut bytes) = (Vec::new(), 0);
    while let Some((portion, damage)) = checked.next().await {
        bytes += portion.bytes;
        progress(bytes);
        damaged.extend(damage.map(|damage| DamagedPortion {
            file: portion.path.clone(),
            partition: portion.partition,
            rows: portion.rows,
            damage,
        }));
    }
    drop(checked);
    Ok(TableCheck {
        name: snapshot.spec().name().to_owned(),
        oldest_version,
        version: snapshot.version(),
        portions: portions.len(),
        bytes,
        damaged,
        log_files: (files.commits.len() + files.checkpoints.len()) as u64,
        damaged_log,
    })
}
