//! Balance over time: the load of each time window on the partitions, and the pattern that results.
//!
//! The four patterns are those of Key Visualizer (Spanner, Bigtable): *even*; *concentrated*, if
//! the same partitions are hot all the time; *periodic*, if they return; *sequential*, if the hot
//! partition moves on and does not return.

use std::collections::HashMap;

use serde::Serialize;

use crate::evaluate::figures::moment::{Examined, enough_rows};
use evenkeel_model::units::Micros;
use evenkeel_stats::skew::{AtATime, MaxOverMeanByChance, SkewFigures, balance, median};
use evenkeel_stats::windows::Window;

/// Share of rows on the same partitions from which windows count as alike.
const ALIKE: f64 = 0.5;
/// Increase in likeness, over the least likeness at shorter distances, that indicates a period.
const RETURNS_BY: f64 = 0.25;
/// Maximum number of pairs of windows that are compared at each distance, chosen evenly.
const MOST_PAIRS: usize = 128;
/// Maximum number of distances in time that are compared.
const MOST_LAGS: i64 = 600;
/// Pairs of rows per partition from which it is known how often two rows share a partition, and
/// rows per partition from which the share of the fullest is more than a few steps. Windows with
/// fewer are judged together.
const PAIRS_PER_PARTITION: f64 = 8.0;
const ROWS_PER_PARTITION: u64 = 20;

/// Movement of the load of partitions through time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// The rows of every window are spread over the partitions.
    Even,
    /// A few partitions are hot, and return after a while.
    Periodic,
    /// The same few partitions are hot all the time.
    Concentrated,
    /// A few partitions are hot at a time, and others each time: the hot spot moves.
    Sequential,
}

impl Pattern {
    /// Returns the pattern as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Periodic => "periodic",
            Self::Concentrated => "concentrated",
            Self::Sequential => "sequential",
        }
    }
}

/// Median, 10th and 90th percentile, minimum and maximum of a figure over windows or batches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Minimum.
    pub min: f64,
    /// 10th percentile: a tenth of the windows is below it.
    pub p10: f64,
    /// Median.
    pub median: f64,
    /// 90th percentile: a tenth of the windows is above it.
    pub p90: f64,
    /// Maximum.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of some values; `None` if there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
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
            let found = sorted.iter().find(|(_, weight)| {
                below += weight;
                below as f64 >= fraction * all as f64
            });
            found.or(sorted.last()).map(|(value, _)| *value)
        };
        Some(Self { min: at(0.0)?, p10: at(0.1)?, median: at(0.5)?, p90: at(0.9)?, max: at(1.0)? })
    }
}

/// Figures of one window, the worst or the busiest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowFigures {
    /// Start of the window, in microseconds since 1970.
    pub start_micros: i64,
    /// Rows of the window.
    pub rows: u64,
    /// Fullest partition of the window.
    pub partition: usize,
    /// Share of the window's rows in its fullest partition.
    pub share_of_fullest: f64,
    /// Effective partitions of the window.
    pub effective_partitions: f64,
    /// Rows per second of its fullest partition.
    pub rows_per_second_of_fullest: f64,
}

/// Figures that a pattern is concluded from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// Balance within a window, less the effect of chance on few rows: 0 if all rows are in one
    /// partition, 1 if all partitions are alike.
    pub balance: f64,
    /// Balance of all rows together.
    pub balance_in_total: f64,
    /// Share of a displayed window's rows that is on the same partitions in the next one.
    pub alike_next: Option<f64>,
    /// Share of rows on the same partitions for windows far apart: a quarter of the whole time or
    /// more.
    pub alike_far: Option<f64>,
    /// Time after which the hot partitions return, in microseconds.
    pub period_micros: Option<i64>,
    /// Number of partitions that are the fullest of some window.
    pub partitions_that_were_fullest: usize,
}

/// Balance over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverTime {
    /// Length of a displayed window.
    pub window_micros: Micros,
    /// Number of displayed windows, which are those with rows.
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
    /// Share of the fullest partition less what chance adds to it in a window of few rows.
    pub lasting_share_of_fullest: Spread,
    /// Judged window with the fewest effective partitions.
    pub worst_window: WindowFigures,
    /// Displayed window whose fullest partition takes the most rows per second.
    pub peak: WindowFigures,
    /// Movement of the load.
    pub pattern: Pattern,
    /// Figures that the pattern is concluded from.
    pub evidence: Evidence,
}

impl OverTime {
    /// Computes the figures of windows of one length, in order, which are both judged and
    /// displayed; `None` if no window has enough rows.
    #[must_use]
    pub fn of(windows: &[Window], length: Micros) -> Option<Self> {
        let partitions = windows.first().map_or(1, |window| window.rows_per_partition.len());
        let rows_per_window = windows.iter().map(|window| window.rows_per_partition.iter().sum()).min()?;
        let examined = Examined {
            window_micros: length,
            one_moment: false,
            rows_per_window,
            one_in: 1,
            fewest_rows: enough_rows(partitions),
        };
        Self::of_examined((windows, length), (windows, examined))
    }

    /// Computes the figures of the examined windows, and how the load moves, which also depends on
    /// the displayed windows.
    #[must_use]
    pub(crate) fn of_examined(
        (shown, length): (&[Window], Micros),
        (windows, examined): (&[Window], Examined),
    ) -> Option<Self> {
        let judged: Vec<Judged<'_>> =
            windows.iter().filter_map(|window| Judged::of(window, examined.fewest_rows)).collect();
        let spread = |of: fn(&Judged<'_>) -> f64| {
            Spread::weighted(
                &judged.iter().map(|window| (of(window), window.figures.rows)).collect::<Vec<_>>(),
            )
        };
        let worst = judged.iter().min_by(|a, b| {
            let effective = |window: &Judged<'_>| window.figures.effective_partitions;
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
        let every: Vec<Judged<'_>> = shown.iter().filter_map(|window| Judged::of(window, 1)).collect();
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

/// Partitions that are compared at once.
const LANES: usize = 8;

/// Window with enough rows.
struct Judged<'a> {
    window: &'a Window,
    figures: SkewFigures,
    /// Share of the rows of each partition.
    shares: Vec<f64>,
    /// Partitions with rows.
    present: Vec<u32>,
}

impl<'a> Judged<'a> {
    fn of(window: &'a Window, fewest: u64) -> Option<Self> {
        let figures = SkewFigures::from_counts(&window.rows_per_partition);
        if figures.rows < fewest.max(1) {
            return None;
        }
        let rows = figures.rows as f64;
        let shares = window.rows_per_partition.iter().map(|count| *count as f64 / rows).collect();
        let present = (0u32..).zip(&window.rows_per_partition).filter(|(_, count)| **count > 0);
        Some(Self { present: present.map(|(partition, _)| partition).collect(), shares, window, figures })
    }

    fn describe(&self, length: Micros) -> WindowFigures {
        WindowFigures {
            start_micros: self.window.start_micros,
            rows: self.figures.rows,
            partition: self.figures.fullest_partition,
            share_of_fullest: self.figures.share_of_fullest,
            effective_partitions: self.figures.effective_partitions,
            rows_per_second_of_fullest: self.figures.max as f64 / length.seconds(),
        }
    }

    /// Returns the share of all pairs of the window's rows that are in one partition. On average it
    /// is 1/N if rows are spread by chance alone, however few they are.
    fn meeting(&self) -> f64 {
        let rows = self.figures.rows as f64;
        let pairs = rows * (rows - 1.0);
        let meeting = self.window.rows_per_partition.iter().map(|count| {
            let count = *count as f64;
            count * (count - 1.0)
        });
        if pairs > 0.0 { meeting.sum::<f64>() / pairs } else { 0.0 }
    }

    /// Returns the share of the rows of two windows that is on the same partitions: the sum of the
    /// smaller shares.
    fn alike(&self, other: &Self) -> f64 {
        // A partition without rows in one of the windows contributes nothing.
        let fewer = if self.present.len() <= other.present.len() { &self.present } else { &other.present };
        if fewer.len() * LANES > self.shares.len() {
            // Independent sums of several partitions at once, which need not wait for each other.
            let mut sums = [0.0; LANES];
            let lanes = self.shares.as_chunks::<LANES>().0.iter().zip(other.shares.as_chunks::<LANES>().0);
            for (a, b) in lanes {
                for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                    *sum += if a < b { a } else { b };
                }
            }
            let rest = self.shares.as_chunks::<LANES>().1.iter().zip(other.shares.as_chunks::<LANES>().1);
            return sums.iter().sum::<f64>() + rest.map(|(a, b)| a.min(*b)).sum::<f64>();
        }
        let both = |partition: &u32| {
            Some(self.shares.get(*partition as usize)?.min(*other.shares.get(*partition as usize)?))
        };
        fewer.iter().filter_map(both).sum()
    }
}

/// Consecutive windows, as many as have enough rows together. Only rows of the same window are
/// compared.
#[derive(Debug, Default)]
struct Together {
    rows: u64,
    pairs: f64,
    /// Sums over the windows, weighted by rows.
    meeting: f64,
    share_of_fullest: f64,
    /// Rows of each window.
    rows_of_windows: Vec<u64>,
}

fn together(judged: &[Judged<'_>], partitions: usize) -> Vec<Together> {
    let suffices = |group: &Together| {
        group.pairs >= PAIRS_PER_PARTITION * partitions as f64
            && group.rows >= ROWS_PER_PARTITION * partitions as u64
    };
    let mut groups: Vec<Together> = Vec::new();
    for window in judged {
        match groups.last() {
            Some(last) if !suffices(last) => {}
            _ => groups.push(Together::default()),
        }
        if let Some(last) = groups.last_mut() {
            last.add(window);
        }
    }
    // A last group with too few rows joins the one before it.
    let rest = groups.pop_if(|last| !suffices(last));
    match (groups.last_mut(), rest) {
        (Some(last), Some(rest)) => last.join(rest),
        (None, Some(rest)) => groups.push(rest),
        _ => {}
    }
    groups
}

impl Together {
    fn add(&mut self, window: &Judged<'_>) {
        let rows = window.figures.rows as f64;
        self.rows += window.figures.rows;
        self.pairs += rows * (rows - 1.0) / 2.0;
        self.meeting += rows * window.meeting();
        self.share_of_fullest += rows * window.figures.share_of_fullest;
        self.rows_of_windows.push(window.figures.rows);
    }

    fn join(&mut self, other: Self) {
        self.rows += other.rows;
        self.pairs += other.pairs;
        self.meeting += other.meeting;
        self.share_of_fullest += other.share_of_fullest;
        self.rows_of_windows.extend(other.rows_of_windows);
    }

    /// Returns the inverse of the probability that two rows of a window are in one partition.
    fn lasting_effective(&self, partitions: usize) -> f64 {
        let meeting = self.meeting / self.rows.max(1) as f64;
        (1.0 / meeting.max(f64::MIN_POSITIVE)).clamp(1.0, partitions.max(1) as f64)
    }

    /// Returns the share of the fullest partition without the effect of chance. The excess over 1/N
    /// shrinks by the factor of James and Stein, 1 less the square of the excess by chance over the
    /// square of the measured one. If all rows are in one partition, they remain all rows; a share
    /// that chance alone explains becomes 1/N; and a much larger one hardly changes.
    fn lasting_share(&self, partitions: usize, chance: &mut MaxOverMeanByChance) -> f64 {
        let even = 1.0 / partitions.max(1) as f64;
        let by_chance = self.rows_of_windows.iter().map(|rows| *rows as f64 * chance.expected(*rows) * even);
        let above = |share: f64| ((share - even) / (1.0 - even).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let chance = above(by_chance.sum::<f64>() / self.rows.max(1) as f64);
        let found = above(self.share_of_fullest / self.rows.max(1) as f64);
        if partitions < 2 || found >= 1.0 {
            return 1.0;
        }
        if found <= chance {
            return even;
        }
        let lasting = (found - chance.powi(2) / found) / (1.0 - chance.powi(2));
        even + (1.0 - even) * lasting.min(1.0)
    }
}

/// Computes the evidence for a pattern. `every` are the displayed windows.
fn evidence(judged: &[Judged<'_>], every: &[Judged<'_>], length: Micros, at_a_time: f64) -> Option<Evidence> {
    let partitions = judged.first()?.figures.partitions;
    let mut fullest: Vec<usize> = judged.iter().map(|w| w.figures.fullest_partition).collect();
    fullest.sort_unstable();
    fullest.dedup();
    let mut in_total = vec![0u64; partitions];
    for window in every {
        in_total.iter_mut().zip(&window.window.rows_per_partition).for_each(|(sum, rows)| *sum += rows);
    }
    let mut evidence = Evidence {
        balance: at_a_time,
        balance_in_total: balance(SkewFigures::from_counts(&in_total).effective_partitions, partitions),
        alike_next: None,
        alike_far: None,
        period_micros: None,
        partitions_that_were_fullest: fullest.len(),
    };
    // If the rows of every window are spread over the partitions, the windows are alike, and
    // comparing them adds nothing.
    let lags = if evidence.at_a_time() == AtATime::Spread { 1 } else { MOST_LAGS };
    let enough: Vec<&Judged<'_>> =
        every.iter().filter(|window| window.figures.rows >= enough_rows(partitions)).collect();
    let alike = alike_by_lag(&enough, lags);
    evidence.alike_next = alike.first().copied().flatten();
    if lags > 1 {
        let far: Vec<f64> = alike.iter().skip(alike.len() * 3 / 8).copied().flatten().collect();
        evidence.alike_far = (!far.is_empty()).then(|| far.iter().sum::<f64>() / far.len() as f64);
        evidence.period_micros = period(&alike).map(|lag| lag as i64 * length.get());
    }
    Some(evidence)
}

/// Returns the average likeness of windows for every distance in windows, from 1 up to two thirds
/// of the whole time; `None` if no two windows are that far apart.
fn alike_by_lag(judged: &[&Judged<'_>], most: i64) -> Vec<Option<f64>> {
    let (Some(first), Some(last)) = (judged.first(), judged.last()) else { return Vec::new() };
    let lags = ((last.window.number - first.window.number) * 2 / 3).clamp(1, most);
    let position: HashMap<i64, &Judged<'_>> =
        judged.iter().map(|window| (window.window.number, *window)).collect();
    let step = judged.len().div_ceil(MOST_PAIRS);
    let alike = |lag: i64| {
        let pairs = judged
            .iter()
            .step_by(step)
            .filter_map(|a| Some(a.alike(position.get(&(a.window.number + lag))?)));
        let (sum, count) = pairs.fold((0.0, 0u32), |(sum, count), alike| (sum + alike, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    };
    (1..=lags).map(alike).collect()
}

/// Returns the first distance after which windows are alike again, although they are not at shorter
/// ones. They must also be alike after twice that distance, since a moving hot spot may hit the
/// same partition twice by chance.
fn period(all: &[Option<f64>]) -> Option<usize> {
    let mut least = f64::INFINITY;
    let mut found: Option<(usize, f64)> = None;
    for (lag, alike) in (1..).zip(all).take(all.len() / 2) {
        let Some(alike) = alike else { continue };
        if *alike >= ALIKE && *alike >= least + RETURNS_BY {
            // Take the peak of the return, not its first slope.
            match found {
                Some((_, best)) if *alike < best => break,
                Some((_, best)) if *alike <= best => {}
                _ => found = Some((lag, *alike)),
            }
        } else if found.is_some() {
            break;
        }
        least = least.min(*alike);
    }
    let again = |lag: usize| all.get(2 * lag - 1).copied().flatten().is_some_and(|alike| alike >= ALIKE);
    found.map(|(lag, _)| lag).filter(|lag| again(*lag))
}

impl Evidence {
    /// Returns how rows are spread at a time.
    #[must_use]
    pub fn at_a_time(&self) -> AtATime {
        AtATime::from_balances(self.balance, self.balance_in_total)
    }
}

fn pattern(evidence: &Evidence) -> Pattern {
    match evidence.at_a_time() {
        AtATime::Spread => Pattern::Even,
        AtATime::Stays => Pattern::Concentrated,
        AtATime::Moves if evidence.period_micros.is_some() => Pattern::Periodic,
        AtATime::Moves => Pattern::Sequential,
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
        OverTime::of(&(0..200).map(window).collect::<Vec<_>>(), Micros::HOUR).unwrap()
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
        assert!(OverTime::of(std::slice::from_ref(&window), Micros::HOUR).is_none());
        let enough = Window { rows_per_partition: vec![16, 0, 0, 0, 0, 0, 0, 0], ..window };
        assert!(OverTime::of(&[enough], Micros::HOUR).is_some());
        assert!(OverTime::of(&[], Micros::HOUR).is_none());
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
        OverTime::of_examined((windows, Micros::SECOND), (windows, examined)).unwrap()
    }

    #[test]
    fn few_rows_of_a_window_do_not_look_like_a_hot_spot_and_hide_none() {
        let random = |number: i64, row: u64| {
            evenkeel_placement::placement::hash_bytes(&[number.to_le_bytes(), row.to_le_bytes()].concat())
        };
        for partitions in [2usize, 16, 64] {
            for rows in [2, 3, 10, 40] {
                // All partitions alike; one of three keys per window, with new keys in the next
                // one; one key alone.
                let even = scattered(5_000, rows, partitions, |number, row| {
                    (random(number, row) % partitions as u64) as usize
                });
                let even = examined(&even, 2);
                let found = even.lasting_effective_partitions.median / partitions as f64;
                assert!(found > 0.8, "{partitions} {rows}: {found}");
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
                    let found = three.lasting_effective_partitions.median;
                    assert!((found / expected - 1.0).abs() < 0.15, "{partitions} {rows}: {found} {expected}");
                    assert_eq!(three.pattern, Pattern::Sequential, "{partitions} {rows}");
                }
            }
        }
    }

    #[test]
    fn two_partitions_that_take_turns_are_a_moving_hot_spot() {
        let turns = scattered(400, 100, 2, |number, row| usize::from((number % 2 == 0) == (row > 5)));
        let found = examined(&turns, 16);
        assert!(matches!(found.pattern, Pattern::Periodic | Pattern::Sequential), "{found:?}");
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
        let (weighted, plain) = (Spread::weighted(&values).unwrap(), Spread::of(&each).unwrap());
        assert_eq!((weighted.min, weighted.max, weighted.p90), (plain.min, plain.max, 2.0));
        assert_eq!((weighted.p10, weighted.median), (1.0, 1.0));
        assert!(Spread::weighted(&[]).is_none());
    }

    #[test]
    fn a_spread_of_one_value_is_that_value() {
        let spread = Spread::of(&[3.0]).unwrap();
        assert_eq!([spread.min, spread.p10, spread.median, spread.p90, spread.max], [3.0; 5]);
        assert!(Spread::of(&[]).is_none());
    }
}
