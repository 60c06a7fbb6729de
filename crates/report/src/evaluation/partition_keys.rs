//! Figures of the candidates for the partition key.

use std::fmt::Write as _;

use crate::evaluation::chosen_partitions;
use crate::grid::{Heading, Layout, count, draw, heading, percent, section};
use crate::values::{instant, key_text, rate, rows_per_second, spark};
use evenkeel_advisor::evaluate::{
    AdvisorReport, Interval, Intervals, PartitionKeyReport, PlacementReport, RankedKey,
};
use evenkeel_placement::placement::Function;
use evenkeel_placement::placement::systems::About;
use evenkeel_stats::skew::Verdict;

/// Number of heaviest values shown per key.
const HEAVIEST: usize = 3;

/// Maximum number of partitions whose rows are drawn in one line.
const MAX_DRAWN: usize = 128;

/// Number of placement functions beyond which only `KEYS_OF_MANY` keys are shown with each.
const MANY_FUNCTIONS: usize = 4;

const KEYS_OF_MANY: usize = 2;

/// Returns the candidates in the order of the ranking, each with its placement over the recommended
/// number of partitions.
pub(crate) fn ranked(
    assessment: &AdvisorReport,
) -> impl Iterator<Item = (&RankedKey, &PartitionKeyReport, &PlacementReport)> {
    let partitions = chosen_partitions(assessment);
    assessment.ranking.iter().filter_map(move |ranked| {
        let mut keys = assessment.evaluation.candidates.iter();
        let key = keys.find(|key| key.partition_key == ranked.partition_key)?;
        Some((ranked, key, key.over(partitions)?))
    })
}

/// Formats a figure; if it comes from a sample, with the interval for the whole export.
fn with_interval(
    figure: f64,
    placement: &PlacementReport,
    interval: fn(&Intervals) -> Option<Interval>,
    shown: impl Fn(f64) -> String,
) -> String {
    match placement.intervals.as_ref().map(interval) {
        Some(Some(Interval { lower, upper })) => {
            format!("{} ({} to {})", shown(figure), shown(lower), shown(upper))
        }
        Some(None) => format!("{} (no interval)", shown(figure)),
        None => shown(figure),
    }
}

/// Formats the number of values of a key; an estimate is marked.
pub(crate) fn distinct_values(key: &PartitionKeyReport) -> String {
    let distinct = count(key.distinct.estimate);
    if key.distinct.exact { distinct } else { format!("~{distinct}") }
}

/// Formats the share of the rows with the most frequent value.
pub(crate) fn heaviest_share(key: &PartitionKeyReport) -> String {
    key.heavy_hitters.first().map_or("-".to_owned(), |heaviest| percent(heaviest.share))
}

/// Formats the rows of the fullest partition relative to the average partition.
pub(crate) fn max_over_mean(placement: &PlacementReport) -> String {
    with_interval(placement.skew.max_over_mean, placement, |i| Some(i.max_over_mean), |x| format!("{x:.2}"))
}

/// Formats the partitions that share the work at any moment.
pub(crate) fn at_a_time(placement: &PlacementReport) -> String {
    let time = placement.over_time.as_ref();
    time.map_or("-".to_owned(), |time| format!("{:.1}", time.lasting_effective_partitions.median))
}

/// Formats the partitions that a statement visits on average.
pub(crate) fn partitions_read(ranked: &RankedKey) -> String {
    ranked.mean_partitions_read.map_or("-".to_owned(), |read| format!("{read:.1}"))
}

/// Whether the partitions that statements visit were counted.
pub(crate) fn has_statements(assessment: &AdvisorReport) -> bool {
    assessment.statements.iter().any(|statement| statement.problem.is_none())
}

pub(super) fn candidates(assessment: &AdvisorReport, layout: Layout) -> String {
    let statements = has_statements(assessment);
    let rows = ranked(assessment).map(|(ranked, key, placement)| {
        let time = placement.over_time.as_ref();
        let mut row = vec![
            key.partition_key.join(", "),
            distinct_values(key),
            heaviest_share(key),
            max_over_mean(placement),
            with_interval(placement.skew.cv, placement, |i| i.cv, percent),
            percent(placement.noise_floor.expected_cv_weighted),
            with_interval(
                placement.skew.effective_partitions,
                placement,
                |i| i.effective_partitions,
                |x| format!("{x:.1}"),
            ),
            at_a_time(placement),
            time.map_or("-".to_owned(), |time| time.pattern.word().to_owned()),
            rate(placement.capacity.sustained),
        ];
        if statements {
            row.push(partitions_read(ranked));
        }
        row.push(match &ranked.obstacle {
            Some(_) => format!("{}; cannot be chosen", placement.verdict.word()),
            None => placement.verdict.word().to_owned(),
        });
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut headings = vec![
        Heading::text("partition key"),
        Heading::number("values"),
        Heading::number("heaviest"),
        Heading::number("max/mean"),
        Heading::number("CV"),
        Heading::number("by chance"),
        Heading::number("effective"),
        Heading::number("at any moment"),
        Heading::text("pattern"),
        Heading::number("sustains"),
    ];
    if statements {
        headings.push(Heading::number("read"));
    }
    headings.push(Heading::text("verdict"));
    let title =
        format!("Partition keys over {} partitions, the best first", assessment.recommendation.partitions);
    let mut text = section(layout, &title, &headings, rows);
    if !text.is_empty() {
        text.push_str(
            "\nby chance: the CV that a perfect hash gives to these keys; effective: number of evenly filled partitions that would be equally \
             concentrated, in total and at any moment; sustains: inserts before a partition is overloaded",
        );
        text.push_str(if statements {
            "; read: partitions that a statement visits on average\n"
        } else {
            "\n"
        });
    }
    text
}

/// Draws the rows of each partition as a line of bars.
pub(super) fn partitions(assessment: &AdvisorReport, layout: Layout) -> String {
    let rows = ranked(assessment).map(|(_, key, placement)| {
        let drawn = if placement.skew.partitions <= MAX_DRAWN {
            spark(&placement.rows_per_partition)
        } else {
            format!("{} partitions", placement.skew.partitions)
        };
        vec![key.partition_key.join(", "), drawn]
    });
    let headings = [Heading::text("partition key"), Heading::text("rows per partition")];
    let mut text = section(layout, "Rows per partition", &headings, rows.collect());
    for (_, key, placement) in ranked(assessment).filter(|(_, _, p)| p.verdict != Verdict::Even) {
        let _ = writeln!(text, "- {}: {}", key.partition_key.join(", "), placement.causes.words);
    }
    text
}

/// Renders how the windows of time and the batches of an ingest spread.
pub(super) fn over_time(assessment: &AdvisorReport, layout: Layout) -> String {
    let rows = ranked(assessment).filter_map(|(_, key, placement)| {
        let time = placement.over_time.as_ref()?;
        let effective = &time.effective_partitions;
        let written =
            placement.per_batch.as_ref().map(|batch| format!("{:.0}", batch.partitions_written.median));
        Some(vec![
            key.partition_key.join(", "),
            time.pattern.word().to_owned(),
            format!("{} of {}", time.examined_words(), count(time.examined.rows_per_window)),
            format!("{:.1}, {:.1}, {:.1}", effective.median, effective.p10, effective.min),
            percent(time.share_of_fullest.median),
            format!(
                "{} ({})",
                instant(time.worst_window.start_micros),
                percent(time.worst_window.share_of_fullest)
            ),
            rows_per_second(time.peak.rows_per_second_of_fullest),
            written.unwrap_or_else(|| "-".to_owned()),
        ])
    });
    let headings = [
        Heading::text("partition key"),
        Heading::text("pattern"),
        Heading::text("at any moment"),
        Heading::number("effective: median, p10, least"),
        Heading::number("fullest"),
        Heading::text("worst window (its fullest)"),
        Heading::number("peak of one partition"),
        Heading::number("partitions a batch writes to"),
    ];
    let mut text = section(layout, "Over time", &headings, rows.collect());
    if !text.is_empty() {
        text.push_str(
            "\nat any moment: windows judged (one value of the key's time, or the shortest windows of at least a second with enough rows) and rows in \
             the median window; effective, fullest: measured in these windows\n",
        );
    }
    text
}

/// Renders the figures by number of partitions and by placement function, if there are several.
pub(super) fn counts(assessment: &AdvisorReport, layout: Layout) -> String {
    let several = assessment.evaluation.candidates.first().is_some_and(|key| key.placements.len() > 1);
    if !several {
        return other_systems(assessment);
    }
    let functions = |key: &PartitionKeyReport| {
        let mut functions: Vec<Function> =
            key.placements.iter().map(|placement| placement.function).collect();
        functions.dedup();
        functions
    };
    // If there are many functions, show only the best keys; JSON and HTML have them all.
    let many =
        assessment.evaluation.candidates.first().is_some_and(|key| functions(key).len() > MANY_FUNCTIONS);
    let most_keys = if many { KEYS_OF_MANY } else { usize::MAX };
    let rows = ranked(assessment).take(most_keys).flat_map(|(_, key, _)| {
        functions(key).into_iter().map(|function| {
            let status = key.placements.iter().find(|placement| placement.function == function);
            let mut row = vec![key.partition_key.join(", "), status.map_or(function.to_string(), checked)];
            for placement in key.placements.iter().filter(|placement| placement.function == function) {
                let skew = &placement.skew;
                let empty = match skew.empty_partitions {
                    0 => String::new(),
                    empty => format!(", {empty} empty"),
                };
                row.push(format!(
                    "{:.2}, {}{empty}, {}{}",
                    skew.max_over_mean,
                    percent(placement.share_of_heaviest_partition),
                    rate(placement.capacity.sustained),
                    if !placement.has_even_ranges() {
                        ", uneven ranges"
                    } else if placement.causes.hash_function > 0.0 || placement.leaves_empty() {
                        ", uneven by its hash"
                    } else {
                        ""
                    }
                ));
            }
            row
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut headings: Vec<(String, bool)> =
        vec![("partition key".to_owned(), false), ("placement".to_owned(), false)];
    let mut over: Vec<usize> = Vec::new();
    let placements = assessment.evaluation.candidates.iter().flat_map(|key| &key.placements);
    for partitions in placements.map(|placement| placement.skew.partitions) {
        if !over.contains(&partitions) {
            over.push(partitions);
        }
    }
    headings.extend(over.iter().map(|partitions| (format!("over {partitions}"), true)));
    let text = heading(layout, "All partition counts") + &draw(layout, &headings, rows);
    let text = text
        + "\nmax/mean; share of the partition that holds the heaviest value; inserts that are sustained\n";
    let more = assessment.evaluation.candidates.len().saturating_sub(most_keys);
    let more = if more > 0 {
        format!("{more} more keys: --format json and --html have them, --partition-key names one\n")
    } else {
        String::new()
    };
    text + &more + &other_systems(assessment)
}

/// Renders the loads of nodes with weights, if these are given.
pub(super) fn nodes(assessment: &AdvisorReport, layout: Layout) -> String {
    let rows = ranked(assessment).flat_map(|(_, key, _)| {
        key.placements.iter().filter_map(move |placement| {
            let nodes = placement.nodes.as_ref()?;
            let list = |numbers: Vec<String>| numbers.join(", ");
            Some(vec![
                key.partition_key.join(", "),
                checked(placement),
                placement.skew.partitions.to_string(),
                list(nodes.partitions.iter().map(ToString::to_string).collect()),
                list(nodes.loads.iter().map(|load| format!("{load:.2}")).collect()),
                format!("{:.2}", nodes.highest),
            ])
        })
    });
    let headings = [
        Heading::text("partition key"),
        Heading::text("placement"),
        Heading::number("partitions"),
        Heading::text("of each node"),
        Heading::text("rows over the share of its weight"),
        Heading::number("highest"),
    ];
    section(layout, "Nodes by weight", &headings, rows.collect())
}

/// Formats a function; a function of another system with its status.
pub(crate) fn checked(placement: &PlacementReport) -> String {
    match placement.function {
        Function::System(system) => format!("{} ({})", system.about().name, placement.status.word()),
        Function::Ydb(function) => function.to_string(),
    }
}

/// Describes the functions of other systems, and why some were left out.
pub(crate) fn other_systems(assessment: &AdvisorReport) -> String {
    let candidates = &assessment.evaluation.candidates;
    let mut systems: Vec<&About> = Vec::new();
    for placement in candidates.iter().flat_map(|key| &key.placements) {
        let Function::System(system) = placement.function else { continue };
        let about = system.about();
        if systems.iter().all(|known| known.name != about.name) {
            systems.push(about);
        }
    }
    let mut text = String::new();
    // If there are many systems, their sources are left to the docs and 'place'.
    match systems.as_slice() {
        [] => {}
        few if few.len() <= 3 => few.iter().for_each(|about| {
            text.push_str(&format!("{}: {}, {}\n", about.name, about.status.word(), about.source));
        }),
        _ => text.push_str(
            "verified: agrees with vectors or output of the system; computed: by its documented formula; neutral: for systems that publish no function\n",
        ),
    }
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for key in candidates {
        for reason in &key.left_out {
            let name = key.partition_key.join(", ");
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, keys)) => keys.push(name),
                None => reasons.push((reason, vec![name])),
            }
        }
    }
    for (reason, keys) in reasons {
        let more = if keys.len() > 2 { format!(" and {} more", keys.len() - 2) } else { String::new() };
        let keys: Vec<&str> = keys.iter().take(2).map(String::as_str).collect();
        text.push_str(&format!("left out for ({}){more}: {reason}\n", keys.join("), (")));
    }
    let with_nulls = candidates.iter().filter(|key| key.null_rows > 0);
    for key in with_nulls {
        for about in systems.iter().filter(|about| !about.nulls.is_empty()) {
            text.push_str(&format!(
                "{} of {} rows have NULL in {}: {} {}; here they count as one key\n",
                count(key.null_rows),
                count(assessment.evaluation.rows),
                key.partition_key.join(", "),
                about.name,
                about.nulls
            ));
        }
    }
    text
}

pub(super) fn heaviest(assessment: &AdvisorReport, layout: Layout) -> String {
    let rows = ranked(assessment).flat_map(|(_, key, _)| {
        // A value that would not fill a tenth of a partition's share is not heavy.
        let least = 0.1 / f64::from(assessment.recommendation.partitions.max(1));
        let heavy = key.heavy_hitters.iter().filter(move |hitter| hitter.rows > 1 && hitter.share >= least);
        heavy.take(HEAVIEST).map(|hitter| {
            vec![
                key.partition_key.join(", "),
                key_text(&hitter.key),
                count(hitter.rows),
                if hitter.error == 0 { "exact".to_owned() } else { format!("+{}", count(hitter.error)) },
                percent(hitter.share),
            ]
        })
    });
    let headings = [
        Heading::text("partition key"),
        Heading::text("value"),
        Heading::number("rows"),
        Heading::number("error"),
        Heading::number("share"),
    ];
    section(layout, "Heaviest values", &headings, rows.collect())
}

#[cfg(test)]
#[path = "partition_keys_tests.rs"]
mod tests;
