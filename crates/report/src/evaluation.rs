//! Renders an evaluation as text.

use std::fmt::Write as _;

use chrono::DateTime;
use serde_json::Value;

use crate::grid::{Heading, Layout, count, draw, grid, percent};
use evenkeel_advisor::evaluate::{
    AdvisorReport, Drift, FanOut, Interval, Intervals, PartitionKeyReport, PlacementReport, PrimaryKeyReport,
    RankedKey, Reach, Recommendation, Role, RoleReport, StatementReport, UniqueBy,
};
use evenkeel_model::units::{ByteRate, ByteSize, PartitionCount, elapsed};
use evenkeel_placement::placement::systems::{About, system};
use evenkeel_stats::skew::Verdict;

/// Number of heaviest values shown per key.
const HEAVIEST: usize = 3;
/// Number of columns whose roles are shown.
const MOST_COLUMNS: usize = 24;
/// Largest number of partitions whose rows are drawn in one line.
const MOST_DRAWN: usize = 128;

/// Renders an evaluation: first the answer, then the figures that it rests on.
#[must_use]
pub fn assessment(assessment: &AdvisorReport, layout: Layout) -> String {
    let sections = [
        header(assessment),
        recommendation(assessment, layout),
        candidates(assessment, layout),
        partitions(assessment, layout),
        over_time(assessment, layout),
        counts(assessment, layout),
        nodes(assessment, layout),
        heaviest(assessment, layout),
        primary_keys(assessment, layout),
        statements(assessment, layout),
        findings(assessment, layout),
        roles(assessment, layout),
        dropped(assessment, layout),
        table(assessment, layout),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

pub(super) fn heading(layout: Layout, text: &str) -> String {
    match layout {
        Layout::Plain => format!("{}\n", text.to_uppercase()),
        Layout::Markdown => format!("## {text}\n\n"),
    }
}

fn section(layout: Layout, title: &str, headings: &[Heading], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() { String::new() } else { heading(layout, title) + &grid(layout, headings, rows) }
}

/// Formats a point in time, to the second.
#[must_use]
pub fn instant(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros)
        .map_or_else(|| micros.to_string(), |at| at.format("%Y-%m-%d %H:%M:%S").to_string())
}

/// Formats a rate of rows, with decimals if it is low.
pub(super) fn rows_per_second(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.2} rows/s") } else { format!("{} rows/s", count(rate.round() as u64)) }
}

/// Formats the values of a key as one text.
#[must_use]
pub fn key_text(values: &[Value]) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "NULL".to_owned(),
        other => other.to_string(),
    };
    values.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Formats a rate in bytes per second.
pub fn rate(bytes_per_second: f64) -> String {
    ByteRate(bytes_per_second).to_string()
}

fn chosen_partitions(assessment: &AdvisorReport) -> PartitionCount {
    PartitionCount::new(u64::from(assessment.recommendation.partitions)).unwrap_or(PartitionCount::ONE)
}

pub(super) fn header(assessment: &AdvisorReport) -> String {
    let evaluation = &assessment.evaluation;
    let inputs = match assessment.inputs.as_slice() {
        [only] => only.clone(),
        [first, ..] => format!("{first} and {} more inputs", assessment.inputs.len() - 1),
        [] => String::new(),
    };
    let mut text = format!(
        "{inputs}: {} rows, {} of values, {:.1} s\n",
        count(evaluation.rows),
        ByteSize(evaluation.bytes),
        assessment.seconds
    );
    if let Some(sample) = &evaluation.sample {
        let _ = writeln!(
            text,
            "a sample of {} of {} rows ({}); figures are those of the sample, intervals those of the export with 95 % confidence",
            count(sample.rows_sampled),
            count(sample.rows_read),
            percent(sample.fraction),
        );
    }
    if let (Some(time), Some(range)) = (&evaluation.time, &evaluation.time_range) {
        let windows = evaluation.candidates.iter().find_map(|key| key.over_time.as_ref());
        let windows = windows.map(|time| format!(", {} windows of {}", time.windows, time.window_micros));
        let carried = assessment.roles.iter().find(|role| role.column == *time).and_then(|role| role.times);
        let read = carried.map(|times| format!(" ({})", times.reading)).unwrap_or_default();
        let _ = writeln!(
            text,
            "{time}{read} runs from {} to {}{}",
            instant(range.earliest_micros),
            instant(range.latest_micros),
            windows.unwrap_or_default()
        );
    }
    let others = assessment.roles.iter().filter(|role| {
        role.role == Role::Time && evaluation.time.as_ref().is_some_and(|time| role.column != *time)
    });
    let others: Vec<&str> = others.map(|role| role.column.as_str()).collect();
    if !others.is_empty() {
        let _ = writeln!(
            text,
            "other columns with times: {}; --time COLUMN takes one of them",
            others.join(", ")
        );
    }
    for note in &assessment.notes {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// Renders the recommended keys and number of partitions in one line, and a blank one; nothing if there
/// is no key.
pub(super) fn recommended_keys(found: &Recommendation) -> String {
    if found.partition_key.is_empty() {
        return String::new();
    }
    let primary_key = match found.primary_key.as_slice() {
        [] => String::new(),
        key => format!(", PRIMARY KEY ({})", key.join(", ")),
    };
    let partition_key = found.partition_key.join(", ");
    format!("PARTITION BY HASH({partition_key}){primary_key}, {} partitions\n\n", found.partitions)
}

fn recommendation(assessment: &AdvisorReport, layout: Layout) -> String {
    let found = &assessment.recommendation;
    let mut text = heading(layout, "Recommendation");
    let list = |text: &mut String, lines: &[String]| {
        for line in lines {
            let _ = writeln!(text, "- {line}");
        }
    };
    text.push_str(&recommended_keys(found));
    list(&mut text, &found.reasons);
    if !found.alternatives.is_empty() {
        let _ = writeln!(text, "\nOther choices, and their price:\n");
        list(&mut text, &found.alternatives.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    text
}

/// Returns the candidates in the order of the ranking, each with its placement over the recommended
/// number of partitions.
pub(super) fn ranked(
    assessment: &AdvisorReport,
) -> impl Iterator<Item = (&RankedKey, &PartitionKeyReport, &PlacementReport)> {
    let partitions = chosen_partitions(assessment);
    assessment.ranking.iter().filter_map(move |ranked| {
        let mut keys = assessment.evaluation.candidates.iter();
        let key = keys.find(|key| key.partition_key == ranked.partition_key)?;
        Some((ranked, key, key.over(partitions)?))
    })
}

/// Formats a figure; if it is that of a sample, with the interval for the whole export.
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
pub(super) fn distinct_values(key: &PartitionKeyReport) -> String {
    let distinct = count(key.distinct.estimate);
    if key.distinct.exact { distinct } else { format!("~{distinct}") }
}

/// Formats the share of the rows with the most frequent value.
pub(super) fn heaviest_share(key: &PartitionKeyReport) -> String {
    key.heavy_hitters.first().map_or("-".to_owned(), |heaviest| percent(heaviest.share))
}

/// Formats the rows of the fullest partition over those of an average one.
pub(super) fn max_over_mean(placement: &PlacementReport) -> String {
    with_interval(placement.skew.max_over_mean, placement, |i| Some(i.max_over_mean), |x| format!("{x:.2}"))
}

/// Formats the partitions that share the work at any one time.
pub(super) fn at_a_time(placement: &PlacementReport) -> String {
    let time = placement.over_time.as_ref();
    time.map_or("-".to_owned(), |time| format!("{:.1}", time.lasting_effective_partitions.median))
}

/// Formats the partitions that a statement visits on average.
pub(super) fn partitions_read(ranked: &RankedKey) -> String {
    ranked.mean_partitions_read.map_or("-".to_owned(), |read| format!("{read:.1}"))
}

/// Whether partitions were counted that statements visit.
pub(super) fn has_statements(assessment: &AdvisorReport) -> bool {
    assessment.statements.iter().any(|statement| statement.problem.is_none())
}

fn candidates(assessment: &AdvisorReport, layout: Layout) -> String {
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
        Heading::number("at a time"),
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
            "\nby chance: the CV that a perfect hash gives to these keys; effective: as many evenly filled partitions would be as \
             concentrated, in total and at a time; sustains: inserts before a partition is overloaded",
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
fn partitions(assessment: &AdvisorReport, layout: Layout) -> String {
    let rows = ranked(assessment).map(|(_, key, placement)| {
        let drawn = if placement.skew.partitions <= MOST_DRAWN {
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
fn over_time(assessment: &AdvisorReport, layout: Layout) -> String {
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
        Heading::text("at a time"),
        Heading::number("effective: median, p10, least"),
        Heading::number("fullest"),
        Heading::text("worst window (its fullest)"),
        Heading::number("peak of one partition"),
        Heading::number("partitions a batch writes to"),
    ];
    let mut text = section(layout, "Over time", &headings, rows.collect());
    if !text.is_empty() {
        text.push_str(
            "\nat a time: rows of one value of the key's time, or of the shortest windows from a second on that have enough rows, with the rows \
             that the middle one has; effective and fullest: as these rows are, of which few cannot fill all partitions\n",
        );
    }
    text
}

/// Draws a bar of one character for each count, in eighths of the largest.
#[must_use]
pub fn spark(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or(0) as f64;
    counts.iter().map(|count| spark_of(*count as f64, most)).collect()
}

/// Returns a bar of one character for a value of `full`; a dot for nothing.
pub fn spark_of(value: f64, full: f64) -> char {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if value <= 0.0 || full <= 0.0 {
        return '·';
    }
    let eighth = (value / full * 8.0).ceil().clamp(1.0, 8.0) as usize;
    EIGHTHS.get(eighth - 1).copied().unwrap_or('█')
}

/// Number of placement functions beyond which only `KEYS_OF_MANY` keys are shown with each.
const MANY_FUNCTIONS: usize = 4;
const KEYS_OF_MANY: usize = 2;

/// Renders the figures by number of partitions and by placement function, if there are several.
fn counts(assessment: &AdvisorReport, layout: Layout) -> String {
    let several = assessment.evaluation.candidates.first().is_some_and(|key| key.placements.len() > 1);
    if !several {
        return of_systems(assessment);
    }
    let functions = |key: &PartitionKeyReport| {
        let mut functions: Vec<String> =
            key.placements.iter().map(|placement| placement.function.clone()).collect();
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
            let mut row = vec![key.partition_key.join(", "), status.map_or(function.clone(), checked)];
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
    let text = heading(layout, "Every number of partitions") + &draw(layout, &headings, rows);
    let text = text
        + "\nmax/mean; share of the partition that holds the heaviest value; inserts that are sustained\n";
    let more = assessment.evaluation.candidates.len().saturating_sub(most_keys);
    let more = if more > 0 {
        format!("{more} more keys: --format json and --html have them, --partition-key names one\n")
    } else {
        String::new()
    };
    text + &more + &of_systems(assessment)
}

/// Renders the loads of nodes with weights, if these are given.
fn nodes(assessment: &AdvisorReport, layout: Layout) -> String {
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

/// Formats a function; that of another system with how far it is verified.
pub(super) fn checked(placement: &PlacementReport) -> String {
    match system(&placement.function) {
        Some(_) => format!("{} ({})", placement.function, placement.status.word()),
        None => placement.function.clone(),
    }
}

/// Describes the functions of other systems, and why some were left out.
pub(super) fn of_systems(assessment: &AdvisorReport) -> String {
    let candidates = &assessment.evaluation.candidates;
    let mut names: Vec<&str> = Vec::new();
    for placement in candidates.iter().flat_map(|key| &key.placements) {
        if !names.contains(&placement.function.as_str()) {
            names.push(&placement.function);
        }
    }
    let systems: Vec<&About> =
        names.iter().filter_map(|name| system(name)).map(|system| system.about()).collect();
    let mut text = String::new();
    // If there are many systems, their sources are left to the docs and 'place'.
    match systems.as_slice() {
        [] => {}
        few if few.len() <= 3 => few.iter().for_each(|about| {
            text.push_str(&format!("{}: {}, {}\n", about.name, about.status.word(), about.source));
        }),
        _ => text.push_str(
            "verified: gives what the system published or printed; computed: by its documented formula; neutral: stands for systems that publish none\n",
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

fn heaviest(assessment: &AdvisorReport, layout: Layout) -> String {
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

fn primary_keys(assessment: &AdvisorReport, layout: Layout) -> String {
    let row = |key: &PrimaryKeyReport| {
        vec![
            key.columns.join(", "),
            match &key.duplicate_rows_interval {
                Some(rows) => format!("{} to {} repeat", count(rows.lower as u64), count(rows.upper as u64)),
                None if key.uniqueness.is_some_and(|unique| unique.by == UniqueBy::Chance) => {
                    "by chance".to_owned()
                }
                None if key.unique => "yes".to_owned(),
                None => "no".to_owned(),
            },
            count(key.identical_rows),
            count(key.conflicting_rows),
            percent(key.in_order_fraction),
            key.late.reach.as_ref().map_or("-".to_owned(), |reach| elapsed(reach.max_micros)),
            key.rank_correlation.map_or("-".to_owned(), |correlation| format!("{correlation:.2}")),
            format!("{:.1}", key.layout.depth.average_depth),
            key.layout.known_amplification().map_or("-".to_owned(), |writes| format!("{writes:.1}")),
            if key.obstacles.is_empty() { String::new() } else { key.obstacles.join("; ") },
        ]
    };
    let keys = &assessment.evaluation.primary_keys;
    let headings = [
        Heading::text("primary key"),
        Heading::text("unique"),
        Heading::number("copies"),
        Heading::number("conflicts"),
        Heading::number("in order"),
        Heading::number("late by up to"),
        Heading::number("correlation"),
        Heading::number("depth"),
        Heading::number("writes"),
        Heading::text(""),
    ];
    let mut text = section(layout, "Primary keys", &headings, keys.iter().map(row).collect());
    if let Some(first) = keys.first() {
        let _ = writeln!(
            text,
            "\ncopies and conflicts: rows whose key an earlier row has, with the same or other values; in order: within a partition of \
             HASH({}) and the like; depth: portions from batches of {} rows that overlap; writes: how often merging them writes a row \
             (model)",
            first.partitioned_by.join(", "),
            count(first.layout.batch_rows)
        );
    }
    let examples = keys.iter().flat_map(|key| {
        key.examples.iter().take(2).map(|example| {
            vec![
                key.columns.join(", "),
                key_text(&example.key),
                example.first.clone(),
                example.second.clone(),
                if example.differs_in.is_empty() {
                    "nothing".to_owned()
                } else {
                    example.differs_in.join(", ")
                },
            ]
        })
    });
    let headings = [
        Heading::text("primary key"),
        Heading::text("value"),
        Heading::text("first row"),
        Heading::text("next row"),
        Heading::text("differs in"),
    ];
    let examples = section(layout, "Rows that share a primary key", &headings, examples.collect());
    let pruning = keys.iter().flat_map(|key| {
        key.pruning.iter().map(|pruning| {
            vec![
                key.columns.join(", "),
                pruning.condition.clone(),
                percent(pruning.portions_pruned),
                percent(pruning.merged_row_groups_pruned),
            ]
        })
    });
    let headings = [
        Heading::text("primary key"),
        Heading::text("condition"),
        Heading::number("portions that leaves out"),
        Heading::number("row groups once merged"),
    ];
    let pruning = section(layout, "What a condition leaves unread", &headings, pruning.collect());
    [text, examples, pruning].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Formats the partitions that a statement visits: one, all, or their number.
pub(super) fn visited(visit: &FanOut) -> String {
    match visit.reach {
        Reach::Some => format!("{} of {}", visit.partitions_read, visit.partitions),
        other => other.word().to_owned(),
    }
}

fn statements(assessment: &AdvisorReport, layout: Layout) -> String {
    let planned: Vec<&StatementReport> =
        assessment.statements.iter().filter(|statement| statement.problem.is_none()).collect();
    let Some(first) = planned.first() else { return String::new() };
    let mut headings = vec![("partition key".to_owned(), false)];
    headings.extend(planned.iter().map(|statement| (statement.statement.clone(), true)));
    let rows = first.fan_out.iter().enumerate().map(|(position, fan_out)| {
        let visits = planned.iter().filter_map(|statement| statement.fan_out.get(position));
        let visits = visits.map(visited);
        std::iter::once(fan_out.partition_key.join(", ")).chain(visits).collect()
    });
    let derived = assessment.evaluation.candidates.iter().any(|key| !key.candidate.is_plain());
    let note = if derived {
        "\nof a derived part, a statement is taken to name the derived column too\n"
    } else {
        ""
    };
    heading(layout, "Partitions that statements visit") + &draw(layout, &headings, rows.collect()) + note
}

fn findings(assessment: &AdvisorReport, layout: Layout) -> String {
    if assessment.findings.is_empty() {
        return String::new();
    }
    let mut text = heading(layout, "Findings");
    for finding in &assessment.findings {
        let _ = writeln!(
            text,
            "- {} [{}] {}: {}",
            finding.severity.word(),
            finding.code,
            finding.subject,
            finding.message
        );
        let _ = writeln!(text, "  {}", finding.advice);
    }
    text
}

/// Renders the role of each column, and why.
fn roles(assessment: &AdvisorReport, layout: Layout) -> String {
    let row = |report: &RoleReport| {
        let mut evidence = report.evidence.iter().take(2).cloned().collect::<Vec<_>>();
        evidence.extend(report.times.map(|times| {
            let read = times.reading.to_string();
            let range = format!("{} to {}", instant(times.earliest_micros), instant(times.latest_micros));
            if evidence.first() == Some(&read) { range } else { format!("{read}: {range}") }
        }));
        evidence.extend(report.copy_of.as_ref().map(|of| format!("one-to-one with {of}")));
        vec![report.column.clone(), report.role.words().to_owned(), evidence.join("; ")]
    };
    let rows: Vec<Vec<String>> = assessment.roles.iter().take(MOST_COLUMNS).map(row).collect();
    let headings = [Heading::text("column"), Heading::text("role"), Heading::text("evidence")];
    let text = section(layout, "What the columns are", &headings, rows);
    let more = assessment.roles.len().saturating_sub(MOST_COLUMNS);
    let more =
        if more > 0 { format!("{more} more columns: --format json has them; ") } else { String::new() };
    if text.is_empty() { text } else { text + &format!("\n{more}--role COLUMN=ROLE corrects one\n") }
}

fn dropped(assessment: &AdvisorReport, layout: Layout) -> String {
    let dropped = assessment.considered.iter().filter(|considered| !considered.kept);
    let rows = dropped.map(|considered| vec![considered.key.join(", "), considered.reason.clone()]);
    section(layout, "Not evaluated", &[Heading::text("column"), Heading::text("why")], rows.collect())
}

pub(super) fn table(assessment: &AdvisorReport, layout: Layout) -> String {
    let Some(ddl) = &assessment.recommendation.ddl else { return String::new() };
    let fence = |language: &str, text: &str| match layout {
        Layout::Plain => format!("{}\n\n", text.trim_end()),
        Layout::Markdown => format!("```{language}\n{}\n```\n", text.trim_end()),
    };
    let commands = assessment.recommendation.commands.join("\n");
    format!(
        "{}{}{}",
        heading(layout, "The table"),
        fence(assessment.recommendation.language, ddl),
        if commands.trim().is_empty() { String::new() } else { fence("sh", &commands) }
    )
}

/// Renders the changes since a baseline, notable ones first.
#[must_use]
pub fn drifts(drifts: &[Drift], layout: Layout) -> String {
    let text = |value: &Value| match value {
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => count(whole),
            (None, Some(number)) => format!("{number:.4}"),
            _ => number.to_string(),
        },
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Array(values) => key_text(values),
        other => other.to_string(),
    };
    let mut sorted: Vec<&Drift> = drifts.iter().collect();
    sorted.sort_by_key(|drift| !drift.notable);
    let rows = sorted.into_iter().map(|drift| {
        vec![
            if drift.notable { "!".to_owned() } else { String::new() },
            drift.subject.clone(),
            drift.figure.clone(),
            text(&drift.before),
            text(&drift.now),
        ]
    });
    let headings = [
        Heading::text(""),
        Heading::text("subject"),
        Heading::text("figure"),
        Heading::number("before"),
        Heading::number("now"),
    ];
    section(layout, "Since the baseline", &headings, rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_for_each_count_and_a_dot_for_none() {
        assert_eq!(spark(&[0, 1, 4, 8]), "·▁▄█");
        assert_eq!(spark(&[]), "");
        assert_eq!(spark(&[0, 0]), "··");
    }

    #[test]
    fn instants_and_rates_read_well() {
        assert_eq!(instant(0), "1970-01-01 00:00:00");
        assert_eq!(rate(12_345_678.0), "12.3 MB/s");
        assert_eq!([rate(900.0), rate(1900.0)], ["900 B/s", "1.9 kB/s"]);
    }
}
