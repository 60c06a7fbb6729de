//! Rows of the partitions of a database, as counted by the database.

use serde::Serialize;

/// Rows of one partition of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionRows {
    /// Name of its data file, or its number in the statistics.
    pub partition: String,
    /// Number of rows.
    pub rows: u64,
}
