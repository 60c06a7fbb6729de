//! Renders the reads of a query.

use std::fmt::Write as _;

use crate::grid::count;
use evenkeel_engine::query::ScanSummary;

/// Renders one paragraph per scan.
#[must_use]
pub fn scans(scans: &[ScanSummary]) -> String {
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
