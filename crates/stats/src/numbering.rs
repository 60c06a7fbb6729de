//! Maps values to integers: dense numbers in order of first appearance, and order-preserving
//! prefixes.

/// Returns the first eight bytes of a value as an integer with the same order.
#[must_use]
pub fn prefix(value: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}

/// An open hash table from hashes to numbers. Each slot holds the upper half of a hash, which also
/// determines its position, and the number plus one; free slots are 0. At most half of the slots
/// are taken.
///
/// Unlike a `hashbrown::HashTable`, it grows without the values or their hashes, which may be on
/// disk, and [`Self::bytes_after`] is exact, which the memory budget of a pass relies on.
#[derive(Debug, Clone, Default)]
pub struct Slots {
    slots: Vec<u64>,
    taken: u32,
}

/// Number of slots of the smallest table.
const MIN_SLOTS: usize = 1 << 10;

impl Slots {
    /// Creates a table that holds `values` values without growing.
    #[must_use]
    pub fn with_capacity(values: usize) -> Self {
        Self { slots: vec![0; (values * 2 + 2).next_power_of_two().max(MIN_SLOTS)], taken: 0 }
    }

    /// Returns the number for which `same` holds among the numbers of this hash; otherwise assigns
    /// the next number, and reports that it is new. After 2^32 - 1 values, no more can be numbered.
    #[inline]
    pub fn find_or_insert(&mut self, hash: u64, same: impl Fn(u32) -> bool) -> (u32, bool) {
        if self.taken as usize * 2 >= self.slots.len() {
            self.grow();
        }
        let half = hash >> 32;
        let mask = self.slots.len() - 1;
        let mut position = half as usize & mask;
        while let Some(slot) = self.slots.get_mut(position) {
            if *slot == 0 {
                self.taken += 1;
                *slot = half << 32 | u64::from(self.taken);
                return (self.taken - 1, true);
            }
            let number = (*slot as u32).wrapping_sub(1);
            if *slot >> 32 == half && same(number) {
                return (number, false);
            }
            position = (position + 1) & mask;
        }
        (u32::MAX, false)
    }

    /// Returns the number for which `same` holds among the numbers of this hash.
    #[must_use]
    pub fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        let half = hash >> 32;
        let mask = self.slots.len().checked_sub(1)?;
        let mut position = half as usize & mask;
        while let Some(slot) = self.slots.get(position).filter(|slot| **slot != 0) {
            let number = (*slot as u32).wrapping_sub(1);
            if *slot >> 32 == half && same(number) {
                return Some(number);
            }
            position = (position + 1) & mask;
        }
        None
    }

    /// Returns the most bytes that the table needs once `values` more values are numbered: a full
    /// table doubles, and both copies exist while it does.
    #[must_use]
    pub fn bytes_after(&self, values: usize) -> usize {
        let mut slots = self.slots.len().max(MIN_SLOTS);
        let mut before = 0;
        while (self.taken as usize + values) * 2 > slots {
            before = slots;
            slots *= 2;
        }
        (slots + before) * size_of::<u64>()
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(MIN_SLOTS);
        let old = std::mem::replace(&mut self.slots, vec![0; size]);
        for entry in old.into_iter().filter(|entry| *entry != 0) {
            let mut position = (entry >> 32) as usize & (size - 1);
            while let Some(slot) = self.slots.get_mut(position) {
                if *slot == 0 {
                    *slot = entry;
                    break;
                }
                position = (position + 1) & (size - 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn equal_values_have_one_number(values in proptest::collection::vec(any::<u16>(), 0..5000), shift in 0u32..64) {
            let (mut slots, mut known, mut stored) = (Slots::default(), HashMap::new(), Vec::new());
            for value in values {
                // Equal hashes of many values must affect nothing but the running time.
                let hash = u64::from(value).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift << shift;
                let next = known.len() as u32;
                let expected = *known.entry(value).or_insert(next);
                let (number, new) = slots.find_or_insert(hash, |number| stored[number as usize] == value);
                prop_assert_eq!(slots.find(hash, |number| stored.get(number as usize).unwrap_or(&value) == &value), Some(number));
                prop_assert_eq!((number, new), (expected, expected == next && stored.len() as u32 == next));
                if new {
                    stored.push(value);
                }
            }
            prop_assert!(slots.bytes_after(0) >= stored.len() * 16);
        }
    }
}
