//! Sketches, for more keys than fit in memory.

use datasketches::common::NumStdDev;
use datasketches::frequencies::{ErrorType, FrequentItemsSketch};
use datasketches::hll::{HllSketch, HllType, HllUnion};

use crate::sketch::counter::result::DistinctKeys;
use crate::skew::KeyWeights;
use evenkeel_model::wire::{Wire, WireError, WireReader, put_bytes, take_bytes};

/// 2^16 registers: a relative standard error of about 0.4 % (DataSketches, "HLL Accuracy").
const HLL_LG_K: u8 = 16;
/// Slots of the sketch of frequent keys. The error of a count is at most 3.5 / 2^17 of all rows
/// (DataSketches, "Frequent Items Error Table"), 0.003 %.
pub(super) const FREQUENT_SLOTS: usize = 1 << 17;

/// Maximum number of rows counted: sums of such numbers stay far from overflowing 64 bits.
const MAX_ROWS: u64 = 1 << 60;

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

    /// Counts one row, and returns a lower bound of the rows of its key.
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

    /// Returns a lower bound of the rows of a key, and how many more there may be.
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

    /// Returns the weights of keys. Keys held by the sketch of frequent keys count with their
    /// estimates; the remaining rows, of `rows`, are spread evenly over the remaining keys, which
    /// gives the smallest possible sum of squares.
    pub(super) fn weights(&self, rows: u64) -> KeyWeights {
        let distinct = self.distinct();
        let mut weights = KeyWeights::default();
        let frequent = self.frequent.frequent_items(ErrorType::NoFalsePositives);
        frequent.iter().for_each(|row| weights.add(row.estimate().min(rows)));
        let keys_left = distinct.estimate.saturating_sub(weights.distinct).max(1);
        let rows_left = rows.saturating_sub(weights.rows);
        weights.sum_of_squares += u128::from(rows_left).pow(2) / u128::from(keys_left);
        weights.heaviest = weights.heaviest.max(rows_left.div_ceil(keys_left));
        weights.distinct = distinct.estimate;
        weights.rows = rows;
        weights
    }
}

/// Uses the formats of DataSketches.
impl Wire for Sketches {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_bytes(&self.distinct.serialize(), bytes);
        put_bytes(&self.frequent.serialize(), bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let wrong = WireError("invalid sketch");
        let distinct = HllSketch::deserialize(take_bytes(left)?).map_err(|_| wrong)?;
        let frequent = take_bytes(left)?;
        // These two bytes give the size of its table; a table of another size is not even
        // allocated.
        let lg_slots = FREQUENT_SLOTS.trailing_zeros() as u8;
        if !matches!(frequent, [_, _, _, most, now, ..] if *most == lg_slots && *now <= lg_slots) {
            return Err(wrong);
        }
        let frequent = FrequentItemsSketch::<u64>::deserialize(frequent).map_err(|_| wrong)?;
        if distinct.lg_config_k() != HLL_LG_K || frequent.total_weight() > MAX_ROWS {
            return Err(wrong);
        }
        Ok(Self { distinct, frequent })
    }
}
