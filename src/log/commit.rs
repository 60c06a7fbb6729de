//! Reading and extending the log.

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::log::LogError;
use crate::log::entry::{
    CommitInfo, LogEntry, Operation, PortionEntry, Sequence, SourceEntry, commit_path, commit_version,
    read_entries, write_entries,
};
use crate::log::snapshot::Snapshot;
use crate::storage::TableStorage;
use crate::table::{FORMAT_VERSION, TableSpec};
use crate::units::Version;

/// Commits read at one time when a table is opened.
const CONCURRENT_READS: usize = 16;

/// The log of one table.
#[derive(Debug, Clone)]
pub struct TableLog {
    storage: TableStorage,
}

/// What a writer wants to commit. The version is found when it commits.
#[derive(Debug, Clone)]
pub struct CommitDraft {
    id: String,
    operation: Operation,
    portions: Vec<PortionEntry>,
    sources: Vec<SourceEntry>,
}

impl CommitDraft {
    /// A draft that adds `portions`, oldest first, and records `sources`. The portions' sequences are set on commit.
    #[must_use]
    pub fn new(operation: Operation, portions: Vec<PortionEntry>, sources: Vec<SourceEntry>) -> Self {
        Self { id: uuid::Uuid::new_v4().to_string(), operation, portions, sources }
    }

    /// The unique id by which the commit is known again.
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
        let adds = self.portions.iter().zip(0u32..).map(|(portion, ordinal)| {
            LogEntry::Add(PortionEntry { sequence: Sequence { version, ordinal }, ..portion.clone() })
        });
        let sources = self.sources.iter().cloned().map(LogEntry::Source);
        std::iter::once(commit).chain(adds).chain(sources).collect()
    }
}

/// How an attempt to commit ended.
#[derive(Debug)]
pub enum CommitOutcome {
    /// The commit is visible; the snapshot holds it.
    Committed(Snapshot),
    /// Another writer made the version first. The snapshot is the newest one, to check against before trying again.
    Lost(Snapshot),
}

impl TableLog {
    /// Declares a new table.
    ///
    /// # Errors
    /// [`LogError::Exists`] and [`LogError::NotEmpty`] where something is there already.
    pub async fn create(storage: TableStorage, spec: &TableSpec) -> Result<(Self, Snapshot), LogError> {
        let log = Self { storage };
        if !log.versions().await?.is_empty() {
            return Err(LogError::Exists { table: log.name() });
        }
        if !log.storage.is_empty().await? {
            return Err(LogError::NotEmpty { table: log.name() });
        }
        let mut entries = CommitDraft::new(Operation::Create, Vec::new(), Vec::new()).entries(Version::FIRST);
        entries.push(LogEntry::Table(spec.definition().clone()));
        if !log.write(Version::FIRST, &entries).await? {
            return Err(LogError::Exists { table: log.name() });
        }
        let snapshot = Snapshot::first(log.storage.name(), &entries)?;
        Ok((log, snapshot))
    }

    /// Opens a table at its newest version.
    ///
    /// # Errors
    /// [`LogError`] where there is no table, or its log cannot be read whole.
    pub async fn open(storage: TableStorage) -> Result<(Self, Snapshot), LogError> {
        let log = Self { storage };
        let snapshot = log.newest().await?;
        Ok((log, snapshot))
    }

    /// Opens a table as it was at a version.
    ///
    /// # Errors
    /// As for [`TableLog::open`], and [`LogError::NoVersion`] where it has no such version.
    pub async fn open_version(storage: TableStorage, version: Version) -> Result<(Self, Snapshot), LogError> {
        let log = Self { storage };
        let snapshot = log.up_to(Some(version)).await?;
        Ok((log, snapshot))
    }

    /// The files of the table.
    #[must_use]
    pub fn storage(&self) -> &TableStorage {
        &self.storage
    }

    /// The newest snapshot, read from the start.
    ///
    /// # Errors
    /// As for [`TableLog::open`].
    pub async fn newest(&self) -> Result<Snapshot, LogError> {
        self.up_to(None).await
    }

    /// The snapshot at `wanted`, or the newest one.
    async fn up_to(&self, wanted: Option<Version>) -> Result<Snapshot, LogError> {
        let mut versions = self.versions().await?;
        if versions.first() != Some(&Version::FIRST) {
            return Err(LogError::NotATable { table: self.name() });
        }
        self.check_no_gap(&versions)?;
        if let (Some(version), Some(newest)) = (wanted, versions.last().copied()) {
            if version > newest {
                return Err(LogError::NoVersion { table: self.name(), version, newest });
            }
            versions.retain(|known| *known <= version);
        }
        let mut commits = stream::iter(versions).map(|version| self.read(version)).buffered(CONCURRENT_READS);
        let Some((_, first)) = commits.try_next().await? else {
            return Err(LogError::NotATable { table: self.name() });
        };
        let mut snapshot = Snapshot::first(self.storage.name(), &first)?;
        while let Some((version, entries)) = commits.try_next().await? {
            snapshot = snapshot.apply(self.storage.name(), version, &entries)?;
        }
        Ok(snapshot)
    }

    /// `base` with all commits since.
    ///
    /// # Errors
    /// As for [`TableLog::open`].
    pub async fn refresh(&self, base: &Snapshot) -> Result<Snapshot, LogError> {
        let versions = self.versions().await?;
        self.check_no_gap(&versions)?;
        let mut snapshot = base.clone();
        for version in versions.into_iter().filter(|version| *version > base.version()) {
            let (_, entries) = self.read(version).await?;
            snapshot = snapshot.apply(self.storage.name(), version, &entries)?;
        }
        Ok(snapshot)
    }

    /// Tries to make `draft` the version after `base`. One try: what to check before the next is the writer's matter.
    ///
    /// # Errors
    /// [`LogError`] where the log cannot be written or read. After an error the commit may be there, or even appear
    /// later: its portions must stay.
    pub async fn try_commit(&self, base: &Snapshot, draft: &CommitDraft) -> Result<CommitOutcome, LogError> {
        let version = base.version().next();
        let entries = draft.entries(version);
        let written = self.write(version, &entries).await;
        if let Ok(true) = written {
            let snapshot = base.clone().apply(self.storage.name(), version, &entries)?;
            return Ok(CommitOutcome::Committed(snapshot));
        }
        // The version may be this very commit: an answer that was lost on its way, or a put that the store repeated and
        // that so met itself.
        let newest = self.refresh(base).await;
        if let Ok(newest) = &newest
            && newest.version_of(&draft.id).is_some()
        {
            return Ok(CommitOutcome::Committed(newest.clone()));
        }
        match written {
            Err(LogError::Storage(source)) => Err(LogError::Unknown { table: self.name(), version, source }),
            Err(error) => Err(error),
            Ok(_) => Ok(CommitOutcome::Lost(newest?)),
        }
    }

    fn name(&self) -> String {
        self.storage.name().to_owned()
    }

    /// The versions that have a file, in order.
    async fn versions(&self) -> Result<Vec<Version>, LogError> {
        let names = self.storage.list("_log").await?;
        let mut versions: Vec<Version> = names.iter().filter_map(|name| commit_version(name)).collect();
        versions.sort_unstable();
        Ok(versions)
    }

    fn check_no_gap(&self, versions: &[Version]) -> Result<(), LogError> {
        let first_missing = versions.iter().zip(0u64..).find(|(version, expected)| version.0 != *expected);
        match (first_missing, versions.last()) {
            (Some((_, missing)), Some(last)) => {
                Err(LogError::Gap { table: self.name(), missing: Version(missing), last: *last })
            }
            _ => Ok(()),
        }
    }

    async fn read(&self, version: Version) -> Result<(Version, Vec<LogEntry>), LogError> {
        let bytes = self.storage.read(&commit_path(version)).await?;
        Ok((version, read_entries(self.storage.name(), version, &bytes)?))
    }

    async fn write(&self, version: Version, entries: &[LogEntry]) -> Result<bool, LogError> {
        let bytes = write_entries(entries).map_err(|error| LogError::Damaged {
            table: self.name(),
            file: commit_path(version),
            line: 0,
            reason: error.to_string(),
        })?;
        Ok(self.storage.put_new(&commit_path(version), bytes.into()).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::table::{Column, ColumnType, KeyRange, KeyValue, PlacementFunction, TableDefinition};
    use crate::units::{PartitionCount, PartitionId};

    fn spec() -> TableSpec {
        TableSpec::new(TableDefinition {
            name: "t".into(),
            columns: vec![Column::required("k", ColumnType::Int64)],
            primary_key: vec!["k".into()],
            partition_key: vec![],
            partitions: PartitionCount::new(2).unwrap(),
            placement: PlacementFunction::Ydb,
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
        CommitDraft::new(Operation::Upsert, vec![portion(path, 1)], vec![source])
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
}
