//! The plan of a query that is not run.

use serde::Serialize;

use crate::query::local_joins::JoinSummary;
use crate::query::scan::scan_summary::ScanSummary;

/// The plan of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Scans of tables.
    pub scans: Vec<ScanSummary>,
    /// Joins of tables, and whether they stay within partitions.
    pub joins: Vec<JoinSummary>,
    /// Physical plan as text. Only the plan of the largest partition is shown.
    pub plan: String,
}
