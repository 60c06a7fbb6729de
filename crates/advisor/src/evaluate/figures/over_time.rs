//! Balance over time: the load of each time window on the partitions, and the pattern that results.
//!
//! The four patterns are those of Key Visualizer (Spanner, Bigtable): *even*; *concentrated*, if
//! the same partitions are hot all the time; *periodic*, if they return; *sequential*, if the hot
//! partition moves and does not return.

use serde::Serialize;

use crate::evaluate::figures::judged_windows::{JudgedWindow, WindowFigures, together};
use crate::evaluate::figures::moment::Examined;
use crate::evaluate::figures::pattern::{Evidence, Pattern, evidence, pattern};
use evenkeel_model::units::Micros;
use evenkeel_stats::skew::{MaxOverMeanByChance, balance, median};
use evenkeel_stats::throughput::enough_rows;
use evenkeel_stats::windows::Window;

/// Median, 10th and 90th percentile, minimum and maximum of a figure over windows or batches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Minimum.
    pub min: f64,
    /// 10th percentile: a tenth of the windows is below it.
    pub p10: f64,
    /// Median: half of the windows are at or below it.
    pub median: f64,
    /// 90th percentile: a tenth of the windows is above it.
    pub p90: f64,
    /// Maximum.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of the values; `None` if there are no values.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at =
            |fraction: f64| sorted.get(((sorted.len() as f64 - 1.0) * fraction).round() as usize).copied();
        let median = median(sorted.clone())?;
        Some(Self { min: at(0.0)?, p10: at(0.1)?, median, p90: at(0.9)?, max: at(1.0)? })
    }

    /// Returns the spread of values with weights above 0: half of the weight is at or below the
    /// median. `None` if there are no values.
    #[must_use]
    pub fn weighted(values: &[(f64, u64)]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let all: u64 = sorted.iter().map(|(_, weight)| weight).sum();
        let at = |fraction: f64| {
            let mut below = 0;
            let entry = sorted.iter().find(|(_, weight)| {
                below += weight;
                below as f64 >= fraction * all as f64
            });
            entry.or(sorted.last()).map(|(value, _)| *value)
        };
        Some(Self { min: at(0.0)?, p10: at(0.1)?, median: at(0.5)?, p90: at(0.9)?, max: at(1.0)? })
    }
}

/// Balance of the partitions over time, in windows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverTime {
    /// Length of a displayed window.
    pub window_micros: Micros,
    /// Number of displayed windows, all of which have rows.
    pub windows: usize,
    /// Windows that the figures below are from: shorter ones if there are enough rows.
    pub examined: Examined,
    /// Number of examined windows with enough rows to be judged.
    pub judged_windows: usize,
    /// Effective partitions of a judged window, from its rows as they are. All figures of judged
    /// windows are weighted by their rows.
    pub effective_partitions: Spread,
    /// Effective partitions less the effect of chance on few rows: the spread to expect if there
    /// were more rows at that time.
    pub lasting_effective_partitions: Spread,
    /// Share of a judged window's rows in its fullest partition.
    pub share_of_fullest: Spread,
    /// Share of the fullest partition minus the effect of chance in a window of few rows.
    pub lasting_share_of_fullest: Spread,
    /// Judged window with the fewest effective partitions.
    pub worst_window: WindowFigures,
    /// Displayed window whose fullest partition gets the most rows per second.
    pub peak: WindowFigures,
    /// Movement of the load between partitions.
    pub pattern: Pattern,
    /// Figures that the pattern is concluded from.
    pub evidence: Evidence,
}

impl OverTime {
    /// Computes the figures of windows of one length, in order, which are both judged and
    /// displayed; `None` if no window has enough rows.
    #[must_use]
    pub fn from_windows(windows: &[Window], length: Micros) -> Option<Self> {
        let partitions = windows.first().map_or(1, |window| window.rows_per_partition.len());
        let rows_per_window = windows.iter().map(|window| window.rows_per_partition.iter().sum()).min()?;
        let examined = Examined {
            window_micros: length,
            one_moment: false,
            rows_per_window,
            one_in: 1,
            fewest_rows: enough_rows(partitions),
        };
        Self::from_examined((windows, length), (windows, examined))
    }

    /// Computes the figures of the examined windows, and how the load moves, which also depends on
    /// the displayed windows.
    #[must_use]
    pub(crate) fn from_examined(
        (shown, length): (&[Window], Micros),
        (windows, examined): (&[Window], Examined),
    ) -> Option<Self> {
        let judged: Vec<JudgedWindow<'_>> =
            windows.iter().filter_map(|window| JudgedWindow::new(window, examined.fewest_rows)).collect();
        let spread = |figure: fn(&JudgedWindow<'_>) -> f64| {
            Spread::weighted(
                &judged.iter().map(|window| (figure(window), window.figures.rows)).collect::<Vec<_>>(),
            )
        };
        let worst = judged.iter().min_by(|a, b| {
            let effective = |window: &JudgedWindow<'_>| window.figures.effective_partitions;
            effective(a).total_cmp(&effective(b)).then(b.figures.rows.cmp(&a.figures.rows))
        })?;
        let partitions = worst.figures.partitions;
        let together = together(&judged, partitions);
        let mut chance = MaxOverMeanByChance::over(partitions);
        let lasting: Vec<(f64, u64)> =
            together.iter().map(|group| (group.lasting_share(partitions, &mut chance), group.rows)).collect();
        let effective: Vec<(f64, u64)> =
            together.iter().map(|group| (group.lasting_effective(partitions), group.rows)).collect();
        let effective = Spread::weighted(&effective)?;
        let every: Vec<JudgedWindow<'_>> =
            shown.iter().filter_map(|window| JudgedWindow::new(window, 1)).collect();
        let peak = every
            .iter()
            .max_by(|a, b| a.figures.max.cmp(&b.figures.max).then(b.window.number.cmp(&a.window.number)))?;
        let evidence = evidence(&judged, &every, length, balance(effective.median, partitions))?;
        Some(Self {
            window_micros: length,
            windows: shown.len(),
            examined,
            judged_windows: judged.len(),
            effective_partitions: spread(|w| w.figures.effective_partitions)?,
            lasting_effective_partitions: effective,
            share_of_fullest: spread(|w| w.figures.share_of_fullest)?,
            lasting_share_of_fullest: Spread::weighted(&lasting)?,
            worst_window: worst.describe(examined.window_micros),
            peak: peak.describe(length),
            pattern: pattern(&evidence),
            evidence,
        })
    }

    /// Describes the examined rows in words: `rows of one moment`, `windows of 10s`.
    #[must_use]
    pub fn examined_words(&self) -> String {
        match self.examined.one_moment {
            true => "rows of one moment".to_owned(),
            false => format!("windows of {}", self.examined.window_micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates 200 windows over 8 partitions; `share` gives the share of a partition in a window,
    /// in tenths of a percent.
    fn judged(share: impl Fn(i64, usize) -> u64) -> OverTime {
        let window = |number: i64| Window {
            number,
            start_micros: number * Micros::HOUR.get(),
            rows_per_partition: (0..8).map(|partition| share(number, partition)).collect(),
        };
        OverTime::from_windows(&(0..200).map(window).collect::<Vec<_>>(), Micros::HOUR).unwrap()
    }

    #[test]
    fn each_pattern_is_told_by_what_it_does() {
        let hot = |is: bool| if is { 1000 } else { 10 };
        let even = judged(|_, partition| 100 + partition as u64);
        assert_eq!(even.pattern, Pattern::Even);
        let concentrated = judged(|_, partition| hot(partition == 3));
        assert_eq!(concentrated.pattern, Pattern::Concentrated);
        assert_eq!(concentrated.evidence.partitions_that_were_fullest, 1);
        // A day of three shifts, each on its own partition.
        let periodic = judged(|hour, partition| hot(partition as i64 == hour % 24 / 8));
        assert_eq!(periodic.pattern, Pattern::Periodic);
        assert_eq!(periodic.evidence.period_micros, Some(Micros::DAY.get()));
        // Each day is on one partition, chosen by a hash of its number.
        let sequential = judged(|hour, partition| {
            let day = (hour / 24).cast_unsigned();
            hot(partition as u64 == evenkeel_placement::placement::hash_bytes(&day.to_le_bytes()) % 8)
        });
        assert_eq!(sequential.pattern, Pattern::Sequential);
        assert!(sequential.evidence.alike_next.unwrap() > 0.9);
    }

    #[test]
    fn the_figures_are_those_of_the_windows() {
        let over_time = judged(|hour, partition| if hour == 7 && partition == 2 { 10_000 } else { 100 });
        assert_eq!((over_time.windows, over_time.judged_windows), (200, 200));
        assert_eq!(over_time.worst_window.start_micros, 7 * Micros::HOUR.get());
        assert_eq!((over_time.peak.partition, over_time.peak.rows), (2, 10_700));
        assert!((over_time.peak.rows_per_second_of_fullest - 10_000.0 / 3600.0).abs() < 1e-9);
        assert!((over_time.effective_partitions.median - 8.0).abs() < 1e-9);
        // Windows of 800 rows are as even as more rows would be.
        assert!((over_time.lasting_effective_partitions.median - 8.0).abs() < 0.1, "{over_time:?}");
        assert!((over_time.share_of_fullest.max - 10_000.0 / 10_700.0).abs() < 1e-9);
        assert_eq!(over_time.pattern, Pattern::Even);
    }

    #[test]
    fn windows_of_few_rows_are_not_judged() {
        let window = Window { number: 0, start_micros: 0, rows_per_partition: vec![15, 0, 0, 0, 0, 0, 0, 0] };
        assert!(OverTime::from_windows(std::slice::from_ref(&window), Micros::HOUR).is_none());
        let enough = Window { rows_per_partition: vec![16, 0, 0, 0, 0, 0, 0, 0], ..window };
        assert!(OverTime::from_windows(&[enough], Micros::HOUR).is_some());
        assert!(OverTime::from_windows(&[], Micros::HOUR).is_none());
    }

    /// Creates windows of `rows` rows, each in the partition that `at` gives.
    fn scattered(windows: i64, rows: u64, partitions: usize, at: impl Fn(i64, u64) -> usize) -> Vec<Window> {
        let window = |number: i64| {
            let mut rows_per_partition = vec![0; partitions];
            (0..rows).for_each(|row| rows_per_partition[at(number, row)] += 1);
            Window { number, start_micros: number * Micros::SECOND.get(), rows_per_partition }
        };
        (0..windows).map(window).collect()
    }

    fn examined(windows: &[Window], fewest_rows: u64) -> OverTime {
        let examined = Examined {
            window_micros: Micros::SECOND,
            one_moment: true,
            rows_per_window: 2,
            one_in: 1,
            fewest_rows,
        };
        OverTime::from_examined((windows, Micros::SECOND), (windows, examined)).unwrap()
    }

    #[test]
    fn few_rows_of_a_window_do_not_look_like_a_hot_spot_and_hide_none() {
        let random = |number: i64, row: u64| {
            evenkeel_placement::placement::hash_bytes(&[number.to_le_bytes(), row.to_le_bytes()].concat())
        };
        for partitions in [2usize, 16, 64] {
            for rows in [2, 3, 10, 40] {
                // All partitions equal; one of three keys per window, with new keys in the next
                // one; one key alone.
                let even = scattered(5_000, rows, partitions, |number, row| {
                    (random(number, row) % partitions as u64) as usize
                });
                let even = examined(&even, 2);
                let share = even.lasting_effective_partitions.median / partitions as f64;
                assert!(share > 0.8, "{partitions} {rows}: {share}");
                assert!(
                    even.lasting_share_of_fullest.median < 1.6 / partitions as f64,
                    "{partitions} {rows}: {even:?}"
                );
                assert_eq!(even.pattern, Pattern::Even, "{partitions} {rows}");
                let one = scattered(5_000, rows, partitions, |number, _| {
                    (random(number, 0) % partitions as u64) as usize
                });
                let one = examined(&one, 2);
                assert_eq!(
                    (one.lasting_effective_partitions.median, one.lasting_share_of_fullest.median),
                    (1.0, 1.0)
                );
                assert_eq!(one.pattern, Pattern::Sequential, "{partitions} {rows}");
                if partitions >= 16 {
                    let three = scattered(5_000, rows, partitions, |number, row| {
                        let key = random(number, row) % 3;
                        (random(number, 1_000 + key) % partitions as u64) as usize
                    });
                    let three = examined(&three, 2);
                    // Two rows share a partition if they have the same one of three keys, or if
                    // their keys do.
                    let expected = 1.0 / (1.0 / 3.0 + 2.0 / 3.0 / partitions as f64);
                    let actual = three.lasting_effective_partitions.median;
                    assert!(
                        (actual / expected - 1.0).abs() < 0.15,
                        "{partitions} {rows}: {actual} {expected}"
                    );
                    assert_eq!(three.pattern, Pattern::Sequential, "{partitions} {rows}");
                }
            }
        }
    }

    #[test]
    fn two_partitions_that_take_turns_are_a_moving_hot_spot() {
        let turns = scattered(400, 100, 2, |number, row| usize::from((number % 2 == 0) == (row > 5)));
        let figures = examined(&turns, 16);
        assert!(matches!(figures.pattern, Pattern::Periodic | Pattern::Sequential), "{figures:?}");
        let same = scattered(400, 100, 2, |_, row| usize::from(row > 5));
        assert_eq!(examined(&same, 16).pattern, Pattern::Concentrated);
        let both = scattered(400, 100, 2, |_, row| usize::from(row > 55));
        assert_eq!(examined(&both, 16).pattern, Pattern::Even);
    }

    #[test]
    fn a_weighted_spread_is_that_of_as_many_values() {
        let values = [(3.0, 1), (1.0, 5), (2.0, 4)];
        let each: Vec<f64> =
            values.iter().flat_map(|(value, weight)| vec![*value; *weight as usize]).collect();
        let (weighted, plain) = (Spread::weighted(&values).unwrap(), Spread::from_values(&each).unwrap());
        assert_eq!((weighted.min, weighted.max, weighted.p90), (plain.min, plain.max, 2.0));
        assert_eq!((weighted.p10, weighted.median), (1.0, 1.0));
        assert!(Spread::weighted(&[]).is_none());
    }

    #[test]
    fn a_spread_of_one_value_is_that_value() {
        let spread = Spread::from_values(&[3.0]).unwrap();
        assert_eq!([spread.min, spread.p10, spread.median, spread.p90, spread.max], [3.0; 5]);
        assert!(Spread::from_values(&[]).is_none());
    }
}
