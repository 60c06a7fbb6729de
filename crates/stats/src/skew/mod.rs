//! Unevenness of row counts: every figure that existing systems use, from one vector of counts.
//!
//! Rows r_1..r_N with mean m, largest M, smallest s, sum S. The figures disagree (Azure
//! documentation issue 85057: one empty distribution of 60 is 100 % by one formula and 1.69 % by
//! another), so they are reported together; idle fraction and effective partitions lead.

mod noise;
mod verdict;

use serde::Serialize;

pub use crate::skew::noise::{
    BEYOND_CHANCE, KeyWeights, MaxOverMeanByChance, NoiseFloor, deviations_of_pairs, expected_cv_equal_keys,
    expected_cv_weighted, expected_empty_partitions, expected_max_over_mean_equal_keys,
};
pub use crate::skew::verdict::{
    AtATime, EVEN_MAX_OVER_MEAN, MIN_KEYS_PER_PARTITION, MIN_ROWS_PER_PARTITION, Verdict, are_enough_rows,
    balance, leaves_empty,
};

/// Skew of one vector of counts. If S is 0, nothing can be uneven, and every figure equals that of
/// a perfectly even table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkewFigures {
    /// Number of partitions, N.
    pub partitions: usize,
    /// Number of rows, S.
    pub rows: u64,
    /// Mean number of rows per partition, m.
    pub mean: f64,
    /// Smallest number of rows of a partition, s.
    pub min: u64,
    /// Maximum number of rows of a partition, M.
    pub max: u64,
    /// M / m: the fullest partition relative to its share. 1 is even, N is everything in one.
    pub max_over_mean: f64,
    /// Coefficient of variation: population standard deviation / m. 0 is even.
    pub cv: f64,
    /// 1 - m / M: the part of a parallel scan that the average partition waits for the fullest one
    /// (Greenplum `gp_skew_idle_fractions.siffraction`). 0 is even.
    pub idle_fraction: f64,
    /// S^2 / sum(r^2), the inverse Simpson index: the number of evenly filled partitions that would
    /// be equally concentrated. N is even, 1 is everything in one.
    pub effective_partitions: f64,
    /// 100 x sample standard deviation / m (Greenplum `gp_skew_coefficients.skccoeff`). 0 for one
    /// partition.
    pub greenplum_skccoeff: f64,
    /// (M - s) / M (Azure Synapse); flagged from [`SYNAPSE_LIMIT`] on.
    pub synapse_skew: f64,
    /// (M - s) / S (Analytics Platform System).
    pub aps_skew: f64,
    /// M / s (Redshift `SVV_TABLE_INFO.skew_rows`); `None` if a partition is empty.
    pub redshift_skew_rows: Option<f64>,
    /// Number of partitions without rows; some are empty by chance if keys are few.
    pub empty_partitions: usize,
    /// M / S: the share of all rows in the fullest partition.
    pub share_of_fullest: f64,
    /// Number of the fullest partition, the first of several.
    pub fullest_partition: usize,
}

/// Returns the median, the upper of the two middle values if their number is even; `None` without
/// values.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Skew above which Synapse advises redistributing a table (10 %).
pub const SYNAPSE_LIMIT: f64 = 0.10;

impl SkewFigures {
    /// Computes the figures from one count per partition. No partitions are treated as one without
    /// rows.
    #[must_use]
    pub fn from_counts(counts: &[u64]) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn every_figure_follows_its_formula() {
        // 2, 4, 4, 10: m = 5, population variance 9, sample variance 12.
        let figures = SkewFigures::from_counts(&[2, 4, 4, 10]);
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
        let figures = SkewFigures::from_counts(&counts);
        close(figures.synapse_skew, 1.0);
        close(figures.aps_skew, 1.0 / 59.0);
        assert_eq!((figures.redshift_skew_rows, figures.empty_partitions), (None, 1));
    }

    #[test]
    fn no_rows_and_even_rows_are_even() {
        for counts in [vec![0u64; 4], vec![7; 4]] {
            let figures = SkewFigures::from_counts(&counts);
            close(figures.max_over_mean, 1.0);
            close(figures.effective_partitions, 4.0);
            close(figures.idle_fraction, 0.0);
        }
        close(SkewFigures::from_counts(&[]).max_over_mean, 1.0);
        close(SkewFigures::from_counts(&[5]).greenplum_skccoeff, 0.0);
    }

    #[test]
    fn everything_in_one_partition_is_the_worst() {
        let figures = SkewFigures::from_counts(&[0, 9, 0, 0]);
        close(figures.max_over_mean, 4.0);
        close(figures.effective_partitions, 1.0);
        close(figures.idle_fraction, 0.75);
    }
}
