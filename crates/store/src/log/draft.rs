//! Content of a commit before it has a version.

use crate::log::entry::{CommitInfo, LogEntry, Operation, PortionEntry, Sequence, SourceEntry};
use evenkeel_model::table::{FORMAT_VERSION, FORMAT_WITHOUT_DELETES, TableDefinition, TableSpec};
use evenkeel_model::units::Version;

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
    /// Drafts the first commit, which declares the table.
    pub(super) fn create(spec: &TableSpec) -> Self {
        Self { definition: Some(spec.definition().clone()), ..Self::empty(Operation::Create) }
    }

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
    pub(crate) fn sweep(files: Vec<String>) -> Self {
        Self { swept: files, ..Self::empty(Operation::Clean) }
    }

    /// Unique id that identifies the commit.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Portions that the commit adds.
    pub(super) fn portions(&self) -> &[PortionEntry] {
        &self.portions
    }

    /// Returns the lines of the commit that makes `version`.
    pub(super) fn entries(&self, version: Version) -> Vec<LogEntry> {
        let has_deletes =
            self.operation == Operation::Delete || self.portions.iter().any(|portion| portion.deletes);
        let commit = LogEntry::Commit(CommitInfo {
            format: if has_deletes { FORMAT_VERSION } else { FORMAT_WITHOUT_DELETES },
            version,
            id: self.id.clone(),
            operation: self.operation,
            at_micros: chrono::Utc::now().timestamp_micros(),
        });
        let definition = self.definition.clone().map(LogEntry::Table);
        let removes = self.removed.iter().map(|path| LogEntry::Remove { path: path.clone() });
        let fresh = self.operation.changes_rows();
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
