//! Sample of the distinct values of a column: those with a hash below a threshold. Samples of two
//! columns choose the same values, so shared values can be counted.

use ahash::{AHashSet, RandomState};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

/// Maximum number of hashes that are kept.
const MOST: usize = 1 << 19;

/// Sampled distinct values of a column.
#[derive(Debug)]
pub(super) struct KeySample {
    hasher: RandomState,
    /// Greatest hash that is kept.
    threshold: u64,
    kept: AHashSet<u64>,
    pub(super) rows: u64,
    pub(super) nulls: u64,
}

impl Default for KeySample {
    fn default() -> Self {
        Self {
            // The same for all columns.
            hasher: RandomState::with_seeds(1, 2, 3, 4),
            threshold: u64::MAX,
            kept: AHashSet::new(),
            rows: 0,
            nulls: 0,
        }
    }
}

impl KeySample {
    /// Adds values, by their text: a number is the same in every width.
    pub(super) fn add(&mut self, values: &ArrayRef) -> Result<(), ArrowError> {
        let texts = cast(values, &DataType::Utf8View)?;
        self.rows += texts.len() as u64;
        self.nulls += texts.null_count() as u64;
        for text in texts.as_string_view().iter().flatten() {
            let hash = self.hasher.hash_one(text);
            if hash <= self.threshold && self.kept.insert(hash) && self.kept.len() > MOST {
                self.threshold /= 2;
                let threshold = self.threshold;
                self.kept.retain(|hash| *hash <= threshold);
            }
        }
        Ok(())
    }

    /// Number of distinct values; exact if all fit.
    pub(super) fn distinct(&self) -> f64 {
        self.kept.len() as f64 * (u64::MAX as f64 / self.threshold as f64)
    }

    /// Whether nearly every row has a distinct value.
    pub(super) fn is_unique(&self) -> bool {
        self.nulls == 0 && self.distinct() >= 0.99 * self.rows as f64
    }

    /// Share of the distinct values that another column contains; 0 without values.
    pub(super) fn share_in(&self, other: &Self) -> f64 {
        let threshold = self.threshold.min(other.threshold);
        let compared = self.kept.iter().filter(|hash| **hash <= threshold);
        let (mut all, mut shared) = (0u64, 0u64);
        for hash in compared {
            all += 1;
            shared += u64::from(other.kept.contains(hash));
        }
        if all == 0 { 0.0 } else { shared as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, Int64Array, StringArray};
    use std::sync::Arc;

    fn sample(values: ArrayRef) -> KeySample {
        let mut sample = KeySample::default();
        sample.add(&values).unwrap();
        sample
    }

    #[test]
    fn values_are_the_same_in_every_width() {
        let narrow = sample(Arc::new(Int32Array::from_iter_values(0..1_000)));
        let wide = sample(Arc::new(Int64Array::from_iter_values(500..2_000)));
        assert!((narrow.share_in(&wide) - 0.5).abs() < 1e-9);
        assert!((wide.share_in(&narrow) - 1.0 / 3.0).abs() < 1e-9);
        assert!(narrow.is_unique());
        let repeated =
            sample(Arc::new(StringArray::from_iter_values((0..1_000).map(|i| format!("{}", i / 2)))));
        assert!(!repeated.is_unique() && repeated.share_in(&narrow) == 1.0);
        assert_eq!(KeySample::default().share_in(&narrow), 0.0);
    }

    #[test]
    fn many_values_are_sampled_and_counts_stay_close() {
        let many = sample(Arc::new(Int64Array::from_iter_values(0..3_000_000)));
        let half = sample(Arc::new(Int64Array::from_iter_values((0..3_000_000).map(|i| i * 2))));
        assert!(many.kept.len() <= MOST);
        assert!((many.distinct() / 3e6 - 1.0).abs() < 0.01 && many.is_unique());
        assert!((half.share_in(&many) - 0.5).abs() < 0.01, "{}", half.share_in(&many));
    }
}
