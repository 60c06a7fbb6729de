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

/// Maximum number of distinct keys that get a number; beyond this, numbering costs more than it
/// saves.
const MAX_NUMBERED: usize = 1 << 17;

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
        let few = numbered.len() <= MAX_NUMBERED;
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
            let too_many = numbers.iter().position(|number| *number as usize >= MAX_NUMBERED);
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
        if matches!(&self.counts, Counts::Numbered(numbered) if numbered.len() > MAX_NUMBERED) {
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
mod tests;
