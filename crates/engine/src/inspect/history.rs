//! Commits of a table.

use std::sync::Arc;

use serde::Serialize;

use evenkeel_model::units::Version;
use evenkeel_store::log::{CommitSummary, Operation, Snapshot};

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommitOverview {
    /// Version that it created.
    pub version: Version,
    /// Time of the commit, in microseconds since 1970 by the writer's clock.
    pub at_micros: i64,
    /// Operation that it recorded.
    pub operation: Operation,
    /// Rows that it added; for a compaction, rows that it rewrote.
    pub rows: u64,
    /// Keys that it deleted.
    pub deletes: u64,
    /// Bytes of the portions that it added.
    pub bytes: u64,
    /// Portions that it added.
    pub portions: u64,
    /// Portions that it removed.
    pub removed: u64,
    /// Names of the inputs committed with it.
    pub sources: Vec<String>,
}

/// The commits of a table, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableHistory {
    /// Name of the table.
    pub name: String,
    /// The commits.
    pub commits: Vec<CommitOverview>,
}

/// Returns the commits of a table up to the version of `snapshot`.
pub(crate) fn history(snapshot: &Snapshot) -> TableHistory {
    let commit = |commit: &Arc<CommitSummary>| CommitOverview {
        version: commit.info.version,
        at_micros: commit.info.at_micros,
        operation: commit.info.operation,
        rows: commit.rows(),
        deletes: commit.deletes,
        bytes: commit.bytes,
        portions: commit.portions,
        removed: commit.removed,
        sources: commit.sources.iter().map(|source| source.name.clone()).collect(),
    };
    let commits = snapshot.commits().iter().map(commit).collect();
    TableHistory { name: snapshot.spec().name().to_owned(), commits }
}
