//! Opening a log and reading its versions.

use futures::stream::{self, Stream, StreamExt, TryStreamExt};

use crate::log::checkpoint::{checkpoint_path, read_checkpoint};
use crate::log::entry::{LogEntry, commit_path, read_entries};
use crate::log::error::LogError;
use crate::log::files::LogFiles;
use crate::log::snapshot::Snapshot;
use crate::log::table_log::{CONCURRENT_READS, TableLog};
use evenkeel_model::units::Version;
use evenkeel_storage::TableStorage;

/// Attempts to read the log if files vanish meanwhile: a cleaning is running, and the files that it
/// deletes are no longer needed.
const READ_ATTEMPTS: usize = 5;

/// Part of the log to read.
#[derive(Clone, Copy)]
enum Reading<'a> {
    /// Everything up to a version, or up to the newest.
    UpTo(Option<Version>),
    /// Everything after a snapshot.
    Since(&'a Snapshot),
}

impl TableLog {
    /// Opens a table at its newest version.
    ///
    /// # Errors
    /// [`LogError`] if there is no table, or its log cannot be read completely.
    pub async fn open(storage: TableStorage) -> Result<(Self, Snapshot), LogError> {
        let log = Self { storage };
        let snapshot = log.newest().await?;
        Ok((log, snapshot))
    }

    /// Opens a table as it was at a version.
    ///
    /// # Errors
    /// As for [`TableLog::open`], and [`LogError::NoVersion`] if it has no such version.
    pub async fn open_version(storage: TableStorage, version: Version) -> Result<(Self, Snapshot), LogError> {
        let log = Self { storage };
        let snapshot = log.up_to(Some(version)).await?;
        Ok((log, snapshot))
    }

    /// Reads the newest snapshot, starting from its checkpoint.
    ///
    /// # Errors
    /// As for [`TableLog::open`].
    pub async fn newest(&self) -> Result<Snapshot, LogError> {
        self.up_to(None).await
    }

    /// Reads the snapshot at a version.
    ///
    /// # Errors
    /// As for [`TableLog::open_version`].
    pub async fn at(&self, version: Version) -> Result<Snapshot, LogError> {
        self.up_to(Some(version)).await
    }

    /// Reads the snapshot at `wanted`, or the newest one if `wanted` is `None`.
    pub(super) async fn up_to(&self, wanted: Option<Version>) -> Result<Snapshot, LogError> {
        self.read_log(Reading::UpTo(wanted)).await
    }

    /// Reads the log, and tries again if a file that was listed is gone.
    async fn read_log(&self, reading: Reading<'_>) -> Result<Snapshot, LogError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let read = match reading {
                Reading::UpTo(wanted) => self.read_up_to(wanted).await,
                Reading::Since(base) => self.read_since(base).await,
            };
            match read {
                Err(error) if error.is_vanished_file() && attempt < READ_ATTEMPTS => {}
                outcome => return outcome,
            }
        }
    }

    async fn read_up_to(&self, wanted: Option<Version>) -> Result<Snapshot, LogError> {
        if wanted.is_none()
            && !self.storage.is_local()
            && let Some(newest) = self.newest_unlisted().await?
        {
            return Ok(newest);
        }
        let files = self.files().await?;
        let newest = files.newest().ok_or_else(|| LogError::NotATable { table: self.name() })?;
        let target = wanted.unwrap_or(newest);
        if target > newest {
            let oldest = files.oldest().unwrap_or(Version::FIRST);
            return Err(LogError::NoVersion { table: self.name(), version: target, oldest, newest });
        }
        if let Some(oldest) = files.oldest().filter(|oldest| target < *oldest && !files.begin_at_first()) {
            return Err(LogError::Cleaned { table: self.name(), version: target, oldest });
        }
        let base = self.base_of(&files, target).await?;
        self.replay(base, &files, target).await
    }

    /// Reads the newest snapshot up to `target` that is stored in one file.
    async fn base_of(&self, files: &LogFiles, target: Version) -> Result<Snapshot, LogError> {
        let mut unread = None;
        for version in files.checkpoints.iter().rev().filter(|version| **version <= target) {
            match self.read_checkpoint(*version).await {
                Ok(snapshot) => return Ok(snapshot),
                Err(error) => unread = unread.or(Some(error)),
            }
        }
        if files.begin_at_first() {
            let (_, entries) = self.read(Version::FIRST).await?;
            return Snapshot::first(self.storage.name(), entries);
        }
        Err(match (unread, files.checkpoints.first(), files.newest()) {
            (Some(error), ..) => error,
            (None, Some(oldest), _) => {
                LogError::Cleaned { table: self.name(), version: target, oldest: *oldest }
            }
            (None, None, Some(last)) => match files.commits.first() {
                // The rest of a log that was cleaned, without the checkpoint that it begins with.
                Some(first) if *first > Version::FIRST.next() => {
                    LogError::NoCheckpoint { table: self.name(), file: checkpoint_path(*first) }
                }
                _ => LogError::Gap { table: self.name(), missing: Version::FIRST, last },
            },
            (None, None, None) => LogError::NotATable { table: self.name() },
        })
    }

    /// Applies the commits up to `target` to `base`.
    async fn replay(&self, base: Snapshot, files: &LogFiles, target: Version) -> Result<Snapshot, LogError> {
        let after: Vec<Version> =
            files.commits.iter().copied().filter(|version| *version > base.version()).collect();
        // A gap beyond the target counts as well: the log is incomplete.
        let first_missing =
            after.iter().zip(base.version().next().0..).find(|(version, expected)| version.0 != *expected);
        if let (Some((_, missing)), Some(last)) = (first_missing, after.last()) {
            return Err(LogError::Gap { table: self.name(), missing: Version(missing), last: *last });
        }
        if let Some(last) = files.checkpoints.last().filter(|checkpoint| **checkpoint <= target)
            && after.last().is_none_or(|commit| commit < last)
            && base.version() < *last
        {
            let missing = after.last().copied().unwrap_or(base.version()).next();
            return Err(LogError::Gap { table: self.name(), missing, last: *last });
        }
        let wanted = after.into_iter().filter(|version| *version <= target);
        let mut commits = self.read_all(wanted.collect());
        let mut snapshot = base;
        while let Some((version, entries)) = commits.try_next().await? {
            snapshot = snapshot.apply(self.storage.name(), version, entries)?;
        }
        Ok(snapshot)
    }

    /// Applies all commits since `base`.
    ///
    /// # Errors
    /// As for [`TableLog::open`].
    pub async fn refresh(&self, base: &Snapshot) -> Result<Snapshot, LogError> {
        self.read_log(Reading::Since(base)).await
    }

    async fn read_since(&self, base: &Snapshot) -> Result<Snapshot, LogError> {
        if !self.storage.is_local()
            && let Some(newest) = self.newest_behind(base).await?
        {
            return Ok(newest);
        }
        let files = self.files().await?;
        let newest = files.newest().ok_or_else(|| LogError::NotATable { table: self.name() })?;
        if newest == base.version() {
            return Ok(base.clone());
        }
        // If the commit of the base was cleaned away, later ones may be gone too.
        let base = match self.is_in_log(base).await? {
            true => base.clone(),
            false => self.base_of(&files, newest).await?,
        };
        self.replay(base, &files, newest).await
    }

    pub(super) async fn read_checkpoint(&self, version: Version) -> Result<Snapshot, LogError> {
        let bytes = self.storage.read(&checkpoint_path(version)).await?;
        read_checkpoint(self.storage.name(), version, &bytes)
    }

    /// Reads commits in the order of `versions`, several concurrently.
    pub(super) fn read_all(
        &self,
        versions: Vec<Version>,
    ) -> impl Stream<Item = Result<(Version, Vec<LogEntry>), LogError>> + Unpin {
        Box::pin(stream::iter(versions).map(|version| self.read(version)).buffered(CONCURRENT_READS))
    }

    pub(super) async fn read(&self, version: Version) -> Result<(Version, Vec<LogEntry>), LogError> {
        let bytes = self.storage.read(&commit_path(version)).await?;
        Ok((version, read_entries(self.storage.name(), version, &bytes)?))
    }
}
