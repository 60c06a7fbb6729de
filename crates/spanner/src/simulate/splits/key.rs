//! Keys in bytes that sort like the keys, and ranges of them.

/// Key of a row, as bytes that sort like the key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'a> {
    /// All columns of the key.
    pub(crate) bytes: &'a [u8],
    /// Length of the first column.
    pub(crate) lead: usize,
    /// Length of the part that is the key of the row's root; the length of the whole key if the row
    /// is a root itself.
    pub(crate) root: usize,
}

/// Start key of a split.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StartKey {
    /// Whole key, or the part that distinguishes it from the preceding key; empty if the split
    /// begins before all keys.
    pub(crate) bytes: Vec<u8>,
    /// Length of the first column.
    pub(crate) lead: usize,
}

impl StartKey {
    /// Returns the first column.
    pub(crate) fn first_column(&self) -> &[u8] {
        self.bytes.get(..self.lead).unwrap_or(&self.bytes)
    }
}

/// Half-open range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    /// First key of the range.
    pub(crate) start: Vec<u8>,
    /// First key after the range; `None` if the range has no end.
    pub(crate) end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Returns the range of all keys that begin with `prefix`.
    pub(crate) fn with_prefix(prefix: &[u8]) -> Self {
        let raised = prefix.iter().rposition(|byte| *byte < u8::MAX);
        let end = raised.and_then(|at| {
            let mut end = prefix.get(..=at)?.to_vec();
            *end.last_mut()? += 1;
            Some(end)
        });
        Self { start: prefix.to_vec(), end }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn the_range_of_a_prefix_has_the_keys_that_begin_with_it(
            prefix in proptest::collection::vec(proptest::sample::select(vec![0u8, 1, 254, 255]), 0..4),
            key in proptest::collection::vec(any::<u8>(), 0..6), is_inside: bool,
        ) {
            let key = if is_inside { [prefix.clone(), key].concat() } else { key };
            let KeyRange { start, end } = KeyRange::with_prefix(&prefix);
            let is_in_range = start <= key && end.is_none_or(|end| key < end);
            prop_assert_eq!(is_in_range, key.starts_with(&prefix));
        }
    }
}
