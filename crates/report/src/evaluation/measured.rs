//! Renders the rows that a database keeps in each partition.

use crate::grid::{Layout, count, heading, percent};
use evenkeel_advisor::evaluate::{AdvisorReport, MeasuredIn};

/// Renders the measured distribution, from data files or statistics, and the computed one; nothing
/// without measurements.
pub(crate) fn measured(assessment: &AdvisorReport, layout: Layout) -> String {
    let Some(measured) = &assessment.measured else { return String::new() };
    let rows = || measured.partitions.iter().map(|partition| partition.rows);
    let mut text = heading(layout, "Measured in the database");
    text.push_str(&format!(
        "{} {}: {} to {} rows, max/mean {:.2}",
        measured.partitions.len(),
        match measured.measured_in {
            MeasuredIn::Files => "data files hold one partition each",
            MeasuredIn::Statistics => "partitions in the statistics",
        },
        count(rows().min().unwrap_or(0)),
        count(rows().max().unwrap_or(0)),
        measured.max_over_mean,
    ));
    if let Some(computed) = &measured.computed {
        let all: u64 = rows().sum();
        text.push_str(&format!(
            "; HASH({}) of this export computes to {:.2}",
            computed.partition_key.join(", "),
            computed.max_over_mean,
        ));
        if let Some(rows_in_place) = computed.rows_in_place {
            text.push_str(&format!(
                ", and {} of the rows are in the file of their computed partition",
                percent(rows_in_place as f64 / all.max(1) as f64),
            ));
        }
    }
    text.push('\n');
    text
}
