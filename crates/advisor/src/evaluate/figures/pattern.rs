//! Movement of the load of partitions from window to window.

use std::collections::HashMap;

use serde::Serialize;

use crate::evaluate::figures::judged_windows::JudgedWindow;
use evenkeel_model::units::Micros;
use evenkeel_stats::skew::{AtATime, SkewFigures, balance};
use evenkeel_stats::throughput::enough_rows;

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
    /// At any moment a few partitions are hot, but not always the same ones: the hot spot moves.
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

/// Figures that a pattern is concluded from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// Balance within a window, minus the effect of chance on few rows: 0 if all rows are in one
    /// partition, 1 if all partitions are equal.
    pub balance: f64,
    /// Balance of all rows together, on the same scale.
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

impl Evidence {
    /// Returns how rows are spread at any moment.
    #[must_use]
    pub fn at_a_time(&self) -> AtATime {
        AtATime::from_balances(self.balance, self.balance_in_total)
    }
}

/// Share of rows on the same partitions above which windows count as similar.
const ALIKE: f64 = 0.5;

/// Increase in likeness, over the least likeness at shorter distances, that indicates a period.
const RETURNS_BY: f64 = 0.25;

/// Maximum number of pairs of windows that are compared at each distance, chosen evenly.
const MAX_PAIRS: usize = 128;

/// Maximum number of distances in time that are compared.
const MAX_LAGS: i64 = 600;

/// Computes the evidence for a pattern. `every` are the displayed windows.
pub(super) fn evidence(
    judged: &[JudgedWindow<'_>],
    every: &[JudgedWindow<'_>],
    length: Micros,
    at_a_time: f64,
) -> Option<Evidence> {
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
    // If the rows of every window are spread over the partitions, the windows are similar, and
    // comparing them adds nothing.
    let lags = if evidence.at_a_time() == AtATime::Spread { 1 } else { MAX_LAGS };
    let enough: Vec<&JudgedWindow<'_>> =
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
fn alike_by_lag(judged: &[&JudgedWindow<'_>], most: i64) -> Vec<Option<f64>> {
    let (Some(first), Some(last)) = (judged.first(), judged.last()) else { return Vec::new() };
    let lags = ((last.window.number - first.window.number) * 2 / 3).clamp(1, most);
    let position: HashMap<i64, &JudgedWindow<'_>> =
        judged.iter().map(|window| (window.window.number, *window)).collect();
    let step = judged.len().div_ceil(MAX_PAIRS);
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

/// Returns the first distance after which windows are similar again, although they are not at
/// shorter ones. They must also be similar after twice that distance, since a moving hot spot may
/// hit the same partition twice by chance.
fn period(all: &[Option<f64>]) -> Option<usize> {
    let mut least = f64::INFINITY;
    let mut period: Option<(usize, f64)> = None;
    for (lag, alike) in (1..).zip(all).take(all.len() / 2) {
        let Some(alike) = alike else { continue };
        if *alike >= ALIKE && *alike >= least + RETURNS_BY {
            // Take the peak of the return, not its first slope.
            match period {
                Some((_, best)) if *alike < best => break,
                Some((_, best)) if *alike <= best => {}
                _ => period = Some((lag, *alike)),
            }
        } else if period.is_some() {
            break;
        }
        least = least.min(*alike);
    }
    let again = |lag: usize| all.get(2 * lag - 1).copied().flatten().is_some_and(|alike| alike >= ALIKE);
    period.map(|(lag, _)| lag).filter(|lag| again(*lag))
}

pub(super) fn pattern(evidence: &Evidence) -> Pattern {
    match evidence.at_a_time() {
        AtATime::Spread => Pattern::Even,
        AtATime::Stays => Pattern::Concentrated,
        AtATime::Moves if evidence.period_micros.is_some() => Pattern::Periodic,
        AtATime::Moves => Pattern::Sequential,
    }
}
