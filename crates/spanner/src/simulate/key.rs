//! Key columns by position.

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyColumn {
    /// Position of the column in the export.
    pub(super) column: usize,
    /// Whether the order is descending.
    pub(super) descending: bool,
}
