//! Values remembered for the keys that may be the heaviest.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use crate::sketch::counter::result::HeavyKey;
use evenkeel_model::wire::{Wire, WireError, WireReader, put_words};

/// Number of keys whose values are kept once the counter has found the heaviest.
const REMEMBERED: usize = 1024;
/// Number of values held before all but the [`REMEMBERED`] heaviest are dropped.
const MAX_VALUES: usize = 4 * REMEMBERED;

/// Hasher for identities, which are already mixed; hashing them again would only cost time.
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

/// Order of keys by weight: more rows are heavier, and among equal rows the smaller identity is
/// heavier. It therefore depends neither on the order of rows nor on the counter.
type Rank = (u64, u64);

fn rank(identity: u64, rows: u64) -> Rank {
    (rows, !identity)
}

/// The heaviest keys; each key is offered once with all its rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Heaviest {
    most: usize,
    /// Identities and rows, the heaviest first.
    keys: Vec<(u64, u64)>,
}

impl Heaviest {
    pub(super) fn new(most: usize) -> Self {
        Self { most, keys: Vec::new() }
    }

    pub(super) fn offer(&mut self, identity: u64, rows: u64) {
        let heavier = |held: &(u64, u64)| rank(held.0, held.1) > rank(identity, rows);
        if self.keys.len() >= self.most && self.keys.last().is_none_or(heavier) {
            return;
        }
        self.keys.insert(self.keys.partition_point(heavier), (identity, rows));
        self.keys.truncate(self.most);
    }

    pub(super) fn merge(&mut self, other: Self) {
        other.keys.into_iter().for_each(|(identity, rows)| self.offer(identity, rows));
    }
}

/// Values of the keys that may be the heaviest. A key is remembered when it becomes heavier than
/// the floor, and forgotten only if [`REMEMBERED`] others are heavier. The heaviest keys are
/// therefore known at the end, except for keys whose rows are rarely counted together.
#[derive(Debug, Clone)]
pub(super) struct Values<V> {
    by_identity: HashMap<u64, Value<V>, BuildHasherDefault<Mixed>>,
    floor: Rank,
}

#[derive(Debug, Clone)]
struct Value<V> {
    value: V,
    /// Lower bound of the key's rows.
    rows: u64,
}

impl<V> Default for Values<V> {
    fn default() -> Self {
        // Any key with a row exceeds the initial floor.
        Self { by_identity: HashMap::default(), floor: (0, u64::MAX) }
    }
}

impl<V: Clone> Values<V> {
    /// Whether a key with `rows` rows so far should be remembered.
    #[inline]
    pub(super) fn is_heavy(&self, identity: u64, rows: u64) -> bool {
        rank(identity, rows) > self.floor
    }

    /// Whether that became true only with the last `more` of its rows. The identity is rarely
    /// needed.
    #[inline]
    pub(super) fn comes_to_be_heavy(&self, rows: u64, more: u64, identity: impl FnOnce() -> u64) -> bool {
        if rows < self.floor.0 || rows - more > self.floor.0 {
            return false;
        }
        let identity = identity();
        self.is_heavy(identity, rows) && !self.is_heavy(identity, rows - more)
    }

    pub(super) fn are_many(&self) -> bool {
        self.by_identity.len() >= MAX_VALUES
    }

    pub(super) fn remember(&mut self, identity: u64, rows: u64, value: impl FnOnce() -> V) {
        let known = self.by_identity.entry(identity).or_insert_with(|| Value { value: value(), rows });
        known.rows = known.rows.max(rows);
    }

    /// Updates the number of rows of the keys.
    pub(super) fn keep_rows(&mut self, rows_of: impl Fn(u64) -> u64) {
        for (identity, value) in &mut self.by_identity {
            value.rows = value.rows.max(rows_of(*identity));
        }
    }

    /// Forgets all but the heaviest keys, and raises the floor to the lightest of these.
    pub(super) fn forget_light(&mut self, rows_of: impl Fn(u64) -> u64) {
        self.keep_rows(rows_of);
        let mut ranks: Vec<Rank> =
            self.by_identity.iter().map(|(identity, value)| rank(*identity, value.rows)).collect();
        ranks.sort_unstable_by(|a, b| b.cmp(a));
        let Some(lightest) = ranks.get(REMEMBERED - 1) else { return };
        self.by_identity.retain(|identity, value| rank(*identity, value.rows) >= *lightest);
        self.floor = *lightest;
    }

    /// Adds the values remembered for other rows.
    pub(super) fn merge(&mut self, other: Self) {
        for (identity, more) in other.by_identity {
            match self.by_identity.entry(identity) {
                Entry::Occupied(known) => known.into_mut().rows += more.rows,
                Entry::Vacant(free) => {
                    free.insert(more);
                }
            }
        }
    }

    /// Returns the heaviest of the remembered keys. `rows_of` returns rows and error.
    pub(super) fn heaviest(&self, most: usize, rows_of: impl Fn(u64) -> (u64, u64)) -> Vec<HeavyKey<V>> {
        let mut heaviest = Heaviest::new(most);
        self.by_identity.keys().for_each(|identity| heaviest.offer(*identity, rows_of(*identity).0));
        let mut keys = self.with_values(heaviest);
        keys.iter_mut().for_each(|key| key.error = rows_of(key.identity).1);
        keys
    }

    /// Returns the heaviest of all keys with their remembered values.
    pub(super) fn with_values(&self, heaviest: Heaviest) -> Vec<HeavyKey<V>> {
        let key = |(identity, rows): (u64, u64)| HeavyKey {
            identity,
            value: self.by_identity.get(&identity).map(|known| known.value.clone()),
            rows,
            error: 0,
        };
        heaviest.keys.into_iter().map(key).collect()
    }
}

/// Keys are sorted by identity, so that equal values give equal bytes.
impl<V: Wire> Wire for Values<V> {
    fn put(&self, bytes: &mut Vec<u8>) {
        let mut known: Vec<(&u64, &Value<V>)> = self.by_identity.iter().collect();
        known.sort_unstable_by_key(|(identity, _)| **identity);
        put_words(known.iter().map(|(identity, _)| **identity), known.len(), bytes);
        for (_, value) in known {
            value.rows.put(bytes);
            value.value.put(bytes);
        }
        self.floor.put(bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let mut by_identity = HashMap::default();
        for identity in left.words()? {
            let rows = u64::take(left)?;
            by_identity.insert(identity, Value { value: V::take(left)?, rows });
        }
        Ok(Self { by_identity, floor: Rank::take(left)? })
    }
}
