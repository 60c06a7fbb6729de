//! Making commits and checkpoints.

use crate::log::checkpoint::{checkpoint_path, write_checkpoint};
use crate::log::entry::{
    CommitInfo, LogEntry, Operation, PortionEntry, Sequence, SourceEntry, commit_path, write_entries,
};
use crate::log::error::LogError;
use crate::log::snapshot::Snapshot;
use crate::log::table_log::TableLog;
use evenkeel_model::table::{FORMAT_VERSION, TableDefinition, TableSpec};
use evenkeel_model::units::Version;
use evenkeel_storage::TableStorage;

/// Number of commits after which a new checkpoint is written.
pub(super) const CHECKPOINT_INTERVAL: u64 = 64;
/// Checkpoints kept besides the newest; of the older ones, every sixteenth is kept.
const CHECKPOINTS_KEPT: usize = 2;

/// Content of a commit to be made. The version is determined on commit.
#[derive(Debug, Clone)]
pub struct CommitDraft {
    id: String,
    operation: Operation,
    definition: Option<TableDefinition>,
    removed: Vec<String>,
    portions: Vec<PortionEntry>,
    sources: Vec<SourceEntry>,
    swept: Vec<String>,
}

impl CommitDraft {
    fn empty(operation: Operation) -> Self {
        Self {
            id: uuid::Uuid::new_v4().to_string(),
            operation,
            definition: None,
            removed: Vec::new(),
            portions: Vec::new(),
            sources: Vec::new(),
            swept: Vec::new(),
        }
    }

    /// Drafts a commit of new rows: it adds `portions`, oldest first, and records `sources`. The
    /// sequences of the portions are set on commit.
    #[must_use]
    pub fn rows(operation: Operation, portions: Vec<PortionEntry>, sources: Vec<SourceEntry>) -> Self {
        Self { portions, sources, ..Self::empty(operation) }
    }

    /// Drafts a commit that replaces the portions at `removed` with `merged`. The merged portions
    /// keep their sequences.
    #[must_use]
    pub fn compaction(removed: Vec<String>, merged: Vec<PortionEntry>) -> Self {
        Self { removed, portions: merged, ..Self::empty(Operation::Compact) }
    }

    /// Drafts a commit that changes the declaration, see [`TableSpec::altered`].
    #[must_use]
    pub fn alter(spec: &TableSpec) -> Self {
        Self { definition: Some(spec.definition().clone()), ..Self::empty(Operation::Alter) }
    }

    /// Drafts a commit that gives up files that no commit names: from then on no commit can name
    /// them, and they may be deleted.
    #[must_use]
    pub fn sweep(files: Vec<String>) -> Self {
        Self { swept: files, ..Self::empty(Operation::Clean) }
    }

    /// Unique id by which the commit is recognized.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn entries(&self, version: Version) -> Vec<LogEntry> {
        let commit = LogEntry::Commit(CommitInfo {
            format: FORMAT_VERSION,
            version,
            id: self.id.clone(),
            operation: self.operation,
            at_micros: chrono::Utc::now().timestamp_micros(),
        });
        let definition = self.definition.clone().map(LogEntry::Table);
        let removes = self.removed.iter().map(|path| LogEntry::Remove { path: path.clone() });
        let fresh = self.operation.brings_rows();
        let adds = self.portions.iter().zip(0u32..).map(|(portion, ordinal)| {
            let sequence = if fresh { Sequence { version, ordinal } } else { portion.sequence };
            LogEntry::Add(PortionEntry { sequence, ..portion.clone() })
        });
        let sources = self.sources.iter().cloned().map(LogEntry::Source);
        let swept = self.swept.iter().map(|path| LogEntry::Sweep { path: path.clone() });
        let lines = definition.into_iter().chain(removes).chain(adds).chain(sources).chain(swept);
        std::iter::once(commit).chain(lines).collect()
    }
}

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
        let draft = CommitDraft {
            definition: Some(spec.definition().clone()),
            ..CommitDraft::empty(Operation::Create)
        };
        let entries = draft.entries(Version::FIRST);
        // A put that the store retried after a lost response finds its own commit.
        if !log.write(Version::FIRST, &entries).await? && !log.begins_with(&draft.id).await? {
            return Err(LogError::Exists { table: log.name() });
        }
        // A store that ignores the condition would let one writer overwrite the commit of another.
        if !log.storage.is_local() && log.write(Version::FIRST, &entries).await? {
            return Err(LogError::NoPutIfAbsent { table: log.name() });
        }
        // If this process was delayed between the listing and the put, another may have made the
        // table meanwhile and cleaned away its first commit, so that the put did not find it.
        if log.files().await?.newest() > Some(Version::FIRST)
            && log.newest().await?.version_of(&draft.id).is_none()
        {
            log.storage.delete(&commit_path(Version::FIRST)).await?;
            return Err(LogError::Exists { table: log.name() });
        }
        let snapshot = Snapshot::first(log.storage.name(), &entries)?;
        Ok((log, snapshot))
    }

    /// Whether the first commit has this id.
    pub(super) async fn begins_with(&self, id: &str) -> Result<bool, LogError> {
        let (_, entries) = self.read(Version::FIRST).await?;
        Ok(matches!(entries.first(), Some(LogEntry::Commit(info)) if info.id == id))
    }

    /// Tries once to make `draft` the version after `base`. The writer decides what to check before
    /// another attempt.
    ///
    /// # Errors
    /// [`LogError`] if the log cannot be written or read. After an error the commit may exist, or
    /// even appear later, so its portions must be kept.
    pub async fn try_commit(&self, base: &Snapshot, draft: &CommitDraft) -> Result<CommitOutcome, LogError> {
        if let Some(swept) = draft.portions.iter().find(|portion| base.is_swept(&portion.path)) {
            return Err(LogError::Swept { table: self.name(), file: swept.path.clone() });
        }
        if base.version_of(&draft.id).is_some() {
            return Ok(CommitOutcome::Committed(base.clone()));
        }
        let version = base.version().next();
        let entries = draft.entries(version);
        // Checked before the write: a commit that contradicts its base must not enter the log.
        let after = base.clone().apply(self.storage.name(), version, &entries)?;
        let written = self.write(version, &entries).await;
        if let Ok(true) = written {
            let outcome = self.after_put(base, draft, after).await;
            return outcome.map_err(|error| Self::unknown_if_unread(error, self.name(), version));
        }
        // The version may be this very commit, if its response was lost, or if the store retried
        // the put and found its own file.
        let newest = self.refresh(base).await;
        if let Ok(newest) = &newest
            && newest.version_of(&draft.id).is_some()
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
            // The refusal may be that of a retried put whose first response was lost.
            Err(LogError::Storage(source)) if !source.is_refusal() || newest.is_err() => {
                Err(LogError::Unknown { table: self.name(), version, source })
            }
            Err(error) => Err(error),
            Ok(_) => match newest {
                // The writer would otherwise try the same version again, for ever.
                Ok(newest) if newest.version() <= base.version() => {
                    Err(LogError::Stuck { table: self.name(), file: commit_path(version) })
                }
                Ok(newest) => Ok(CommitOutcome::Lost(newest)),
                // It is unknown whose commit is there: it may be this one, if its first response
                // was lost.
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
    /// In the last case the commit lies before the beginning of the log and has no meaning.
    ///
    /// The newest version is conclusive: a cleaning writes the checkpoint that the log is to begin
    /// with before it deletes a commit, and a checkpoint lists every commit up to its version.
    pub(super) async fn after_put(
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
        if newest.version_of(&draft.id).is_some() {
            return Ok(CommitOutcome::Committed(newest));
        }
        self.storage.delete(&commit_path(after.version())).await?;
        Ok(CommitOutcome::Lost(newest))
    }

    /// Converts an error of reading or writing the log after a put, when it is unknown whether the
    /// commit exists.
    pub(super) fn unknown_if_unread(error: LogError, table: String, version: Version) -> LogError {
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

    /// Writes a checkpoint of `snapshot` if the last one is many commits back, and deletes those
    /// that it makes superfluous. Checkpoints only make opening faster: if this fails, a later
    /// commit tries again.
    pub(super) async fn checkpoint_if_due(&self, snapshot: &Snapshot) {
        if !snapshot.version().0.is_multiple_of(CHECKPOINT_INTERVAL) {
            return;
        }
        if let (Ok(true), Ok(files)) = (self.checkpoint(snapshot).await, self.files().await) {
            let _ = self.point_to(snapshot.version()).await;
            let oldest = files.oldest();
            // A cleaning never begins the log at one of these versions, so it needs none of them.
            let regular = files
                .checkpoints
                .iter()
                .filter(|version| version.0.is_multiple_of(CHECKPOINT_INTERVAL) && Some(**version) > oldest);
            // The last few are kept in case the newest is damaged.
            let others = regular.rev().skip(1 + CHECKPOINTS_KEPT);
            let needless = others.filter(|version| !version.0.is_multiple_of(CHECKPOINT_INTERVAL * 16));
            for version in needless {
                let _ = self.storage.delete(&checkpoint_path(*version)).await;
            }
        }
    }

    /// Returns the version at which a cleaning begins the log to keep everything from `wanted` on.
    /// It is the version before `wanted` if writers make checkpoints of `wanted`, because they also
    /// delete those when newer ones make them superfluous.
    #[must_use]
    pub fn beginning_for(wanted: Version) -> Version {
        let regular = wanted != Version::FIRST && wanted.0.is_multiple_of(CHECKPOINT_INTERVAL);
        if regular { Version(wanted.0 - 1) } else { wanted }
    }

    /// Writes a checkpoint of `snapshot`, replacing one that is damaged. Returns `Ok(false)` if
    /// there is one already, or the log now begins after it.
    ///
    /// # Errors
    /// [`LogError`] if it cannot be written.
    pub async fn checkpoint(&self, snapshot: &Snapshot) -> Result<bool, LogError> {
        let path = checkpoint_path(snapshot.version());
        let bytes = write_checkpoint(snapshot).map_err(|error| self.unwritable(&path, &error))?;
        if self.storage.put_new(&path, bytes.clone().into()).await? {
            if self.is_in_log(snapshot).await? {
                return Ok(true);
            }
            // The log was cleaned beyond it meanwhile.
            self.storage.delete(&path).await?;
            return Ok(false);
        }
        match self.read_checkpoint(snapshot.version()).await {
            Ok(_) => Ok(false),
            Err(LogError::Damaged { .. }) => {
                self.storage.replace(&path, bytes.into()).await?;
                Ok(true)
            }
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
