//! Counts of few keys, each with a number.

use crate::numbering::Slots;
use evenkeel_model::wire::{Wire, WireError, WireReader, put_words};

/// Rows of keys by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbered {
    slots: Slots,
    identities: Vec<u64>,
    rows: Vec<u64>,
}

impl Numbered {
    pub(super) fn len(&self) -> usize {
        self.identities.len()
    }

    /// Appends the numbers of keys, assigning new ones to new keys.
    pub(super) fn number(&mut self, identities: &[u64], numbers: &mut Vec<u32>) {
        numbers.reserve(identities.len());
        // Consecutive rows often share a key.
        let mut last = (0, None);
        for identity in identities {
            let number = match last {
                (same, Some(number)) if same == *identity => number,
                _ => self.number_of(*identity),
            };
            last = (*identity, Some(number));
            numbers.push(number);
        }
    }

    #[inline]
    fn number_of(&mut self, identity: u64) -> u32 {
        let Self { slots, identities, rows } = self;
        let same = |number: u32| identities.get(number as usize) == Some(&identity);
        let (number, new) = slots.find_or_insert(identity, same);
        if new {
            identities.push(identity);
            rows.push(0);
        }
        number
    }

    /// Counts rows, and returns the new total of the key.
    #[inline]
    pub(super) fn count(&mut self, number: u32, more: u64) -> u64 {
        match self.rows.get_mut(number as usize) {
            Some(rows) => {
                *rows += more;
                *rows
            }
            None => 0,
        }
    }

    pub(super) fn identity(&self, number: u32) -> u64 {
        self.identities.get(number as usize).copied().unwrap_or_default()
    }

    pub(super) fn rows_of(&self, identity: u64) -> u64 {
        let same = |number: u32| self.identities.get(number as usize) == Some(&identity);
        let number = self.slots.find(identity, same);
        number.and_then(|number| self.rows.get(number as usize)).copied().unwrap_or(0)
    }

    /// Adds the rows of other keys, some of which may already be known.
    pub(super) fn merge(&mut self, more: Self) {
        more.each(|identity, rows| {
            let number = self.number_of(identity);
            self.count(number, rows);
        });
    }

    pub(super) fn each(&self, mut count: impl FnMut(u64, u64)) {
        self.identities.iter().zip(&self.rows).for_each(|(identity, rows)| count(*identity, *rows));
    }

    pub(super) fn bytes_after(&self, rows: usize) -> usize {
        let keys = self.identities.capacity().max(self.identities.len() + rows);
        self.slots.bytes_after(rows) + 2 * keys * size_of::<u64>()
    }
}

/// Keys in the order of their numbers, and their rows.
impl Wire for Numbered {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_words(self.identities.iter().copied(), self.identities.len(), bytes);
        self.rows.put(bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let mut numbered = Self::default();
        let identities = left.words()?;
        let keys = identities.len();
        identities.for_each(|identity| {
            numbered.number_of(identity);
        });
        let rows = Vec::<u64>::take(left)?;
        if numbered.len() != keys || rows.len() != keys {
            return Err(WireError("keys come twice, or without rows"));
        }
        Ok(Self { rows, ..numbered })
    }
}
