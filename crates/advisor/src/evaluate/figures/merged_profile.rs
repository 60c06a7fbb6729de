//! Profiles that figures were merged from.

use serde::Serialize;

/// Profile that was merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergedProfile {
    /// File of the profile, or the rows that it was made from.
    pub file: String,
    /// Number of rows.
    pub rows: u64,
}
