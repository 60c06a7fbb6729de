//! Deleting what no kept version needs.

use std::collections::HashSet;

use serde::Serialize;
use thiserror::Error;

use crate::delta::{DeltaError, DeltaLog};
use crate::log::{CommitDraft, CommitOutcome, LogError, Snapshot, TableLog};
use evenkeel_model::units::{Micros, Version};
use evenkeel_storage::{StorageError, StoredFile};

/// How often the log is read when other cleanings delete some of it meanwhile.
const SURVEY_ATTEMPTS: usize = 5;

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanOptions {
    /// Versions that were the newest at some time within so long are kept; none keeps the newest alone.
    pub keep: Option<Micros>,
    /// Files that no commit names are kept while they are younger: they may belong to an ingest or a compaction under way, which
    /// would fail without them.
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

/// Why a table cannot be cleaned.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the variants say what failed")]
pub enum CleanError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Delta(#[from] DeltaError),
}

impl From<StorageError> for CleanError {
    fn from(error: StorageError) -> Self {
        Self::Log(error.into())
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
    /// Files that no kept version needs and that stay because the newest version of the Delta log names them.
    pub delta_files: u64,
    /// Their bytes.
    pub delta_bytes: u64,
    /// Whether nothing was deleted, only counted.
    pub dry_run: bool,
}

/// Deletes older versions, and files that no commit names.
///
/// First the checkpoint of the oldest kept version is written, then older commits go, then portions that only older versions have,
/// but for those that the newest version of the Delta log names by then.
/// Files that no commit names are given up by a commit before they are deleted: a writer whose files they are finds that out when
/// it commits, and none can commit a file that is gone. Wherever cleaning stops, the table is whole, and cleaning again goes on.
///
/// # Errors
/// [`CleanError`] where a file cannot be read, written or deleted, or a Delta log does not tell what its readers need.
pub async fn clean(
    log: &TableLog,
    base: &Snapshot,
    options: &CleanOptions,
) -> Result<CleanReport, CleanError> {
    let now = options.now.unwrap_or_else(|| chrono::Utc::now().timestamp_micros());
    // The files come first: what is committed meanwhile is found in the log, which is read afterwards.
    let files: Vec<StoredFile> = log.storage().list_all().await?.into_iter().filter(is_ours).collect();
    let Survey { newest, readable, kept, needed, removed } = Survey::of(log, base, options.keep, now).await?;
    let oldest = kept.version();
    let exported = exported_files(log).await?;
    let mut report = CleanReport { dry_run: options.dry_run, ..CleanReport::default() };
    let (mut superseded, mut unnamed) = (Vec::new(), Vec::new());
    for file in files.into_iter().filter(|file| !needed.contains(&file.path)) {
        let is_named = removed.contains(&file.path);
        if exported.contains(&file.path) {
            report.delta_files += 1;
            report.delta_bytes += file.bytes;
        } else if is_named {
            superseded.push(file);
        } else if now.saturating_sub(file.modified_micros) >= options.unnamed_age.get() {
            unnamed.push(file);
        } else {
            report.young_files += 1;
        }
    }
    let mut last = newest;
    if options.dry_run {
        report.log_files = log.files().await?.before(oldest);
    } else {
        // What makes files superfluous must last before they go. It may be a commit whose writer died, or still is about, before
        // its name was on the disk.
        log.storage().make_lasting("_log").await?;
        log.storage().make_lasting("_delta_log").await?;
        if oldest > readable {
            log.checkpoint(&kept).await?;
            report.log_files = log.forget_before(oldest).await?;
        }
        (last, unnamed) = give_up(log, last, unnamed).await?;
        // Again, now that the log says what is to go: an export that reads the log after its own put sees that its version
        // was cleaned away, and one that put its version before is seen here.
        let exported = exported_files(log).await?;
        for files in [&mut superseded, &mut unnamed] {
            for file in files.extract_if(.., |file| exported.contains(&file.path)) {
                report.delta_files += 1;
                report.delta_bytes += file.bytes;
            }
        }
        for file in superseded.iter().chain(&unnamed) {
            log.storage().delete(&file.path).await?;
        }
    }
    report.portions = superseded.len() as u64;
    report.portion_bytes = superseded.iter().map(|file| file.bytes).sum();
    report.unnamed_files = unnamed.len() as u64;
    report.unnamed_bytes = unnamed.iter().map(|file| file.bytes).sum();
    report.version = last.version();
    report.oldest_version = oldest;
    Ok(report)
}

/// The log, as a cleaning sees it.
struct Survey {
    newest: Snapshot,
    /// The oldest version that can be read.
    readable: Version,
    /// The oldest version that is kept.
    kept: Snapshot,
    /// The portions of all versions that are kept.
    needed: HashSet<String>,
    /// The portions that commits up to the oldest kept version removed.
    removed: HashSet<String>,
}

impl Survey {
    /// Reads the log, again if another cleaning deleted some of it meanwhile.
    async fn of(log: &TableLog, base: &Snapshot, keep: Option<Micros>, now: i64) -> Result<Self, LogError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match Self::try_read(log, base, keep, now).await {
                Err(error) if error.is_overtaken() && attempt < SURVEY_ATTEMPTS => {}
                survey => return survey,
            }
        }
    }

    async fn try_read(
        log: &TableLog,
        base: &Snapshot,
        keep: Option<Micros>,
        now: i64,
    ) -> Result<Self, LogError> {
        // In this order: the newest snapshot is never older than the beginning of the log, so what it has is not taken for
        // files that no commit names.
        let files = log.files().await?;
        let newest = log.refresh(base).await?;
        let readable = files.oldest().unwrap_or(newest.version());
        let oldest = TableLog::beginning_for(oldest_kept(&newest, keep, now)).max(readable);
        let kept = log.at(oldest).await?;
        let needed = log.portions_since(&kept).await?;
        let removed = log.removed_up_to(oldest).await?;
        Ok(Self { newest, readable, kept, needed, removed })
    }
}

/// The files that the newest version of the Delta log names.
async fn exported_files(log: &TableLog) -> Result<HashSet<String>, DeltaError> {
    let newest = DeltaLog::of(log.storage()).newest().await?.unwrap_or_default();
    Ok(newest.files().map(str::to_owned).collect())
}

/// Whether a file is one that evenkeel writes: a portion, or one that was being written.
fn is_ours(file: &StoredFile) -> bool {
    file.staging || (file.path.starts_with("partition=") && file.path.ends_with(".parquet"))
}

/// Commits that files are given up, without those that another writer committed meanwhile. Gives the snapshot after it and the files.
async fn give_up(
    log: &TableLog,
    mut base: Snapshot,
    mut files: Vec<StoredFile>,
) -> Result<(Snapshot, Vec<StoredFile>), LogError> {
    loop {
        // What has no name yet can never get one, and what was given up before needs no second time.
        let named = files.iter().filter(|file| !file.staging && !base.is_swept(&file.path));
        let paths: Vec<String> = named.map(|file| file.path.clone()).collect();
        if paths.is_empty() {
            return Ok((base, files));
        }
        match log.try_commit(&base, &CommitDraft::sweep(paths)).await? {
            CommitOutcome::Committed(snapshot) => return Ok((snapshot, files)),
            CommitOutcome::Lost(newest) => {
                let added = log.portions_since(&base).await?;
                files.retain(|file| !added.contains(&file.path) && newest.portion(&file.path).is_none());
                base = newest;
            }
        }
    }
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
