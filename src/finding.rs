//! A measured warning with advice.

use serde::Serialize;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It breaks the table or loses rows.
    Problem,
    /// It costs speed or room.
    Warning,
    /// It is worth knowing.
    Note,
}

impl Severity {
    /// One word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Something that was measured and lies beyond a threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What it is, for programs: `few_distinct_keys`.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The key or column that it is about.
    pub subject: String,
    /// What was measured, in words with its unit.
    pub message: String,
    /// The figure itself.
    pub measured: f64,
    /// Where it begins to matter.
    pub threshold: f64,
    /// What to try next.
    pub advice: String,
}
