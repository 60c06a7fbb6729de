//! Renders candidates for a partition key, side by side.

use crate::grid::{Heading, Layout, count, grid, percent};
use evenkeel_advisor::evaluate::PartitionKeyReport;
use evenkeel_model::units::PartitionCount;

/// Renders one row per candidate, with its placement over `partitions` partitions.
#[must_use]
pub fn keys(reports: &[PartitionKeyReport], partitions: PartitionCount, layout: Layout) -> String {
    let placed = reports.iter().filter_map(|report| Some((report, report.over(partitions)?)));
    let rows = placed.map(|(report, placement)| {
        let over_time = placement.over_time.as_ref();
        let distinct = count(report.distinct.estimate);
        vec![
            report.partition_key.join(", "),
            if report.distinct.exact { distinct } else { format!("~{distinct}") },
            percent(placement.skew.share_of_fullest),
            format!("{:.2}", placement.skew.max_over_mean),
            format!("{:.1}", placement.skew.effective_partitions),
            over_time.map_or("-".to_owned(), |time| percent(time.lasting_share_of_fullest.median)),
            over_time
                .map_or("-".to_owned(), |time| format!("{:.1}", time.lasting_effective_partitions.median)),
            placement.verdict.word().to_owned(),
        ]
    });
    let headings = [
        Heading::text("partition key"),
        Heading::number("keys"),
        Heading::number("fullest"),
        Heading::number("max/mean"),
        Heading::number("effective"),
        Heading::number("fullest at any moment"),
        Heading::number("effective at any moment"),
        Heading::text("verdict"),
    ];
    grid(layout, &headings, rows.collect())
}
