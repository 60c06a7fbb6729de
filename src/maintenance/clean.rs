//! Deleting what no kept version needs.

use serde::Serialize;

use crate::log::{LogError, Snapshot, TableLog};
use crate::storage::StoredFile;
use crate::units::{Micros, Version};

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanOptions {
    /// Versions that were the newest at some time within so long are kept; none keeps the newest alone.
    pub keep: Option<Micros>,
    /// Files that no commit names are kept while they are younger: they may belong to an ingest or a compaction under way.
    pub unnamed_age: Micros,
    /// The time, in microseconds since 1970; none for the clock.
    pub now: Option<i64>,
    /// Whether nothing is deleted, only counted.
    pub dry_run: bool,
}

impl Default for CleanOptions {
    fn default() -> Self {
        Self {
            keep: Some(Micros::new(7 * Micros::DAY.get())),
            unnamed_age: Micros::DAY,
            now: None,
            dry_run: false,
        }
    }
}

/// What was deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CleanReport {
    /// The newest version.
    pub version: Version,
    /// The oldest version that can still be read.
    pub oldest_version: Version,
    /// Commits and checkpoints of older versions that were deleted.
    pub log_files: u64,
    /// Portions that were deleted because no kept version has them.
    pub portions: u64,
    /// Their bytes.
    pub portion_bytes: u64,
    /// Files that were deleted because no commit names them.
    pub unnamed_files: u64,
    /// Their bytes.
    pub unnamed_bytes: u64,
    /// Files that no commit names and that are too young to be deleted.
    pub young_files: u64,
    /// Whether nothing was deleted, only counted.
    pub dry_run: bool,
}

/// Deletes older versions, and files that no commit names.
///
/// First the checkpoint of the oldest kept version is written, then older commits go, then files: wherever it stops, the table is
/// whole, and cleaning again goes on.
///
/// # Errors
/// [`LogError`] where a file cannot be read, written or deleted.
pub async fn clean(log: &TableLog, base: &Snapshot, options: &CleanOptions) -> Result<CleanReport, LogError> {
    let newest = log.refresh(base).await?;
    let now = options.now.unwrap_or_else(|| chrono::Utc::now().timestamp_micros());
    let oldest = oldest_kept(&newest, options.keep, now);
    let kept = log.at(oldest).await?;
    let needed = log.portions_since(&kept).await?;
    let removed = log.removed_up_to(oldest).await?;
    let mut report = CleanReport {
        version: newest.version(),
        oldest_version: oldest,
        dry_run: options.dry_run,
        ..CleanReport::default()
    };
    report.log_files = if options.dry_run {
        log.files().await?.before(oldest)
    } else if oldest > Version::FIRST {
        log.checkpoint(&kept).await?;
        log.forget_before(oldest).await?
    } else {
        0
    };
    let old_enough =
        |file: &StoredFile| now.saturating_sub(file.modified_micros) >= options.unnamed_age.get();
    for file in log.storage().list_all().await? {
        let ours = file.staging || file.path.starts_with("partition=");
        if !ours || needed.contains(&file.path) {
            continue;
        }
        if removed.contains(&file.path) {
            report.portions += 1;
            report.portion_bytes += file.bytes;
        } else if old_enough(&file) {
            report.unnamed_files += 1;
            report.unnamed_bytes += file.bytes;
        } else {
            report.young_files += 1;
            continue;
        }
        if !options.dry_run {
            log.storage().delete(&file.path).await?;
        }
    }
    Ok(report)
}

/// The oldest version that was the newest within `keep`: it was followed by another less than that ago, or by none. A clock that
/// went back counts as having stood still, so that nothing is taken for older than it is.
fn oldest_kept(newest: &Snapshot, keep: Option<Micros>, now: i64) -> Version {
    let Some(keep) = keep else { return newest.version() };
    let limit = now.saturating_sub(keep.get());
    let mut clock = i64::MIN;
    for commit in newest.commits() {
        clock = clock.max(commit.info.at_micros);
        // This commit ended the life of the version before it.
        if clock >= limit {
            return Version(commit.info.version.0.saturating_sub(1));
        }
    }
    newest.version()
}
