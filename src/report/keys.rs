//! Candidates for a partition key, side by side.

use crate::evaluate::KeyBalanceReport;
use crate::report::grid::{Heading, Layout, count, grid, percent};

/// One row per candidate.
#[must_use]
pub fn keys(reports: &[KeyBalanceReport], layout: Layout) -> String {
    let rows = reports.iter().map(|report| {
        let over_time = report.over_time.as_ref();
        vec![
            report.partition_key.clone(),
            count(report.noise_floor.distinct_keys),
            percent(report.skew.share_of_fullest),
            format!("{:.2}", report.skew.max_over_mean),
            format!("{:.1}", report.skew.effective_partitions),
            over_time.map_or("-".to_owned(), |time| percent(time.median_share_of_fullest)),
            over_time.map_or("-".to_owned(), |time| format!("{:.1}", time.median_effective_partitions)),
            report.verdict.word().to_owned(),
        ]
    });
    let headings = [
        Heading("partition key", false),
        Heading("keys", true),
        Heading("fullest", true),
        Heading("max/mean", true),
        Heading("effective", true),
        Heading("fullest at a time", true),
        Heading("effective at a time", true),
        Heading("verdict", false),
    ];
    grid(layout, &headings, rows.collect())
}
