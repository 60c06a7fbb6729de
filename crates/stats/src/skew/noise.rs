//! Noise floor: even a perfect hash is not perfectly even.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde::Serialize;

use crate::skew::SkewFigures;

/// Returns the CV that a perfect hash gives to `keys` equally heavy keys in `partitions`:
/// sqrt(N / k x (1 - 1/N)), the standard deviation of a multinomial count over its mean. 0 without
/// keys.
#[must_use]
pub fn expected_cv_equal_keys(partitions: usize, keys: u64) -> f64 {
    if keys == 0 || partitions == 0 {
        return 0.0;
    }
    let n = partitions as f64;
    (n / keys as f64 * (1.0 - 1.0 / n)).sqrt()
}

/// Returns the CV that a perfect hash gives to keys with weights w:
/// sqrt(N x sum(w^2) / S^2 x (1 - 1/N)), with S in `sum` and sum(w^2) in `sum_of_squares`. Equal
/// to [`expected_cv_equal_keys`] for equal weights. 0 without rows.
#[must_use]
pub fn expected_cv_weighted(partitions: usize, sum: f64, sum_of_squares: f64) -> f64 {
    if sum <= 0.0 || partitions == 0 {
        return 0.0;
    }
    let n = partitions as f64;
    (n * sum_of_squares / (sum * sum) * (1.0 - 1.0 / n)).sqrt()
}

/// Returns the expected number of `partitions` that a perfect hash leaves without any of `keys`
/// keys, and its standard deviation. With q = 1 - 1/N the mean is N q^k, and the variance
/// N (N - 1) (1 - 2/N)^k + N q^k - N^2 q^(2k) (the occupancy problem; Feller, volume 1, IV.2).
#[must_use]
pub fn expected_empty_partitions(partitions: usize, keys: u64) -> (f64, f64) {
    if partitions == 0 {
        return (0.0, 0.0);
    }
    let (n, k) = (partitions as f64, keys as f64);
    let mean = n * (1.0 - 1.0 / n).powf(k);
    let variance = n * (n - 1.0) * (1.0 - 2.0 / n).max(0.0).powf(k) + mean - mean * mean;
    (mean, variance.max(0.0).sqrt())
}

/// Number of keys up to which the expected maximum is computed exactly.
const MAX_EXACT: u64 = 64;

/// Returns the max/mean that a perfect hash gives, on average, to `keys` equally heavy keys in
/// `partitions`. Exact up to 64 keys; beyond that, accurate to about 0.1 %, from the largest of N
/// independent Poisson counts. 1 without keys.
#[must_use]
pub fn expected_max_over_mean_equal_keys(partitions: usize, keys: u64) -> f64 {
    if keys == 0 || partitions < 2 {
        return 1.0;
    }
    let mean = keys as f64 / partitions as f64;
    let expected = if keys <= MAX_EXACT {
        expected_max_exactly(partitions, keys as usize)
    } else {
        // h(k) is g(K) averaged over a Poisson number K of keys with mean k. So g(k) is about
        // h(k) - k h''(k) / 2 (analytic depoissonization: Jacquet and Szpankowski, 1998).
        let keys = keys as f64;
        let step = keys.sqrt();
        let expected_max = |keys: f64| expected_max_of_poisson(partitions, keys / partitions as f64);
        let (below, here, above) = (expected_max(keys - step), expected_max(keys), expected_max(keys + step));
        here - (below - 2.0 * here + above) / 2.0
    };
    (expected / mean).clamp(1.0, partitions as f64)
}

/// Returns the mean of the largest of N counts of `keys` keys: the sum over m of P(max > m).
/// P(max <= m) is k! / N^k times the coefficient of x^k in (1 + x + x^2/2! + ... + x^m/m!)^N, which
/// is computed with Poisson probabilities instead of 1/j!, so that numbers stay small.
fn expected_max_exactly(partitions: usize, keys: usize) -> f64 {
    let mean = keys as f64 / partitions as f64;
    let probability = |mean: f64, count: usize| {
        let count = count as f64;
        (count * mean.ln() - mean - ln_factorial(count)).exp()
    };
    let of_all = probability(keys as f64, keys);
    let least = keys.div_ceil(partitions);
    let mut expected = least as f64;
    for most in least..keys {
        let one: Vec<f64> = (0..=most).map(|count| probability(mean, count)).collect();
        let at_most = coefficient_of_power(&one, partitions, keys) / of_all;
        expected += 1.0 - at_most.clamp(0.0, 1.0);
        if at_most > 1.0 - 1e-12 {
            break;
        }
    }
    expected
}

/// Returns the coefficient of x^degree in a power of a polynomial, by squaring.
fn coefficient_of_power(polynomial: &[f64], power: usize, degree: usize) -> f64 {
    let times = |a: &[f64], b: &[f64]| {
        let mut product = vec![0.0; (a.len() + b.len()).saturating_sub(1).min(degree + 1)];
        for (i, a) in a.iter().enumerate() {
            let places = product.iter_mut().skip(i);
            places.zip(b).for_each(|(sum, b)| *sum += a * b);
        }
        product
    };
    let (mut square, mut left) = (polynomial.to_vec(), power);
    let mut result = vec![1.0];
    while left > 0 {
        if left % 2 == 1 {
            result = times(&result, &square);
        }
        left /= 2;
        if left > 0 {
            square = times(&square, &square);
        }
    }
    result.get(degree).copied().unwrap_or(0.0)
}

/// Returns the mean of the largest of N independent Poisson counts.
fn expected_max_of_poisson(partitions: usize, mean: f64) -> f64 {
    // E[max] = sum over m of P(max > m) = sum of 1 - F(m)^N, with logarithms of the Poisson
    // probabilities, because they underflow for large means. More than 12 standard deviations below
    // the mean, F is 0 and each m adds 1.
    let width = 12.0 * mean.sqrt();
    let first = if mean > 1000.0 { (mean - width).floor() } else { 0.0 };
    let mut log_probability = first * mean.ln() - mean - ln_factorial(first);
    let (mut m, mut below, mut expected) = (first, 0.0f64, first);
    while m <= mean + width + 60.0 {
        below += log_probability.exp();
        expected += 1.0 - below.min(1.0).powf(partitions as f64);
        m += 1.0;
        log_probability += mean.ln() - m.ln();
    }
    expected
}

/// [`expected_max_over_mean_equal_keys`] for many key counts over the same partitions.
#[derive(Debug, Clone)]
pub struct MaxOverMeanByChance {
    partitions: usize,
    known: HashMap<u64, f64>,
}

impl MaxOverMeanByChance {
    /// Creates the figures for `partitions` partitions.
    #[must_use]
    pub fn over(partitions: usize) -> Self {
        Self { partitions, known: HashMap::new() }
    }

    /// Returns the figure for `keys` keys, to less than 1 %. It varies slowly, and is computed once
    /// for all numbers with the same first seven bits.
    pub fn expected(&mut self, keys: u64) -> f64 {
        let dropped = (u64::BITS - keys.leading_zeros()).saturating_sub(7);
        let keys = keys >> dropped << dropped;
        let partitions = self.partitions;
        *self.known.entry(keys).or_insert_with(|| remembered_max_over_mean(partitions, keys))
    }
}

/// [`expected_max_over_mean_equal_keys`], cached for all partition keys that are evaluated, because
/// the exact values for few keys take long.
fn remembered_max_over_mean(partitions: usize, keys: u64) -> f64 {
    const MOST: usize = 1 << 16;
    static KNOWN: LazyLock<Mutex<HashMap<(usize, u64), f64>>> = LazyLock::new(Mutex::default);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cached) = known().get(&(partitions, keys)) {
        return *cached;
    }
    let max_over_mean = expected_max_over_mean_equal_keys(partitions, keys);
    let mut known = known();
    if known.len() < MOST {
        known.insert((partitions, keys), max_over_mean);
    }
    max_over_mean
}

/// ln(m!): a sum for small m, otherwise Stirling's series, which is exact to 1 / (360 m^3).
fn ln_factorial(m: f64) -> f64 {
    if m < 256.0 {
        return (2..=m as u32).map(|factor| f64::from(factor).ln()).sum();
    }
    m * m.ln() - m + 0.5 * (2.0 * std::f64::consts::PI * m).ln() + 1.0 / (12.0 * m)
}

/// Numbers of rows of the distinct keys of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KeyWeights {
    /// Number of distinct keys.
    pub distinct: u64,
    /// Number of rows of all keys.
    pub rows: u64,
    /// Number of rows of the heaviest key.
    pub heaviest: u64,
    /// Exact sum of the squares of the keys' rows, which does not depend on their order.
    pub sum_of_squares: u128,
}

impl KeyWeights {
    /// Counts one more key with its rows.
    pub fn add(&mut self, rows: u64) {
        self.distinct += 1;
        self.rows += rows;
        self.heaviest = self.heaviest.max(rows);
        self.sum_of_squares += u128::from(rows).pow(2);
    }

    /// Adds the keys of another part of the table, which shares no key with this one.
    pub fn merge(&mut self, other: &Self) {
        self.distinct += other.distinct;
        self.rows += other.rows;
        self.heaviest = self.heaviest.max(other.heaviest);
        self.sum_of_squares += other.sum_of_squares;
    }
}

/// Skew that chance explains, and the rest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// Number of distinct partition keys.
    pub distinct_keys: u64,
    /// Distinct partition keys per partition; YDB advises 100 to 1000.
    pub keys_per_partition: f64,
    /// Share of all rows that belong to the heaviest key.
    pub heaviest_key_share: f64,
    /// CV that a perfect hash gives to the same number of equal keys.
    pub expected_cv_equal_keys: f64,
    /// CV that a perfect hash gives to these keys with their weights.
    pub expected_cv_weighted: f64,
    /// Max/mean that a perfect hash gives to the same number of equal keys.
    pub expected_max_over_mean_equal_keys: f64,
    /// CV added by heavy keys: the CV of these keys minus the CV of equal keys.
    pub cv_of_heavy_keys: f64,
    /// Rest of the measured CV, after subtracting the CV expected for these keys. About 0 is
    /// chance, below 0 luck; far above 0, the hash function itself is at fault.
    pub cv_left: f64,
    /// Standard deviations by which the rows are more uneven than under a perfect hash of these
    /// keys; negative if they are more even.
    pub deviations: f64,
}

/// Standard deviations beyond which chance is no explanation.
pub const BEYOND_CHANCE: f64 = 5.0;
/// Keys with fewer rows than this on average are as numerous as the rows allow: more rows bring
/// more keys.
const MIN_ROWS_PER_KEY: f64 = 2.0;
/// Fewest rows of a key, on average and in total, for which more rows are taken to bring no keys.
const REPEATED_ROWS: (f64, u64) = (20.0, 100);
/// Number of pairs of keys in one partition below which they are treated as rare events.
const FEW_PAIRS: f64 = 50.0;

/// Returns the standard deviations of a normal distribution that are as improbable as `pairs` pairs
/// of k keys in one of n partitions. If few pairs are expected, they are Poisson distributed;
/// otherwise the chi-square sum, a linear function of them, is converted by Wilson and Hilferty
/// (1931).
#[must_use]
pub fn deviations_of_pairs(keys: f64, partitions: usize, pairs: f64) -> f64 {
    let n = partitions as f64;
    let expected = keys * (keys - 1.0) / (2.0 * n);
    let freedom = n - 1.0;
    if freedom <= 0.0 || expected <= 0.0 {
        return 0.0;
    }
    if expected < FEW_PAIRS {
        // Anscombe's transformation of a Poisson count, which errs on the side of chance in the
        // upper tail.
        return 2.0 * ((pairs.max(0.0) + 0.375).sqrt() - (expected + 0.375).sqrt());
    }
    let chi_square = n / keys * (2.0 * pairs + keys) - keys;
    let spread = 2.0 / (9.0 * freedom);
    ((chi_square / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// Returns [`deviations_of_pairs`] for keys that differ in rows. They count as the number of equal
/// keys that are spread as unevenly: S^2 / sum(w^2) keys with sum(w^2) / S rows each.
fn deviations(skew: &SkewFigures, keys: &KeyWeights) -> f64 {
    let (sum, squares) = (keys.rows as f64, keys.sum_of_squares as f64);
    if keys.rows == 0 || skew.partitions == 0 {
        return 0.0;
    }
    let (alike, weight) = (sum * sum / squares, squares / sum);
    // The CV gives the sum of squares of the partitions; the part not due to single keys is due to
    // keys that share a partition.
    let of_partitions = sum * sum * (1.0 + skew.cv * skew.cv) / skew.partitions as f64;
    deviations_of_pairs(alike, skew.partitions, (of_partitions - squares) / (2.0 * weight * weight))
}

impl NoiseFloor {
    /// Computes the floor for keys of these weights, under a measured skew.
    #[must_use]
    pub fn from_weights(skew: &SkewFigures, keys: &KeyWeights) -> Self {
        let rows = keys.rows.max(1) as f64;
        let partitions = skew.partitions;
        let equal = expected_cv_equal_keys(partitions, keys.distinct);
        let weighted = expected_cv_weighted(partitions, keys.rows as f64, keys.sum_of_squares as f64);
        Self {
            distinct_keys: keys.distinct,
            keys_per_partition: keys.distinct as f64 / partitions.max(1) as f64,
            heaviest_key_share: keys.heaviest as f64 / rows,
            expected_cv_equal_keys: equal,
            expected_cv_weighted: weighted,
            expected_max_over_mean_equal_keys: expected_max_over_mean_equal_keys(partitions, keys.distinct),
            cv_of_heavy_keys: weighted - equal,
            cv_left: skew.cv - weighted,
            deviations: deviations(skew, keys),
        }
    }

    /// Whether there are fewer keys than partitions, and each has so many rows that more rows would
    /// hardly bring other keys.
    #[must_use]
    pub(super) fn has_only_repeated_keys(&self, skew: &SkewFigures) -> bool {
        let (per_key, total) = REPEATED_ROWS;
        self.keys_per_partition < 1.0
            && skew.rows >= total
            && skew.rows as f64 >= per_key * self.distinct_keys as f64
    }

    /// Whether there are about as many keys as the rows allow, so that their number reflects the
    /// number of rows.
    #[must_use]
    pub fn keys_follow_rows(&self, rows: u64) -> bool {
        (rows as f64) < MIN_ROWS_PER_KEY * self.distinct_keys as f64
    }
}

#[cfg(test)]
#[path = "noise_tests.rs"]
mod tests;
