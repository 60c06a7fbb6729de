//! Repeated keys, counted exactly within a memory budget and on disk beyond it.

use ahash::AHashSet;
use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use evenkeel_model::wire::{WireError, WireReader, put_words, wire};

use crate::sketch::part_file::{PartFile, SpillError, pairs};

/// Number of buckets into which keys are divided by identity; each is sorted separately.
const BUCKETS: usize = 256;
/// Bytes of a key: its identity and its row's identity.
const RECORD_BYTES: usize = 16;

/// Identities of a key and of the whole row that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KeyOfRow {
    key: u64,
    row: u64,
}

/// Collects the keys of rows in order of arrival, and finds repeated ones.
#[derive(Debug)]
pub struct RepeatedKeys {
    buckets: Vec<Vec<KeyOfRow>>,
    /// Earlier keys of each bucket.
    file: Option<PartFile>,
    held: usize,
    budget: usize,
    rows: u64,
}

/// Counts of rows that share a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repeats {
    /// Number of distinct keys.
    pub distinct_keys: u64,
    /// Number of rows whose key occurs in an earlier row.
    pub duplicate_rows: u64,
    /// Of those, rows equal to the previous row with the same key.
    pub identical_rows: u64,
    /// Of those, rows that differ from it: an upsert replaces other values.
    pub conflicting_rows: u64,
    /// Some repeated keys; conflicting ones first, then by identity.
    pub examples: Vec<RepeatedKey>,
}

/// A repeated key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedKey {
    /// 64-bit hash that stands for the key.
    pub key: u64,
    /// Whether any two consecutive rows with this key differ.
    pub conflicting: bool,
}

wire!(RepeatedKey { key, conflicting });

impl Repeats {
    /// Adds the repeats among other keys, without their examples.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.distinct_keys += other.distinct_keys;
        self.duplicate_rows += other.duplicate_rows;
        self.identical_rows += other.identical_rows;
        self.conflicting_rows += other.conflicting_rows;
        self
    }
}

impl RepeatedKeys {
    /// Creates a collector that holds at most `budget` bytes in memory.
    #[must_use]
    pub fn new(budget: usize) -> Self {
        Self { buckets: vec![Vec::new(); BUCKETS], file: None, held: 0, budget, rows: 0 }
    }

    /// Adds the keys of a batch of rows, and the rows themselves, by their identities.
    ///
    /// # Errors
    /// [`SpillError`] if they do not fit in memory and cannot be written to disk.
    pub fn add(&mut self, keys: &[u64], rows: &[u64]) -> Result<(), SpillError> {
        for (key, row) in keys.iter().zip(rows) {
            // The highest 8 bits of 64.
            if let Some(bucket) = self.buckets.get_mut((key >> 56) as usize) {
                bucket.push(KeyOfRow { key: *key, row: *row });
            }
        }
        self.rows += keys.len() as u64;
        self.held += keys.len();
        if self.is_over_budget() {
            self.spill()?;
        }
        Ok(())
    }

    fn is_over_budget(&self) -> bool {
        // A growing vector may have twice the capacity of its content.
        self.held * RECORD_BYTES * 2 > self.budget
    }

    fn spill(&mut self) -> Result<(), SpillError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(PartFile::new(BUCKETS)?),
        };
        for (part, bucket) in self.buckets.iter_mut().enumerate() {
            let records = bucket.iter().flat_map(|record| [record.key, record.row]);
            file.append(part, &records.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())?;
            *bucket = Vec::new();
        }
        self.held = 0;
        Ok(())
    }

    /// Adds the keys of later rows.
    ///
    /// # Errors
    /// [`SpillError`] if they do not fit in memory and cannot be written to disk, or read back.
    pub fn merge(&mut self, other: Self) -> Result<(), SpillError> {
        for (part, held) in other.buckets.into_iter().enumerate() {
            let mut records = read_back(other.file.as_ref(), part)?;
            records.extend(held);
            self.held += records.len();
            if let Some(bucket) = self.buckets.get_mut(part) {
                bucket.extend(records);
            }
            if self.is_over_budget() {
                self.spill()?;
            }
        }
        self.rows += other.rows;
        Ok(())
    }

    /// Number of bytes that [`RepeatedKeys::put`] writes, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.rows * RECORD_BYTES as u64
    }

    /// Appends the keys to `bytes`.
    ///
    /// # Errors
    /// [`SpillError`] if data written to disk cannot be read back.
    pub fn put(&self, bytes: &mut Vec<u8>) -> Result<(), SpillError> {
        for (part, held) in self.buckets.iter().enumerate() {
            let mut records = read_back(self.file.as_ref(), part)?;
            records.extend(held);
            let words = records.iter().flat_map(|record| [record.key, record.row]);
            put_words(words, 2 * records.len(), bytes);
        }
        Ok(())
    }

    /// Reads the output of [`RepeatedKeys::put`].
    ///
    /// # Errors
    /// [`WireError`] if the bytes are cut.
    pub fn take(budget: usize, left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let mut taken = Self::new(budget);
        for bucket in &mut taken.buckets {
            let mut words = left.words()?;
            while let (Some(key), Some(row)) = (words.next(), words.next()) {
                bucket.push(KeyOfRow { key, row });
            }
            taken.held += bucket.len();
        }
        taken.rows = taken.held as u64;
        Ok(taken)
    }

    /// Finds the repeated keys, with at most `most` examples.
    ///
    /// # Errors
    /// [`SpillError`] if data written to disk cannot be read back.
    pub fn finish(self, most: usize) -> Result<Repeats, SpillError> {
        let file = self.file;
        let parts: Vec<Bucket> = self
            .buckets
            .into_par_iter()
            .enumerate()
            .map(|(part, held)| Ok(Bucket::from_records(read_back(file.as_ref(), part)?, held, most)))
            .collect::<Result<_, SpillError>>()?;
        let mut conflicting = Vec::new();
        let mut identical = Vec::new();
        let mut repeats = Repeats::default();
        for part in parts {
            conflicting.extend(part.conflicting);
            identical.extend(part.identical);
            repeats = repeats.with(&part.repeats);
        }
        conflicting.extend(identical);
        conflicting.truncate(most);
        Ok(Repeats { examples: conflicting, ..repeats })
    }
}

fn read_back(file: Option<&PartFile>, part: usize) -> Result<Vec<KeyOfRow>, SpillError> {
    let bytes = file.map(|file| file.read(part)).transpose()?.unwrap_or_default();
    Ok(pairs(&bytes).map(|(key, row)| KeyOfRow { key, row }).collect())
}

/// Result of one bucket.
struct Bucket {
    repeats: Repeats,
    conflicting: Vec<RepeatedKey>,
    identical: Vec<RepeatedKey>,
}

impl Bucket {
    fn from_records(mut records: Vec<KeyOfRow>, held: Vec<KeyOfRow>, most: usize) -> Self {
        records.extend(held);
        let mut seen = AHashSet::with_capacity(records.len());
        let keys = records.iter().map(|record| record.key);
        let repeated: AHashSet<u64> = keys.filter(|key| !seen.insert(*key)).collect();
        let mut result = Self { repeats: Repeats::default(), conflicting: Vec::new(), identical: Vec::new() };
        result.repeats.distinct_keys = seen.len() as u64;
        drop(seen);
        records.retain(|record| repeated.contains(&record.key));
        // The stable sort keeps the rows of a key in order of arrival.
        records.sort_by_key(|record| record.key);
        for rows in records.chunk_by(|a, b| a.key == b.key) {
            let conflicts =
                rows.iter().zip(rows.iter().skip(1)).filter(|(a, b)| a.row != b.row).count() as u64;
            let duplicates = rows.len() as u64 - 1;
            result.repeats.duplicate_rows += duplicates;
            result.repeats.conflicting_rows += conflicts;
            result.repeats.identical_rows += duplicates - conflicts;
            let examples = if conflicts > 0 { &mut result.conflicting } else { &mut result.identical };
            if let (true, Some(first)) = (examples.len() < most, rows.first()) {
                examples.push(RepeatedKey { key: first.key, conflicting: conflicts > 0 });
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;
    use crate::sketch::fold;

    /// Finds the same with a map from key to its current row.
    fn plain(rows: &[(u64, u64)]) -> Repeats {
        let mut standing: HashMap<u64, u64> = HashMap::new();
        let mut repeats = Repeats::default();
        for (key, row) in rows {
            match standing.insert(*key, *row) {
                None => repeats.distinct_keys += 1,
                Some(before) => {
                    repeats.duplicate_rows += 1;
                    if before == *row {
                        repeats.identical_rows += 1;
                    } else {
                        repeats.conflicting_rows += 1;
                    }
                }
            }
        }
        repeats
    }

    fn repeats_of(rows: &[(u64, u64)], budget: usize) -> Repeats {
        let mut keys = RepeatedKeys::new(budget);
        for batch in rows.chunks(7) {
            let (keys_of, rows_of): (Vec<u64>, Vec<u64>) = batch.iter().copied().unzip();
            keys.add(&keys_of, &rows_of).unwrap();
        }
        keys.finish(5).unwrap()
    }

    proptest! {
        #[test]
        fn repeats_are_those_of_a_map_in_memory_and_on_disk(
            rows in proptest::collection::vec((0u64..40, 0u64..3), 0..300),
        ) {
            let rows: Vec<(u64, u64)> = rows.into_iter().map(|(key, row)| (fold(key, 1), row)).collect();
            let expected = plain(&rows);
            for budget in [1 << 20, 500] {
                let repeats = repeats_of(&rows, budget);
                prop_assert_eq!(repeats.examples.is_empty(), expected.duplicate_rows == 0);
                prop_assert_eq!(Repeats { examples: Vec::new(), ..repeats }, expected.clone());
            }
        }
    }

    #[test]
    fn conflicting_keys_are_the_first_examples() {
        let (same, other) = (fold(1, 1), fold(2, 1));
        let repeats = repeats_of(&[(same, 1), (same, 1), (other, 1), (other, 2)], 1 << 20);
        let example = |key, conflicting| RepeatedKey { key, conflicting };
        assert_eq!(repeats.examples, [example(other, true), example(same, false)]);
    }
}
