//! How uneven row counts are: every figure that existing systems use, from one vector of counts.
//!
//! Rows r_1..r_N with mean m, largest M, smallest s, sum S. The figures disagree (Azure documentation issue 85057: one
//! empty distribution of 60 is 100 % by one formula and 1.69 % by another), so they stand together; idle fraction and
//! effective partitions lead.

mod verdict;

use serde::Serialize;

pub use crate::skew::verdict::{FEWEST_ROWS_PER_PARTITION, Verdict};

/// The skew of one vector of counts. Where S is 0 there is nothing to be uneven, and every figure is that of a perfectly
/// even table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkewFigures {
    /// N.
    pub partitions: usize,
    /// S.
    pub rows: u64,
    /// m.
    pub mean: f64,
    /// s.
    pub min: u64,
    /// M.
    pub max: u64,
    /// M / m: how much more than its share the fullest partition has. 1 is even, N is everything in one.
    pub max_over_mean: f64,
    /// Population standard deviation / m.
    pub cv: f64,
    /// 1 - m / M: the part of a parallel scan that the average partition waits for the fullest (Greenplum
    /// `gp_skew_idle_fractions.siffraction`). 0 is even.
    pub idle_fraction: f64,
    /// S^2 / sum(r^2), the inverse Simpson index: as many evenly filled partitions would be as concentrated. N is even,
    /// 1 is everything in one.
    pub effective_partitions: f64,
    /// 100 x sample standard deviation / m (Greenplum `gp_skew_coefficients.skccoeff`). 0 for one partition.
    pub greenplum_skccoeff: f64,
    /// (M - s) / M (Azure Synapse); flagged from [`SYNAPSE_LIMIT`] on.
    pub synapse_skew: f64,
    /// (M - s) / S (Analytics Platform System).
    pub aps_skew: f64,
    /// M / s (Redshift `SVV_TABLE_INFO.skew_rows`); none where a partition is empty.
    pub redshift_skew_rows: Option<f64>,
    /// Partitions without rows.
    pub empty_partitions: usize,
    /// M / S: the share of all rows that the fullest partition has.
    pub share_of_fullest: f64,
    /// The fullest partition; the first one of several.
    pub fullest_partition: usize,
}

/// Synapse advises to redistribute a table from this skew on (10 %).
pub const SYNAPSE_LIMIT: f64 = 0.10;

impl SkewFigures {
    /// The figures of one count per partition. No partitions count as one without rows.
    #[must_use]
    pub fn of(counts: &[u64]) -> Self {
        let n = counts.len().max(1);
        let rows: u64 = counts.iter().sum();
        let (max, min) =
            (counts.iter().copied().max().unwrap_or(0), counts.iter().copied().min().unwrap_or(0));
        let fullest_partition = counts.iter().position(|count| *count == max).unwrap_or(0);
        let empty_partitions = counts.iter().filter(|count| **count == 0).count();
        let sum = rows as f64;
        let mean = sum / n as f64;
        let even = Self {
            partitions: counts.len(),
            rows,
            mean,
            min,
            max,
            max_over_mean: 1.0,
            cv: 0.0,
            idle_fraction: 0.0,
            effective_partitions: n as f64,
            greenplum_skccoeff: 0.0,
            synapse_skew: 0.0,
            aps_skew: 0.0,
            redshift_skew_rows: None,
            empty_partitions,
            share_of_fullest: 1.0 / n as f64,
            fullest_partition,
        };
        if rows == 0 {
            return even;
        }
        let squares: f64 = counts.iter().map(|count| (*count as f64 - mean).powi(2)).sum();
        let sum_of_squares: f64 = counts.iter().map(|count| (*count as f64).powi(2)).sum();
        let sample_deviation = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
        let (largest, range) = (max as f64, (max - min) as f64);
        Self {
            max_over_mean: largest / mean,
            cv: (squares / n as f64).sqrt() / mean,
            idle_fraction: 1.0 - mean / largest,
            effective_partitions: sum * sum / sum_of_squares,
            greenplum_skccoeff: 100.0 * sample_deviation / mean,
            synapse_skew: range / largest,
            aps_skew: range / sum,
            redshift_skew_rows: (min > 0).then(|| largest / min as f64),
            share_of_fullest: largest / sum,
            ..even
        }
    }
}

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
    // large means underflow.
    let (mut log_probability, mut below, mut expected) = (-mean, 0.0f64, 0.0f64);
    let last = mean + 12.0 * mean.sqrt() + 60.0;
    let mut m = 0.0;
    while m <= last {
        below += log_probability.exp();
        expected += 1.0 - below.min(1.0).powf(partitions as f64);
        m += 1.0;
        log_probability += mean.ln() - f64::ln(m);
    }
    expected / mean
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
    /// Sum of the squares of the keys' rows.
    pub sum_of_squares: f64,
}

impl KeyWeights {
    /// Counts one more key with its rows.
    pub fn add(&mut self, rows: u64) {
        self.distinct += 1;
        self.rows += rows;
        self.heaviest = self.heaviest.max(rows);
        self.sum_of_squares += (rows as f64).powi(2);
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
        let weighted = expected_cv_weighted(partitions, keys.rows as f64, keys.sum_of_squares);
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
    fn every_figure_follows_its_formula() {
        // 2, 4, 4, 10: m = 5, population variance 9, sample variance 12.
        let figures = SkewFigures::of(&[2, 4, 4, 10]);
        close(figures.max_over_mean, 2.0);
        close(figures.cv, 0.6);
        close(figures.idle_fraction, 0.5);
        close(figures.effective_partitions, 400.0 / 136.0);
        close(figures.greenplum_skccoeff, 100.0 * 12f64.sqrt() / 5.0);
        close(figures.synapse_skew, 0.8);
        close(figures.aps_skew, 0.4);
        close(figures.redshift_skew_rows.unwrap(), 5.0);
        close(figures.share_of_fullest, 0.5);
        assert_eq!((figures.fullest_partition, figures.empty_partitions), (3, 0));
    }

    #[test]
    fn the_figures_disagree_as_the_azure_documentation_was_told() {
        let mut counts = vec![100u64; 60];
        counts[17] = 0;
        let figures = SkewFigures::of(&counts);
        close(figures.synapse_skew, 1.0);
        close(figures.aps_skew, 1.0 / 59.0);
        assert_eq!((figures.redshift_skew_rows, figures.empty_partitions), (None, 1));
    }

    #[test]
    fn no_rows_and_even_rows_are_even() {
        for counts in [vec![0u64; 4], vec![7; 4]] {
            let figures = SkewFigures::of(&counts);
            close(figures.max_over_mean, 1.0);
            close(figures.effective_partitions, 4.0);
            close(figures.idle_fraction, 0.0);
        }
        close(SkewFigures::of(&[]).max_over_mean, 1.0);
        close(SkewFigures::of(&[5]).greenplum_skccoeff, 0.0);
    }

    #[test]
    fn everything_in_one_partition_is_the_worst() {
        let figures = SkewFigures::of(&[0, 9, 0, 0]);
        close(figures.max_over_mean, 4.0);
        close(figures.effective_partitions, 1.0);
        close(figures.idle_fraction, 0.75);
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
        assert!(expected_max_over_mean_equal_keys(16, 16_000_000) < 1.01);
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
