//! Rows per key: an exact table while it fits in memory, sketches of Apache DataSketches from then on.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use datasketches::common::NumStdDev;
use datasketches::frequencies::FrequentItemsSketch;
use datasketches::hll::{HllSketch, HllType, HllUnion};
use serde::Serialize;

use crate::skew::KeyWeights;

/// Keys whose values are remembered once the counter has found its heaviest.
const REMEMBERED: usize = 1024;
/// Values that are held before all but the [`REMEMBERED`] heaviest are forgotten.
const MOST_VALUES: usize = 4 * REMEMBERED;
/// 2^16 registers: a relative standard error of about 0.4 % (DataSketches, "HLL Accuracy").
const HLL_LG_K: u8 = 16;
/// Slots of the sketch of frequent keys. A count is at most 3.5 / 2^17 of all rows wrong (DataSketches, "Frequent Items
/// Error Table"), 0.003 %.
const FREQUENT_SLOTS: usize = 1 << 17;
/// Bytes of an exact table per slot: identity, count, one control byte; at most 7 of 8 slots are full.
const BYTES_PER_SLOT: f64 = 17.0 * 8.0 / 7.0;

/// An identity is mixed already; hashing it again would only cost time.
#[derive(Debug, Default, Clone, Copy)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = super::fold(self.0, u64::from(*byte));
        }
    }

    fn write_u64(&mut self, identity: u64) {
        self.0 = identity;
    }
}

type ByIdentity<V> = HashMap<u64, V, BuildHasherDefault<Mixed>>;

/// A number of distinct keys.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DistinctKeys {
    /// The number, or the best estimate of it.
    pub estimate: u64,
    /// Whether it is counted, not estimated.
    pub exact: bool,
    /// With 95 % confidence at least so many.
    pub lower: u64,
    /// With 95 % confidence at most so many.
    pub upper: u64,
}

impl DistinctKeys {
    /// What a sample with these keys says about the whole that it is a share of: the guaranteed-error estimator of Charikar and
    /// others ("Towards Estimation Error Guarantees for Distinct Values", 2000). Keys that the sample has once stand for at
    /// least themselves and for at most 1/share keys.
    #[must_use]
    pub fn of_whole(self, keys_with_one_row: Option<u64>, share: f64) -> Self {
        let once = keys_with_one_row.unwrap_or(self.estimate).min(self.estimate) as f64;
        let others = self.estimate as f64 - once;
        Self {
            estimate: (once / share.sqrt() + others).round() as u64,
            exact: false,
            lower: self.lower,
            upper: ((once / share + others).ceil() as u64).max(self.upper),
        }
    }
}

/// A key with many rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeavyKey<V> {
    /// What was remembered of it.
    pub value: V,
    /// Its rows, at least; exact where `error` is 0.
    pub rows: u64,
    /// So many more rows it may have.
    pub error: u64,
}

/// What a counter found.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyCounts<V> {
    /// Distinct keys.
    pub distinct: DistinctKeys,
    /// Keys with one row; none where keys are not counted exactly.
    pub keys_with_one_row: Option<u64>,
    /// Rows of the keys: exact, or as the sketches have it, with rows of light keys spread evenly.
    pub weights: KeyWeights,
    /// The heaviest keys, the heaviest first.
    pub heaviest: Vec<HeavyKey<V>>,
}

/// Counts rows per key. `V` is what is remembered of the heaviest keys.
#[derive(Debug, Clone)]
pub struct KeyCounter<V> {
    counts: Counts,
    rows: u64,
    values: Values<V>,
}

#[derive(Debug, Clone)]
enum Counts {
    Exact(ByIdentity<u64>),
    Sketched(Box<Sketches>),
}

#[derive(Debug, Clone)]
struct Sketches {
    distinct: HllSketch,
    frequent: FrequentItemsSketch<u64>,
}

impl Sketches {
    fn new() -> Option<Self> {
        Some(Self {
            distinct: HllSketch::new(HLL_LG_K, HllType::Hll8).ok()?,
            frequent: FrequentItemsSketch::new(FREQUENT_SLOTS).ok()?,
        })
    }

    /// Counts one row; its key has at least so many now.
    fn add(&mut self, identity: u64) -> u64 {
        self.distinct.update(identity);
        self.frequent.update(identity);
        self.frequent.lower_bound(&identity)
    }
}

/// Values of the keys that may be the heaviest. A key is remembered when its count rises above the floor, and forgotten only
/// when so many others have more rows; so the heaviest are known in the end, but for keys with as many rows as the floor.
#[derive(Debug, Clone)]
struct Values<V> {
    by_identity: ByIdentity<Value<V>>,
    floor: u64,
    seen: u64,
}

#[derive(Debug, Clone)]
struct Value<V> {
    value: V,
    /// Order in which values were first seen, which breaks ties.
    order: u64,
}

impl<V> Values<V> {
    fn remember(&mut self, identity: u64, value: impl FnOnce() -> V) {
        if let std::collections::hash_map::Entry::Vacant(vacant) = self.by_identity.entry(identity) {
            self.seen += 1;
            vacant.insert(Value { value: value(), order: self.seen });
        }
    }

    /// Forgets all but the heaviest, and raises the floor to the lightest of these.
    fn forget_light(&mut self, count: impl Fn(u64) -> u64) {
        let mut all: Vec<(u64, u64, u64)> = self
            .by_identity
            .iter()
            .map(|(identity, value)| (count(*identity), value.order, *identity))
            .collect();
        all.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, _, identity) in all.iter().skip(REMEMBERED) {
            self.by_identity.remove(identity);
        }
        self.floor = all.get(REMEMBERED - 1).map_or(0, |(count, _, _)| *count);
    }
}

impl<V: Clone> Default for KeyCounter<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Clone> KeyCounter<V> {
    /// A counter that counts exactly.
    #[must_use]
    pub fn new() -> Self {
        let values = Values { by_identity: ByIdentity::default(), floor: 0, seen: 0 };
        Self { counts: Counts::Exact(ByIdentity::default()), rows: 0, values }
    }

    /// Counts one row for each identity. `value` gives what is to be remembered of a row, by its position.
    pub fn add(&mut self, identities: &[u64], value: impl Fn(usize) -> V) {
        self.rows += identities.len() as u64;
        for (row, identity) in identities.iter().enumerate() {
            let count = match &mut self.counts {
                Counts::Exact(table) => {
                    let count = table.entry(*identity).or_insert(0);
                    *count += 1;
                    *count
                }
                Counts::Sketched(sketches) => sketches.add(*identity),
            };
            if count > self.values.floor {
                self.values.remember(*identity, || value(row));
                if self.values.by_identity.len() >= MOST_VALUES {
                    self.forget_light();
                }
            }
        }
    }

    fn forget_light(&mut self) {
        let counts = &self.counts;
        self.values.forget_light(|identity| match counts {
            Counts::Exact(table) => table.get(&identity).copied().unwrap_or(0),
            Counts::Sketched(sketches) => sketches.frequent.lower_bound(&identity),
        });
    }

    /// Bytes that the exact table takes at most while so many more rows are counted: a table that is full doubles, and both
    /// are there while it does. None where sketches count, which take about 4 MiB.
    #[must_use]
    pub fn exact_bytes_after(&self, rows: usize) -> Option<usize> {
        let Counts::Exact(table) = &self.counts else { return None };
        let doubles = table.len() + rows > table.capacity();
        let slots = if doubles { 3 * table.capacity().max(rows) } else { table.capacity() };
        Some((slots as f64 * BYTES_PER_SLOT) as usize)
    }

    /// Lets sketches count from now on.
    pub fn estimate(&mut self) {
        let Counts::Exact(table) = &self.counts else { return };
        let Some(mut sketches) = Sketches::new() else { return };
        for (identity, count) in table {
            sketches.distinct.update(*identity);
            sketches.frequent.update_with_count(*identity, *count);
        }
        self.counts = Counts::Sketched(Box::new(sketches));
    }

    /// Adds what another counter counted, of other rows.
    pub fn merge(&mut self, mut other: Self) {
        if matches!(other.counts, Counts::Sketched(_)) {
            self.estimate();
        } else if matches!(self.counts, Counts::Sketched(_)) {
            other.estimate();
        }
        self.rows += other.rows;
        match (&mut self.counts, other.counts) {
            (Counts::Exact(table), Counts::Exact(more)) => {
                for (identity, count) in more {
                    *table.entry(identity).or_insert(0) += count;
                }
            }
            (Counts::Sketched(sketches), Counts::Sketched(more)) => {
                sketches.frequent.merge(&more.frequent);
                if let Ok(mut union) = HllUnion::new(HLL_LG_K) {
                    union.update(&sketches.distinct);
                    union.update(&more.distinct);
                    sketches.distinct = union.to_sketch(HllType::Hll8);
                }
            }
            // Both were brought to the same kind above.
            _ => {}
        }
        // Values of the other that lay below its floor are gone, but so are these keys' chances.
        let mut values: Vec<_> = other.values.by_identity.into_iter().collect();
        values.sort_unstable_by_key(|(_, value)| value.order);
        for (identity, value) in values {
            self.values.remember(identity, || value.value);
        }
        self.forget_light();
    }

    /// Rows counted.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What was counted, with at most `most` of the heaviest keys.
    #[must_use]
    pub fn finish(&self, most: usize) -> KeyCounts<V> {
        let heaviest = self.heaviest(most);
        match &self.counts {
            Counts::Exact(table) => {
                let mut weights = KeyWeights::default();
                table.values().for_each(|rows| weights.add(*rows));
                let keys = table.len() as u64;
                let distinct = DistinctKeys { estimate: keys, exact: true, lower: keys, upper: keys };
                let once = table.values().filter(|rows| **rows == 1).count() as u64;
                KeyCounts { distinct, keys_with_one_row: Some(once), weights, heaviest }
            }
            Counts::Sketched(sketches) => {
                let distinct = distinct_of(&sketches.distinct);
                let weights = self.weights_of(sketches, distinct);
                KeyCounts { distinct, keys_with_one_row: None, weights, heaviest }
            }
        }
    }

    fn heaviest(&self, most: usize) -> Vec<HeavyKey<V>> {
        let mut all: Vec<(u64, HeavyKey<V>)> = self
            .values
            .by_identity
            .iter()
            .map(|(identity, value)| {
                let (rows, error) = match &self.counts {
                    Counts::Exact(table) => (table.get(identity).copied().unwrap_or(0), 0),
                    Counts::Sketched(sketches) => {
                        let lower = sketches.frequent.lower_bound(identity);
                        (lower, sketches.frequent.upper_bound(identity) - lower)
                    }
                };
                (value.order, HeavyKey { value: value.value.clone(), rows, error })
            })
            .collect();
        all.sort_by(|(first, a), (second, b)| b.rows.cmp(&a.rows).then(first.cmp(second)));
        all.into_iter().take(most).map(|(_, key)| key).collect()
    }

    /// Keys that the sketch of frequent ones holds count with their estimates; the rows that are left are spread evenly over
    /// the keys that are left, which gives the least sum of squares that they can have.
    fn weights_of(&self, sketches: &Sketches, distinct: DistinctKeys) -> KeyWeights {
        let mut weights = KeyWeights::default();
        let frequent =
            sketches.frequent.frequent_items(datasketches::frequencies::ErrorType::NoFalsePositives);
        frequent.iter().for_each(|row| weights.add(row.estimate().min(self.rows)));
        let keys_left = distinct.estimate.saturating_sub(weights.distinct).max(1);
        let rows_left = self.rows.saturating_sub(weights.rows);
        weights.sum_of_squares += (rows_left as f64).powi(2) / keys_left as f64;
        weights.heaviest = weights.heaviest.max(rows_left.div_ceil(keys_left));
        weights.distinct = distinct.estimate;
        weights.rows = self.rows;
        weights
    }
}

fn distinct_of(sketch: &HllSketch) -> DistinctKeys {
    DistinctKeys {
        estimate: sketch.estimate().round() as u64,
        exact: false,
        lower: sketch.lower_bound(NumStdDev::Two).floor() as u64,
        upper: sketch.upper_bound(NumStdDev::Two).ceil() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::fold;

    /// Identities of `keys` keys: key i comes about rows / (i + 1) / ln(keys) times, a Zipf distribution; then once each.
    fn zipf(keys: u64, rows: u64) -> Vec<u64> {
        let scale = rows as f64 / (keys as f64).ln();
        let times = |key: u64| (scale / (key + 1) as f64) as u64 + 1;
        (0..keys).flat_map(|key| std::iter::repeat_n(fold(key, 7), times(key) as usize)).collect()
    }

    fn counted(budget: usize, identities: &[u64]) -> KeyCounter<u64> {
        let mut counter = KeyCounter::new();
        for batch in identities.chunks(1000) {
            counter.add(batch, |row| batch[row]);
            if counter.exact_bytes_after(1000).is_some_and(|bytes| bytes > budget) {
                counter.estimate();
            }
        }
        counter
    }

    #[test]
    fn an_exact_counter_equals_sorting() {
        let identities = zipf(5_000, 60_000);
        let counts = counted(1 << 30, &identities).finish(10);
        let mut sorted = identities.clone();
        sorted.sort_unstable();
        let mut expected: Vec<u64> = sorted.chunk_by(|a, b| a == b).map(|key| key.len() as u64).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(counts.distinct, DistinctKeys { estimate: 5000, exact: true, lower: 5000, upper: 5000 });
        assert_eq!(counts.weights.rows, identities.len() as u64);
        let squares: u64 = expected.iter().map(|rows| rows * rows).sum();
        assert!((counts.weights.sum_of_squares - squares as f64).abs() < 1.0);
        let heaviest: Vec<u64> = counts.heaviest.iter().map(|key| key.rows).collect();
        assert_eq!(heaviest, expected[..10]);
        assert_eq!(counts.heaviest[0].value, fold(0, 7));
        let once = expected.iter().filter(|rows| **rows == 1).count() as u64;
        assert_eq!(counts.keys_with_one_row, Some(once));
    }

    #[test]
    fn a_sample_bounds_the_keys_of_the_whole() {
        let identities = zipf(20_000, 100_000);
        // Every tenth row.
        let sampled: Vec<u64> = identities.iter().copied().step_by(10).collect();
        let counts = counted(1 << 30, &sampled).finish(1);
        let whole = counts.distinct.of_whole(counts.keys_with_one_row, 0.1);
        assert!(whole.lower < 20_000 && 20_000 < whole.upper && !whole.exact, "{whole:?}");
        assert!(whole.lower <= whole.estimate && whole.estimate <= whole.upper, "{whole:?}");
    }

    #[test]
    fn beyond_its_budget_a_counter_keeps_its_error_bounds() {
        let identities = zipf(300_000, 1_000_000);
        let exact = counted(1 << 30, &identities).finish(50);
        let sketched = counted(1 << 20, &identities).finish(50);
        assert!(exact.distinct.exact && !sketched.distinct.exact);
        let relative = sketched.distinct.estimate as f64 / exact.distinct.estimate as f64;
        assert!((relative - 1.0).abs() < 0.02, "{relative}");
        assert!(sketched.distinct.lower <= sketched.distinct.estimate);
        for (found, truth) in sketched.heaviest.iter().zip(&exact.heaviest).take(20) {
            assert_eq!(found.value, truth.value);
            assert!(
                found.rows <= truth.rows && truth.rows <= found.rows + found.error,
                "{found:?} {truth:?}"
            );
            assert!(found.error as f64 <= 3.5 / FREQUENT_SLOTS as f64 * identities.len() as f64 + 1.0);
        }
        let ratio = sketched.weights.sum_of_squares / exact.weights.sum_of_squares;
        assert!((0.98..1.02).contains(&ratio), "{ratio}");
    }

    #[test]
    fn parts_merge_to_the_whole() {
        let identities = zipf(2_000, 30_000);
        let (first, second) = identities.split_at(identities.len() / 3);
        let mut merged = counted(1 << 30, first);
        merged.merge(counted(1 << 30, second));
        let whole = counted(1 << 30, &identities).finish(5);
        let merged = merged.finish(5);
        assert_eq!(merged.weights.sum_of_squares.to_bits(), merged.weights.sum_of_squares.to_bits());
        assert_eq!((merged.distinct, merged.heaviest), (whole.distinct, whole.heaviest));
    }

    #[test]
    fn a_sketched_part_merges_with_an_exact_one() {
        let identities = zipf(300_000, 500_000);
        let (first, second) = identities.split_at(identities.len() / 2);
        let mut merged = counted(1 << 30, first);
        merged.merge(counted(1 << 20, second));
        let merged = merged.finish(3);
        assert!(!merged.distinct.exact);
        assert!((merged.distinct.estimate as f64 / 300_000.0 - 1.0).abs() < 0.02);
        assert_eq!(merged.weights.rows, identities.len() as u64);
    }

    #[test]
    fn keys_that_all_come_once_have_no_heaviest_beyond_one_row() {
        let identities: Vec<u64> = (0..100_000).map(|key| fold(key, 3)).collect();
        let counts = counted(1 << 30, &identities).finish(3);
        assert_eq!(counts.weights.heaviest, 1);
        assert!(counts.heaviest.iter().all(|key| key.rows == 1));
        let nothing = KeyCounter::<u64>::new().finish(3);
        assert_eq!((nothing.distinct.estimate, nothing.heaviest.len()), (0, 0));
    }
}
