//! Too many keys for memory: sketches.

use datasketches::common::NumStdDev;
use datasketches::frequencies::{ErrorType, FrequentItemsSketch};
use datasketches::hll::{HllSketch, HllType, HllUnion};

use crate::sketch::counter::DistinctKeys;
use crate::skew::KeyWeights;

/// 2^16 registers: a relative standard error of about 0.4 % (DataSketches, "HLL Accuracy").
const HLL_LG_K: u8 = 16;
/// Slots of the sketch of frequent keys. A count is at most 3.5 / 2^17 of all rows wrong (DataSketches, "Frequent Items
/// Error Table"), 0.003 %.
pub(super) const FREQUENT_SLOTS: usize = 1 << 17;

#[derive(Debug, Clone)]
pub(super) struct Sketches {
    distinct: HllSketch,
    frequent: FrequentItemsSketch<u64>,
}

impl Sketches {
    pub(super) fn new() -> Option<Self> {
        Some(Self {
            distinct: HllSketch::new(HLL_LG_K, HllType::Hll8).ok()?,
            frequent: FrequentItemsSketch::new(FREQUENT_SLOTS).ok()?,
        })
    }

    /// Counts one row; its key has at least so many now.
    pub(super) fn add(&mut self, identity: u64) -> u64 {
        self.distinct.update(identity);
        self.frequent.update(identity);
        self.frequent.lower_bound(&identity)
    }

    pub(super) fn add_rows(&mut self, identity: u64, rows: u64) {
        self.distinct.update(identity);
        self.frequent.update_with_count(identity, rows);
    }

    pub(super) fn merge(&mut self, more: &Self) {
        self.frequent.merge(&more.frequent);
        if let Ok(mut union) = HllUnion::new(HLL_LG_K) {
            union.update(&self.distinct);
            union.update(&more.distinct);
            self.distinct = union.to_sketch(HllType::Hll8);
        }
    }

    /// Rows of a key, at least, and so many more at most.
    pub(super) fn rows_of(&self, identity: u64) -> (u64, u64) {
        let lower = self.frequent.lower_bound(&identity);
        (lower, self.frequent.upper_bound(&identity) - lower)
    }

    pub(super) fn distinct(&self) -> DistinctKeys {
        DistinctKeys {
            estimate: self.distinct.estimate().round() as u64,
            exact: false,
            lower: self.distinct.lower_bound(NumStdDev::Two).floor() as u64,
            upper: self.distinct.upper_bound(NumStdDev::Two).ceil() as u64,
        }
    }

    /// Keys that the sketch of frequent ones holds count with their estimates; the rows that are left, of `rows`, are spread
    /// evenly over the keys that are left, which gives the least sum of squares that they can have.
    pub(super) fn weights(&self, rows: u64) -> KeyWeights {
        let distinct = self.distinct();
        let mut weights = KeyWeights::default();
        let frequent = self.frequent.frequent_items(ErrorType::NoFalsePositives);
        frequent.iter().for_each(|row| weights.add(row.estimate().min(rows)));
        let keys_left = distinct.estimate.saturating_sub(weights.distinct).max(1);
        let rows_left = rows.saturating_sub(weights.rows);
        weights.sum_of_squares += (rows_left as f64).powi(2) / keys_left as f64;
        weights.heaviest = weights.heaviest.max(rows_left.div_ceil(keys_left));
        weights.distinct = distinct.estimate;
        weights.rows = rows;
        weights
    }
}
