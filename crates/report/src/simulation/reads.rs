//! Splits that reads and transactions touch under each strategy.

use std::fmt::Write as _;

use crate::grid::{Heading, Layout, count, counted, grid, percent};
use evenkeel_model::units::ByteSize;
use evenkeel_spanner::simulate::{IndexReport, ReadKind, ReadReport, Simulation, StrategyReport};

fn read_of(report: &StrategyReport, kind: ReadKind) -> Option<&ReadReport> {
    report.reads.iter().find(|read| read.kind == kind)
}

/// Formats the number of splits that a read touches, or that these are all.
pub(super) fn splits_of(report: &StrategyReport, kind: ReadKind) -> String {
    match read_of(report, kind) {
        Some(ReadReport { splits, ranges: None, .. }) => format!("all {}", count(*splits as u64)),
        Some(read) => count(read.splits as u64),
        None => "-".to_owned(),
    }
}

/// Draws the reads of each strategy; for interleaved tables, the read of one parent row with all of
/// its child rows.
pub(super) fn reads(simulation: &Simulation, layout: Layout) -> String {
    let is_tree = |report: &StrategyReport| read_of(report, ReadKind::ParentWithChildren).is_some();
    match simulation.strategies.iter().any(is_tree) {
        true => tree_reads(simulation, layout),
        false => table_reads(simulation, layout),
    }
}

fn table_reads(simulation: &Simulation, layout: Layout) -> String {
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
                Some(false) => "last, after all others",
                None => "anywhere",
            }
            .to_owned(),
            format!("{:.1}", outcome.splits_per_transaction),
            percent(outcome.two_phase_share),
        ]
    };
    grid(layout, &headings, simulation.strategies.iter().map(row).collect())
}

/// Draws the figures of each index under each strategy.
pub(super) fn indexes(simulation: &Simulation, layout: Layout) -> String {
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
            count(index.matching_rows),
            count(index.back_joins),
        ]
    };
    let rows = simulation.strategies.iter();
    let rows = rows.flat_map(|report| report.indexes.iter().map(move |index| row(report, index)));
    let mut text = grid(layout, &headings, rows.collect());
    text.push_str(
        "rows found: the newest rows if the index begins with the time, else those with one value; back \
         joins: lookups in the table for columns that the index does not store\n",
    );
    text
}
