//! Report on an export.

use serde::Serialize;

use evenkeel_model::units::Version;

/// Report on an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeltaExport {
    /// Name of the table.
    pub name: String,
    /// Version of the table.
    pub version: Version,
    /// Version of the Delta log that holds it.
    pub delta_version: u64,
    /// Whether that version was written now. It was not if the newest one had the same files and
    /// columns.
    pub written: bool,
    /// Number of files in it.
    pub files: u64,
    /// Number of rows in those files.
    pub rows: u64,
    /// Bytes of those files.
    pub bytes: u64,
    /// Number of files that the previous version did not have.
    pub added: u64,
    /// Number of files that only the previous version had.
    pub removed: u64,
    /// Columns that were left out.
    pub left_out: Vec<String>,
    /// Uint64 and Interval columns: Delta declares them as signed integers, but some readers do not
    /// convert the stored values automatically.
    pub converted: Vec<String>,
    /// Number of rows in files whose rows have all expired. Readers see them, as queries do, until
    /// a compaction drops them.
    pub expired_rows: u64,
}
