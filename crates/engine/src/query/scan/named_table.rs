//! Tables, and the names that queries know them by.

use std::sync::Arc;

use crate::query::scan::provider::SnapshotTable;

/// A table, and the names that queries know it by.
#[derive(Debug, Clone)]
pub(in crate::query) struct NamedTable {
    pub(in crate::query) names: Vec<String>,
    pub(in crate::query) table: Arc<SnapshotTable>,
}

impl NamedTable {
    /// Name under which a table is available if it is the only one.
    pub(in crate::query) const ALIAS: &str = "t";

    /// Names the only table of a session: `t`, and its own name.
    pub(in crate::query) fn alone(table: Arc<SnapshotTable>) -> Self {
        Self { names: Self::names_alone(table.snapshot().spec().name()), table }
    }

    /// Returns the names of the only table of a session.
    pub(in crate::query) fn names_alone(own: &str) -> Vec<String> {
        let mut names = vec![Self::ALIAS.to_owned()];
        names.extend((own != Self::ALIAS).then(|| own.to_owned()));
        names
    }

    /// Returns the last name, which is the table's own if it has two.
    pub(in crate::query) fn name(&self) -> &str {
        self.names.last().map_or(Self::ALIAS, String::as_str)
    }
}
