//! XXH64 of whole keys, a batch at a time.

use arrow::array::ArrayRef;
use twox_hash::XxHash64;

use crate::placement::key_bytes::{KeyBytes, KeyColumn, PlacementError, ValueBytes};
use evenkeel_model::table::ColumnType;

/// The seed of YDB's placement hash.
const SEED: u64 = 0;

// The primes of XXH64 (Cyan4973/xxHash, doc/xxhash_spec.md, "XXH64 Algorithm Description").
const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME_4: u64 = 0x85EB_CA77_C2B2_AE63;
const PRIME_5: u64 = 0x27D4_EB2F_1656_67C5;

/// XXH64 of `bytes` with the seed of YDB.
#[must_use]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(SEED, bytes)
}

/// Inputs of at least this length are hashed in stripes, by the library.
const STRIPE: usize = 32;

/// XXH64 of the eight little-endian bytes of `value`: the plain algorithm with its loops unrolled.
#[inline]
fn hash_u64(value: u64) -> u64 {
    avalanche(mix_lane(SEED.wrapping_add(PRIME_5).wrapping_add(8), value))
}

/// XXH64 of inputs shorter than a stripe, as most keys are: the plain algorithm, fed with words.
struct ShortHash {
    hash: u64,
    /// Bytes that do not fill a lane yet; `held` is their number.
    pending: u64,
    held: u32,
}

impl ShortHash {
    /// Starts the hash of an input of `length` bytes, fewer than a stripe.
    #[inline]
    fn new(length: usize) -> Self {
        Self { hash: SEED.wrapping_add(PRIME_5).wrapping_add(length as u64), pending: 0, held: 0 }
    }

    /// Adds the `count` low bytes of `word`, at most eight; the others are 0.
    #[inline]
    fn word(&mut self, word: u64, count: u32) {
        self.pending |= word << (8 * self.held);
        let held = self.held + count;
        if held < 8 {
            self.held = held;
            return;
        }
        self.hash = mix_lane(self.hash, self.pending);
        // Keep the bytes that did not fit. If all fit, the shift by the full width returns `None`.
        self.pending = word.checked_shr(8 * (8 - self.held)).unwrap_or(0);
        self.held = held - 8;
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word), 8);
        }
        let mut last = 0;
        for byte in rest.iter().rev() {
            last = last << 8 | u64::from(*byte);
        }
        self.word(last, rest.len() as u32);
    }

    #[inline]
    fn finish(mut self) -> u64 {
        if self.held >= 4 {
            self.hash ^= u64::from(self.pending as u32).wrapping_mul(PRIME_1);
            self.hash = self.hash.rotate_left(23).wrapping_mul(PRIME_2).wrapping_add(PRIME_3);
            self.pending >>= 32;
            self.held -= 4;
        }
        for _ in 0..self.held {
            self.hash ^= (self.pending & 0xFF).wrapping_mul(PRIME_5);
            self.hash = self.hash.rotate_left(11).wrapping_mul(PRIME_1);
            self.pending >>= 8;
        }
        avalanche(self.hash)
    }
}

#[inline]
fn mix_lane(hash: u64, lane: u64) -> u64 {
    let lane = lane.wrapping_mul(PRIME_2).rotate_left(31).wrapping_mul(PRIME_1);
    (hash ^ lane).rotate_left(27).wrapping_mul(PRIME_1).wrapping_add(PRIME_4)
}

#[inline]
fn avalanche(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(PRIME_2);
    let hash = (hash ^ (hash >> 29)).wrapping_mul(PRIME_3);
    hash ^ (hash >> 32)
}

/// Returns the bytes of one row that are hashed.
pub(super) fn key_bytes(
    types: &[ColumnType],
    columns: &[ArrayRef],
    row: usize,
) -> Result<Vec<u8>, PlacementError> {
    let mut all = Vec::new();
    for (column, (column_type, array)) in types.iter().zip(columns).enumerate() {
        KeyColumn::new(column, *column_type, array)?.bytes().visit(row, |bytes| match bytes {
            ValueBytes::Word(word, count) => {
                all.extend_from_slice(word.to_le_bytes().get(..count as usize).unwrap_or_default());
            }
            ValueBytes::Slice(bytes) => all.extend_from_slice(bytes),
        });
    }
    Ok(all)
}

/// Returns the hash of every row's key. `columns` are the key columns in hash order, each with its
/// YDB type, all of equal length; the result has that length. Without columns there are no hashes.
///
/// # Errors
/// [`PlacementError`] if a column cannot be read as its type, or the lengths differ.
pub(super) fn hash_keys(columns: &[(ColumnType, ArrayRef)]) -> Result<Vec<u64>, PlacementError> {
    let keys = columns
        .iter()
        .enumerate()
        .map(|(column, (column_type, array))| KeyColumn::new(column, *column_type, array));
    let keys: Vec<KeyColumn> = keys.collect::<Result<_, _>>()?;
    hash_columns(&keys)
}

fn hash_columns(columns: &[KeyColumn]) -> Result<Vec<u64>, PlacementError> {
    let rows = columns.first().map_or(0, KeyColumn::rows);
    for (column, key) in columns.iter().enumerate() {
        if key.rows() != rows {
            return Err(PlacementError::RowCount { column, expected: rows, found: key.rows() });
        }
    }
    let keys: Vec<&KeyBytes> = columns.iter().map(KeyColumn::bytes).collect();
    if let [KeyBytes::W8(values, None)] = keys.as_slice() {
        return Ok(values.iter().map(|value| hash_u64(*value)).collect());
    }
    let mut buffer = Vec::new();
    Ok((0..rows)
        .map(|row| {
            let length: usize = keys.iter().map(|key| key.length(row)).sum();
            if length < STRIPE {
                let mut hash = ShortHash::new(length);
                for key in &keys {
                    key.visit(row, |bytes| match bytes {
                        ValueBytes::Word(word, count) => hash.word(word, count),
                        ValueBytes::Slice(bytes) => hash.bytes(bytes),
                    });
                }
                return hash.finish();
            }
            buffer.clear();
            for key in &keys {
                key.visit(row, |bytes| match bytes {
                    ValueBytes::Word(word, count) => {
                        buffer
                            .extend_from_slice(word.to_le_bytes().get(..count as usize).unwrap_or_default());
                    }
                    ValueBytes::Slice(bytes) => buffer.extend_from_slice(bytes),
                });
            }
            hash_bytes(&buffer)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors_of_xxh64_hold() {
        assert_eq!(hash_bytes(b""), 0xef46_db37_51d8_e999);
        assert_eq!(hash_bytes(b"a"), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(hash_bytes(b"abc"), 0x44bc_2cf5_ad77_0999);
    }

    proptest::proptest! {
        #[test]
        fn the_unrolled_hash_of_eight_bytes_equals_the_plain_one(value: u64) {
            proptest::prop_assert_eq!(hash_u64(value), hash_bytes(&value.to_le_bytes()));
        }

        #[test]
        fn the_hash_of_short_inputs_equals_the_plain_one(
            bytes in proptest::collection::vec(0u8.., 0..STRIPE), cuts in proptest::collection::vec(1usize..10, STRIPE),
        ) {
            let mut hash = ShortHash::new(bytes.len());
            let (mut rest, mut cuts) = (bytes.as_slice(), cuts.into_iter());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(cuts.next().unwrap().min(rest.len()));
                hash.bytes(piece);
                rest = after;
            }
            proptest::prop_assert_eq!(hash.finish(), hash_bytes(&bytes));
        }
    }
}
