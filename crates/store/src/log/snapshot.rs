//! A table at one version: the fold of its commits.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use ahash::{AHashMap, AHashSet};

use crate::log::entry::{
    CommitInfo, CommitSummary, LogEntry, Operation, PortionEntry, SourceEntry, commit_path, read_entries,
};
use crate::log::error::LogError;
use evenkeel_model::table::{TableDefinition, TableSpec};
use evenkeel_model::units::Version;
use evenkeel_stats::overlap::depths;

/// For the content of each input, the commit that ingested it first and its position among the
/// inputs of that commit.
type SourcesByContent = AHashMap<String, (Arc<CommitSummary>, usize)>;

/// A portion that a set finds by its path.
#[derive(Debug, Clone)]
struct ByPath(Arc<PortionEntry>);

impl Borrow<str> for ByPath {
    fn borrow(&self) -> &str {
        &self.0.path
    }
}

impl Hash for ByPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.path.as_str().hash(state);
    }
}

impl PartialEq for ByPath {
    fn eq(&self, other: &Self) -> bool {
        self.0.path == other.0.path
    }
}

impl Eq for ByPath {}

/// A table at one version. It is immutable; a reader may keep it indefinitely.
#[derive(Debug, Clone)]
pub struct Snapshot {
    version: Version,
    spec: Arc<TableSpec>,
    /// Visible portions by path, so that the fold finds removed ones.
    portions: AHashSet<ByPath>,
    commits: Vec<Arc<CommitSummary>>,
    /// Inputs of `commits` by content, built on first use, because queries never need them.
    sources: OnceLock<SourcesByContent>,
    /// Files that no commit may name any more.
    swept: HashSet<String>,
}

impl Snapshot {
    /// Builds the snapshot of the first commit.
    pub(super) fn first(table: &str, entries: Vec<LogEntry>) -> Result<Self, LogError> {
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
            portions: AHashSet::new(),
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
        entries: Vec<LogEntry>,
    ) -> Result<Self, LogError> {
        let mut summary = None;
        for (index, entry) in entries.into_iter().enumerate() {
            self.apply_entry(version, entry, &mut summary).map_err(|reason| LogError::Damaged {
                table: table.to_owned(),
                file: commit_path(version),
                line: index + 1,
                reason,
            })?;
        }
        self.version = version;
        self.sources = OnceLock::new();
        self.commits.extend(summary.map(Arc::new));
        Ok(self)
    }

    /// Applies one line of a commit; `summary` is the summary so far. The error is the reason why
    /// the line contradicts the snapshot.
    fn apply_entry(
        &mut self,
        version: Version,
        entry: LogEntry,
        summary: &mut Option<CommitSummary>,
    ) -> Result<(), String> {
        match entry {
            LogEntry::Commit(info) => *summary = Some(self.empty_summary(info)),
            LogEntry::Add(portion) => return self.add(portion, summary.as_mut()),
            LogEntry::Remove { path } => {
                if !self.portions.remove(path.as_str()) {
                    return Err(format!("portion {path} is removed but was not visible"));
                }
                summary.iter_mut().for_each(|summary| summary.removed += 1);
            }
            LogEntry::Sweep { path } => {
                if self.portions.contains(path.as_str()) {
                    return Err(format!("portion {path} is given up while it is visible"));
                }
                summary.iter_mut().for_each(|summary| summary.swept.push(path.clone()));
                self.swept.insert(path);
            }
            LogEntry::Source(source) => {
                summary.iter_mut().for_each(|summary| summary.sources.push(source.clone()));
            }
            LogEntry::Table(_) if version == Version::FIRST => {}
            LogEntry::Table(definition) => {
                let altered = self.spec.altered(definition);
                self.spec = Arc::new(altered.map_err(|error| error.to_string())?);
            }
            LogEntry::Checkpoint(_) | LogEntry::History(_) | LogEntry::End { .. } => {
                return Err("this line does not belong in a commit".to_owned());
            }
        }
        Ok(())
    }

    /// Makes a portion visible.
    fn add(&mut self, portion: PortionEntry, summary: Option<&mut CommitSummary>) -> Result<(), String> {
        let summary = summary.ok_or("an entry before the commit")?;
        let rows = summary.rows_per_partition.get_mut(portion.partition.index());
        *rows.ok_or_else(|| format!("there is no partition {}", portion.partition))? += portion.data_rows();
        summary.deletes += portion.deleted_keys();
        summary.bytes += portion.bytes;
        summary.portions += 1;
        let portion = Arc::new(portion);
        match self.portions.insert(ByPath(Arc::clone(&portion))) {
            true => Ok(()),
            false => Err(format!("portion {} is added twice", portion.path)),
        }
    }

    fn empty_summary(&self, info: CommitInfo) -> CommitSummary {
        CommitSummary {
            info,
            rows_per_partition: vec![0; self.spec.partitions().len()],
            bytes: 0,
            portions: 0,
            removed: 0,
            sources: Vec::new(),
            deletes: 0,
            swept: Vec::new(),
        }
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
    pub fn from_portions(
        table: &str,
        version: Version,
        definition: TableDefinition,
        portions: &[Arc<PortionEntry>],
    ) -> Result<Self, LogError> {
        Self::restore(
            table,
            "its declaration",
            version,
            definition,
            portions.to_vec(),
            Vec::new(),
            Vec::new(),
        )
    }

    /// Builds the snapshot that a checkpoint holds.
    pub(super) fn restore(
        table: &str,
        file: &str,
        version: Version,
        definition: TableDefinition,
        portions: Vec<Arc<PortionEntry>>,
        commits: Vec<Arc<CommitSummary>>,
        swept: Vec<String>,
    ) -> Result<Self, LogError> {
        let spec = TableSpec::new(definition).map_err(|source| LogError::Spec {
            table: table.to_owned(),
            file: file.to_owned(),
            source,
        })?;
        let portions = portions.into_iter().map(ByPath).collect();
        let swept = commits.iter().flat_map(|commit| commit.swept.iter().cloned()).chain(swept).collect();
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

    /// Returns the visible portions in no particular order.
    fn visible(&self) -> impl Iterator<Item = &Arc<PortionEntry>> {
        self.portions.iter().map(|portion| &portion.0)
    }

    /// Returns the visible portions by partition and age, oldest first.
    #[must_use]
    pub fn portions(&self) -> Vec<Arc<PortionEntry>> {
        let mut portions: Vec<_> = self.visible().cloned().collect();
        portions.sort_by(|a, b| (a.partition, a.sequence, &a.path).cmp(&(b.partition, b.sequence, &b.path)));
        portions
    }

    /// Returns the snapshot without the portions at `paths`.
    #[must_use]
    pub fn without(&self, paths: &[String]) -> Self {
        let mut rest = self.clone();
        for path in paths {
            rest.portions.remove(path.as_str());
        }
        rest
    }

    /// Returns the portion at a path, if it is visible.
    #[must_use]
    pub fn portion(&self, path: &str) -> Option<&Arc<PortionEntry>> {
        self.portions.get(path).map(|portion| &portion.0)
    }

    /// Whether a file was given up, so that no commit may name it.
    #[must_use]
    pub(crate) fn is_swept(&self, path: &str) -> bool {
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
        let expired = self.visible().filter(|portion| portion.has_expired(column, &oldest));
        expired.map(|portion| portion.data_rows()).sum()
    }

    /// Whether a visible portion holds deletes.
    #[must_use]
    pub fn has_deletes(&self) -> bool {
        self.visible().any(|portion| portion.deletes)
    }

    /// Whether the table, or its history, has deletes, which builds of format 2 do not know.
    pub(super) fn knows_deletes(&self) -> bool {
        let of_deletes =
            |commit: &Arc<CommitSummary>| commit.deletes > 0 || commit.info.operation == Operation::Delete;
        self.has_deletes() || self.commits.iter().any(of_deletes)
    }

    /// Keeps the visible portions in memory until the process ends. Dropping thousands of them one by
    /// one takes as long as a short query.
    pub fn leak_portions(&self) {
        self.visible().for_each(|portion| std::mem::forget(Arc::clone(portion)));
    }

    /// Number of visible portions.
    #[must_use]
    pub fn portion_count(&self) -> usize {
        self.portions.len()
    }

    /// Size of the visible portions in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.visible().map(|portion| portion.bytes).sum()
    }

    /// Returns the ingested inputs, oldest first, each as it was first ingested.
    #[must_use]
    pub fn sources(&self) -> Vec<SourceEntry> {
        let mut seen = HashSet::new();
        let all = self.commits.iter().flat_map(|commit| &commit.sources);
        all.filter(|source| seen.insert(source.xxh3.as_str())).cloned().collect()
    }

    /// Whether the history reaches back to this version.
    #[must_use]
    pub(crate) fn lists(&self, version: Version) -> bool {
        self.commits.first().is_some_and(|first| first.info.version <= version)
    }

    /// Returns the snapshot with a history that begins at a version, or at its own if that is
    /// older. The inputs of the commits before it are no longer known.
    #[must_use]
    pub(crate) fn with_history_from(&self, version: Version) -> Self {
        let mut shorter = self.clone();
        let first = version.min(self.version);
        shorter.commits.retain(|commit| commit.info.version >= first);
        shorter.sources = OnceLock::new();
        shorter
    }

    /// Returns the files that were given up by commits before the history begins, sorted.
    pub(super) fn swept_before_history(&self) -> Vec<String> {
        let listed: HashSet<&String> = self.commits.iter().flat_map(|commit| &commit.swept).collect();
        let mut before: Vec<String> =
            self.swept.iter().filter(|path| !listed.contains(path)).cloned().collect();
        before.sort();
        before
    }

    /// Returns the commits, oldest first; after a cleaning, only the kept ones.
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
    pub(crate) fn source_version(&self, xxh3: &str) -> Option<Version> {
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
            None => Snapshot::first(table, entries)?,
            Some(snapshot) => snapshot.apply(table, version, entries)?,
        });
    }
    folded.ok_or_else(|| LogError::NotATable { table: table.to_owned() })
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
