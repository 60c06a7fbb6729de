//! Portions of versions that may be cleaned, and the end of their commits.

use std::collections::HashSet;

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::log::checkpoint::checkpoint_path;
use crate::log::entry::{LogEntry, PortionEntry, commit_path};
use crate::log::error::LogError;
use crate::log::files::LogFiles;
use crate::log::snapshot::Snapshot;
use crate::log::table_log::TableLog;
use evenkeel_model::units::Version;

impl TableLog {
    /// Returns the paths of all portions of all versions since `oldest`.
    ///
    /// # Errors
    /// [`LogError`] if a commit cannot be read.
    pub(crate) async fn portions_since(&self, oldest: &Snapshot) -> Result<HashSet<String>, LogError> {
        let mut paths: HashSet<String> =
            oldest.portions().iter().map(|portion| portion.path.clone()).collect();
        let files = self.files().await?;
        let since = files.commits.into_iter().filter(|version| *version > oldest.version());
        let mut commits = self.read_all(since.collect());
        while let Some((_, entries)) = commits.try_next().await? {
            paths.extend(entries.into_iter().filter_map(|entry| match entry {
                LogEntry::Add(portion) => Some(portion.path),
                _ => None,
            }));
        }
        Ok(paths)
    }

    /// Returns the portions added by commits after one version and up to another. Skips commits
    /// that cannot be read.
    pub(crate) async fn portions_added(
        &self,
        files: &LogFiles,
        after: Version,
        up_to: Version,
    ) -> Vec<PortionEntry> {
        let between = files.commits.iter().copied().filter(|version| *version > after && *version <= up_to);
        let mut commits = self.read_all(between.collect());
        let mut added = Vec::new();
        while let Some(commit) = commits.next().await {
            let entries = commit.map(|(_, entries)| entries).unwrap_or_default();
            added.extend(entries.into_iter().filter_map(|entry| match entry {
                LogEntry::Add(portion) => Some(portion),
                _ => None,
            }));
        }
        added
    }

    /// Returns the paths of the portions removed by the commits up to a version that still exist.
    /// Skips commits that cannot be read.
    ///
    /// # Errors
    /// [`LogError`] if the log cannot be listed.
    pub(crate) async fn removed_up_to(&self, version: Version) -> Result<HashSet<String>, LogError> {
        let files = self.files().await?;
        let before = files.commits.into_iter().filter(|commit| *commit <= version);
        let removed =
            self.read_all(before.collect()).filter_map(async |commit| commit.ok()).map(|(_, entries)| {
                stream::iter(entries.into_iter().filter_map(|entry| match entry {
                    LogEntry::Remove { path } => Some(path),
                    _ => None,
                }))
            });
        Ok(removed.flatten().collect().await)
    }

    /// Deletes the commits and checkpoints before version `oldest`, whose checkpoint must exist,
    /// and returns their number. The commit of `oldest` is kept, so that the next writer finds the
    /// one it continues.
    ///
    /// # Errors
    /// [`LogError`] if a file cannot be deleted; those already deleted are not needed.
    pub(crate) async fn forget_before(&self, oldest: Version) -> Result<u64, LogError> {
        let files = self.files().await?;
        if !files.checkpoints.contains(&oldest) {
            return Ok(0);
        }
        // Before anything is deleted, so that readers without a listing start from a checkpoint
        // that is kept.
        if let Some(newest) = files.checkpoints.last() {
            self.point_to(*newest).await?;
        }
        let commits = files.commits.iter().filter(|version| **version < oldest).map(|v| commit_path(*v));
        let checkpoints =
            files.checkpoints.iter().filter(|version| **version < oldest).map(|v| checkpoint_path(*v));
        let mut deleted = 0;
        for path in checkpoints.chain(commits) {
            self.storage.delete(&path).await?;
            deleted += 1;
        }
        Ok(deleted)
    }
}
