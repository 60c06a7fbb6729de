//! What is remembered of the keys that may be the heaviest.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use ahash::AHashSet;

use crate::sketch::counter::HeavyKey;
use crate::sketch::counter::spilled::Totals;

/// Keys whose values are remembered once the counter has found its heaviest.
const REMEMBERED: usize = 1024;
/// Values that are held before all but the [`REMEMBERED`] heaviest are forgotten.
const MOST_VALUES: usize = 4 * REMEMBERED;

/// An identity is mixed already; hashing it again would only cost time.
#[derive(Debug, Default, Clone, Copy)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = crate::sketch::fold(self.0, u64::from(*byte));
        }
    }

    fn write_u64(&mut self, identity: u64) {
        self.0 = identity;
    }
}

/// Values of the keys that may be the heaviest. A key is remembered when its count rises above the floor, and forgotten only
/// when so many others have more rows. So the heaviest are known in the end, but for keys with as many rows as the floor, and for
/// keys whose rows are seldom counted together.
#[derive(Debug, Clone)]
pub(super) struct Values<V> {
    by_identity: HashMap<u64, Value<V>, BuildHasherDefault<Mixed>>,
    floor: u64,
    seen: u64,
}

#[derive(Debug, Clone)]
struct Value<V> {
    value: V,
    /// Order in which values were first seen, which breaks ties.
    order: u64,
    /// Rows that the key is known to have, at least.
    rows: u64,
}

impl<V> Default for Values<V> {
    fn default() -> Self {
        Self { by_identity: HashMap::default(), floor: 0, seen: 0 }
    }
}

impl<V: Clone> Values<V> {
    /// Keys with more rows are remembered.
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    pub(super) fn are_many(&self) -> bool {
        self.by_identity.len() >= MOST_VALUES
    }

    pub(super) fn remember(&mut self, identity: u64, rows: u64, value: impl FnOnce() -> V) {
        let seen = &mut self.seen;
        let known = self.by_identity.entry(identity).or_insert_with(|| {
            *seen += 1;
            Value { value: value(), order: *seen, rows }
        });
        known.rows = known.rows.max(rows);
    }

    /// Notes how many rows the keys have.
    pub(super) fn keep_rows(&mut self, rows_of: impl Fn(u64) -> u64) {
        for (identity, value) in &mut self.by_identity {
            value.rows = value.rows.max(rows_of(*identity));
        }
    }

    /// Forgets all but the heaviest, and raises the floor to the lightest of these.
    pub(super) fn forget_light(&mut self, rows_of: impl Fn(u64) -> u64) {
        self.keep_rows(rows_of);
        let mut all: Vec<(u64, u64, u64)> =
            self.by_identity.iter().map(|(identity, value)| (value.rows, value.order, *identity)).collect();
        all.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, _, identity) in all.iter().skip(REMEMBERED) {
            self.by_identity.remove(identity);
        }
        self.floor = all.get(REMEMBERED - 1).map_or(0, |(rows, _, _)| *rows);
    }

    /// Adds what was remembered of later rows.
    pub(super) fn merge(&mut self, other: Self) {
        let mut values: Vec<_> = other.by_identity.into_iter().collect();
        values.sort_unstable_by_key(|(_, value)| value.order);
        for (identity, value) in values {
            self.remember(identity, value.rows, || value.value);
        }
    }

    pub(super) fn identities(&self) -> AHashSet<u64> {
        self.by_identity.keys().copied().collect()
    }

    /// The heaviest of the remembered keys. `rows_of` gives rows and error.
    pub(super) fn heaviest(&self, most: usize, rows_of: impl Fn(u64) -> (u64, u64)) -> Vec<HeavyKey<V>> {
        let mut all: Vec<(u64, HeavyKey<V>)> = self
            .by_identity
            .iter()
            .map(|(identity, value)| {
                let (rows, error) = rows_of(*identity);
                let key = HeavyKey { identity: *identity, value: Some(value.value.clone()), rows, error };
                (value.order, key)
            })
            .collect();
        all.sort_by(|(first, a), (second, b)| b.rows.cmp(&a.rows).then(first.cmp(second)));
        all.into_iter().take(most).map(|(_, key)| key).collect()
    }

    /// The heaviest of all keys, remembered or not.
    pub(super) fn heaviest_of(&self, most: usize, totals: &Totals) -> Vec<HeavyKey<V>> {
        let remembered =
            self.heaviest(most, |identity| (totals.rows_of.get(&identity).copied().unwrap_or(0), 0));
        let unknown = |identity: &u64| !self.by_identity.contains_key(identity);
        let others = totals.heaviest.iter().filter(|(identity, _)| unknown(identity));
        let others = others.map(|(identity, rows)| HeavyKey {
            identity: *identity,
            value: None,
            rows: *rows,
            error: 0,
        });
        let mut all: Vec<HeavyKey<V>> = remembered.into_iter().chain(others).collect();
        // Stable: of keys with equally many rows, those that are remembered come first.
        all.sort_by_key(|key| std::cmp::Reverse(key.rows));
        all.truncate(most);
        all
    }
}
