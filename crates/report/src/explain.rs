//! Renders the plan of a query.

use std::fmt::Write as _;

use crate::grid::count;
use evenkeel_engine::query::{Explanation, ScanSummary};

/// Renders the scans and joins of a query in words, and then its plan.
#[must_use]
pub fn explanation(explanation: &Explanation) -> String {
    let mut text = scans(&explanation.scans);
    for join in &explanation.joins {
        let _ = writeln!(text, "join of {join}");
    }
    let _ = write!(text, "\n{}", explanation.plan);
    text
}

/// Renders one paragraph per scan.
fn scans(scans: &[ScanSummary]) -> String {
    let mut text = String::new();
    for scan in scans {
        let _ = writeln!(
            text,
            "scan of {}: {} of {} partitions, {} of {} portions, {} rows in them{}",
            scan.table,
            scan.partitions_read,
            scan.partitions,
            scan.portions_read,
            scan.portions,
            count(scan.rows_in_portions),
            if scan.portions_merged > 0 {
                format!("; {} portions overlap and are merged", scan.portions_merged)
            } else {
                String::new()
            }
        );
        for reason in &scan.reasons {
            let _ = writeln!(text, "  - {reason}");
        }
    }
    if scans.is_empty() {
        text.push_str("no scan of the table\n");
    }
    text
}
