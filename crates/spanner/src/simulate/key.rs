//! Key columns, by name and by position.

use serde::Serialize;

use crate::schema::SchemaKey;

/// A key column, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyOrder {
    /// Name of the column.
    pub column: String,
    /// Whether the order is descending.
    pub descending: bool,
}

impl From<&SchemaKey> for KeyOrder {
    fn from(part: &SchemaKey) -> Self {
        Self { column: part.column.clone(), descending: part.descending }
    }
}

/// A key column, by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyColumn {
    /// Position of the column in the export.
    pub(super) column: usize,
    /// Whether the order is descending.
    pub(super) descending: bool,
}
