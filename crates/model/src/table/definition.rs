//! Table declarations as they are written, unchecked.

use serde::{Deserialize, Serialize};

use crate::table::{ColumnType, PlacementFunction, Ttl};
use crate::units::PartitionCount;

/// One declared column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Case-sensitive name.
    pub name: String,
    /// Type of the column.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// Whether the column is nullable.
    pub nullable: bool,
}

impl Column {
    /// Creates a nullable column.
    #[must_use]
    pub fn nullable(name: impl Into<String>, column_type: ColumnType) -> Self {
        Self { name: name.into(), column_type, nullable: true }
    }

    /// Creates a NOT NULL column.
    #[must_use]
    pub fn required(name: impl Into<String>, column_type: ColumnType) -> Self {
        Self { name: name.into(), column_type, nullable: false }
    }
}

/// Returns the position of the only column of points in time, or else of the only date column.
#[must_use]
pub fn only_time_column(columns: &[Column]) -> Option<usize> {
    let only = |is: fn(ColumnType) -> bool| {
        let mut times = columns.iter().enumerate().filter(|(_, column)| is(column.column_type));
        (times.next().map(|(index, _)| index), times.next().is_some())
    };
    match (only(ColumnType::is_timestamp), only(ColumnType::is_time)) {
        ((Some(index), false), _) | ((None, _), (Some(index), false)) => Some(index),
        _ => None,
    }
}

/// An unchecked declaration, as it appears in flags, DDL and the log.
/// [`crate::table::TableSpec::new`] checks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDefinition {
    /// Name of the table, also in SQL.
    pub name: String,
    /// Columns in declared order.
    pub columns: Vec<Column>,
    /// Names of the primary-key columns, in key order.
    pub primary_key: Vec<String>,
    /// Names of the partition-key columns, in hash order; if empty, the whole primary key is used.
    pub partition_key: Vec<String>,
    /// Number of hash partitions.
    pub partitions: PartitionCount,
    /// Function from partition key to partition.
    #[serde(default)]
    pub placement: PlacementFunction,
    /// Time to live of rows; `None` keeps them forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
}
