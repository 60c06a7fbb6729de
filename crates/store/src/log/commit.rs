//! Reading and extending the log.

use std::collections::HashSet;

use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use serde::Serialize;

use crate::log::LogError;
use crate::log::checkpoint::{checkpoint_path, checkpoint_version, read_checkpoint, write_checkpoint};
use crate::log::entry::{
    CommitInfo, LogEntry, Operation, PortionEntry, Sequence, SourceEntry, commit_path, commit_version,
    read_entries, write_entries,
};
use crate::log::snapshot::Snapshot;
use evenkeel_model::table::{FORMAT_VERSION, TableDefinition, TableSpec};
use evenkeel_model::units::Version;
use evenkeel_storage::TableStorage;

/// Commits read concurrently when a table is opened.
const CONCURRENT_READS: usize = 16;
/// Number of commits after which a new checkpoint is written.
pub(super) const CHECKPOINT_INTERVAL: u64 = 64;
/// Checkpoints kept besides the newest; of the older ones, every sixteenth is kept.
const CHECKPOINTS_KEPT: usize = 2;
/// Attempts to read the log if files vanish meanwhile: a cleaning is running, and the files that it
/// deletes are no longer needed.
const READ_ATTEMPTS: usize = 5;

/// The log of one table.
#[derive(Debug, Clone)]
pub struct TableLog {
    storage: TableStorage,
}

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

    fn entries(&self, version: Version) -> Vec<LogEntry> {
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
    /// else that of the oldest checkpoint after which no commit is missing.
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
    fn begin_at_first(&self) -> bool {
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

/// Part of the log to read.
#[derive(Clone, Copy)]
enum Reading<'a> {
    /// Everything up to a version, or up to the newest.
    UpTo(Option<Version>),
    /// Everything after a snapshot.
    Since(&'a Snapshot),
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
    async fn begins_with(&self, id: &str) -> Result<bool, LogError> {
        let (_, entries) = self.read(Version::FIRST).await?;
        Ok(matches!(entries.first(), Some(LogEntry::Commit(info)) if info.id == id))
    }

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

    /// Opens the log of a table for a caller that only stores portions and does not read commits.
    #[must_use]
    pub fn of_storage(storage: TableStorage) -> Self {
        Self { storage }
    }

    /// Files of the table.
    #[must_use]
    pub fn storage(&self) -> &TableStorage {
        &self.storage
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
    async fn up_to(&self, wanted: Option<Version>) -> Result<Snapshot, LogError> {
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
            return Snapshot::first(self.storage.name(), &entries);
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
            snapshot = snapshot.apply(self.storage.name(), version, &entries)?;
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
        if newest.version_of(&draft.id).is_some() {
            return Ok(CommitOutcome::Committed(newest));
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

    fn name(&self) -> String {
        self.storage.name().to_owned()
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
    async fn checkpoint_if_due(&self, snapshot: &Snapshot) {
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

    /// Returns the paths of all portions that any version from that of `oldest` on has.
    ///
    /// # Errors
    /// [`LogError`] if a commit cannot be read.
    pub async fn portions_since(&self, oldest: &Snapshot) -> Result<HashSet<String>, LogError> {
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
    pub async fn portions_added(
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
    pub async fn removed_up_to(&self, version: Version) -> Result<HashSet<String>, LogError> {
        let files = self.files().await?;
        let before = files.commits.into_iter().filter(|found| *found <= version);
        let removed =
            self.read_all(before.collect()).filter_map(async |commit| commit.ok()).map(|(_, entries)| {
                stream::iter(entries.into_iter().filter_map(|entry| match entry {
                    LogEntry::Remove { path } => Some(path),
                    _ => None,
                }))
            });
        Ok(removed.flatten().collect().await)
    }

    /// Returns the files of the log that are damaged, and the commits that are missing.
    pub async fn damaged_files(&self, files: &LogFiles) -> Vec<DamagedLogFile> {
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

    /// Deletes the commits and checkpoints before version `oldest`, whose checkpoint must exist,
    /// and returns their number. The commit of `oldest` is kept, so that the next writer finds the
    /// one it continues.
    ///
    /// # Errors
    /// [`LogError`] if a file cannot be deleted; those already deleted are not needed.
    pub async fn forget_before(&self, oldest: Version) -> Result<u64, LogError> {
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

    pub(super) async fn read_checkpoint(&self, version: Version) -> Result<Snapshot, LogError> {
        let bytes = self.storage.read(&checkpoint_path(version)).await?;
        read_checkpoint(self.storage.name(), version, &bytes)
    }

    /// Reads commits in the order of `versions`, several concurrently.
    fn read_all(
        &self,
        versions: Vec<Version>,
    ) -> impl Stream<Item = Result<(Version, Vec<LogEntry>), LogError>> + Unpin {
        Box::pin(stream::iter(versions).map(|version| self.read(version)).buffered(CONCURRENT_READS))
    }

    pub(super) async fn read(&self, version: Version) -> Result<(Version, Vec<LogEntry>), LogError> {
        let bytes = self.storage.read(&commit_path(version)).await?;
        Ok((version, read_entries(self.storage.name(), version, &bytes)?))
    }

    async fn write(&self, version: Version, entries: &[LogEntry]) -> Result<bool, LogError> {
        let path = commit_path(version);
        let bytes = write_entries(entries).map_err(|error| self.unwritable(&path, &error))?;
        Ok(self.storage.put_new(&path, bytes.into()).await?)
    }

    pub(super) fn unwritable(&self, file: &str, error: &serde_json::Error) -> LogError {
        LogError::Damaged { table: self.name(), file: file.to_owned(), line: 0, reason: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use evenkeel_model::table::{Column, ColumnType, KeyRange, KeyValue, PlacementFunction, TableDefinition};
    use evenkeel_model::units::{PartitionCount, PartitionId};

    fn spec() -> TableSpec {
        TableSpec::new(TableDefinition {
            name: "t".into(),
            columns: vec![Column::required("k", ColumnType::Int64)],
            primary_key: vec!["k".into()],
            partition_key: vec![],
            partitions: PartitionCount::new(2).unwrap(),
            placement: PlacementFunction::Ydb,
            ttl: None,
        })
        .unwrap()
    }

    fn portion(path: &str, partition: u32) -> PortionEntry {
        let key_range = KeyRange { min: vec![KeyValue::Int(0)], max: vec![KeyValue::Int(9)] };
        PortionEntry {
            path: path.into(),
            partition: PartitionId(partition),
            sequence: Sequence { version: Version(0), ordinal: 0 },
            rows: 10,
            bytes: 100,
            column_ranges: vec![key_range.clone()],
            key_range,
            xxh3: String::new(),
        }
    }

    fn draft(path: &str) -> CommitDraft {
        let source = SourceEntry { name: path.into(), bytes: 1, xxh3: path.into(), rows: 10, rejected: 0 };
        CommitDraft::rows(Operation::Upsert, vec![portion(path, 1)], vec![source])
    }

    async fn table() -> (TableLog, Snapshot) {
        let storage = TableStorage::new(Arc::new(InMemory::new()), "tables/t".into());
        TableLog::create(storage, &spec()).await.unwrap()
    }

    #[tokio::test]
    async fn commits_are_folded_in_order() {
        let (log, first) = table().await;
        let CommitOutcome::Committed(second) = log.try_commit(&first, &draft("a")).await.unwrap() else {
            panic!()
        };
        let CommitOutcome::Committed(_) = log.try_commit(&second, &draft("b")).await.unwrap() else {
            panic!()
        };
        let (_, opened) = TableLog::open(log.storage().clone()).await.unwrap();
        assert_eq!(opened.version(), Version(2));
        assert_eq!(opened.portions().iter().map(|p| p.path.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(opened.portions()[1].sequence, Sequence { version: Version(2), ordinal: 0 });
        assert_eq!(opened.source_version("b"), Some(Version(2)));
        assert_eq!(opened.commits()[2].rows_per_partition, [0, 10]);
        assert_eq!(opened.spec().as_ref(), &spec());
    }

    #[tokio::test]
    async fn of_two_writers_one_loses_and_sees_the_other() {
        let (log, first) = table().await;
        log.try_commit(&first, &draft("a")).await.unwrap();
        let CommitOutcome::Lost(newest) = log.try_commit(&first, &draft("b")).await.unwrap() else {
            panic!()
        };
        assert_eq!(newest.source_version("a"), Some(Version(1)));
        let CommitOutcome::Committed(last) = log.try_commit(&newest, &draft("b")).await.unwrap() else {
            panic!()
        };
        assert_eq!(last.portions().len(), 2);
    }

    #[tokio::test]
    async fn a_commit_that_meets_itself_is_not_made_twice() {
        let (log, first) = table().await;
        let draft = draft("a");
        log.try_commit(&first, &draft).await.unwrap();
        let CommitOutcome::Committed(again) = log.try_commit(&first, &draft).await.unwrap() else { panic!() };
        assert_eq!(again.version(), Version(1));
        assert_eq!(again.portions().len(), 1);
    }

    #[tokio::test]
    async fn a_second_table_in_one_place_is_refused() {
        let (log, _) = table().await;
        assert!(matches!(
            TableLog::create(log.storage().clone(), &spec()).await,
            Err(LogError::Exists { .. })
        ));
        let other = TableStorage::new(Arc::new(InMemory::new()), "".into());
        other.put_new("notes.txt", "x".into()).await.unwrap();
        assert!(matches!(TableLog::create(other.clone(), &spec()).await, Err(LogError::NotEmpty { .. })));
        assert!(matches!(TableLog::open(other).await, Err(LogError::NotATable { .. })));
    }

    #[tokio::test]
    async fn a_missing_commit_is_named() {
        let (log, first) = table().await;
        let CommitOutcome::Committed(second) = log.try_commit(&first, &draft("a")).await.unwrap() else {
            panic!()
        };
        log.try_commit(&second, &draft("b")).await.unwrap();
        log.storage().delete(&commit_path(Version(1))).await.unwrap();
        let error = log.newest().await.unwrap_err();
        assert!(error.to_string().contains("restore _log/00000000000000000001.json"), "{error}");
    }

    async fn commit(log: &TableLog, base: &Snapshot, draft: &CommitDraft) -> Snapshot {
        match log.try_commit(base, draft).await.unwrap() {
            CommitOutcome::Committed(snapshot) => snapshot,
            CommitOutcome::Lost(newest) => panic!("lost to version {}", newest.version()),
        }
    }

    /// Creates a table with `commits` commits of one portion each.
    async fn grown(commits: u64) -> (TableLog, Snapshot) {
        let (log, mut snapshot) = table().await;
        for number in 0..commits {
            snapshot = commit(&log, &snapshot, &draft(&format!("p{number}"))).await;
        }
        (log, snapshot)
    }

    fn same(a: &Snapshot, b: &Snapshot) {
        assert_eq!(a.version(), b.version());
        assert_eq!(a.portions(), b.portions());
        assert_eq!(a.commits(), b.commits());
        assert_eq!(a.sources(), b.sources());
        assert_eq!(a.spec(), b.spec());
    }

    #[tokio::test]
    async fn a_checkpoint_holds_what_the_commits_hold() {
        let (log, written) = grown(130).await;
        let files = log.files().await.unwrap();
        assert_eq!(files.checkpoints, [Version(64), Version(128)]);
        same(&log.newest().await.unwrap(), &written);
        assert_eq!(log.newest().await.unwrap().portion_count(), 130);
        for path in [checkpoint_path(Version(64)), checkpoint_path(Version(128))] {
            log.storage().delete(&path).await.unwrap();
        }
        same(&log.newest().await.unwrap(), &written);
    }

    #[tokio::test]
    async fn a_damaged_checkpoint_is_passed_over_while_the_commits_are_there() {
        let (log, written) = grown(70).await;
        let path = checkpoint_path(Version(64));
        let mut bytes = log.storage().read(&path).await.unwrap().to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        log.storage().delete(&path).await.unwrap();
        log.storage().put_new(&path, bytes.into()).await.unwrap();
        same(&log.newest().await.unwrap(), &written);
        log.storage().delete(&commit_path(Version(3))).await.unwrap();
        let error = log.newest().await.unwrap_err().to_string();
        assert!(error.contains("commit 3 is missing"), "{error}");
    }

    #[tokio::test]
    async fn what_is_cleaned_away_is_refused_and_the_rest_opens() {
        let (log, written) = grown(10).await;
        let kept = log.up_to(Some(Version(7))).await.unwrap();
        assert!(log.checkpoint(&kept).await.unwrap());
        assert_eq!(log.forget_before(Version(7)).await.unwrap(), 7);
        same(&log.newest().await.unwrap(), &written);
        assert_eq!(log.up_to(Some(Version(8))).await.unwrap().portion_count(), 8);
        assert_eq!(log.up_to(Some(Version(7))).await.unwrap().portions(), kept.portions());
        let error = log.up_to(Some(Version(3))).await.unwrap_err().to_string();
        assert!(error.contains("version 3 was cleaned away; the oldest that is kept is 7"), "{error}");
    }

    #[tokio::test]
    async fn a_writer_that_slept_while_the_log_was_cleaned_is_not_lost() {
        let (log, _) = grown(10).await;
        let asleep = log.up_to(Some(Version(2))).await.unwrap();
        log.checkpoint(&log.newest().await.unwrap()).await.unwrap();
        log.forget_before(Version(10)).await.unwrap();
        let late = draft("late");
        let CommitOutcome::Lost(newest) = log.try_commit(&asleep, &late).await.unwrap() else { panic!() };
        assert_eq!(newest.version(), Version(10));
        assert_eq!(log.files().await.unwrap().commits, [Version(10)]);
        same(&log.refresh(&asleep).await.unwrap(), &newest);
        let written = commit(&log, &newest, &late).await;
        assert_eq!(written.version(), Version(11));
        assert!(written.portion("late").is_some());
    }

    #[tokio::test]
    async fn what_another_sleeper_left_is_not_taken_for_the_log() {
        let (log, newest) = grown(5).await;
        let asleep = log.up_to(Some(Version(2))).await.unwrap();
        let further = log.up_to(Some(Version(3))).await.unwrap();
        log.checkpoint(&newest).await.unwrap();
        log.forget_before(Version(5)).await.unwrap();
        // A writer whose base was version 2 died right after its put.
        let stale = write_entries(&draft("stale").entries(Version(3))).unwrap();
        log.storage().put_new(&commit_path(Version(3)), stale.into()).await.unwrap();
        for sleeper in [&asleep, &further] {
            let CommitOutcome::Lost(found) = log.try_commit(sleeper, &draft("late")).await.unwrap() else {
                panic!()
            };
            same(&found, &newest);
            same(&log.refresh(sleeper).await.unwrap(), &newest);
        }
        same(&log.newest().await.unwrap(), &newest);
        assert!(commit(&log, &newest, &draft("late")).await.portion("late").is_some());
    }

    #[tokio::test]
    async fn a_damaged_checkpoint_is_written_anew_before_anything_is_forgotten() {
        let (log, newest) = grown(64).await;
        let path = checkpoint_path(Version(64));
        log.storage().replace(&path, "damaged".into()).await.unwrap();
        assert!(log.checkpoint(&newest).await.unwrap());
        log.forget_before(Version(64)).await.unwrap();
        same(&log.newest().await.unwrap(), &newest);
    }

    #[tokio::test]
    async fn a_file_that_was_swept_is_never_committed() {
        let (log, snapshot) = grown(2).await;
        let swept = commit(&log, &snapshot, &CommitDraft::sweep(vec!["late".into()])).await;
        let CommitOutcome::Lost(newest) = log.try_commit(&snapshot, &draft("late")).await.unwrap() else {
            panic!()
        };
        same(&newest, &swept);
        let refused = log.try_commit(&newest, &draft("late")).await.unwrap_err();
        assert!(matches!(refused, LogError::Swept { .. }), "{refused}");
        log.checkpoint(&swept).await.unwrap();
        log.forget_before(swept.version()).await.unwrap();
        assert!(log.newest().await.unwrap().is_swept("late"));
    }

    #[tokio::test]
    async fn merged_portions_keep_their_age_and_the_others_go() {
        let (log, snapshot) = grown(3).await;
        let merged =
            PortionEntry { sequence: Sequence { version: Version(2), ordinal: 0 }, ..portion("m", 1) };
        let compaction = CommitDraft::compaction(vec!["p0".into(), "p1".into()], vec![merged]);
        let written = commit(&log, &snapshot, &compaction).await;
        let names: Vec<_> =
            written.portions().iter().map(|p| (p.path.clone(), p.sequence.version.0)).collect();
        assert_eq!(names, [("m".to_owned(), 2), ("p2".to_owned(), 3)]);
        assert_eq!(written.commits()[4].removed, 2);
        same(&log.newest().await.unwrap(), &written);
        let again = log.try_commit(&written, &CommitDraft::compaction(vec!["p0".into()], vec![])).await;
        assert!(again.unwrap_err().to_string().contains("p0 is removed but not there"));
        same(&log.newest().await.unwrap(), &written);
    }

    #[tokio::test]
    async fn a_column_that_takes_null_can_be_added_and_nothing_else_changed() {
        let (log, snapshot) = grown(1).await;
        let mut definition = snapshot.spec().definition().clone();
        definition.columns.push(Column::nullable("more", ColumnType::Utf8));
        let altered = snapshot.spec().altered(definition.clone()).unwrap();
        let written = commit(&log, &snapshot, &CommitDraft::alter(&altered)).await;
        assert_eq!(written.spec().columns().len(), 2);
        same(&log.newest().await.unwrap(), &written);
        assert_eq!(log.up_to(Some(Version(1))).await.unwrap().spec().columns().len(), 1);
        for (change, expected) in [
            (
                &(|d: &mut TableDefinition| d.columns.push(Column::required("x", ColumnType::Int64)))
                    as &dyn Fn(&mut TableDefinition),
                "cannot be added as NOT NULL",
            ),
            (&|d| d.partitions = PartitionCount::new(4).unwrap(), "evenkeel repartition"),
            (&|d| d.columns[0].column_type = ColumnType::Uint64, "column 'k' cannot be changed"),
            (&|d| d.columns.truncate(1), "column 'more' cannot be changed"),
            (&|d| d.name = "other".into(), "the name cannot be changed"),
            (&|d| d.placement = PlacementFunction::YdbModulo, "placement function cannot be changed"),
        ] {
            let mut changed = definition.clone();
            change(&mut changed);
            let error = altered.altered(changed).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
