//! The handle of a log.

use evenkeel_storage::TableStorage;

/// Commits read concurrently when a table is opened.
pub(super) const CONCURRENT_READS: usize = 16;

/// The log of one table.
#[derive(Debug, Clone)]
pub struct TableLog {
    pub(super) storage: TableStorage,
}

impl TableLog {
    /// Opens the log of a table for a caller that only stores portions and does not read commits.
    #[must_use]
    pub fn in_storage(storage: TableStorage) -> Self {
        Self { storage }
    }

    /// Files of the table.
    #[must_use]
    pub fn storage(&self) -> &TableStorage {
        &self.storage
    }

    pub(super) fn name(&self) -> String {
        self.storage.name().to_owned()
    }
}
