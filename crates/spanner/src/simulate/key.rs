//! Columns of keys, by position.

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyColumn {
    /// Its position in the export.
    pub(super) column: usize,
    /// Whether it descends.
    pub(super) descending: bool,
}
