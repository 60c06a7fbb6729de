//! Counts of many keys: identities are buffered by their first bits and counted part by part at the
//! end, so that the table of each part fits in the processor's cache. That takes 8 bytes for each
//! row whose key occurs once, in memory or on disk, and no growing table.

use rayon::prelude::{
    IndexedParallelIterator, IntoParallelIterator, IntoParallelRefMutIterator, ParallelIterator,
};

use crate::numbering::Slots;
use crate::sketch::counter::values::Heaviest;
use crate::sketch::part_file::{PartFile, SpillError, pairs, words};
use crate::skew::KeyWeights;
use evenkeel_model::wire::{Wire, WireError, WireReader, put_words};

/// Number of leading bits of an identity that select a part.
const PART_BITS: u32 = 9;
/// Number of keys that are counted directly at any one time, before they are buffered: a key with
/// many rows is rarely buffered.
const FRONT_SLOTS: usize = 1 << 14;
/// Bytes of one piece of buffer memory.
const PIECE_BYTES: usize = 4096;

/// Buffered rows of keys.
#[derive(Debug)]
pub(super) struct Spilled {
    /// A key and its rows since it was placed here, indexed by the last bits of its identity; 0
    /// rows in an empty slot.
    front: Vec<(u64, u64)>,
    parts: Vec<Part>,
    /// Keys that were buffered earlier: for each part, keys with one row, then keys with several.
    file: Option<PartFile>,
}

/// Keys that share their first bits.
#[derive(Debug, Clone, Default)]
struct Part {
    /// Keys that were buffered with one row.
    once: ChunkedList<u64>,
    /// Keys that were buffered with several rows, and those rows.
    more: ChunkedList<(u64, u64)>,
}

/// A list that grows by pieces, so that it is never moved.
#[derive(Debug, Clone)]
struct ChunkedList<T> {
    /// The piece that is being filled.
    open: Vec<T>,
    full: Vec<Vec<T>>,
}

impl<T> Default for ChunkedList<T> {
    fn default() -> Self {
        Self { open: Vec::new(), full: Vec::new() }
    }
}

impl<T> ChunkedList<T> {
    fn push(&mut self, item: T) {
        if self.open.len() == self.open.capacity() {
            let full = std::mem::replace(&mut self.open, Vec::with_capacity(PIECE_BYTES / size_of::<T>()));
            if !full.is_empty() {
                self.full.push(full);
            }
        }
        self.open.push(item);
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.full.iter().chain([&self.open]).flatten()
    }

    fn len(&self) -> usize {
        self.open.len() + self.full.iter().map(Vec::len).sum::<usize>()
    }

    fn bytes(&self) -> usize {
        self.open.capacity() * size_of::<T>()
            + self.full.len() * PIECE_BYTES
            + self.full.capacity() * size_of::<Vec<T>>()
    }
}

/// Totals over all rows.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) weights: KeyWeights,
    pub(super) keys_with_one_row: u64,
    pub(super) heaviest: Heaviest,
}

impl Totals {
    pub(super) fn new(most: usize) -> Self {
        Self { heaviest: Heaviest::new(most), ..Self::default() }
    }

    /// Adds a key with all its rows.
    pub(super) fn add(&mut self, identity: u64, rows: u64) {
        self.weights.add(rows);
        self.keys_with_one_row += u64::from(rows == 1);
        self.heaviest.offer(identity, rows);
    }

    /// Adds the totals of other keys.
    fn merge(mut self, other: Self) -> Self {
        self.weights.merge(&other.weights);
        self.keys_with_one_row += other.keys_with_one_row;
        self.heaviest.merge(other.heaviest);
        self
    }
}

impl Default for Spilled {
    fn default() -> Self {
        Self { front: vec![(0, 0); FRONT_SLOTS], parts: vec![Part::default(); 1 << PART_BITS], file: None }
    }
}

impl Part {
    fn put_aside(&mut self, identity: u64, rows: u64) {
        if rows != 1 {
            return self.more.push((identity, rows));
        }
        self.once.push(identity);
    }

    fn bytes(&self) -> usize {
        self.once.bytes() + self.more.bytes()
    }

    /// Adds the keys of this part, which has a number, that are on disk.
    fn read_back(&mut self, number: usize, file: Option<&PartFile>) -> Result<(), SpillError> {
        if let Some(file) = file {
            words(&file.read(2 * number)?).for_each(|identity| self.once.push(identity));
            pairs(&file.read(2 * number + 1)?).for_each(|key| self.more.push(key));
        }
        Ok(())
    }

    /// Iterates over keys with their rows; some keys occur several times.
    fn each(&self) -> impl Iterator<Item = (u64, u64)> {
        self.once.iter().map(|identity| (*identity, 1)).chain(self.more.iter().copied())
    }

    /// Iterates over the keys, each once with all its rows.
    fn together(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let most = self.once.len() + self.more.len();
        let mut slots = Slots::with_capacity(most);
        let (mut identities, mut rows) = (Vec::with_capacity(most), Vec::with_capacity(most));
        for (identity, more) in self.each() {
            // The first bits are equal for all keys; the last ones determine the position.
            let same = |number: u32| identities.get(number as usize) == Some(&identity);
            let (number, new) = slots.find_or_insert(identity.rotate_left(32), same);
            if new {
                identities.push(identity);
                rows.push(more);
            } else if let Some(rows) = rows.get_mut(number as usize) {
                *rows += more;
            }
        }
        identities.into_iter().zip(rows)
    }
}

/// Returns the part of a key.
fn part_of(identity: u64) -> usize {
    (identity >> (u64::BITS - PART_BITS)) as usize
}

impl Spilled {
    /// Counts one row; returns the rows of the key that are known to belong together.
    #[inline]
    pub(super) fn add(&mut self, identity: u64) -> u64 {
        let mask = self.front.len() - 1;
        let Some(slot) = self.front.get_mut(identity as usize & mask) else { return 0 };
        if slot.0 == identity && slot.1 > 0 {
            slot.1 += 1;
            return slot.1;
        }
        let (before, rows) = std::mem::replace(slot, (identity, 1));
        if rows > 0 {
            self.put_aside(before, rows);
        }
        1
    }

    /// Adds rows of a key.
    #[inline]
    pub(super) fn put_aside(&mut self, identity: u64, rows: u64) {
        if let Some(part) = self.parts.get_mut(part_of(identity)) {
            part.put_aside(identity, rows);
        }
    }

    /// Returns the rows of a key since it was last buffered.
    pub(super) fn rows_at_hand(&self, identity: u64) -> u64 {
        let slot = self.front.get(identity as usize & (self.front.len() - 1));
        slot.filter(|slot| slot.0 == identity).map_or(0, |slot| slot.1)
    }

    fn empty_front(&mut self) {
        for (identity, rows) in std::mem::replace(&mut self.front, vec![(0, 0); FRONT_SLOTS]) {
            if rows > 0 {
                self.put_aside(identity, rows);
            }
        }
    }

    /// Visits every key with its rows, some several times.
    pub(super) fn each(mut self, count: &mut impl FnMut(u64, u64)) -> Result<(), SpillError> {
        self.empty_front();
        for (number, mut part) in self.parts.into_iter().enumerate() {
            part.read_back(number, self.file.as_ref())?;
            part.each().for_each(|(identity, rows)| count(identity, rows));
        }
        Ok(())
    }

    /// Like [`Spilled::each`], but keeps the counts.
    pub(super) fn visit(&self, count: &mut impl FnMut(u64, u64)) -> Result<(), SpillError> {
        self.front.iter().filter(|(_, rows)| *rows > 0).for_each(|(identity, rows)| count(*identity, *rows));
        for (number, part) in self.parts.iter().enumerate() {
            part.each().for_each(|(identity, rows)| count(identity, rows));
            let mut on_disk = Part::default();
            on_disk.read_back(number, self.file.as_ref())?;
            on_disk.each().for_each(|(identity, rows)| count(identity, rows));
        }
        Ok(())
    }

    /// Number of bytes on disk.
    pub(super) fn bytes_on_disk(&self) -> u64 {
        self.file.as_ref().map_or(0, PartFile::bytes)
    }

    /// Number of bytes of the keys, in memory and on disk.
    pub(super) fn bytes_of_keys(&self) -> u64 {
        let of_part = |part: &Part| {
            (part.once.len() * size_of::<u64>() + part.more.len() * size_of::<(u64, u64)>()) as u64
        };
        self.parts.iter().map(of_part).sum::<u64>() + self.bytes_on_disk()
    }

    /// Moves buffered keys to disk.
    pub(super) fn write_out(&mut self) -> Result<(), SpillError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(PartFile::new(2 * self.parts.len())?),
        };
        for (number, part) in self.parts.iter_mut().enumerate() {
            let Part { once, more } = std::mem::take(part);
            let once: Vec<u8> = once.iter().flat_map(|identity| identity.to_le_bytes()).collect();
            file.append(2 * number, &once)?;
            let more = more.iter().flat_map(|(identity, rows)| [*identity, *rows]);
            file.append(2 * number + 1, &more.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())?;
        }
        Ok(())
    }

    /// Moves keys on disk back into memory.
    pub(super) fn read_back(&mut self) -> Result<(), SpillError> {
        let file = self.file.take();
        for (number, part) in self.parts.iter_mut().enumerate() {
            part.read_back(number, file.as_ref())?;
        }
        Ok(())
    }

    /// Combines the rows of each key.
    pub(super) fn put_together(&mut self) {
        self.parts.par_iter_mut().for_each(|part| {
            let together = part.together();
            *part = Part::default();
            together.for_each(|(identity, rows)| part.put_aside(identity, rows));
        });
    }

    pub(super) fn bytes_after(&self, rows: usize) -> usize {
        let parts: usize = self.parts.iter().map(Part::bytes).sum();
        // A row buffers at most one key, in eight bytes, or in sixteen if the key had more rows,
        // which arrived since or were already here. In the worst case each part needs a new piece
        // of both kinds.
        let front = self.front.len() * size_of::<(u64, u64)>();
        let pieces = (rows * size_of::<u64>() + front) / PIECE_BYTES + 2 * self.parts.len();
        parts + pieces.min(rows) * (PIECE_BYTES + 2 * size_of::<Vec<u64>>()) + front
    }

    /// Computes the totals, with the `most` heaviest keys.
    pub(super) fn total(mut self, most: usize) -> Result<Totals, SpillError> {
        self.empty_front();
        let file = self.file;
        let of_part = |(number, mut part): (usize, Part)| {
            part.read_back(number, file.as_ref())?;
            let together = part.together();
            drop(part);
            Ok(together.fold(Totals::new(most), |mut totals, (identity, rows)| {
                totals.add(identity, rows);
                totals
            }))
        };
        let parts = self.parts.into_par_iter().enumerate().map(of_part);
        let parts: Vec<Totals> = parts.collect::<Result<_, SpillError>>()?;
        Ok(parts.into_iter().fold(Totals::new(most), Totals::merge))
    }
}

/// Keys with one row, then the others with their rows, all in memory.
impl Wire for Spilled {
    fn put(&self, bytes: &mut Vec<u8>) {
        let once = self.parts.iter().flat_map(|part| part.once.iter().copied());
        put_words(once, self.parts.iter().map(|part| part.once.len()).sum(), bytes);
        let front = || self.front.iter().filter(|(_, rows)| *rows > 0);
        let more = || self.parts.iter().flat_map(|part| part.more.iter()).chain(front());
        let count = self.parts.iter().map(|part| part.more.len()).sum::<usize>() + front().count();
        put_words(more().map(|(identity, _)| *identity), count, bytes);
        more().for_each(|(_, rows)| rows.put(bytes));
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let mut spilled = Self::default();
        left.words()?.for_each(|identity| spilled.put_aside(identity, 1));
        for identity in left.words()? {
            spilled.put_aside(identity, u64::take(left)?);
        }
        Ok(spilled)
    }
}

#[cfg(test)]
#[path = "spilled_tests.rs"]
mod tests;
