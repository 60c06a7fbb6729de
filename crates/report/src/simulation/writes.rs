//! Writes under each strategy: the hottest split, its relief, and both over time.

use std::fmt::Write as _;

use crate::grid::{Heading, Layout, count, counted, grid, number, percent};
use crate::values::{spark, spark_of};
use evenkeel_spanner::simulate::splits::{DatabaseOutcome, HeatPattern, Period};
use evenkeel_spanner::simulate::{Simulation, StrategyReport, few_digits};

/// Meaning of the figures of writes.
const LEGEND: &str = "hottest split: share of the rows that go to the hottest split of their window; \
    score: load of a split in a window, 100 is hot; rows/s there: rows per second of the real table at the \
    highest score; relief: from the first hot window to the first that is not; even servers: number of \
    equally busy servers that would be as uneven\n";

/// Draws a row of figures for each strategy, and explains them.
pub(super) fn writes(simulation: &Simulation, layout: Layout) -> String {
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
            number(last_score(&report.outcome.timeline.periods)),
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
    grid(layout, &headings, simulation.strategies.iter().map(row).collect()) + LEGEND
}

/// Draws the share of the hottest split and the number of live splits of each strategy, from the
/// first window to the last.
pub(super) fn over_time(simulation: &Simulation) -> String {
    let width =
        simulation.strategies.iter().map(|report| report.strategy.to_string().len()).max().unwrap_or(0);
    let mut text = String::new();
    for report in &simulation.strategies {
        let periods = slices(&report.outcome.timeline.periods);
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
fn slices(periods: &[Period]) -> Vec<(f64, u64)> {
    let of_slice = |slice: &[Period]| {
        let rows: u64 = slice.iter().map(|period| period.rows).sum();
        let hottest: u64 = slice.iter().map(|period| period.hottest_rows).sum();
        (hottest as f64 / rows.max(1) as f64, slice.last().map_or(0, |period| period.splits as u64))
    };
    periods.chunks(periods.len().div_ceil(SLICES).max(1)).map(of_slice).collect()
}

/// Returns the highest score in the last quarter of the time, when splits have been divided.
fn last_score(periods: &[Period]) -> f64 {
    periods.iter().skip(periods.len() * 3 / 4).map(|period| period.highest_score).fold(0.0, f64::max)
}

/// Returns the share of the table's rows that are in the hottest split of their window, of the
/// table or of an index.
pub(crate) fn hottest_share(outcome: &DatabaseOutcome) -> f64 {
    let rows = outcome.spaces.iter().map(|space| space.rows_in_time).max().unwrap_or(0);
    (outcome.whole.hottest_rows as f64 / rows.max(1) as f64).min(1.0)
}

/// Describes the pattern of the table, and the patterns of uneven indexes.
pub(crate) fn patterns(outcome: &DatabaseOutcome) -> String {
    let mut text = outcome.heat.pattern().words().to_owned();
    for (pattern, space) in outcome.heat.patterns.iter().zip(&outcome.spaces).skip(1) {
        if *pattern != HeatPattern::EvenlyDistributed {
            let _ = write!(text, "; {}: {}", space.name, pattern.words());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(rows: u64, hottest_rows: u64, highest_score: f64, splits: usize) -> Period {
        Period { rows, hottest_rows, highest_score, splits, ..Period::default() }
    }

    #[test]
    fn a_slice_has_the_rows_of_its_periods_and_the_splits_of_the_last() {
        // 100 periods make 34 slices: 33 of 3 periods and one of 1.
        let periods: Vec<Period> = (0..100).map(|n| period(10, n % 3, 0.0, n as usize)).collect();
        let slices = slices(&periods);
        assert_eq!(slices.len(), 34);
        assert_eq!(slices[0], (0.1, 2));
        assert_eq!(slices[33], (0.0, 99));
    }

    #[test]
    fn no_periods_and_periods_without_rows_have_no_share() {
        assert_eq!(slices(&[]), []);
        assert_eq!(slices(&[period(0, 0, 0.0, 1)]), [(0.0, 1)]);
    }

    #[test]
    fn the_last_score_is_the_highest_of_the_last_quarter() {
        let periods = [900.0, 800.0, 700.0, 600.0, 500.0, 400.0, 30.0, 40.0];
        let periods = periods.map(|score| period(1, 1, score, 1));
        assert_eq!(last_score(&periods), 40.0);
        assert_eq!(last_score(&periods[..3]), 700.0);
        assert_eq!(last_score(&[]), 0.0);
    }
}
