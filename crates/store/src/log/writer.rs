//! Makes commits.

use crate::log::draft::CommitDraft;
use crate::log::entry::{LogEntry, commit_path, write_entries};
use crate::log::error::LogError;
use crate::log::snapshot::Snapshot;
use crate::log::table_log::TableLog;
use evenkeel_model::table::TableSpec;
use evenkeel_model::units::Version;
use evenkeel_storage::TableStorage;

/// Outcome of an attempt to commit.
#[derive(Debug)]
pub enum CommitOutcome {
    /// The commit is visible; the snapshot holds it.
    Committed(Snapshot),
    /// Another writer made the version first. The snapshot is the newest one, to check against
    /// before another attempt.
    Lost(Snapshot),
}

impl TableLog {
    /// Declares a new table.
    ///
    /// # Errors
    /// [`LogError::Exists`] or [`LogError::NotEmpty`] if the place is not empty.
    pub async fn create(storage: TableStorage, spec: &TableSpec) -> Result<(Self, Snapshot), LogError> {
        let log = Self { storage };
        if log.files().await?.newest().is_some() {
            return Err(LogError::Exists { table: log.name() });
        }
        if !log.storage.is_empty().await? {
            return Err(LogError::NotEmpty { table: log.name() });
        }
        let draft = CommitDraft::create(spec);
        let entries = draft.entries(Version::FIRST);
        // A put that the store retried after a lost response finds its own commit.
        if !log.write(Version::FIRST, &entries).await? && !log.begins_with(draft.id()).await? {
            return Err(LogError::Exists { table: log.name() });
        }
        // A store that ignores the condition would let one writer overwrite the commit of another.
        if !log.storage.is_local() && log.write(Version::FIRST, &entries).await? {
            return Err(LogError::NoPutIfAbsent { table: log.name() });
        }
        // If this process was delayed between the listing and the put, another may have made the
        // table meanwhile and cleaned away its first commit, so that the put did not find it.
        if log.files().await?.newest() > Some(Version::FIRST)
            && log.newest().await?.version_of(draft.id()).is_none()
        {
            log.storage.delete(&commit_path(Version::FIRST)).await?;
            return Err(LogError::Exists { table: log.name() });
        }
        let snapshot = Snapshot::first(log.storage.name(), entries)?;
        Ok((log, snapshot))
    }

    /// Whether the first commit has this id.
    async fn begins_with(&self, id: &str) -> Result<bool, LogError> {
        let (_, entries) = self.read(Version::FIRST).await?;
        Ok(matches!(entries.first(), Some(LogEntry::Commit(info)) if info.id == id))
    }

    /// Tries once to make `draft` the version after `base`. The writer decides about checks before
    /// another attempt.
    ///
    /// # Errors
    /// [`LogError`] if the log cannot be written or read. After an error the commit may exist, or
    /// even appear later, so its portions must be kept.
    pub async fn try_commit(&self, base: &Snapshot, draft: &CommitDraft) -> Result<CommitOutcome, LogError> {
        if let Some(swept) = draft.portions().iter().find(|portion| base.is_swept(&portion.path)) {
            return Err(LogError::Swept { table: self.name(), file: swept.path.clone() });
        }
        if base.version_of(draft.id()).is_some() {
            return Ok(CommitOutcome::Committed(base.clone()));
        }
        let version = base.version().next();
        let entries = draft.entries(version);
        // Checked before the write: a commit that contradicts its base must not enter the log.
        let after = base.clone().apply(self.storage.name(), version, entries.clone())?;
        let written = self.write(version, &entries).await;
        if let Ok(true) = written {
            let outcome = self.after_put(base, draft, after).await;
            return outcome.map_err(|error| Self::unknown_if_unread(error, self.name(), version));
        }
        // The version may be this very commit, if its response was lost, or if the store retried
        // the put and found its own file.
        let newest = self.refresh(base).await;
        if let Ok(newest) = &newest
            && newest.version_of(draft.id()).is_some()
        {
            // The commit exists; a further put that finds it there confirms that it is durable.
            match self.write(version, &entries).await {
                Ok(false) => {}
                // It existed, and was cleaned away after a checkpoint included it: the new file is
                // superfluous.
                Ok(true) => self.storage.delete(&commit_path(version)).await?,
                Err(error) => return Err(Self::unknown_if_unread(error, self.name(), version)),
            }
            return Ok(CommitOutcome::Committed(newest.clone()));
        }
        match written {
            // The refusal may answer a retried put whose first response was lost.
            Err(LogError::Storage(source)) if !source.is_refusal() || newest.is_err() => {
                Err(LogError::Unknown { table: self.name(), version, source })
            }
            Err(error) => Err(error),
            Ok(_) => match newest {
                // Otherwise the writer would retry the same version forever.
                Ok(newest) if newest.version() <= base.version() => {
                    Err(LogError::Stuck { table: self.name(), file: commit_path(version) })
                }
                Ok(newest) if !newest.lists(version) => {
                    Err(LogError::Forgotten { table: self.name(), version })
                }
                Ok(newest) => Ok(CommitOutcome::Lost(newest)),
                // The writer of the existing commit is unknown: it may be this one, if its first
                // response was lost.
                Err(LogError::Storage(source)) => {
                    Err(LogError::Unknown { table: self.name(), version, source })
                }
                Err(error) => Err(error),
            },
        }
    }

    /// Determines the outcome of a put that made the version after `base`, a commit of `draft`.
    /// `after` is the table with it.
    ///
    /// | commit of the base | commit of the draft in the newest version | outcome |
    /// |---|---|---|
    /// | exists | | In the log: the oldest are deleted first, so none was deleted in its place. |
    /// | is gone | yes | In the log: a cleaning saw it, and began the log with it or after it. |
    /// | is gone | no | Lost: another commit had its place and was cleaned away before the put. |
    ///
    /// In the last case the commit precedes the beginning of the log and has no meaning.
    ///
    /// The newest version is conclusive: a cleaning writes the checkpoint that the log is to begin
    /// with before it deletes a commit, and a checkpoint lists every commit up to its version,
    /// except those that are older than anything that may still be in progress. If its history
    /// begins after the version, the outcome is unknown.
    async fn after_put(
        &self,
        base: &Snapshot,
        draft: &CommitDraft,
        after: Snapshot,
    ) -> Result<CommitOutcome, LogError> {
        if self.is_in_log(base).await? {
            self.checkpoint_if_due(&after).await;
            return Ok(CommitOutcome::Committed(after));
        }
        let newest = self.newest().await?;
        if newest.version_of(draft.id()).is_some() {
            return Ok(CommitOutcome::Committed(newest));
        }
        if !newest.lists(after.version()) {
            return Err(LogError::Forgotten { table: self.name(), version: after.version() });
        }
        self.storage.delete(&commit_path(after.version())).await?;
        Ok(CommitOutcome::Lost(newest))
    }

    /// Converts an error of reading or writing the log after a put, when it is unknown whether the
    /// commit exists.
    fn unknown_if_unread(error: LogError, table: String, version: Version) -> LogError {
        match error {
            LogError::Storage(source) => LogError::Unknown { table, version, source },
            other => other,
        }
    }

    /// Whether the commit that made a snapshot is still in the log. It is not if the log was
    /// cleaned beyond it; any other file in its place was written by a writer unaware of that.
    pub(super) async fn is_in_log(&self, snapshot: &Snapshot) -> Result<bool, LogError> {
        let id = snapshot.commits().last().map(|commit| commit.info.id.as_str());
        match self.read(snapshot.version()).await {
            Ok((_, entries)) => {
                Ok(matches!(entries.first(), Some(LogEntry::Commit(info)) if Some(info.id.as_str()) == id))
            }
            Err(LogError::Storage(error)) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn write(&self, version: Version, entries: &[LogEntry]) -> Result<bool, LogError> {
        let path = commit_path(version);
        let bytes = write_entries(entries).map_err(|error| self.unwritable(&path, &error))?;
        Ok(self.storage.put_new(&path, bytes.into()).await?)
    }

    pub(super) fn unwritable(&self, file: &str, error: &serde_json::Error) -> LogError {
        LogError::Damaged { table: self.name(), file: file.to_owned(), line: 0, reason: error.to_string() }
    }
}
