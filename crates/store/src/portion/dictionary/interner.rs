//! Maps values to small numbers: distinct values are numbered in order of first appearance.

use ahash::RandomState;
use arrow::array::{Array, BinaryViewArray};

use evenkeel_stats::numbering::Slots;

/// Number that represents NULL.
pub(super) const NULL: u32 = u32::MAX;

/// Distinct values of one column chunk, with their numbers.
#[derive(Debug)]
pub(super) struct Interner {
    slots: Slots,
    state: RandomState,
    values: Values,
}

/// Distinct values, indexed by number.
#[derive(Debug)]
pub(super) enum Values {
    /// Integers, extended to 64 bits.
    Numbers(Vec<u64>),
    /// Text and bytes.
    Bytes(ByteValues),
}

#[derive(Debug, Default)]
pub(super) struct ByteValues {
    /// Keys that distinguish values: the view of a short one; length, prefix and hash of a long
    /// one, whose bytes are compared as well.
    keys: Vec<u128>,
    ends: Vec<usize>,
    data: Vec<u8>,
}

/// Maximum length of a value stored inside an Arrow view.
const INLINE: usize = 12;

impl ByteValues {
    pub(super) fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let end = self.ends.get(number).copied().unwrap_or(0);
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.data.get(start..end).unwrap_or_default()
    }
}

impl Values {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Bytes(values) => values.keys.len(),
        }
    }

    /// Bytes in memory.
    fn memory(&self) -> usize {
        match self {
            Self::Numbers(values) => values.capacity() * size_of::<u64>(),
            Self::Bytes(ByteValues { keys, ends, data }) => {
                keys.capacity() * size_of::<u128>() + ends.capacity() * size_of::<usize>() + data.capacity()
            }
        }
    }

    /// Bytes of the values themselves, with eight per number.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len() * size_of::<u64>(),
            Self::Bytes(values) => values.data.len(),
        }
    }
}

impl Interner {
    pub(super) fn for_numbers() -> Self {
        Self::new(Values::Numbers(Vec::new()))
    }

    pub(super) fn for_bytes() -> Self {
        Self::new(Values::Bytes(ByteValues::default()))
    }

    fn new(values: Values) -> Self {
        Self { slots: Slots::default(), state: RandomState::new(), values }
    }

    pub(super) fn values(&self) -> &Values {
        &self.values
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.slots.bytes_after(0) + self.values.memory()
    }

    pub(super) fn into_values(self) -> Values {
        self.values
    }

    /// Returns the number of a value, which is new if the value is.
    pub(super) fn number(&mut self, value: u64) -> u32 {
        let Values::Numbers(values) = &mut self.values else { return NULL };
        let hash = self.state.hash_one(value);
        let same = |number: u32| values.get(number as usize) == Some(&value);
        let (number, new) = self.slots.find_or_insert(hash, same);
        if new {
            values.push(value);
        }
        number
    }

    /// Appends the numbers of the values of an array to `numbers`.
    pub(super) fn bytes(&mut self, array: &BinaryViewArray, numbers: &mut Vec<u32>) {
        let Values::Bytes(values) = &mut self.values else { return };
        numbers.reserve(array.len());
        for (row, view) in array.views().iter().enumerate() {
            if array.is_null(row) {
                numbers.push(NULL);
                continue;
            }
            let long = (*view as u32) as usize > INLINE;
            let (number, new) = if long {
                let value = array.value(row);
                let hash = self.state.hash_one(value);
                let key = u128::from(*view as u64) | u128::from(hash) << 64;
                let same = |number: u32| {
                    values.keys.get(number as usize) == Some(&key) && values.get(number) == value
                };
                let (number, new) = self.slots.find_or_insert(hash, same);
                if new {
                    values.keys.push(key);
                }
                (number, new)
            } else {
                let hash = self.state.hash_one(*view);
                let same = |number: u32| values.keys.get(number as usize) == Some(view);
                let (number, new) = self.slots.find_or_insert(hash, same);
                if new {
                    values.keys.push(*view);
                }
                (number, new)
            };
            if new {
                values.data.extend_from_slice(array.value(row));
                values.ends.push(values.data.len());
            }
            numbers.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn values_are_numbered_as_they_come(
            rows in proptest::collection::vec(proptest::option::of(proptest::collection::vec(0u8..3, 0..20)), 0..4000),
        ) {
            let array = BinaryViewArray::from_iter(rows.iter().map(|row| row.as_deref()));
            let mut interner = Interner::for_bytes();
            let mut numbers = Vec::new();
            interner.bytes(&array.slice(0, rows.len() / 2), &mut numbers);
            interner.bytes(&array.slice(rows.len() / 2, rows.len() - rows.len() / 2), &mut numbers);
            let mut known: HashMap<&[u8], u32> = HashMap::new();
            let expected: Vec<u32> = rows
                .iter()
                .map(|row| {
                    let next = known.len() as u32;
                    row.as_deref().map_or(NULL, |row| *known.entry(row).or_insert(next))
                })
                .collect();
            prop_assert_eq!(numbers, expected);
            let Values::Bytes(values) = interner.values() else { panic!() };
            prop_assert_eq!(interner.values().len(), known.len());
            for (value, number) in known {
                prop_assert_eq!(values.get(number), value);
            }
        }

        #[test]
        fn numbers_too(rows in proptest::collection::vec(any::<u16>(), 0..20_000)) {
            let mut interner = Interner::for_numbers();
            let numbers: Vec<u32> = rows.iter().map(|row| interner.number(u64::from(*row))).collect();
            let Values::Numbers(values) = interner.values() else { panic!() };
            for (number, row) in numbers.iter().zip(&rows) {
                prop_assert_eq!(values[*number as usize], u64::from(*row));
            }
            let distinct: std::collections::HashSet<u16> = rows.into_iter().collect();
            prop_assert_eq!(values.len(), distinct.len());
        }
    }
}
