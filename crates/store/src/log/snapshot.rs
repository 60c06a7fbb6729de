//! A table at one version: the fold of its commits.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use ahash::AHashMap;

use crate::log::entry::{CommitSummary, LogEntry, PortionEntry, commit_path, read_entries};
use crate::log::{LogError, SourceEntry};
use evenkeel_model::table::{TableDefinition, TableSpec};
use evenkeel_model::units::Version;
use evenkeel_stats::overlap::depths;

/// For the content of each input, the commit that ingested it first and its position among the
/// inputs of that commit.
type SourcesByContent = AHashMap<String, (Arc<CommitSummary>, usize)>;

/// A table at one version. It is immutable; a reader may keep it indefinitely.
#[derive(Debug, Clone)]
pub struct Snapshot {
    version: Version,
    spec: Arc<TableSpec>,
    /// Visible portions by path, so that the fold finds those that are removed.
    portions: AHashMap<String, Arc<PortionEntry>>,
    commits: Vec<Arc<CommitSummary>>,
    /// Inputs of `commits` by content, built on first use, because queries never need them.
    sources: OnceLock<SourcesByContent>,
    /// Files that no commit may name any more.
    swept: HashSet<String>,
}

impl Snapshot {
    /// Builds the snapshot of the first commit.
    pub(super) fn first(table: &str, entries: &[LogEntry]) -> Result<Self, LogError> {
        let file = commit_path(Version::FIRST);
        let definition = entries.iter().find_map(|entry| match entry {
            LogEntry::Table(definition) => Some(definition.clone()),
            _ => None,
        });
        let definition: TableDefinition = definition.ok_or_else(|| LogError::Damaged {
            table: table.to_owned(),
            file: file.clone(),
            line: 2,
            reason: "it declares no table".to_owned(),
        })?;
        let spec = TableSpec::new(definition).map_err(|source| LogError::Spec {
            table: table.to_owned(),
            file,
            source,
        })?;
        let empty = Self {
            version: Version::FIRST,
            spec: Arc::new(spec),
            portions: AHashMap::new(),
            commits: Vec::new(),
            sources: OnceLock::new(),
            swept: HashSet::new(),
        };
        empty.apply(table, Version::FIRST, entries)
    }

    /// Builds the snapshot after one more commit. An entry that contradicts the snapshot is damage.
    pub(super) fn apply(
        mut self,
        table: &str,
        version: Version,
        entries: &[LogEntry],
    ) -> Result<Self, LogError> {
        let partitions = self.spec.partitions();
        let mut summary = None;
        for (index, entry) in entries.iter().enumerate() {
            let damaged = |reason: String| LogError::Damaged {
                table: table.to_owned(),
                file: commit_path(version),
                line: index + 1,
                reason,
            };
            match entry {
                LogEntry::Commit(info) => {
                    summary = Some(CommitSummary {
                        info: info.clone(),
                        rows_per_partition: vec![0; partitions.len()],
                        bytes: 0,
                        portions: 0,
                        removed: 0,
                        sources: Vec::new(),
                        swept: Vec::new(),
                    });
                }
                LogEntry::Add(portion) => {
                    let summary =
                        summary.as_mut().ok_or_else(|| damaged("an entry before the commit".into()))?;
                    let rows = summary
                        .rows_per_partition
                        .get_mut(portion.partition.index())
                        .ok_or_else(|| damaged(format!("there is no partition {}", portion.partition)))?;
                    *rows += portion.rows;
                    summary.bytes += portion.bytes;
                    summary.portions += 1;
                    if self.portions.insert(portion.path.clone(), Arc::new(portion.clone())).is_some() {
                        return Err(damaged(format!("portion {} is added twice", portion.path)));
                    }
                }
                LogEntry::Remove { path } => {
                    if self.portions.remove(path).is_none() {
                        return Err(damaged(format!("portion {path} is removed but was not visible")));
                    }
                    if let Some(summary) = summary.as_mut() {
                        summary.removed += 1;
                    }
                }
                LogEntry::Sweep { path } => {
                    if self.portions.contains_key(path) {
                        return Err(damaged(format!("portion {path} is given up while it is visible")));
                    }
                    self.swept.insert(path.clone());
                    if let Some(summary) = summary.as_mut() {
                        summary.swept.push(path.clone());
                    }
                }
                LogEntry::Source(source) => {
                    if let Some(summary) = summary.as_mut() {
                        summary.sources.push(source.clone());
                    }
                }
                LogEntry::Table(_) if version == Version::FIRST => {}
                LogEntry::Table(definition) => {
                    let altered = self.spec.altered(definition.clone());
                    self.spec = Arc::new(altered.map_err(|error| damaged(error.to_string()))?);
                }
                LogEntry::Checkpoint(_) | LogEntry::History(_) | LogEntry::End { .. } => {
                    return Err(damaged("this line does not belong in a commit".into()));
                }
            }
        }
        self.version = version;
        self.sources = OnceLock::new();
        self.commits.extend(summary.map(Arc::new));
        Ok(self)
    }

    fn sources_by_content(&self) -> &SourcesByContent {
        self.sources.get_or_init(|| {
            let mut sources = SourcesByContent::new();
            for commit in &self.commits {
                for (place, source) in commit.sources.iter().enumerate() {
                    sources.entry(source.xxh3.clone()).or_insert_with(|| (Arc::clone(commit), place));
                }
            }
            sources
        })
    }

    /// Builds a snapshot that has only these portions.
    ///
    /// # Errors
    /// [`LogError::Spec`] if the declaration is invalid.
    pub fn of_portions(
        table: &str,
        version: Version,
        definition: TableDefinition,
        portions: &[Arc<PortionEntry>],
    ) -> Result<Self, LogError> {
        Self::restore(table, "its declaration", version, definition, portions.to_vec(), Vec::new())
    }

    /// Builds the snapshot that a checkpoint holds.
    pub(super) fn restore(
        table: &str,
        file: &str,
        version: Version,
        definition: TableDefinition,
        portions: Vec<Arc<PortionEntry>>,
        commits: Vec<Arc<CommitSummary>>,
    ) -> Result<Self, LogError> {
        let spec = TableSpec::new(definition).map_err(|source| LogError::Spec {
            table: table.to_owned(),
            file: file.to_owned(),
            source,
        })?;
        let portions = portions.into_iter().map(|portion| (portion.path.clone(), portion)).collect();
        let swept = commits.iter().flat_map(|commit| commit.swept.iter().cloned()).collect();
        Ok(Self { version, spec: Arc::new(spec), portions, commits, sources: OnceLock::new(), swept })
    }

    /// Version of the snapshot.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Declaration of the table.
    #[must_use]
    pub fn spec(&self) -> &Arc<TableSpec> {
        &self.spec
    }

    /// Returns the visible portions by partition and age, oldest first.
    #[must_use]
    pub fn portions(&self) -> Vec<Arc<PortionEntry>> {
        let mut portions: Vec<_> = self.portions.values().cloned().collect();
        portions.sort_by(|a, b| (a.partition, a.sequence, &a.path).cmp(&(b.partition, b.sequence, &b.path)));
        portions
    }

    /// Returns the snapshot without the portions at `paths`.
    #[must_use]
    pub fn without(&self, paths: &[String]) -> Self {
        let mut rest = self.clone();
        for path in paths {
            rest.portions.remove(path);
        }
        rest
    }

    /// Returns the portion at a path, if it is visible.
    #[must_use]
    pub fn portion(&self, path: &str) -> Option<&Arc<PortionEntry>> {
        self.portions.get(path)
    }

    /// Whether a file was given up, so that no commit may name it.
    #[must_use]
    pub fn is_swept(&self, path: &str) -> bool {
        self.swept.contains(path)
    }

    /// Maximum number of portions of one partition that cover the same key; 0 if there are no
    /// portions.
    #[must_use]
    pub fn max_depth(&self) -> u64 {
        let portions = self.portions();
        let partitions = portions.chunk_by(|a, b| a.partition == b.partition);
        partitions.flat_map(overlap_depths).max().unwrap_or(0)
    }

    /// Number of rows in portions whose rows have all expired at `now`, in microseconds since 1970.
    #[must_use]
    pub fn expired_rows(&self, now: i64) -> u64 {
        let Some((column, oldest)) = self.spec.oldest_kept(now) else { return 0 };
        let expired = self.portions.values().filter(|portion| portion.has_expired(column, &oldest));
        expired.map(|portion| portion.rows).sum()
    }

    /// Number of visible portions.
    #[must_use]
    pub fn portion_count(&self) -> usize {
        self.portions.len()
    }

    /// Returns the ingested inputs, oldest first, each as it was first ingested.
    #[must_use]
    pub fn sources(&self) -> Vec<SourceEntry> {
        let mut seen = HashSet::new();
        let all = self.commits.iter().flat_map(|commit| &commit.sources);
        all.filter(|source| seen.insert(source.xxh3.as_str())).cloned().collect()
    }

    /// Returns the commits, oldest first.
    #[must_use]
    pub fn commits(&self) -> &[Arc<CommitSummary>] {
        &self.commits
    }

    /// Returns the version made by the commit with this id, if it exists.
    #[must_use]
    pub fn version_of(&self, commit_id: &str) -> Option<Version> {
        self.commits.iter().rev().find(|commit| commit.info.id == commit_id).map(|commit| commit.info.version)
    }

    /// Returns the input with this content and the version that ingested it first, if any.
    #[must_use]
    pub fn source(&self, xxh3: &str) -> Option<(Version, &SourceEntry)> {
        let (commit, place) = self.sources_by_content().get(xxh3)?;
        Some((commit.info.version, commit.sources.get(*place)?))
    }

    /// Returns the version that ingested an input with this content first, if any.
    #[must_use]
    pub fn source_version(&self, xxh3: &str) -> Option<Version> {
        self.source(xxh3).map(|(version, _)| version)
    }
}

/// Returns, for each portion of one partition in the order of their first keys, the number of
/// portions that cover its first key.
#[must_use]
pub fn overlap_depths(portions: &[Arc<PortionEntry>]) -> Vec<u64> {
    let ranges: Vec<_> =
        portions.iter().map(|portion| (&portion.key_range.min, &portion.key_range.max)).collect();
    depths(&ranges)
}

/// Builds the table from the bytes of its commits, from version 0 on; `table` names the table in
/// messages.
///
/// # Errors
/// [`LogError`] if a commit is damaged or contradicts those before it, or there are no commits.
pub fn fold(table: &str, commits: &[Vec<u8>]) -> Result<Snapshot, LogError> {
    let mut folded: Option<Snapshot> = None;
    for (version, bytes) in (0..).map(Version).zip(commits) {
        let entries = read_entries(table, version, bytes)?;
        folded = Some(match folded {
            None => Snapshot::first(table, &entries)?,
            Some(snapshot) => snapshot.apply(table, version, &entries)?,
        });
    }
    folded.ok_or_else(|| LogError::NotATable { table: table.to_owned() })
}
