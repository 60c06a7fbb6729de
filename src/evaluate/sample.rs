//! Intervals for figures that are known from a sample of the rows.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Binomial, Distribution};
use serde::Serialize;

use crate::skew::SkewFigures;
use crate::wire::wire;

/// Repetitions of the bootstrap.
const REPETITIONS: usize = 400;

/// An interval that holds the figure of the whole export with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

wire!(Interval { lower, upper });

impl Interval {
    /// Of a share of which a sample of `rows` rows has `share` (Wilson, "Probable Inference", 1927).
    #[must_use]
    pub fn of_share(share: f64, rows: u64) -> Self {
        const Z: f64 = 1.96;
        let n = rows.max(1) as f64;
        let centre = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
        let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        Self { lower: (centre - half).max(0.0), upper: (centre + half).min(1.0) }
    }

    /// Of the rows of the whole that repeat a key, where a sample that is a share of it has so many. Two rows of one key are both in
    /// the sample with a chance of share^2, many of one key in proportion to the share; counts scatter as Poisson's do.
    #[must_use]
    pub fn of_repeated_rows(found: u64, share: f64) -> Self {
        let root = (found as f64).sqrt();
        Self {
            lower: (root - 0.98).max(0.0).powi(2) / share,
            upper: (((found + 1) as f64).sqrt() + 0.98).powi(2) / (share * share),
        }
    }
}

/// Intervals of the skew figures: a parametric bootstrap, reversed (Davison and Hinkley, "Bootstrap Methods and their
/// Application", 5.2, basic intervals), which also takes out the noise that a sample adds to unevenness.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Intervals {
    /// Of max / mean.
    pub max_over_mean: Interval,
    /// Of the CV.
    pub cv: Interval,
    /// Of the idle fraction.
    pub idle_fraction: Interval,
    /// Of the effective partitions.
    pub effective_partitions: Interval,
    /// Of the share of the fullest partition.
    pub share_of_fullest: Interval,
}

impl Intervals {
    /// The intervals for an export of which a sample of that share has these rows per partition. Of what is the greater part of
    /// the whole, less is unknown: half the width shrinks with sqrt(1 - share).
    #[must_use]
    pub fn of(rows: &[u64], share: f64) -> Self {
        let measured = SkewFigures::of(rows);
        let mut random = ChaCha8Rng::seed_from_u64(0x5EED);
        let again: Vec<SkewFigures> =
            (0..REPETITIONS).map(|_| SkewFigures::of(&resample(rows, &mut random))).collect();
        let partitions = measured.partitions.max(1) as f64;
        let interval = |of: fn(&SkewFigures) -> f64, least: f64, most: f64| {
            let mut values: Vec<f64> = again.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            let at = |fraction: f64| {
                values
                    .get((fraction * (values.len() as f64 - 1.0)).round() as usize)
                    .copied()
                    .unwrap_or_default()
            };
            let measured = of(&measured);
            let unknown = (1.0 - share).max(0.0).sqrt();
            let end = |fraction: f64| (measured + (measured - at(fraction)) * unknown).clamp(least, most);
            Interval { lower: end(0.975), upper: end(0.025) }
        };
        Self {
            max_over_mean: interval(|f| f.max_over_mean, 1.0, partitions),
            cv: interval(|f| f.cv, 0.0, partitions.sqrt()),
            idle_fraction: interval(|f| f.idle_fraction, 0.0, 1.0),
            effective_partitions: interval(|f| f.effective_partitions, 1.0, partitions),
            share_of_fullest: interval(|f| f.share_of_fullest, 1.0 / partitions, 1.0),
        }
    }
}

/// As many rows again, each in the partition of one of these rows: a multinomial draw, one binomial after the other.
fn resample(rows: &[u64], random: &mut ChaCha8Rng) -> Vec<u64> {
    let mut rows_left: u64 = rows.iter().sum();
    let mut weight_left = rows_left as f64;
    rows.iter()
        .map(|weight| {
            let chance = if weight_left > 0.0 { (*weight as f64 / weight_left).clamp(0.0, 1.0) } else { 0.0 };
            weight_left -= *weight as f64;
            let drawn = Binomial::new(rows_left, chance).map_or(0, |draw| draw.sample(random));
            rows_left -= drawn.min(rows_left);
            drawn
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_shares_and_repeats_hold_what_they_should() {
        let half = Interval::of_share(0.5, 10_000);
        assert!((half.lower - 0.4902).abs() < 1e-4 && (half.upper - 0.5098).abs() < 1e-4, "{half:?}");
        assert_eq!(Interval::of_share(0.0, 100).lower, 0.0);
        // 1000 pairs among the rows: of a tenth of these, about ten pairs are seen.
        let repeats = Interval::of_repeated_rows(10, 0.1);
        assert!(repeats.lower < 1000.0 && 1000.0 < repeats.upper, "{repeats:?}");
        assert_eq!(Interval::of_repeated_rows(0, 0.1).lower, 0.0);
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        // Of a million rows, of which partition 0 has twice its share, samples of 1 % are taken again and again.
        let truth: Vec<u64> = std::iter::once(125_000).chain([62_500; 14]).collect();
        let figures = SkewFigures::of(&truth);
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let sample: Vec<u64> = truth.iter().map(|rows| rows / 100).collect();
        let mut held = [0; 3];
        for _ in 0..100 {
            let intervals = Intervals::of(&resample(&sample, &mut random), 0.01);
            let inside = |interval: Interval, value: f64| {
                u32::from(interval.lower <= value && value <= interval.upper)
            };
            held[0] += inside(intervals.max_over_mean, figures.max_over_mean);
            held[1] += inside(intervals.cv, figures.cv);
            held[2] += inside(intervals.effective_partitions, figures.effective_partitions);
        }
        assert!(held.iter().all(|held| *held >= 85), "{held:?} of 100");
    }
}
