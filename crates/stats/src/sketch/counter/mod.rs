//! Rows per key: exact while they fit in memory or on disk, sketches of Apache DataSketches from
//! then on.
//!
//! ```text
//! few keys    a number for each, and its rows              numbered
//! many keys   identities buffered, counted at the end      spilled
//! too many    HyperLogLog and frequent items               sketches
//! ```

mod counts;
mod numbered;
mod result;
mod sketches;
mod spilled;
mod values;

use crate::sketch::counter::counts::Counts;
use crate::sketch::counter::numbered::Numbered;
pub use crate::sketch::counter::result::{DistinctKeys, HeavyKey, KeyCounts};
use crate::sketch::counter::sketches::Sketches;
use crate::sketch::counter::spilled::{Spilled, Totals};
use crate::sketch::counter::values::Values;
use crate::sketch::part_file::SpillError;
use evenkeel_model::wire::{Wire, WireError, WireReader};

/// Most distinct keys that get a number; beyond this, numbering costs more than it saves.
const MOST_NUMBERED: usize = 1 << 17;

/// Counts rows per key. `V` is the value remembered for the heaviest keys.
#[derive(Debug)]
pub struct KeyCounter<V> {
    counts: Counts,
    rows: u64,
    values: Values<V>,
    /// Whether numbered keys of other counters were merged in; lookups by number do not know these.
    merged: bool,
}

impl<V: Clone> Default for KeyCounter<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Clone> KeyCounter<V> {
    /// Creates a counter that counts exactly.
    #[must_use]
    pub fn new() -> Self {
        Self {
            counts: Counts::Numbered(Numbered::default()),
            rows: 0,
            values: Values::default(),
            merged: false,
        }
    }

    /// Writes the number of the key of each row into `numbers`, for [`KeyCounter::add_numbered`].
    /// Keys are numbered from 0 in order of first appearance. Returns false if there are too many
    /// keys to number, or if some belong to another counter; then [`KeyCounter::add`] counts rows.
    pub fn number(&mut self, identities: &[u64], numbers: &mut Vec<u32>) -> bool {
        numbers.clear();
        let Counts::Numbered(numbered) = &mut self.counts else { return false };
        if self.merged {
            return false;
        }
        numbered.number(identities, numbers);
        let few = numbered.len() <= MOST_NUMBERED;
        if !few {
            numbers.clear();
        }
        few
    }

    /// Whether keys are few enough to be numbered, and all belong to this counter.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        matches!(self.counts, Counts::Numbered(_)) && !self.merged
    }

    /// Number of keys with a dense number.
    #[must_use]
    pub fn numbered(&self) -> usize {
        match &self.counts {
            Counts::Numbered(numbered) => numbered.len(),
            _ => 0,
        }
    }

    /// Counts one row for each number. `value` returns the value to remember for a row, by its
    /// position.
    pub fn add_numbered(&mut self, numbers: &[u32], value: impl Fn(usize) -> V) {
        self.add_rows(numbers.iter().map(|number| (*number, 1)), value);
    }

    /// Like [`KeyCounter::add_numbered`], for runs of consecutive rows with one key: its number and
    /// the count of rows.
    pub fn add_runs(&mut self, runs: &[(u32, u32)], value: impl Fn(usize) -> V) {
        self.add_rows(runs.iter().copied(), value);
    }

    fn add_rows(&mut self, runs: impl Iterator<Item = (u32, u32)>, value: impl Fn(usize) -> V) {
        let Counts::Numbered(numbered) = &mut self.counts else { return };
        let mut first_row = 0;
        for (number, rows) in runs {
            let count = numbered.count(number, u64::from(rows));
            if self.values.comes_to_be_heavy(count, u64::from(rows), || numbered.identity(number)) {
                self.values.remember(numbered.identity(number), count, || value(first_row));
                if self.values.are_many() {
                    self.values.forget_light(|identity| numbered.rows_of(identity));
                }
            }
            first_row += rows as usize;
        }
        self.rows += first_row as u64;
    }

    /// Counts one row for each identity. `value` returns the value to remember for a row, by its
    /// position.
    pub fn add(&mut self, identities: &[u64], value: impl Fn(usize) -> V) {
        let mut counted = 0;
        if let Counts::Numbered(numbered) = &mut self.counts {
            let mut numbers = Vec::new();
            numbered.number(identities, &mut numbers);
            // Numbers end at the same row, however rows are split into batches.
            let too_many = numbers.iter().position(|number| *number as usize >= MOST_NUMBERED);
            numbers.truncate(too_many.unwrap_or(numbers.len()));
            self.add_numbered(&numbers, &value);
            counted = numbers.len();
            if too_many.is_some() {
                self.spill();
            }
        }
        self.rows += (identities.len() - counted) as u64;
        for (row, identity) in identities.iter().enumerate().skip(counted) {
            let (count, stands_out) = match &mut self.counts {
                Counts::Sketched(sketches) => {
                    let count = sketches.add(*identity);
                    (count, self.values.is_heavy(*identity, count))
                }
                Counts::Spilled(spilled) => {
                    let count = spilled.add(*identity);
                    (count, self.values.comes_to_be_heavy(count, 1, || *identity))
                }
                Counts::Numbered(_) => return,
            };
            if stands_out {
                self.values.remember(*identity, count, || value(row));
                if self.values.are_many() {
                    let counts = &self.counts;
                    self.values.forget_light(|identity| counts.rows_of(identity));
                }
            }
        }
    }

    /// Switches to counting without numbers.
    fn spill(&mut self) {
        if !matches!(self.counts, Counts::Numbered(_)) {
            return;
        }
        let counts = std::mem::replace(&mut self.counts, Counts::Spilled(Spilled::default()));
        let Counts::Spilled(spilled) = &mut self.counts else { return };
        self.values.keep_rows(|identity| counts.rows_of(identity));
        if let Counts::Numbered(numbered) = counts {
            numbered.each(|identity, rows| {
                if rows > 0 {
                    spilled.put_aside(identity, rows);
                }
            });
        }
    }

    /// Returns the most bytes that exact counting needs while `rows` more rows are counted. `None`
    /// if sketches count, which take about 4 MiB.
    #[must_use]
    pub fn exact_bytes_after(&self, rows: usize) -> Option<usize> {
        match &self.counts {
            Counts::Numbered(numbered) => Some(numbered.bytes_after(rows)),
            Counts::Spilled(spilled) => Some(spilled.bytes_after(rows)),
            Counts::Sketched(_) => None,
        }
    }

    /// Returns about as many bytes as [`Wire::put`] writes for exact counts; `None` if sketches
    /// count.
    #[must_use]
    pub fn exact_bytes(&self) -> Option<u64> {
        match &self.counts {
            Counts::Numbered(numbered) => Some((numbered.len() * size_of::<(u64, u64)>()) as u64),
            Counts::Spilled(spilled) => Some(spilled.bytes_of_keys()),
            Counts::Sketched(_) => None,
        }
    }

    /// Reduces memory by the first of these that halves it: the rows of each key are combined, keys
    /// are moved to a temporary file unless it exceeds `most_on_disk` bytes, sketches count.
    ///
    /// # Errors
    /// [`SpillError`] if the file cannot be written or read.
    pub fn reduce(&mut self, most_on_disk: u64) -> Result<(), SpillError> {
        if most_on_disk > 0 {
            self.spill();
        }
        if let Counts::Spilled(spilled) = &mut self.counts {
            let before = spilled.bytes_after(0);
            spilled.put_together();
            if spilled.bytes_after(0) <= before / 2 {
                return Ok(());
            }
            if spilled.bytes_on_disk() + (spilled.bytes_after(0) as u64) < most_on_disk {
                spilled.write_out()?;
                if spilled.bytes_after(0) <= before / 2 {
                    return Ok(());
                }
            }
        }
        self.sketch()
    }

    fn sketch(&mut self) -> Result<(), SpillError> {
        if matches!(self.counts, Counts::Sketched(_)) {
            return Ok(());
        }
        let Some(mut sketches) = Sketches::new() else { return Ok(()) };
        let counts = std::mem::replace(&mut self.counts, Counts::Numbered(Numbered::default()));
        counts.each(|identity, rows| sketches.add_rows(identity, rows))?;
        self.counts = Counts::Sketched(Box::new(sketches));
        Ok(())
    }

    /// Moves keys that are on disk back into memory, as [`Wire::put`] requires.
    ///
    /// # Errors
    /// [`SpillError`] if the file cannot be read.
    pub fn read_back(&mut self) -> Result<(), SpillError> {
        match &mut self.counts {
            Counts::Spilled(spilled) => spilled.read_back(),
            Counts::Numbered(_) | Counts::Sketched(_) => Ok(()),
        }
    }

    /// Combines the rows of each key if they are buffered one by one, which minimizes memory.
    pub fn put_together(&mut self) {
        if let Counts::Spilled(spilled) = &mut self.counts {
            spilled.put_together();
        }
    }

    /// Adds the counts of another counter over other rows. Keys stay numbered while they are few,
    /// so that parts give the same result as the whole.
    ///
    /// # Errors
    /// [`SpillError`] if keys that are on disk cannot be read.
    pub fn merge(&mut self, mut other: Self) -> Result<(), SpillError> {
        if self.rows == 0 {
            *self = Self { merged: true, ..other };
            return Ok(());
        }
        match (&self.counts, &other.counts) {
            (Counts::Sketched(_), _) => other.sketch()?,
            (_, Counts::Sketched(_)) => self.sketch()?,
            (Counts::Numbered(_), Counts::Spilled(_)) => self.spill(),
            (Counts::Numbered(_), Counts::Numbered(_)) | (Counts::Spilled(_), _) => {}
        }
        self.merged = true;
        self.rows += other.rows;
        self.values.keep_rows(|identity| self.counts.rows_of(identity));
        other.values.keep_rows(|identity| other.counts.rows_of(identity));
        match (&mut self.counts, other.counts) {
            (Counts::Sketched(sketches), Counts::Sketched(more)) => sketches.merge(&more),
            (Counts::Numbered(numbered), Counts::Numbered(more)) => numbered.merge(more),
            (Counts::Spilled(spilled), more) => {
                more.each(|identity, rows| spilled.put_aside(identity, rows))?;
            }
            // Both were converted to the same kind above.
            _ => {}
        }
        if matches!(&self.counts, Counts::Numbered(numbered) if numbered.len() > MOST_NUMBERED) {
            self.spill();
        }
        // Values below the other counter's floor are lost; their keys can no longer be among the
        // heaviest.
        self.values.merge(other.values);
        let counts = &self.counts;
        self.values.forget_light(|identity| counts.rows_of(identity));
        Ok(())
    }

    /// Returns the number of rows counted.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the counts, with at most `most` of the heaviest keys. Among keys with equally many
    /// rows, the smaller identity sorts first.
    ///
    /// # Errors
    /// [`SpillError`] if keys that are on disk cannot be read.
    pub fn finish(self, most: usize) -> Result<KeyCounts<V>, SpillError> {
        let values = self.values;
        let exact = |totals: Totals| {
            let keys = totals.weights.distinct;
            KeyCounts {
                distinct: DistinctKeys { estimate: keys, exact: true, lower: keys, upper: keys },
                keys_with_one_row: Some(totals.keys_with_one_row),
                weights: totals.weights,
                heaviest: values.with_values(totals.heaviest),
            }
        };
        Ok(match self.counts {
            Counts::Numbered(numbered) => {
                let mut totals = Totals::new(most);
                numbered.each(|identity, rows| totals.add(identity, rows));
                exact(totals)
            }
            Counts::Spilled(spilled) => exact(spilled.total(most)?),
            Counts::Sketched(sketches) => {
                let distinct = sketches.distinct();
                let heaviest = values.heaviest(most, |identity| sketches.rows_of(identity));
                let weights = sketches.weights(self.rows);
                KeyCounts { distinct, keys_with_one_row: None, weights, heaviest }
            }
        })
    }
}

impl<V: Wire> KeyCounter<V> {
    /// Appends the output of [`Wire::put`] as if sketches counted, a few MiB for any number of
    /// keys.
    ///
    /// # Errors
    /// [`SpillError`] if keys that are on disk cannot be read.
    pub fn put_estimated(&self, bytes: &mut Vec<u8>) -> Result<(), SpillError> {
        match Sketches::new().filter(|_| !matches!(self.counts, Counts::Sketched(_))) {
            Some(mut sketches) => {
                self.counts.visit(|identity, rows| sketches.add_rows(identity, rows))?;
                Counts::Sketched(Box::new(sketches)).put(bytes);
            }
            None => self.counts.put(bytes),
        }
        self.rows.put(bytes);
        self.values.put(bytes);
        Ok(())
    }
}

impl<V: Wire> Wire for KeyCounter<V> {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.counts.put(bytes);
        self.rows.put(bytes);
        self.values.put(bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        Ok(Self {
            counts: Counts::take(left)?,
            rows: u64::take(left)?,
            values: Values::take(left)?,
            merged: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::counter::sketches::FREQUENT_SLOTS;
    use crate::sketch::fold;
    use evenkeel_model::wire::{seal, unseal};

    /// Identities of `keys` keys: key i occurs about rows / (i + 1) / ln(keys) times, a Zipf
    /// distribution, plus once each.
    fn zipf(keys: u64, rows: u64) -> Vec<u64> {
        let scale = rows as f64 / (keys as f64).ln();
        let times = |key: u64| (scale / (key + 1) as f64) as u64 + 1;
        (0..keys).flat_map(|key| std::iter::repeat_n(fold(key, 7), times(key) as usize)).collect()
    }

    fn counted(budget: usize, identities: &[u64]) -> KeyCounter<u64> {
        counted_on_disk(budget, 0, identities)
    }

    fn counted_on_disk(budget: usize, on_disk: u64, identities: &[u64]) -> KeyCounter<u64> {
        let mut counter = KeyCounter::new();
        for batch in identities.chunks(1000) {
            counter.add(batch, |row| batch[row]);
            if counter.exact_bytes_after(1000).is_some_and(|bytes| bytes > budget) {
                counter.reduce(on_disk).unwrap();
            }
        }
        counter
    }

    #[test]
    fn an_exact_counter_equals_sorting() {
        let identities = zipf(5_000, 60_000);
        let counts = counted(1 << 30, &identities).finish(10).unwrap();
        let mut sorted = identities.clone();
        sorted.sort_unstable();
        let mut expected: Vec<u64> = sorted.chunk_by(|a, b| a == b).map(|key| key.len() as u64).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(counts.distinct, DistinctKeys { estimate: 5000, exact: true, lower: 5000, upper: 5000 });
        assert_eq!(counts.weights.rows, identities.len() as u64);
        let squares: u64 = expected.iter().map(|rows| rows * rows).sum();
        assert_eq!(counts.weights.sum_of_squares, u128::from(squares));
        let heaviest: Vec<u64> = counts.heaviest.iter().map(|key| key.rows).collect();
        assert_eq!(heaviest, expected[..10]);
        assert_eq!(counts.heaviest[0].value, Some(fold(0, 7)));
        let once = expected.iter().filter(|rows| **rows == 1).count() as u64;
        assert_eq!(counts.keys_with_one_row, Some(once));
    }

    #[test]
    fn a_sample_bounds_the_keys_of_the_whole() {
        let identities = zipf(20_000, 100_000);
        // Every tenth row.
        let sampled: Vec<u64> = identities.iter().copied().step_by(10).collect();
        let counts = counted(1 << 30, &sampled).finish(1).unwrap();
        let rows = (identities.len() - sampled.len()) as u64;
        let most = rows + counts.distinct.upper;
        let whole = counts.distinct.scaled_to_whole(counts.keys_with_one_row, 0.1, most);
        assert!(whole.lower < 20_000 && 20_000 < whole.upper && !whole.exact, "{whole:?}");
        assert!(whole.lower <= whole.estimate && whole.estimate <= whole.upper, "{whole:?}");
    }

    #[test]
    fn beyond_its_budget_a_counter_keeps_its_error_bounds() {
        let identities = zipf(300_000, 1_000_000);
        let exact = counted(1 << 30, &identities).finish(50).unwrap();
        let sketched = counted(1 << 20, &identities).finish(50).unwrap();
        assert!(exact.distinct.exact && !sketched.distinct.exact);
        let relative = sketched.distinct.estimate as f64 / exact.distinct.estimate as f64;
        assert!((relative - 1.0).abs() < 0.02, "{relative}");
        assert!(sketched.distinct.lower <= sketched.distinct.estimate);
        for (approximate, truth) in sketched.heaviest.iter().zip(&exact.heaviest).take(20) {
            assert_eq!(approximate.value, truth.value);
            assert!(
                approximate.rows <= truth.rows && truth.rows <= approximate.rows + approximate.error,
                "{approximate:?} {truth:?}"
            );
            assert!(approximate.error as f64 <= 3.5 / FREQUENT_SLOTS as f64 * identities.len() as f64 + 1.0);
        }
        let ratio = sketched.weights.sum_of_squares as f64 / exact.weights.sum_of_squares as f64;
        assert!((0.98..1.02).contains(&ratio), "{ratio}");
    }

    #[test]
    fn on_disk_a_counter_stays_exact() {
        let mixed: Vec<u64> = (0..900_000).map(|row| fold(fold(row, 3) % 400_000, 7)).collect();
        for identities in [zipf(300_000, 1_000_000), mixed, zipf(2_000, 30_000)] {
            let exact = counted(1 << 30, &identities).finish(50).unwrap();
            for budget in [1 << 16, 5 << 20, 6 << 20, 8 << 20] {
                let counter = counted_on_disk(budget, 1 << 30, &identities);
                let is_reduced = !matches!(counter.counts, Counts::Numbered(_));
                let counts = counter.finish(50).unwrap();
                assert!(is_reduced || identities.len() < 100_000);
                // With small budgets, the minimum memory of exact counting makes sketches count.
                assert!(counts.distinct.exact || budget < 5 << 20);
                if counts.distinct.exact {
                    assert_eq!((counts.distinct, &counts.weights), (exact.distinct, &exact.weights));
                    assert_eq!(counts.heaviest, exact.heaviest);
                    assert_eq!(counts.keys_with_one_row, exact.keys_with_one_row);
                }
            }
            let (first, second) = identities.split_at(identities.len() / 3);
            let mut whole = counted_on_disk(6 << 20, 1 << 30, first);
            whole.merge(sent(counted_on_disk(6 << 20, 1 << 30, second))).unwrap();
            assert_eq!(whole.finish(1).unwrap().weights, exact.weights);
        }
    }

    #[test]
    fn a_file_may_not_exceed_its_limit() {
        let identities: Vec<u64> = (0..1_000_000).map(|row| fold(row, 7)).collect();
        assert!(counted_on_disk(6 << 20, 16 << 20, &identities).finish(1).unwrap().distinct.exact);
        assert!(!counted_on_disk(6 << 20, 4 << 20, &identities).finish(1).unwrap().distinct.exact);
    }

    /// Returns the counter as it arrives on another machine.
    fn sent(mut counter: KeyCounter<u64>) -> KeyCounter<u64> {
        counter.read_back().unwrap();
        counter.put_together();
        let sealed = seal(|bytes| counter.put(bytes));
        let mut left = unseal(&sealed).unwrap();
        let arrived = KeyCounter::take(&mut left).unwrap();
        left.end().unwrap();
        arrived
    }

    fn merged(budget: usize, parts: &[&[u64]]) -> KeyCounts<u64> {
        let mut whole = KeyCounter::new();
        parts.iter().for_each(|part| whole.merge(sent(counted(budget, part))).unwrap());
        whole.finish(20).unwrap()
    }

    #[test]
    fn parts_merge_to_the_whole() {
        let few = zipf(2_000, 30_000);
        let mixed = |rows: u64, keys: u64| -> Vec<u64> {
            (0..rows).map(|row| fold(fold(row, 3) % keys, 7)).collect()
        };
        // Numbered, numbered only within each part, and numbered in no part.
        for identities in [few, mixed(600_000, 100_000), mixed(300_000, 250_000), mixed(800_000, 400_000)] {
            let whole = counted(1 << 30, &identities).finish(20).unwrap();
            for count in [1, 2, 3, 7] {
                let parts: Vec<&[u64]> = identities.chunks(identities.len().div_ceil(count)).collect();
                let mut merged = merged(1 << 30, &parts);
                assert_eq!((merged.distinct, &merged.weights), (whole.distinct, &whole.weights));
                assert_eq!(merged.keys_with_one_row, whole.keys_with_one_row);
                // Whether the value of a key is remembered may depend on the parts; the choice of
                // the heaviest keys does not.
                for (key, of_whole) in merged.heaviest.iter_mut().zip(&whole.heaviest) {
                    assert!(key.value.is_none_or(|value| value == key.identity));
                    key.value = of_whole.value;
                }
                assert_eq!(merged.heaviest, whole.heaviest);
            }
        }
    }

    #[test]
    fn a_merged_counter_counts_on() {
        let identities = zipf(2_000, 30_000);
        let (first, second) = identities.split_at(10_000);
        let mut counter = KeyCounter::new();
        counter.merge(sent(counted(1 << 30, first))).unwrap();
        assert!(!counter.is_numbered() && !counter.number(second, &mut Vec::new()));
        counter.add(second, |row| second[row]);
        assert_eq!(counter.finish(10).unwrap(), counted(1 << 30, &identities).finish(10).unwrap());
    }

    #[test]
    fn the_state_of_sketches_is_they_themselves() {
        let identities = zipf(300_000, 500_000);
        let counter = counted(1 << 20, &identities);
        let counts = counter.finish(20).unwrap();
        assert_eq!(merged(1 << 20, &[&identities]), counts);
        assert_eq!(sent(counted(1 << 20, &identities)).finish(20).unwrap(), counts);
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        for counter in [
            counted(1 << 30, &zipf(50, 500)),
            counted(1 << 30, &zipf(140_000, 140_000)),
            counted(0, &zipf(50, 500)),
        ] {
            let mut bytes = Vec::new();
            counter.put(&mut bytes);
            for step in 0..2_000 {
                let mut damaged = bytes.clone();
                let place =
                    fold(step, 1) as usize % bytes.len().min(if step % 2 == 0 { 100 } else { usize::MAX });
                damaged[place] ^= fold(step, 2) as u8;
                damaged.truncate(if step % 3 == 0 {
                    fold(step, 4) as usize % bytes.len()
                } else {
                    bytes.len()
                });
                let sealed = seal(|bytes| bytes.extend_from_slice(&damaged));
                let _ = KeyCounter::<u64>::take(&mut unseal(&sealed).unwrap());
            }
        }
    }

    #[test]
    fn the_heaviest_do_not_depend_on_how_rows_are_cut() {
        // More keys than are numbered, many of them with equally many rows.
        let mut identities: Vec<u64> = (0..400_000).map(|row| fold(row % 190_000, 7)).collect();
        identities.extend((0..3000).map(|row| fold(row % 1500, 9)));
        let counted = |rows: usize| {
            let mut counter = KeyCounter::new();
            for batch in identities.chunks(rows) {
                counter.add(batch, |row| batch[row]);
            }
            counter.finish(20).unwrap()
        };
        let whole = counted(identities.len());
        assert_eq!(whole.distinct.estimate, 191_500);
        for rows in [977, 65_536] {
            assert_eq!(counted(rows), whole, "{rows}");
        }
    }

    #[test]
    fn a_sketched_part_merges_with_an_exact_one() {
        let identities = zipf(300_000, 500_000);
        let (first, second) = identities.split_at(identities.len() / 2);
        let mut merged = counted(1 << 30, first);
        merged.merge(counted(1 << 20, second)).unwrap();
        let merged = merged.finish(3).unwrap();
        assert!(!merged.distinct.exact);
        assert!((merged.distinct.estimate as f64 / 300_000.0 - 1.0).abs() < 0.02);
        assert_eq!(merged.weights.rows, identities.len() as u64);
    }

    #[test]
    fn keys_that_all_come_once_have_no_heaviest_beyond_one_row() {
        let identities: Vec<u64> = (0..100_000).map(|key| fold(key, 3)).collect();
        let counts = counted(1 << 30, &identities).finish(3).unwrap();
        assert_eq!(counts.weights.heaviest, 1);
        assert!(counts.heaviest.iter().all(|key| key.rows == 1));
        let nothing = KeyCounter::<u64>::new().finish(3).unwrap();
        assert_eq!((nothing.distinct.estimate, nothing.heaviest.len()), (0, 0));
    }
}
