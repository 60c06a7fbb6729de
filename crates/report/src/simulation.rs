//! Renders a simulation of range splits as text.

use std::fmt::Write as _;

use crate::evaluation::{heading, rate, spark, spark_of};
use crate::grid::{Heading, Layout, count, counted, grid, percent};
use evenkeel_model::finding::Finding;
use evenkeel_model::units::{ByteSize, elapsed};
use evenkeel_spanner::simulate::splits::{DatabaseOutcome, HeatPattern, Obstacle, Period, Sampling, Stuck};
use evenkeel_spanner::simulate::{AS_GOOD, HARMLESS};
use evenkeel_spanner::simulate::{
    IndexReport, KeyKind, Load, Migration, RateSource, ReadKind, ReadReport, Simulation, StrategyReport,
    few_digits,
};

/// Renders the effects of strategies on writes and reads, side by side.
#[must_use]
pub fn simulation(simulation: &Simulation, layout: Layout) -> String {
    let mut text = heading(layout, "Range splits: a model, not a measurement");
    assumptions(&mut text, simulation);
    simulation.notes.iter().for_each(|note| {
        let _ = writeln!(text, "note: {note}");
    });
    text.push('\n');
    text.push_str(&heading(layout, "Writes"));
    text.push_str(&writes(simulation, layout));
    text.push_str(
        "hottest split: share of the rows that go to the hottest split of their window; score: of a split in a window, 100 is hot; rows/s there: rows per \
         second of the real table at the highest score; relief: from the \
         first hot window to the first that is not; even servers: as many, equally busy, would be as uneven\n",
    );
    text.push('\n');
    text.push_str(&heading(layout, "Reads and transactions, in splits touched"));
    let of_trees =
        |report: &StrategyReport| report.reads.iter().any(|read| read.kind == ReadKind::ParentWithChildren);
    match simulation.strategies.iter().any(of_trees) {
        true => text.push_str(&tree_reads(simulation, layout)),
        false => text.push_str(&reads(simulation, layout)),
    }
    text.push('\n');
    if simulation.strategies.iter().any(|report| !report.indexes.is_empty()) {
        text.push_str(&heading(layout, "Indexes"));
        text.push_str(&indexes(simulation, layout));
        text.push('\n');
    }
    if simulation.strategies.iter().any(|report| !report.is_range) {
        text.push_str(&heading(layout, "Against hash partitions"));
        let headings = [
            Heading::text("strategy"),
            Heading::number("hottest split"),
            Heading::number("rows in hot splits"),
            Heading::number("splits"),
            Heading::number("newest rows"),
            Heading::number("one owner"),
            Heading::text("a wrong choice"),
        ];
        text.push_str(&grid(layout, &headings, against_hash(simulation)));
        let _ = writeln!(text, "{}", undone(simulation));
        text.push('\n');
    }
    text.push_str(&heading(layout, "Over time"));
    text.push_str(&over_time(simulation));
    text.push('\n');
    for report in &simulation.strategies {
        let _ = writeln!(text, "{}: {}", report.strategy, sentence(simulation, report));
    }
    match (&simulation.recommended, simulation.strategies.iter().any(|report| report.reads.len() > 1)) {
        (Some(strategy), true) => {
            let _ = writeln!(
                text,
                "\nrecommended of these: {strategy}\nof those that leave at most {} of the rows in hot splits which dividing does not cool, have at most {} times \
                 the share of the best in their hottest split, and whose writes do not all follow time, the one whose reads look through least and that \
                 changes the key least",
                percent(HARMLESS),
                number(AS_GOOD)
            );
            if let Some(words) = simulation.harmless_declared() {
                let _ = writeln!(text, "{words}");
            }
        }
        (None, true) if simulation.unsure.is_some() => {
            let _ =
                writeln!(text, "\nnone is recommended: {}", simulation.unsure.as_deref().unwrap_or_default());
        }
        (None, true) if simulation.is_quiet_and_moves() => text.push_str(
            "\nnone is recommended: under each of these all writes go to the end of the keys, which at this rate makes no split hot; another column in \
             front of the key spreads them\n",
        ),
        (None, true) => {
            text.push_str("\nnone of these cools its hot splits; try another column in front of the key\n")
        }
        _ => {}
    }
    if !simulation.findings.is_empty() {
        text.push('\n');
        let judged = simulation.judged();
        text.push_str(&heading(layout, &format!("Findings on {judged}")));
        for finding in &simulation.findings {
            let Finding { severity, code, subject, message, advice, .. } = finding;
            let _ = writeln!(text, "- {} [{code}] {subject}: {message}\n  {advice}", severity.word());
        }
    }
    text
}

pub(super) fn assumptions(text: &mut String, simulation: &Simulation) {
    let parameters = &simulation.parameters;
    let _ = writeln!(text, "{} rows, {} of values", count(simulation.rows), ByteSize(simulation.bytes));
    let _ = writeln!(text, "{}", rate_words(simulation));
    let _ = writeln!(
        text,
        "size: each row stands for {}, so that the table has {} of values{}",
        number(parameters.scale),
        ByteSize((simulation.bytes as f64 * parameters.scale) as u64),
        match simulation.is_scale_found {
            true => "; assumed, so that splits by size show: 16 full ones. --scale says how large it is",
            false => "",
        }
    );
    let _ = writeln!(
        text,
        "a split divides at {}, or by load at {} rows per second (score 100) over {}, {} windows later; {} servers",
        parameters.split_size,
        number(parameters.split_rate),
        parameters.window,
        parameters.delay_windows,
        parameters.servers
    );
    let _ = writeln!(
        text,
        "watched from score {}, hot from {}; not divided where one row has {} of the keys, or {} lie beyond all before; joined again after {} \
         quiet windows; seed {}",
        number(parameters.warm),
        number(parameters.hot),
        percent(parameters.single_row_share),
        percent(parameters.moving_share),
        parameters.quiet_windows,
        parameters.seed
    );
    let Sampling { size_keys, load_keys, fewest_load_keys, root_share } = &parameters.sampling;
    let _ = writeln!(
        text,
        "where to divide is told by {size_keys} sampled keys of a split, and by {fewest_load_keys} to {load_keys} of a window; a boundary at a root \
         leaves {} on either side",
        percent(*root_share)
    );
    if simulation.presplits > 0 {
        let _ = writeln!(
            text,
            "{} boundaries from the first rows are there from the beginning",
            simulation.presplits
        );
    }
}

/// Describes the rate of rows and its source.
fn rate_words(simulation: &Simulation) -> String {
    let Load { rows_per_second, bytes_per_second, source, span_micros, is_sorted_by_time } = &simulation.load;
    let time = simulation.time.as_deref().unwrap_or("time");
    let order = if *is_sorted_by_time { ", in whose order they are replayed" } else { "" };
    let (Some(rows), Some(bytes)) = (rows_per_second, bytes_per_second) else {
        return format!("rate: unknown, since all rows have one {time}");
    };
    let (per_second, span) =
        (format!("{} rows/s, {}", few_digits(*rows), rate(*bytes)), elapsed(*span_micros));
    let rows = count(simulation.rows);
    match source {
        RateSource::Measured => {
            format!("rate: {per_second}, as measured: {rows} rows over the {span} of {time}{order}")
        }
        RateSource::Scaled => format!(
            "rate: {per_second}, {} times what was measured, as --scale says: {rows} rows over the {span} of {time}{order}",
            number(simulation.parameters.load_scale)
        ),
        RateSource::Given => format!(
            "rate: {per_second}, as --rate says; rows come one after the other, each for {} of the real table",
            number(simulation.parameters.load_scale)
        ),
    }
}

fn writes(simulation: &Simulation, layout: Layout) -> String {
    let headings = [
        Heading::text("strategy"),
        Heading::number("hottest split"),
        Heading::number("highest score"),
        Heading::number("rows/s there"),
        Heading::number("in the end"),
        Heading::number("hot windows"),
        Heading::number("relief after"),
        Heading::number("splits"),
        Heading::number("by size"),
        Heading::number("by load"),
        Heading::number("servers busy"),
        Heading::number("even servers"),
        Heading::text("pattern"),
    ];
    let row = |report: &StrategyReport| {
        let DatabaseOutcome { whole, relief, .. } = &report.outcome;
        vec![
            report.strategy.to_string(),
            percent(hottest_share(&report.outcome)),
            number(whole.highest_score),
            few_digits(simulation.parameters.rows_per_second(whole.highest_score)),
            number(last_score(&report.outcome)),
            count(relief.hot_windows),
            match (relief.first_hot, relief.relieved_after) {
                (None, _) => "-".to_owned(),
                (Some(_), None) => "never".to_owned(),
                (Some(_), Some(windows)) => counted(windows, "window"),
            },
            count(whole.splits as u64),
            count(whole.by_size),
            count(whole.by_load),
            format!("{:.1}", whole.busy_servers),
            format!("{:.1}", whole.effective_servers),
            patterns(&report.outcome),
        ]
    };
    grid(layout, &headings, simulation.strategies.iter().map(row).collect())
}

/// Draws the share of the hottest split and the number of live splits of each strategy, from the
/// first window to the last.
fn over_time(simulation: &Simulation) -> String {
    let width =
        simulation.strategies.iter().map(|report| report.strategy.to_string().len()).max().unwrap_or(0);
    let mut text = String::new();
    for report in &simulation.strategies {
        let periods = slices(report);
        let shares: String = periods.iter().map(|(share, _)| spark_of(*share, 1.0)).collect();
        let splits: Vec<u64> = periods.iter().map(|(_, splits)| *splits).collect();
        let _ =
            writeln!(text, "{:width$}  hottest split {shares}  splits {}", report.strategy, spark(&splits));
    }
    text
}

/// Number of characters of a row over time.
const SLICES: usize = 40;

/// Returns the share of the hottest split and the number of live splits, in slices of equally many
/// periods.
pub(super) fn slices(report: &StrategyReport) -> Vec<(f64, u64)> {
    let periods = &report.outcome.timeline.periods;
    let of_slice = |slice: &[Period]| {
        let rows: u64 = slice.iter().map(|period| period.rows).sum();
        let hottest: u64 = slice.iter().map(|period| period.hottest_rows).sum();
        (hottest as f64 / rows.max(1) as f64, slice.last().map_or(0, |period| period.splits as u64))
    };
    periods.chunks(periods.len().div_ceil(SLICES).max(1)).map(of_slice).collect()
}

/// Returns the highest score in the last quarter of the time, when splits have been divided.
fn last_score(outcome: &DatabaseOutcome) -> f64 {
    let periods = &outcome.timeline.periods;
    periods.iter().skip(periods.len() * 3 / 4).map(|period| period.highest_score).fold(0.0, f64::max)
}

/// Returns the share of the table's rows that are in the hottest split of their window, of the
/// table or of an index.
pub(super) fn hottest_share(outcome: &DatabaseOutcome) -> f64 {
    let rows = outcome.spaces.iter().map(|space| space.rows_in_time).max().unwrap_or(0);
    (outcome.whole.hottest_rows as f64 / rows.max(1) as f64).min(1.0)
}

/// Describes the pattern of the table, and those of indexes that are not even.
pub(super) fn patterns(outcome: &DatabaseOutcome) -> String {
    let mut text = outcome.heat.pattern().words().to_owned();
    for (pattern, space) in outcome.heat.patterns.iter().zip(&outcome.spaces).skip(1) {
        if *pattern != HeatPattern::EvenlyDistributed {
            let _ = write!(text, "; {}: {}", space.name, pattern.words());
        }
    }
    text
}

fn read_of(report: &StrategyReport, kind: ReadKind) -> Option<&ReadReport> {
    report.reads.iter().find(|read| read.kind == kind)
}

/// Formats the number of splits that a read touches, or that these are all.
fn splits_of(report: &StrategyReport, kind: ReadKind) -> String {
    match read_of(report, kind) {
        Some(ReadReport { splits, ranges: None, .. }) => format!("all {}", count(*splits as u64)),
        Some(read) => count(read.splits as u64),
        None => "-".to_owned(),
    }
}

fn reads(simulation: &Simulation, layout: Layout) -> String {
    let headings = [
        Heading::text("strategy"),
        Heading::number("splits"),
        Heading::number("newest rows"),
        Heading::number("one owner"),
        Heading::text("newest first"),
        Heading::number("one row"),
        Heading::number("per transaction"),
        Heading::number("two-phase"),
    ];
    let row = |report: &StrategyReport| {
        let order = |kind| match read_of(report, kind).and_then(|read| read.newest_first) {
            Some(true) => "yes",
            Some(false) => "backwards",
            None => "-",
        };
        vec![
            report.strategy.to_string(),
            count(report.outcome.whole.splits as u64),
            splits_of(report, ReadKind::TimeRange),
            splits_of(report, ReadKind::History),
            order(ReadKind::History).to_owned(),
            splits_of(report, ReadKind::Row),
            format!("{:.1}", report.outcome.splits_per_transaction),
            percent(report.outcome.two_phase_share),
        ]
    };
    let mut text = grid(layout, &headings, simulation.strategies.iter().map(row).collect());
    let length = simulation.read_length.map(|length| format!("newest rows: the last {length}; "));
    let owner = simulation.owner.as_ref().map(|owner| format!("one owner: all rows of one {owner}; "));
    let _ = writeln!(
        text,
        "{}{}one row: by its declared key; a transaction has {}",
        length.unwrap_or_default(),
        owner.unwrap_or_default(),
        counted(simulation.transaction_rows, "row")
    );
    text
}

/// Describes how to undo a wrong choice.
pub(super) fn undone(simulation: &Simulation) -> String {
    let real = ByteSize((simulation.bytes as f64 * simulation.parameters.scale) as u64);
    format!(
        "undone: a primary key of Spanner by a new table, into which {real} are copied; a partition key, or the number of partitions, likewise \
         ('evenkeel repartition')"
    )
}

/// Compares hash partitions with range splits: writes, reads, and the cost of a wrong choice.
pub(super) fn against_hash(simulation: &Simulation) -> Vec<Vec<String>> {
    let rows = simulation.rows;
    let row = |report: &StrategyReport| {
        let whole = &report.outcome.whole;
        let stuck: u64 = report.outcome.stuck.iter().map(|stuck| stuck.rows).sum();
        let is_stuck = stuck as f64 > HARMLESS * rows as f64;
        let wrong = match (report.is_range, is_stuck, whole.hot_rows) {
            (false, _, 0) => "a partition takes more than its share for good".to_owned(),
            (false, _, _) => "a hot partition stays: it is never divided".to_owned(),
            (true, false, 0) => "no split was hot".to_owned(),
            (true, false, _) if whole.by_load == 0 => "hot, and not divided by load".to_owned(),
            (true, false, _) => "hot until splits are divided".to_owned(),
            (true, true, _) => "hot splits that dividing does not cool".to_owned(),
        };
        vec![
            report.strategy.to_string(),
            percent(hottest_share(&report.outcome)),
            percent(whole.hot_rows as f64 / whole.rows.max(1) as f64),
            count(whole.splits as u64),
            splits_of(report, ReadKind::TimeRange),
            splits_of(report, ReadKind::History),
            wrong,
        ]
    };
    simulation.strategies.iter().map(row).collect()
}

fn tree_reads(simulation: &Simulation, layout: Layout) -> String {
    let headings = [
        Heading::text("children"),
        Heading::number("splits"),
        Heading::number("boundaries inside a parent"),
        Heading::number("parent with its children"),
        Heading::number("seeks"),
        Heading::number("rows"),
        Heading::text("newest child"),
        Heading::number("per transaction"),
        Heading::number("two-phase"),
    ];
    let row = |report: &StrategyReport| {
        let outcome = &report.outcome;
        let read = report.reads.first();
        let inside =
            outcome.spaces.iter().flat_map(|space| &space.splits).filter(|split| split.inside_root).count();
        vec![
            report.strategy.to_string(),
            count(outcome.whole.splits as u64),
            count(inside as u64),
            read.map_or("-".to_owned(), |read| count(read.splits as u64)),
            read.and_then(|read| read.ranges).map_or("-".to_owned(), |ranges| count(ranges as u64)),
            read.and_then(|read| read.rows).map_or("-".to_owned(), count),
            match read.and_then(|read| read.newest_first) {
                Some(true) => "first, next to its parent",
                Some(false) => "last, behind all others",
                None => "anywhere",
            }
            .to_owned(),
            format!("{:.1}", outcome.splits_per_transaction),
            percent(outcome.two_phase_share),
        ]
    };
    grid(layout, &headings, simulation.strategies.iter().map(row).collect())
}

fn indexes(simulation: &Simulation, layout: Layout) -> String {
    let headings = [
        Heading::text("strategy"),
        Heading::text("index"),
        Heading::number("entries"),
        Heading::number("bytes"),
        Heading::number("hottest split"),
        Heading::number("splits read"),
        Heading::number("rows found"),
        Heading::number("back joins"),
    ];
    let row = |report: &StrategyReport, index: &IndexReport| {
        let interleaved = if index.interleaved { " (interleaved)" } else { "" };
        vec![
            report.strategy.to_string(),
            format!("{}{interleaved}", index.name),
            count(index.entries),
            ByteSize(index.bytes).to_string(),
            percent(index.hottest_share),
            count(index.splits as u64),
            count(index.found),
            count(index.back_joins),
        ]
    };
    let rows = simulation.strategies.iter();
    let rows = rows.flat_map(|report| report.indexes.iter().map(move |index| row(report, index)));
    let mut text = grid(layout, &headings, rows.collect());
    text.push_str(
        "a read finds the newest rows where the index begins with the time, else those with one value; a back join looks a row up in the table \
         for what the index does not hold\n",
    );
    text
}

/// Renders the steps of a migration, and the proof that it is safe.
#[must_use]
pub fn migration(migration: &Migration, ddl: &str, layout: Layout) -> String {
    let mut text = heading(layout, &format!("Moving {} to Spanner", migration.column));
    let kind = match migration.kind {
        KeyKind::Uuid => "UUIDs",
        KeyKind::Sequential => "numbers that count up",
        KeyKind::BitReversed => "numbers that count up, with their bits reversed",
    };
    let _ = writeln!(text, "{} rows; the key holds {kind}", count(migration.rows));
    if let Some((least, most)) = migration.range {
        let _ = writeln!(text, "values from {least} to {most}");
    }
    if let Some((least, most)) = migration.counters {
        let _ = writeln!(text, "reversed again they are {least} to {most}");
    }
    for (version, rows) in &migration.versions {
        let _ = writeln!(text, "{} of version {version}", count(*rows));
    }
    if migration.to_normalize > 0 {
        let _ = writeln!(
            text,
            "{} have to be written in lower case with hyphens, as GENERATE_UUID() does",
            count(migration.to_normalize)
        );
    }
    if let Some((least, most)) = migration.skip_range {
        let _ = writeln!(text, "the sequence leaves out {least} to {most}");
    }
    if let Some(start) = migration.start_counter {
        let _ = writeln!(text, "the sequence begins with counter {start}");
    }
    let _ = writeln!(text, "safe: {}", migration.proof);
    if migration.tried > 0 {
        let _ = writeln!(
            text,
            "tried: the first {} values of the sequence, of which {} are there already",
            count(migration.tried),
            count(migration.collisions)
        );
    }
    text.push('\n');
    text.push_str(ddl);
    text
}

/// Explains the figures of a strategy.
pub(super) fn sentence(simulation: &Simulation, report: &StrategyReport) -> String {
    let outcome = &report.outcome;
    let share = |rows: u64| percent(rows as f64 / simulation.rows.max(1) as f64);
    let mut text = report.words.clone();
    let told = |stuck: &&Stuck| stuck.rows as f64 > HARMLESS * simulation.rows as f64;
    for stuck in outcome.stuck.iter().filter(told) {
        let why = match stuck.obstacle {
            Obstacle::SingleRow => "came to hot splits where one key has nearly all: a row cannot be divided",
            Obstacle::MovingHotspot => {
                "came to hot splits whose keys move on: a boundary leaves all that comes on one side"
            }
        };
        let space = outcome.spaces.get(stuck.space).map_or("", |space| space.name.as_str());
        let of = if outcome.spaces.len() > 1 { format!(" of {space}") } else { String::new() };
        let _ = write!(text, "; {} of the rows{of} {why}", share(stuck.rows));
    }
    let is_hot = report.is_range
        && outcome.relief.first_hot.is_some()
        && !outcome.stuck.iter().any(|stuck| told(&stuck));
    match (is_hot, outcome.whole.by_load > 0, outcome.relief.relieved_after.is_some()) {
        (false, _, _) => {}
        (true, true, true) => text.push_str("; dividing helps"),
        (true, true, false) => text.push_str("; it was divided by load, and did not cool to the end"),
        (true, false, _) => text.push_str("; it was hot and was not divided by load"),
    }
    text
}

/// Formats a number with no more digits than it needs.
pub(super) fn number(number: f64) -> String {
    if number >= 100.0 || number.fract() == 0.0 {
        count(number.round() as u64)
    } else if number >= 1.0 {
        format!("{number:.1}")
    } else {
        format!("{number:.2}")
    }
}
