//! Balance over time: what each window of time would ask of the partitions, and the pattern that this makes.
//!
//! The four patterns are those of Key Visualizer (Spanner, Bigtable): *even*; *concentrated*, the same partitions are hot all
//! the time; *periodic*, they return; *sequential*, the hot partition moves on and does not return.

use std::collections::HashMap;

use serde::Serialize;

use crate::skew::{MaxOverMeanByChance, SkewFigures, median};
use crate::units::Micros;
use crate::windows::Window;

/// Rows that a window needs for each partition to be judged. So few are enough, because what chance does to so few rows is
/// taken into account.
const FEWEST_ROWS_PER_PARTITION: u64 = 2;
/// Rows that a window needs at least.
const FEWEST_ROWS: u64 = 16;
/// A window is even while it is worth at least this part of the effective partitions that chance would give it.
const EVEN_FRACTION: f64 = 0.5;
/// Windows are alike when this share of their rows lies on the same partitions.
const ALIKE: f64 = 0.5;
/// A period shows when windows are so much more alike after it than somewhere on the way.
const RETURNS_BY: f64 = 0.25;
/// Pairs of windows that are compared at each distance, at most; evenly chosen.
const MOST_PAIRS: usize = 128;
/// Distances in time that are compared, at most.
const MOST_LAGS: i64 = 600;

/// How the load of partitions moves through time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Rows of every window spread over the partitions.
    Even,
    /// Few partitions are hot, and return after a while.
    Periodic,
    /// The same few partitions are hot all the time.
    Concentrated,
    /// Few partitions are hot at a time, others each time: the hot spot moves.
    Sequential,
}

impl Pattern {
    /// One word.
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

/// Median, 10th and 90th percentile and the ends of a figure over the windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// A tenth of the windows is below it.
    pub p10: f64,
    /// The middle one.
    pub median: f64,
    /// A tenth of the windows is above it.
    pub p90: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of some values; none of no values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at =
            |fraction: f64| sorted.get(((sorted.len() as f64 - 1.0) * fraction).round() as usize).copied();
        let median = median(sorted.clone())?;
        Some(Self { min: at(0.0)?, p10: at(0.1)?, median, p90: at(0.9)?, max: at(1.0)? })
    }
}

/// The window that is worst, or the busiest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowFigures {
    /// Where it begins, in microseconds since 1970.
    pub start_micros: i64,
    /// Its rows.
    pub rows: u64,
    /// Its fullest partition.
    pub partition: usize,
    /// Share of its rows there.
    pub share_of_fullest: f64,
    /// Its effective partitions.
    pub effective_partitions: f64,
    /// Rows per second that its fullest partition took.
    pub rows_per_second_of_fullest: f64,
}

/// What a pattern is concluded from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// Median over the windows of the effective partitions, as a part of what chance would give so many rows.
    pub effective_of_expected: f64,
    /// Share of the rows of a window that lies on the same partitions in the next one.
    pub alike_next: Option<f64>,
    /// The same for windows far apart: a quarter of the whole time or more.
    pub alike_far: Option<f64>,
    /// After so many microseconds the hot partitions return.
    pub period_micros: Option<i64>,
    /// Partitions that are the fullest of some window.
    pub partitions_that_were_fullest: usize,
    /// Where the key is made of the time alone: rows for each of its values. All rows of a value are on one partition, however
    /// short the windows are.
    pub rows_per_moment: Option<f64>,
}

/// Balance over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverTime {
    /// Length of a window.
    pub window_micros: Micros,
    /// Windows with rows.
    pub windows: usize,
    /// Windows with enough rows to be judged: 16 or more, and 2 or more per partition. The figures below are theirs.
    pub judged_windows: usize,
    /// Effective partitions of a window.
    pub effective_partitions: Spread,
    /// Share of a window's rows in its fullest partition.
    pub share_of_fullest: Spread,
    /// That share less what chance adds to it in a window of few rows.
    pub lasting_share_of_fullest: Spread,
    /// The window with the fewest effective partitions.
    pub worst_window: WindowFigures,
    /// The window whose fullest partition takes the most rows per second.
    pub peak: WindowFigures,
    /// How the load moves.
    pub pattern: Pattern,
    /// What that is concluded from.
    pub evidence: Evidence,
}

impl OverTime {
    /// The figures of some windows of one length, in order; none where no window has enough rows.
    #[must_use]
    pub fn of(windows: &[Window], length: Micros) -> Option<Self> {
        let judged: Vec<Judged<'_>> = windows.iter().filter_map(Judged::of).collect();
        let spread = |of: fn(&Judged<'_>) -> f64| Spread::of(&judged.iter().map(of).collect::<Vec<_>>());
        let worst = judged
            .iter()
            .min_by(|a, b| a.figures.effective_partitions.total_cmp(&b.figures.effective_partitions))?;
        let peak = judged
            .iter()
            .max_by(|a, b| a.figures.max.cmp(&b.figures.max).then(b.window.number.cmp(&a.window.number)))?;
        let evidence = evidence(&judged, length)?;
        let mut chance = MaxOverMeanByChance::over(worst.figures.partitions);
        let lasting: Vec<f64> = judged.iter().map(|window| window.lasting_share(&mut chance)).collect();
        Some(Self {
            window_micros: length,
            windows: windows.len(),
            judged_windows: judged.len(),
            effective_partitions: spread(|w| w.figures.effective_partitions)?,
            share_of_fullest: spread(|w| w.figures.share_of_fullest)?,
            lasting_share_of_fullest: Spread::of(&lasting)?,
            worst_window: worst.describe(length),
            peak: peak.describe(length),
            pattern: pattern(&evidence),
            evidence,
        })
    }
}

/// A key made of the time alone sends all rows of one of its values to one partition: from so many rows per value on, that is
/// a moving hot spot.
pub(super) const ROWS_OF_A_MOMENT: f64 = 2.0;

impl OverTime {
    /// Notes that the key is made of the time alone and has so many rows for each of its values.
    pub(super) fn note_moment(&mut self, rows_per_value: f64) {
        self.evidence.rows_per_moment = Some(rows_per_value);
        if rows_per_value >= ROWS_OF_A_MOMENT && self.pattern == Pattern::Even {
            self.pattern = Pattern::Sequential;
        }
    }
}

/// Partitions that are compared at one time.
const LANES: usize = 8;

/// A window with enough rows.
struct Judged<'a> {
    window: &'a Window,
    figures: SkewFigures,
    /// Share of the rows of each partition.
    shares: Vec<f64>,
    /// Partitions with rows.
    present: Vec<u32>,
}

impl<'a> Judged<'a> {
    fn of(window: &'a Window) -> Option<Self> {
        let figures = SkewFigures::of(&window.rows_per_partition);
        let enough = FEWEST_ROWS.max(FEWEST_ROWS_PER_PARTITION * figures.partitions as u64);
        if figures.rows < enough {
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

    /// Effective partitions that n rows thrown at N partitions by chance have: n^2 over the expected sum of squares, which is
    /// n + n (n - 1) / N.
    fn expected_effective(&self) -> f64 {
        let (n, partitions) = (self.figures.rows as f64, self.figures.partitions as f64);
        n * partitions / (n + partitions - 1.0)
    }

    /// The share of the fullest less what chance gives the fullest of so many rows above 1/N; at least 1/N.
    fn lasting_share(&self, chance: &mut MaxOverMeanByChance) -> f64 {
        let partitions = self.figures.partitions as f64;
        let chance = (chance.of(self.figures.rows) - 1.0) / partitions;
        (self.figures.share_of_fullest - chance).max(1.0 / partitions)
    }

    /// Share of the rows of two windows that lies on the same partitions: the sum of the smaller shares.
    fn alike(&self, other: &Self) -> f64 {
        // Where one of them has no rows, both have none in common.
        let fewer = if self.present.len() <= other.present.len() { &self.present } else { &other.present };
        if fewer.len() * LANES > self.shares.len() {
            // Sums of several partitions at one time, which need not wait for each other.
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

fn evidence(judged: &[Judged<'_>], length: Micros) -> Option<Evidence> {
    let relative = judged.iter().map(|w| w.figures.effective_partitions / w.expected_effective());
    let effective_of_expected = median(relative.collect())?;
    let mut fullest: Vec<usize> = judged.iter().map(|w| w.figures.fullest_partition).collect();
    fullest.sort_unstable();
    fullest.dedup();
    let mut evidence = Evidence {
        effective_of_expected,
        alike_next: None,
        alike_far: None,
        period_micros: None,
        partitions_that_were_fullest: fullest.len(),
        rows_per_moment: None,
    };
    // Where rows of every window spread over the partitions, they spread alike; comparing windows tells no more.
    let lags = if effective_of_expected >= EVEN_FRACTION { 1 } else { MOST_LAGS };
    let alike = alike_by_lag(judged, lags);
    evidence.alike_next = alike.first().copied().flatten();
    if lags > 1 {
        let far: Vec<f64> = alike.iter().skip(alike.len() * 3 / 8).copied().flatten().collect();
        evidence.alike_far = (!far.is_empty()).then(|| far.iter().sum::<f64>() / far.len() as f64);
        evidence.period_micros = period(&alike).map(|lag| lag as i64 * length.get());
    }
    Some(evidence)
}

/// For every distance in windows from 1 on, up to two thirds of the whole time, how alike windows are at that distance, on average; none
/// where no two are so far apart.
fn alike_by_lag(judged: &[Judged<'_>], most: i64) -> Vec<Option<f64>> {
    let (Some(first), Some(last)) = (judged.first(), judged.last()) else { return Vec::new() };
    let lags = ((last.window.number - first.window.number) * 2 / 3).clamp(1, most);
    let position: HashMap<i64, &Judged<'_>> =
        judged.iter().map(|window| (window.window.number, window)).collect();
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

/// The first distance after which windows are alike again, although they were not on the way there; and again after twice
/// that distance, since a moving hot spot may hit the same partition twice by chance.
fn period(all: &[Option<f64>]) -> Option<usize> {
    let mut least = f64::INFINITY;
    let mut found: Option<(usize, f64)> = None;
    for (lag, alike) in (1..).zip(all).take(all.len() / 2) {
        let Some(alike) = alike else { continue };
        if *alike >= ALIKE && *alike >= least + RETURNS_BY {
            // The peak of the return, not its first slope.
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

fn pattern(evidence: &Evidence) -> Pattern {
    if evidence.effective_of_expected >= EVEN_FRACTION {
        Pattern::Even
    } else if evidence.period_micros.is_some() {
        Pattern::Periodic
    } else if evidence.alike_far.or(evidence.alike_next).is_none_or(|alike| alike >= ALIKE) {
        Pattern::Concentrated
    } else {
        Pattern::Sequential
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 windows over 8 partitions; `share` gives the share of a partition in a window, in tenths of a percent.
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
        // A day of three shifts, each with its partition.
        let periodic = judged(|hour, partition| hot(partition as i64 == hour % 24 / 8));
        assert_eq!(periodic.pattern, Pattern::Periodic);
        assert_eq!(periodic.evidence.period_micros, Some(Micros::DAY.get()));
        // Each day its partition, by chance (here: multiples of a number that shares no factor with 8 squares to disorder).
        let sequential = judged(|hour, partition| {
            let day = (hour / 24).cast_unsigned();
            hot(partition as u64 == crate::placement::hash_bytes(&day.to_le_bytes()) % 8)
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

    #[test]
    fn a_spread_of_one_value_is_that_value() {
        let spread = Spread::of(&[3.0]).unwrap();
        assert_eq!([spread.min, spread.p10, spread.median, spread.p90, spread.max], [3.0; 5]);
        assert!(Spread::of(&[]).is_none());
    }
}
