//! Range splits compared with hash partitions, and the cost of a wrong choice.

use crate::grid::{Heading, Layout, count, grid, percent};
use crate::simulation::reads::splits_of;
use crate::simulation::writes::hottest_share;
use evenkeel_model::units::ByteSize;
use evenkeel_spanner::simulate::{HARMLESS, ReadKind, Simulation, StrategyReport};

/// Draws the comparison, and the cost of a change.
pub(super) fn section(simulation: &Simulation, layout: Layout) -> String {
    let headings = [
        Heading::text("strategy"),
        Heading::number("hottest split"),
        Heading::number("rows in hot splits"),
        Heading::number("splits"),
        Heading::number("newest rows"),
        Heading::number("one owner"),
        Heading::text("if the choice is wrong"),
    ];
    let mut text = grid(layout, &headings, against_hash(simulation));
    text.push_str(&cost_of_change(simulation));
    text.push('\n');
    text
}

/// Describes the cost of a change of the key.
pub(crate) fn cost_of_change(simulation: &Simulation) -> String {
    let real = ByteSize((simulation.bytes as f64 * simulation.parameters.scale) as u64);
    format!(
        "to change it later: a new primary key in Spanner needs a new table and copying {real}; so \
         does a partition key or a number of partitions ('evenkeel repartition')"
    )
}

/// Compares hash partitions with range splits: writes, reads, and the cost of a wrong choice.
pub(crate) fn against_hash(simulation: &Simulation) -> Vec<Vec<String>> {
    let rows = simulation.rows;
    let row = |report: &StrategyReport| {
        let whole = &report.outcome.whole;
        let stuck: u64 = report.outcome.stuck.iter().map(|stuck| stuck.rows).sum();
        let is_stuck = stuck as f64 > HARMLESS * rows as f64;
        let wrong = match (report.is_range, is_stuck, whole.hot_rows) {
            (false, _, 0) => "a partition permanently has more than its share".to_owned(),
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
