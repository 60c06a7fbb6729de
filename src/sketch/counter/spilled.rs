//! Many keys: identities are put aside by their first bits, and counted part by part in the end, so that each part's table fits in
//! the processor's cache. That takes 8 bytes for each row whose key comes once, and no table that grows.

use ahash::{AHashMap, AHashSet};
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelIterator, IntoParallelRefMutIterator, ParallelIterator,
};

use crate::numbering::Slots;
use crate::skew::KeyWeights;

/// Parts by the first bits of an identity.
const PART_BITS: u32 = 9;
/// Keys that are counted at once, before they are put aside: a key with many rows is put aside seldom.
const FRONT_SLOTS: usize = 1 << 14;
/// Bytes that are put aside in one piece of memory.
const PIECE_BYTES: usize = 4096;

/// Rows of keys, put aside.
#[derive(Debug, Clone)]
pub(super) struct Spilled {
    /// A key and its rows since it came here, by the last bits of its identity; no rows where there is none.
    front: Vec<(u64, u64)>,
    parts: Vec<Part>,
}

/// Keys that share their first bits.
#[derive(Debug, Clone, Default)]
struct Part {
    /// Keys that were put aside with one row.
    once: Pieces<u64>,
    /// Keys with their rows.
    more: Pieces<(u64, u64)>,
}

/// A list that grows by pieces, so that it never has to move.
#[derive(Debug, Clone)]
struct Pieces<T> {
    /// The piece that is being filled.
    open: Vec<T>,
    full: Vec<Vec<T>>,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self { open: Vec::new(), full: Vec::new() }
    }
}

impl<T> Pieces<T> {
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

/// What all rows add up to.
pub(super) struct Totals {
    pub(super) weights: KeyWeights,
    pub(super) keys_with_one_row: u64,
    /// The heaviest keys with their rows, the heaviest first.
    pub(super) heaviest: Vec<(u64, u64)>,
    /// The rows of the keys that were asked for.
    pub(super) rows_of: AHashMap<u64, u64>,
}

impl Default for Spilled {
    fn default() -> Self {
        Self { front: vec![(0, 0); FRONT_SLOTS], parts: vec![Part::default(); 1 << PART_BITS] }
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

    /// Keys with their rows, some several times.
    fn each(&self) -> impl Iterator<Item = (u64, u64)> {
        self.once.iter().map(|identity| (*identity, 1)).chain(self.more.iter().copied())
    }

    /// Each key once, with all its rows.
    fn together(&self) -> Together {
        let most = self.once.len() + self.more.len();
        let mut slots = Slots::with_capacity(most);
        let (mut identities, mut rows) = (Vec::with_capacity(most), Vec::with_capacity(most));
        for (identity, more) in self.each() {
            // The first bits are the same for all; the place is found by the last.
            let same = |number: u32| identities.get(number as usize) == Some(&identity);
            let (number, new) = slots.find_or_insert(identity.rotate_left(32), same);
            if new {
                identities.push(identity);
                rows.push(more);
            } else if let Some(rows) = rows.get_mut(number as usize) {
                *rows += more;
            }
        }
        Together { slots, identities, rows }
    }
}

/// Each key of a part once.
struct Together {
    slots: Slots,
    identities: Vec<u64>,
    rows: Vec<u64>,
}

impl Together {
    fn each(self) -> impl Iterator<Item = (u64, u64)> {
        self.identities.into_iter().zip(self.rows)
    }

    fn rows_of(&self, identity: u64) -> Option<u64> {
        let same = |number: u32| self.identities.get(number as usize) == Some(&identity);
        let number = self.slots.find(identity.rotate_left(32), same)?;
        self.rows.get(number as usize).copied()
    }
}

/// The part of a key.
fn part_of(identity: u64) -> usize {
    (identity >> (u64::BITS - PART_BITS)) as usize
}

impl Spilled {
    /// Counts one row; gives the rows of the key that are known to belong together.
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

    /// Rows of a key since it was put aside last.
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

    /// Every key with rows, some in several parts.
    pub(super) fn each(mut self, count: &mut impl FnMut(u64, u64)) {
        self.empty_front();
        for part in self.parts {
            part.each().for_each(|(identity, rows)| count(identity, rows));
        }
    }

    /// Keeps each key once.
    pub(super) fn put_together(&mut self) {
        self.parts.par_iter_mut().for_each(|part| {
            let together = part.together();
            *part = Part::default();
            together.each().for_each(|(identity, rows)| part.put_aside(identity, rows));
        });
    }

    pub(super) fn bytes_after(&self, rows: usize) -> usize {
        let parts: usize = self.parts.iter().map(Part::bytes).sum();
        // A row puts one key aside, at most: eight bytes, or sixteen where the key had more rows, which came since or were there. At
        // worst each part needs a new piece of both kinds.
        let front = self.front.len() * size_of::<(u64, u64)>();
        let pieces = (rows * size_of::<u64>() + front) / PIECE_BYTES + 2 * self.parts.len();
        parts + pieces.min(rows) * (PIECE_BYTES + 2 * size_of::<Vec<u64>>()) + front
    }

    /// Adds everything up: the `most` heaviest keys, and the rows of those `asked` for.
    pub(super) fn total(mut self, most: usize, asked: &AHashSet<u64>) -> Totals {
        self.empty_front();
        let mut asked_of_part = vec![Vec::new(); self.parts.len()];
        for identity in asked {
            if let Some(asked) = asked_of_part.get_mut(part_of(*identity)) {
                asked.push(*identity);
            }
        }
        let of_part = |(part, asked): (Part, Vec<u64>)| {
            let together = part.together();
            drop(part);
            let mut totals = Totals {
                weights: KeyWeights::default(),
                keys_with_one_row: 0,
                heaviest: Vec::new(),
                rows_of: AHashMap::new(),
            };
            let known =
                asked.into_iter().filter_map(|identity| Some((identity, together.rows_of(identity)?)));
            totals.rows_of.extend(known);
            for (identity, rows) in together.each() {
                totals.weights.add(rows);
                totals.keys_with_one_row += u64::from(rows == 1);
                totals.offer(identity, rows, most);
            }
            totals
        };
        let parts: Vec<Totals> = self.parts.into_par_iter().zip(asked_of_part).map(of_part).collect();
        let whole = parts.into_iter().reduce(|mut whole, part| {
            whole.weights.merge(&part.weights);
            whole.keys_with_one_row += part.keys_with_one_row;
            whole.rows_of.extend(part.rows_of);
            part.heaviest.into_iter().for_each(|(identity, rows)| whole.offer(identity, rows, most));
            whole
        });
        // There are 2^9 parts.
        whole.unwrap_or_else(|| Totals {
            weights: KeyWeights::default(),
            keys_with_one_row: 0,
            heaviest: Vec::new(),
            rows_of: AHashMap::new(),
        })
    }
}

impl Totals {
    /// Takes a key among the heaviest. Of keys with equally many rows the smaller identity goes first.
    fn offer(&mut self, identity: u64, rows: u64, most: usize) {
        let heavier = |held: &(u64, u64)| (held.1, u64::MAX - held.0) > (rows, u64::MAX - identity);
        if self.heaviest.len() >= most && self.heaviest.last().is_none_or(heavier) {
            return;
        }
        self.heaviest.insert(self.heaviest.partition_point(heavier), (identity, rows));
        self.heaviest.truncate(most);
    }
}
