//! The files of a log.

use futures::stream::{self, StreamExt};
use serde::Serialize;

use crate::log::checkpoint::{checkpoint_path, checkpoint_version};
use crate::log::entry::{commit_path, commit_version};
use crate::log::error::LogError;
use crate::log::table_log::{CONCURRENT_READS, TableLog};
use evenkeel_model::units::Version;

/// Versions that have a file in the log, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFiles {
    /// Versions with a commit.
    pub commits: Vec<Version>,
    /// Versions with a checkpoint.
    pub checkpoints: Vec<Version>,
}

impl LogFiles {
    /// Returns the newest version.
    #[must_use]
    pub fn newest(&self) -> Option<Version> {
        self.commits.last().max(self.checkpoints.last()).copied()
    }

    /// Returns the oldest version that can be read: the first version if no commit is missing, or
    /// else the version of the oldest checkpoint after which no commit is missing.
    ///
    /// A writer or a cleaning that was delayed may leave a commit or a checkpoint from before the
    /// beginning of a log that was cleaned meanwhile. It does not count, because a gap follows it.
    #[must_use]
    pub fn oldest(&self) -> Option<Version> {
        let newest = self.newest()?;
        let first_whole = self
            .commits
            .iter()
            .rev()
            .fold(newest.next(), |first, commit| if commit.next() == first { *commit } else { first });
        if first_whole == Version::FIRST {
            return Some(Version::FIRST);
        }
        self.checkpoints.iter().find(|checkpoint| checkpoint.next() >= first_whole).copied()
    }

    /// Whether the first commit exists, so that nothing was cleaned away.
    pub(super) fn begin_at_first(&self) -> bool {
        self.commits.first() == Some(&Version::FIRST)
    }

    /// Number of files of versions before `oldest`.
    #[must_use]
    pub fn before(&self, oldest: Version) -> u64 {
        self.commits.iter().chain(&self.checkpoints).filter(|version| **version < oldest).count() as u64
    }
}

/// A file of the log that cannot be read or is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedLogFile {
    /// Path relative to the table.
    pub file: String,
    /// Description of the damage.
    pub reason: String,
}

impl TableLog {
    /// Lists the files of the log.
    ///
    /// # Errors
    /// [`LogError`] if they cannot be listed.
    pub async fn files(&self) -> Result<LogFiles, LogError> {
        let names = self.storage.list("_log").await?;
        let mut files = LogFiles::default();
        files.commits.extend(names.iter().filter_map(|name| commit_version(name)));
        files.checkpoints.extend(names.iter().filter_map(|name| checkpoint_version(name)));
        files.commits.sort_unstable();
        files.checkpoints.sort_unstable();
        Ok(files)
    }

    /// Returns the files of the log that are damaged, and the commits that are missing.
    pub(crate) async fn damaged_files(&self, files: &LogFiles) -> Vec<DamagedLogFile> {
        let mut damaged = Vec::new();
        let mut add = |file: String, reason: String| damaged.push(DamagedLogFile { file, reason });
        let checkpoints = stream::iter(files.checkpoints.clone())
            .map(|version| async move { (version, self.read_checkpoint(version).await.err()) });
        let mut checkpoints = checkpoints.buffered(CONCURRENT_READS);
        while let Some((version, error)) = checkpoints.next().await {
            error.into_iter().for_each(|error| add(checkpoint_path(version), error.to_string()));
        }
        // If nothing was cleaned away, every commit is needed, even before a gap.
        let oldest = if files.begin_at_first() { Some(Version::FIRST) } else { files.oldest() };
        let mut expected = oldest.map_or(0, |oldest| oldest.0);
        let needed = files.commits.iter().copied().filter(|version| Some(*version) >= oldest);
        let mut commits = stream::iter(needed)
            .map(|version| async move { (version, self.read(version).await.err()) })
            .buffered(CONCURRENT_READS);
        while let Some((version, error)) = commits.next().await {
            for missing in (expected..version.0).map(Version) {
                add(commit_path(missing), "is missing".to_owned());
            }
            expected = version.0 + 1;
            error.into_iter().for_each(|error| add(commit_path(version), error.to_string()));
        }
        damaged
    }
}
