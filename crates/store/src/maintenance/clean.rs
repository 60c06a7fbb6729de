//! Deletes files that no kept version needs.

use std::collections::HashSet;

use serde::Serialize;
use thiserror::Error;

use crate::delta::{DeltaError, DeltaLog};
use crate::log::{CommitDraft, CommitOutcome, LogError, Snapshot, TableLog};
use evenkeel_model::units::{Micros, Version};
use evenkeel_storage::{StorageError, StoredFile};

/// Attempts to read the log while other cleanings delete parts of it.
const SURVEY_ATTEMPTS: usize = 5;

/// Options of a cleaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanOptions {
    /// Age up to which versions are kept, if they were the newest at some time within it. `None`
    /// keeps only the newest version.
    pub keep: Option<Micros>,
    /// Age below which files that no commit names are kept: they may belong to an ingest or a
    /// compaction in progress, which would fail without them.
    pub unnamed_age: Micros,
    /// Age up to which the history keeps commits, in addition to kept versions: writers recognise
    /// their own commits and known inputs in it.
    pub history_age: Micros,
    /// Current time, in microseconds since 1970; if `None`, the clock's.
    pub now: Option<i64>,
    /// Whether to delete nothing and only count.
    pub dry_run: bool,
}

impl Default for CleanOptions {
    fn default() -> Self {
        Self {
            keep: Some(Micros::new(7 * Micros::DAY.get())),
            unnamed_age: Micros::DAY,
            history_age: Micros::DAY,
            now: None,
            dry_run: false,
        }
    }
}

/// Error while cleaning a table.
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

/// Report on a cleaning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CleanReport {
    /// The newest version.
    pub version: Version,
    /// The oldest version that can still be read.
    pub oldest_version: Version,
    /// Number of commits and checkpoints of older versions that were deleted.
    pub log_files: u64,
    /// Number of commits that the history no longer lists.
    pub forgotten_commits: u64,
    /// Number of portions deleted because no kept version has them.
    pub portions: u64,
    /// Bytes of those portions.
    pub portion_bytes: u64,
    /// Number of files deleted because no commit names them.
    pub unnamed_files: u64,
    /// Bytes of those files.
    pub unnamed_bytes: u64,
    /// Number of files that no commit names and that are too young to be deleted.
    pub young_files: u64,
    /// Number of files that no kept version needs, kept because the newest version of the Delta log
    /// names them.
    pub delta_files: u64,
    /// Bytes of those files.
    pub delta_bytes: u64,
    /// Whether nothing was deleted, only counted.
    pub dry_run: bool,
}

/// Deletes older versions, and files that no commit names.
///
/// First the checkpoint of the oldest kept version is written, then older commits are deleted, then
/// portions that only older versions have, except portions that the newest version of the Delta log
/// then names. Files that no commit names are given up by a commit before they are deleted: their
/// writer finds that out when it commits, and no writer can commit a file that is gone. Wherever
/// cleaning stops, the table is intact, and the next cleaning continues.
///
/// # Errors
/// [`CleanError`] if a file cannot be read, written or deleted, or a Delta log does not reveal the
/// files that its readers need.
pub async fn clean(
    log: &TableLog,
    base: &Snapshot,
    options: &CleanOptions,
) -> Result<CleanReport, CleanError> {
    let now = options.now.unwrap_or_else(|| chrono::Utc::now().timestamp_micros());
    // The files are listed first: whatever is committed meanwhile is found in the log, which is
    // read afterwards.
    let files: Vec<StoredFile> = log.storage().list_all().await?.into_iter().filter(is_ours).collect();
    let Survey { newest, readable, kept, needed, removed } =
        Survey::read(log, base, options.keep, now).await?;
    let oldest = kept.version();
    let mut report = CleanReport { dry_run: options.dry_run, ..CleanReport::default() };
    let mut superfluous = Superfluous::default();
    for file in files.into_iter().filter(|file| !needed.contains(&file.path)) {
        if removed.contains(&file.path) {
            superfluous.superseded.push(file);
        } else {
            superfluous.unnamed.push(file);
        }
    }
    superfluous.keep_exported(log, &mut report).await?;
    superfluous.keep_young(now, options.unnamed_age, &mut report);
    let newest_history = newest.clone();
    let mut last = newest;
    let first = history_from(&newest_history, oldest, now.saturating_sub(options.history_age.get()));
    if options.dry_run {
        report.log_files = log.files().await?.before(oldest);
        let kept = newest_history.with_history_from(first).commits().len();
        report.forgotten_commits = (newest_history.commits().len() - kept) as u64;
    } else {
        // Whatever makes files superfluous must be durable before they are deleted. It may be a
        // commit whose writer has not synced its name yet, or died before it did.
        log.storage().make_lasting("_log").await?;
        log.storage().make_lasting("_delta_log").await?;
        // Before the other one is written: for a single kept version, both are the same.
        report.forgotten_commits = shorten_history(log, &newest_history, first).await?;
        if oldest > readable {
            log.checkpoint(&kept.with_history_from(first)).await?;
            report.log_files = log.forget_before(oldest).await?;
        }
        (last, superfluous.unnamed) = give_up(log, last, superfluous.unnamed).await?;
        // Checked again, now that the log shows the files to be deleted: an export that reads the
        // log after its own put sees that its version was cleaned away, and one that put its
        // version earlier is seen here.
        superfluous.keep_exported(log, &mut report).await?;
        superfluous.delete(log).await?;
    }
    report.version = last.version();
    report.oldest_version = oldest;
    Ok(superfluous.reported_in(report))
}

/// Files that no kept version needs.
#[derive(Default)]
struct Superfluous {
    /// Portions of older versions.
    superseded: Vec<StoredFile>,
    /// Files that no commit names.
    unnamed: Vec<StoredFile>,
}

impl Superfluous {
    /// Keeps the files that the newest version of the Delta log names.
    async fn keep_exported(&mut self, log: &TableLog, report: &mut CleanReport) -> Result<(), DeltaError> {
        let exported = exported_files(log).await?;
        for files in [&mut self.superseded, &mut self.unnamed] {
            for file in files.extract_if(.., |file| exported.contains(&file.path)) {
                report.delta_files += 1;
                report.delta_bytes += file.bytes;
            }
        }
        Ok(())
    }

    /// Keeps files that no commit names if they are younger than `age`.
    fn keep_young(&mut self, now: i64, age: Micros, report: &mut CleanReport) {
        let is_young = |file: &mut StoredFile| now.saturating_sub(file.modified_micros) < age.get();
        report.young_files += self.unnamed.extract_if(.., is_young).count() as u64;
    }

    async fn delete(&self, log: &TableLog) -> Result<(), StorageError> {
        for file in self.superseded.iter().chain(&self.unnamed) {
            log.storage().delete(&file.path).await?;
        }
        Ok(())
    }

    fn reported_in(&self, report: CleanReport) -> CleanReport {
        CleanReport {
            portions: self.superseded.len() as u64,
            portion_bytes: self.superseded.iter().map(|file| file.bytes).sum(),
            unnamed_files: self.unnamed.len() as u64,
            unnamed_bytes: self.unnamed.iter().map(|file| file.bytes).sum(),
            ..report
        }
    }
}

/// State of the log, as a cleaning sees it.
struct Survey {
    newest: Snapshot,
    /// Oldest version that can be read.
    readable: Version,
    /// Oldest version that is kept.
    kept: Snapshot,
    /// Paths of the portions of all versions that are kept.
    needed: HashSet<String>,
    /// Paths of the portions removed by commits up to the oldest kept version.
    removed: HashSet<String>,
}

impl Survey {
    /// Reads the log, and tries again if another cleaning deleted parts of it meanwhile.
    async fn read(log: &TableLog, base: &Snapshot, keep: Option<Micros>, now: i64) -> Result<Self, LogError> {
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
        // In this order, the newest snapshot is never older than the beginning of the log, so its
        // files are not mistaken for files that no commit names.
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

/// Returns the version from which the history is kept: the oldest kept version, or the first one
/// that is not older than `limit`.
fn history_from(newest: &Snapshot, oldest: Version, limit: i64) -> Version {
    let young = newest.commits().iter().find(|commit| commit.info.at_micros >= limit);
    young.map_or(oldest, |commit| commit.info.version.min(oldest))
}

/// Writes a checkpoint of the newest version with the history from `first` on. Readers and writers
/// start from it, so that later checkpoints have no longer history. Returns the number of commits
/// that it leaves out.
async fn shorten_history(log: &TableLog, newest: &Snapshot, first: Version) -> Result<u64, LogError> {
    let shorter = newest.with_history_from(first);
    let forgotten = newest.commits().len() - shorter.commits().len();
    // An existing checkpoint is kept; the next cleaning tries again.
    if forgotten == 0 || !log.checkpoint(&shorter).await? {
        return Ok(0);
    }
    log.point_to(shorter.version()).await?;
    Ok(forgotten as u64)
}

/// Returns the files that the newest version of the Delta log names.
async fn exported_files(log: &TableLog) -> Result<HashSet<String>, DeltaError> {
    let newest = DeltaLog::in_storage(log.storage()).newest().await?.unwrap_or_default();
    Ok(newest.files().map(str::to_owned).collect())
}

/// Whether a file is one that evenkeel writes: a portion, or a staging file.
fn is_ours(file: &StoredFile) -> bool {
    file.staging || (file.path.starts_with("partition=") && file.path.ends_with(".parquet"))
}

/// Commits that files are given up, except files that another writer committed meanwhile. Returns
/// the resulting snapshot and the files.
async fn give_up(
    log: &TableLog,
    mut base: Snapshot,
    mut files: Vec<StoredFile>,
) -> Result<(Snapshot, Vec<StoredFile>), LogError> {
    loop {
        // A staging file can never be named by a commit, and files that were given up before need
        // no second time.
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

/// Returns the oldest version that was the newest at some time within `keep`: the next version is
/// younger than that, or does not exist. A clock that was set back counts as stopped, so that no
/// version is considered older than it is.
fn oldest_kept(newest: &Snapshot, keep: Option<Micros>, now: i64) -> Version {
    let Some(keep) = keep else { return newest.version() };
    let limit = now.saturating_sub(keep.get());
    let mut clock = i64::MIN;
    for commit in newest.commits() {
        clock = clock.max(commit.info.at_micros);
        // This commit replaced the version before it as the newest.
        if clock >= limit {
            return Version(commit.info.version.0.saturating_sub(1));
        }
    }
    newest.version()
}

#[cfg(test)]
#[path = "clean_tests.rs"]
mod tests;
