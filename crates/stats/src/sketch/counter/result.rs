//! Results of a counter: distinct keys and the heaviest ones.

use serde::Serialize;

use crate::skew::KeyWeights;

/// Number of distinct keys, exact or with a confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DistinctKeys {
    /// Exact number, or its best estimate.
    pub estimate: u64,
    /// Whether the number is counted, not estimated.
    pub exact: bool,
    /// Lower bound with 95 % confidence.
    pub lower: u64,
    /// Upper bound with 95 % confidence.
    pub upper: u64,
}

impl DistinctKeys {
    /// Estimates the distinct keys of a whole export from a sample into which every row was drawn
    /// with probability `share`: the guaranteed-error estimator of Charikar and others ("Towards
    /// Estimation Error Guarantees for Distinct Values", 2000). Keys with one row in the sample
    /// represent at least themselves, and on average at most 1/share keys; their number varies no
    /// more than a Poisson count. There are at most `most` keys, since each row that was not drawn
    /// may have a distinct key.
    #[must_use]
    pub fn scaled_to_whole(self, keys_with_one_row: Option<u64>, share: f64, most: u64) -> Self {
        let once = keys_with_one_row.unwrap_or(self.estimate).min(self.estimate) as f64;
        let others = self.estimate as f64 - once;
        let most_once = ((once + 1.0).sqrt() + 0.98).powi(2);
        let most = most.max(self.lower);
        let upper = ((most_once / share + others).ceil() as u64).max(self.upper).min(most);
        let estimate = (once / share.sqrt() + others).round() as u64;
        Self {
            estimate: estimate.clamp(self.lower, upper.max(self.lower)),
            exact: false,
            lower: self.lower,
            upper,
        }
    }
}

/// A key with many rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeavyKey<V> {
    /// 64-bit hash that stands for the key.
    pub identity: u64,
    /// Value remembered for the key; `None` if it never stood out while rows were counted.
    pub value: Option<V>,
    /// Lower bound of its rows; exact if `error` is 0.
    pub rows: u64,
    /// Maximum number of further rows that it may have.
    pub error: u64,
}

/// Result of a counter.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyCounts<V> {
    /// Number of distinct keys.
    pub distinct: DistinctKeys,
    /// Number of keys with one row; `None` if keys are not counted exactly.
    pub keys_with_one_row: Option<u64>,
    /// Weights of the keys: exact, or estimated by the sketches, with the rows of light keys spread
    /// evenly.
    pub weights: KeyWeights,
    /// Heaviest keys, in descending order of rows.
    pub heaviest: Vec<HeavyKey<V>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(estimate: u64) -> DistinctKeys {
        DistinctKeys { estimate, exact: true, lower: estimate, upper: estimate }
    }

    #[test]
    fn keys_of_the_whole_are_estimated_by_the_guaranteed_error_estimator() {
        // 100 of 150 keys have one row in a sample of a quarter: 100 / sqrt(1/4) + 50.
        let whole = sampled(150).scaled_to_whole(Some(100), 0.25, 1_000_000);
        assert_eq!((whole.estimate, whole.lower, whole.exact), (250, 150, false));
        // At most sqrt(101) + 0.98, squared, keys of one row are expected: 121.66 by hand.
        assert_eq!(whole.upper, (4.0 * 121.66_f64 + 50.0).ceil() as u64);
    }

    #[test]
    fn the_rows_that_were_not_drawn_bound_the_keys() {
        let whole = sampled(150).scaled_to_whole(Some(100), 0.25, 200);
        assert_eq!((whole.estimate, whole.upper), (200, 200));
        // Fewer keys than in the sample are impossible, whatever the bound.
        let whole = sampled(150).scaled_to_whole(None, 0.25, 0);
        assert_eq!((whole.estimate, whole.lower, whole.upper), (150, 150, 150));
    }

    #[test]
    fn without_keys_there_may_still_be_some_in_the_rows_not_drawn() {
        let whole = sampled(0).scaled_to_whole(Some(0), 0.5, 10);
        assert_eq!((whole.estimate, whole.lower, whole.upper), (0, 0, 8));
    }
}
