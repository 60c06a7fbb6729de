//! Card of one partition key: its figures, its partitions and their course over time.

use std::fmt::Write as _;

use crate::grid::{count, percent};
use crate::html::heat_map::heat_map;
use crate::html::page::escape;
use crate::html::svg::{heavy_values, partition_bars};
use crate::values::{instant, rate, rows_per_second};
use evenkeel_advisor::evaluate::{
    AdvisorReport, Interval, OverTime, PartitionKeyReport, PlacementReport, RankedKey, Window,
};
use evenkeel_stats::skew::Verdict;

/// Writes the card of a key.
pub(super) fn candidate(
    page: &mut String,
    assessment: &AdvisorReport,
    ranked: &RankedKey,
    key: &PartitionKeyReport,
    placement: &PlacementReport,
) {
    let name = escape(&format!("HASH({})", key.partition_key.join(", ")));
    let _ = writeln!(
        page,
        "<section class=\"card\">\n<h2>{name} <span class=\"badge {}\">{}</span></h2>",
        if placement.verdict == Verdict::Even { "good" } else { "bad" },
        placement.verdict.word()
    );
    let _ = writeln!(page, "<p>{}</p>", escape(placement.verdict.sentence()));
    if let Some(obstacle) = &ranked.obstacle {
        let _ = writeln!(page, "<p>Cannot be chosen: {}.</p>", escape(obstacle));
    }
    figures(page, key, placement);
    charts(page, key, placement);
    match &placement.over_time {
        Some(time) => course(page, placement, time),
        None if assessment.evaluation.time.is_some() => {
            page.push_str("<p>No window of time has enough rows to be judged.</p>\n");
        }
        None => {}
    }
    page.push_str("</section>\n");
}

/// Draws the rows of each partition, and the heaviest values.
fn charts(page: &mut String, key: &PartitionKeyReport, placement: &PlacementReport) {
    page.push_str("<div class=\"charts\">\n<figure>\n");
    page.push_str(&partition_bars(&placement.rows_per_partition, placement.noise_floor.expected_cv_weighted));
    let _ = writeln!(
        page,
        "<figcaption>Rows per partition. The band is the range expected of a perfect hash for these keys, two \
         standard deviations to each side. {}</figcaption>\n</figure>",
        escape(&sentence(&placement.causes.words))
    );
    page.push_str("<figure>\n");
    page.push_str(&heavy_values(&key.heavy_hitters, 1.0 / placement.skew.partitions.max(1) as f64));
    page.push_str(
        "<figcaption>The heaviest values; the line is the even share of a partition.</figcaption>\n</figure>\n</div>\n",
    );
}

/// Draws partitions against time, and describes the fullest partition at any moment.
pub(super) fn course(page: &mut String, placement: &PlacementReport, time: &OverTime) {
    page.push_str("<figure>\n");
    page.push_str(&heat_map(&placement.windows, placement.skew.partitions, time.window_micros));
    let start = |window: Option<&Window>| window.map_or(String::new(), |window| instant(window.start_micros));
    let _ = write!(
        page,
        "<figcaption>Partitions (the first at the top) over time, from {} to {} in windows of {}: {}. At any moment \
         ({}), the fullest partition gets {} of the rows; at worst, at {}, {}. {} partitions were the fullest at \
         some time",
        start(placement.windows.first()),
        start(placement.windows.last()),
        time.window_micros,
        time.pattern.word(),
        escape(&time.examined_words()),
        percent(time.share_of_fullest.median),
        instant(time.worst_window.start_micros),
        percent(time.worst_window.share_of_fullest),
        time.evidence.partitions_that_were_fullest,
    );
    if let Some(alike) = time.evidence.alike_next {
        let _ = write!(
            page,
            "; from one window to the next {} of the rows stay on their partitions",
            percent(alike)
        );
    }
    page.push_str(".</figcaption>\n</figure>\n");
}

/// Returns the words as a sentence, with a capital letter and a full stop.
fn sentence(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", characters.as_str())
}

fn figures(page: &mut String, key: &PartitionKeyReport, placement: &PlacementReport) {
    let skew = &placement.skew;
    let mut figures = vec![
        ("distinct values", distinct(key)),
        ("per partition", format!("{:.1}", placement.noise_floor.keys_per_partition)),
        ("idle fraction", percent(skew.idle_fraction)),
        ("max / mean", format!("{:.3}", skew.max_over_mean)),
        ("CV", percent(skew.cv)),
        ("CV by chance", percent(placement.noise_floor.expected_cv_weighted)),
        ("empty partitions", count(skew.empty_partitions as u64)),
        ("sustained inserts", rate(placement.capacity.sustained)),
        ("in the worst window", rate(placement.capacity.worst_window)),
        ("if even", rate(placement.capacity.if_even)),
        ("rows with NULL", count(key.null_rows)),
        ("bytes of a key", format!("{:.1}", key.mean_key_bytes)),
    ];
    if let Some(batch) = &placement.per_batch {
        figures.push(("partitions per batch", format!("{:.0}", batch.partitions_written.median)));
    }
    if let Some(time) = &placement.over_time {
        figures.push(("peak of one partition", rows_per_second(time.peak.rows_per_second_of_fullest)));
    }
    if let Some(intervals) = &placement.intervals {
        let interval = intervals.max_over_mean;
        figures.push(("max / mean of all rows", format!("{:.3} to {:.3}", interval.lower, interval.upper)));
        let between = |interval: Option<Interval>, shown: fn(f64) -> String| {
            let both = |Interval { lower, upper }| format!("{} to {}", shown(lower), shown(upper));
            interval.map_or_else(|| "no interval: the sample has too few rows".to_owned(), both)
        };
        figures.push(("CV of all rows", between(intervals.cv, percent)));
        figures.push((
            "effective partitions of all rows",
            between(intervals.effective_partitions, |x| format!("{x:.1}")),
        ));
    }
    page.push_str("<dl>\n");
    for (name, value) in figures {
        let _ = writeln!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    page.push_str("</dl>\n");
}

/// Formats the number of distinct values, with its bounds if it is an estimate.
pub(super) fn distinct(key: &PartitionKeyReport) -> String {
    let distinct = &key.distinct;
    if distinct.exact {
        count(distinct.estimate)
    } else {
        format!("{} ({} to {})", count(distinct.estimate), count(distinct.lower), count(distinct.upper))
    }
}

#[cfg(test)]
#[path = "candidate_tests.rs"]
mod tests;
