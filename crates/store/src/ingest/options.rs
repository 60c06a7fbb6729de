//! Options of an ingest.

use serde::{Deserialize, Serialize};

use evenkeel_model::units::ByteSize;

/// Smallest memory budget of an ingest.
pub const MIN_MEMORY: ByteSize = ByteSize::mib(128);
/// Memory budget of an ingest if none is given.
pub const DEFAULT_MEMORY: ByteSize = ByteSize::mib(1024);

/// Handling of a row whose primary key already exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IngestMode {
    /// The new row replaces the existing one.
    #[default]
    Upsert,
    /// The whole ingest fails, as INSERT does in YDB.
    Insert,
    /// The rows are primary keys, whose rows are deleted.
    Delete,
}

/// Options of an ingest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestOptions {
    /// Handling of keys that already exist.
    pub mode: IngestMode,
    /// Memory budget of the whole process during the ingest; at least [`MIN_MEMORY`].
    pub memory: ByteSize,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self { mode: IngestMode::Upsert, memory: DEFAULT_MEMORY }
    }
}
