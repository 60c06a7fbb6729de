//! Tables that an export declares itself.

use std::fmt;

use serde::{Deserialize, Serialize};

use evenkeel_model::table::{Column, Ttl};

/// Arrangement of the rows of a declared table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableLayout {
    /// Hash partitions of columns.
    Column,
    /// Rows in ranges of the primary key.
    Row,
}

impl fmt::Display for TableLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Column => "column table",
            Self::Row => "row table",
        })
    }
}

/// A table as the dump of its database declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredTable {
    /// File of the declaration.
    pub file: String,
    /// Path of the table in the dump; empty if the folder is the table.
    pub name: String,
    /// Arrangement of its rows.
    pub layout: TableLayout,
    /// Columns, in the order of the data files.
    pub columns: Vec<Column>,
    /// Columns of the primary key, in order.
    pub primary_key: Vec<String>,
    /// Columns whose hash decides on the partition, in order; empty for ranges.
    pub partition_key: Vec<String>,
    /// Number of partitions; `None` if it is not declared.
    pub partitions: Option<u64>,
    /// Time to live of rows.
    pub ttl: Option<Ttl>,
    /// Remarks on declarations that have no equivalent here, one sentence each.
    pub notes: Vec<String>,
    /// Whether each data file holds the rows of one partition of the database.
    pub has_file_per_partition: bool,
}
