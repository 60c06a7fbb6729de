//! Renders the rows that a database keeps in each partition.

use crate::grid::{Layout, count, heading, percent};
use evenkeel_advisor::evaluate::AdvisorReport;

/// Renders the distribution that the data files show, and the computed one; nothing if they show none.
pub(crate) fn measured(assessment: &AdvisorReport, layout: Layout) -> String {
    let Some(measured) = &assessment.measured else { return String::new() };
    let rows = || measured.files.iter().map(|file| file.rows);
    let mut text = heading(layout, "Measured in the database");
    text.push_str(&format!(
        "{} data files hold one partition each: {} to {} rows, max/mean {:.2}",
        measured.files.len(),
        count(rows().min().unwrap_or(0)),
        count(rows().max().unwrap_or(0)),
        measured.max_over_mean,
    ));
    if let Some(computed) = &measured.computed {
        let all: u64 = rows().sum();
        text.push_str(&format!(
            "; HASH({}) computes to {:.2}, and {} of the rows are in the file of their computed partition",
            computed.partition_key.join(", "),
            computed.max_over_mean,
            percent(computed.rows_in_place as f64 / all.max(1) as f64),
        ));
    }
    text.push('\n');
    text
}
