//! The noise floor: a perfect hash is not even either.

use std::collections::HashMap;

use serde::Serialize;

use crate::skew::SkewFigures;

/// The CV that a perfect hash gives to `keys` equally heavy keys in `partitions`: sqrt(N / k x (1 - 1/N)), the standard
/// deviation of a multinomial count over its mean. 0 where there are no keys.
#[must_use]
pub fn expected_cv_equal_keys(partitions: usize, keys: u64) -> f64 {
    if keys == 0 || partitions == 0 {
        return 0.0;
    }
    let n = partitions as f64;
    (n / keys as f64 * (1.0 - 1.0 / n)).sqrt()
}

/// The CV that a perfect hash gives to keys with weights w: sqrt(N x sum(w^2) / S^2 x (1 - 1/N)), where `sum` is S and
/// `sum_of_squares` is sum(w^2). Equal to [`expected_cv_equal_keys`] for equal weights. 0 where there are no rows.
#[must_use]
pub fn expected_cv_weighted(partitions: usize, sum: f64, sum_of_squares: f64) -> f64 {
    if sum <= 0.0 || partitions == 0 {
        return 0.0;
    }
    let n = partitions as f64;
    (n * sum_of_squares / (sum * sum) * (1.0 - 1.0 / n)).sqrt()
}

/// How many of `partitions` a perfect hash leaves without any of `keys` keys, and its standard deviation: with q = 1 - 1/N the mean is
/// N q^k, and the variance N (N - 1) (1 - 2/N)^k + N q^k - N^2 q^(2k) (the occupancy problem; Feller, volume 1, IV.2).
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

/// The max/mean that a perfect hash gives, on average, to `keys` equally heavy keys in `partitions`: the mean of the largest
/// of N independent Poisson counts with mean k/N, over k/N. A multinomial count is a Poisson one whose sum is fixed, which
/// changes the result by less than 1 % for 12 partitions or more. 1 where there are no keys.
#[must_use]
pub fn expected_max_over_mean_equal_keys(partitions: usize, keys: u64) -> f64 {
    if keys == 0 || partitions == 0 {
        return 1.0;
    }
    let mean = keys as f64 / partitions as f64;
    // E[max] = sum over m of P(max > m) = sum of 1 - F(m)^N, with the Poisson probabilities in logarithms, because those of
    // large means underflow. Below 12 standard deviations under the mean, F is 0 and each m adds 1.
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
    expected / mean
}

/// [`expected_max_over_mean_equal_keys`] of many numbers of keys over the same partitions.
#[derive(Debug, Clone)]
pub struct MaxOverMeanByChance {
    partitions: usize,
    known: HashMap<u64, f64>,
}

impl MaxOverMeanByChance {
    /// Over so many partitions.
    #[must_use]
    pub fn over(partitions: usize) -> Self {
        Self { partitions, known: HashMap::new() }
    }

    /// Of so many keys, to less than 1 %: it changes little with them, and is computed once for all numbers with the same first seven bits.
    pub fn of(&mut self, keys: u64) -> f64 {
        let dropped = (u64::BITS - keys.leading_zeros()).saturating_sub(7);
        let keys = keys >> dropped << dropped;
        let partitions = self.partitions;
        *self.known.entry(keys).or_insert_with(|| expected_max_over_mean_equal_keys(partitions, keys))
    }
}

/// ln(m!) of 0 and of large m, by Stirling's series, which is exact to 1 / (360 m^3).
fn ln_factorial(m: f64) -> f64 {
    if m < 1.0 {
        return 0.0;
    }
    m * m.ln() - m + 0.5 * (2.0 * std::f64::consts::PI * m).ln() + 1.0 / (12.0 * m)
}

/// How many rows the distinct keys of a table have.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KeyWeights {
    /// Distinct keys.
    pub distinct: u64,
    /// Rows of all keys.
    pub rows: u64,
    /// Rows of the heaviest key.
    pub heaviest: u64,
    /// Sum of the squares of the keys' rows, exactly, so that it does not depend on their order.
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

    /// Counts the keys of another part of the table, which shares no key with this one.
    pub fn merge(&mut self, other: &Self) {
        self.distinct += other.distinct;
        self.rows += other.rows;
        self.heaviest = self.heaviest.max(other.heaviest);
        self.sum_of_squares += other.sum_of_squares;
    }
}

/// What measured skew is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// Distinct partition keys.
    pub distinct_keys: u64,
    /// Distinct partition keys per partition; YDB advises 100 to 1000.
    pub keys_per_partition: f64,
    /// Share of all rows that have the heaviest key.
    pub heaviest_key_share: f64,
    /// CV that a perfect hash gives to that many equal keys.
    pub expected_cv_equal_keys: f64,
    /// CV that a perfect hash gives to these keys with their weights.
    pub expected_cv_weighted: f64,
    /// Max/mean that a perfect hash gives to that many equal keys.
    pub expected_max_over_mean_equal_keys: f64,
    /// What heavy keys add to the CV: that of these keys less that of equal keys.
    pub cv_of_heavy_keys: f64,
    /// What is left of the measured CV: that less the one of these keys. About 0 is chance, below 0 luck; far above 0, the
    /// hash function itself is at fault.
    pub cv_left: f64,
}

impl NoiseFloor {
    /// The floor for keys of these weights, under a measured skew.
    #[must_use]
    pub fn of(skew: &SkewFigures, keys: &KeyWeights) -> Self {
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn the_noise_floor_agrees_with_itself_and_with_the_rule_of_ydb() {
        // 100 to 1000 keys per partition stand for a CV of about 10 % to 3 %.
        assert!((expected_cv_equal_keys(64, 6_400) - 0.1).abs() < 0.001);
        assert!((expected_cv_equal_keys(64, 64_000) - 0.0316).abs() < 0.001);
        close(expected_cv_weighted(64, 6_400.0 * 3.0, 6_400.0 * 9.0), expected_cv_equal_keys(64, 6_400));
        close(expected_cv_weighted(64, 0.0, 0.0), 0.0);
        close(expected_cv_equal_keys(1, 10), 0.0);
    }

    #[test]
    fn the_expected_maximum_agrees_with_simulations() {
        // Mean of 20,000 random placements of 1, 3, 10, 100 and 1000 keys per partition.
        for (partitions, simulated) in [
            (12, [2.879, 2.035, 1.545, 1.166, 1.052]),
            (64, [3.961, 2.575, 1.813, 1.242, 1.075]),
            (128, [4.377, 2.778, 1.909, 1.27, 1.083]),
        ] {
            for (per_partition, expected) in [1, 3, 10, 100, 1000].into_iter().zip(simulated) {
                let found = expected_max_over_mean_equal_keys(partitions, partitions as u64 * per_partition);
                assert!(
                    (found / expected - 1.0f64).abs() < 0.03,
                    "{partitions} x {per_partition}: {found}, {expected}"
                );
            }
        }
        close(expected_max_over_mean_equal_keys(8, 0), 1.0);
        // Just before and after the sum begins above 0.
        let (below, above) =
            (expected_max_over_mean_equal_keys(16, 16_000), expected_max_over_mean_equal_keys(16, 16_016));
        assert!((below - above).abs() < 1e-4, "{below} {above}");
        let many = expected_max_over_mean_equal_keys(16, 16_000_000_000);
        assert!(many > 1.0 && many < 1.0001, "{many}");
    }

    #[test]
    fn a_perfect_hash_has_the_expected_cv() {
        // The hash of consecutive numbers stands for a random placement of 20,000 keys into 32 partitions.
        let mut counts = [0u64; 32];
        for key in 0u64..20_000 {
            let hash = crate::placement::hash_bytes(&key.to_le_bytes());
            counts[(hash % 32) as usize] += 1;
        }
        let cv = SkewFigures::of(&counts).cv;
        let expected = expected_cv_equal_keys(32, 20_000);
        // The CV of 32 counts itself scatters by about 1 / sqrt(2 x 31) = 13 %; three of those.
        assert!((cv / expected - 1.0).abs() < 0.39, "{cv} against {expected}");
    }
}
