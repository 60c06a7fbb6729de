//! The MurmurHash family (Appleby), in the variants that systems have made of it.

use crate::placement::systems::hashes::fmix64;

/// Rule for mixing in the bytes after the last whole word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::placement::systems) enum Tail {
    /// Together, as in the reference code.
    Together,
    /// Each by itself, as a signed number, like a whole word.
    Each,
    /// Together, but as signed numbers.
    Signed,
}

/// MurmurHash3_x86_32.
#[inline]
pub(in crate::placement::systems) fn murmur3_32(bytes: &[u8], seed: u32, tail: Tail) -> u32 {
    let mix = |word: u32| word.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593);
    let add =
        |hash: u32, word: u32| (hash ^ mix(word)).rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64);
    let (words, rest) = bytes.as_chunks::<4>();
    let mut hash = words.iter().fold(seed, |hash, word| add(hash, u32::from_le_bytes(*word)));
    match tail {
        Tail::Together if rest.is_empty() => {}
        Tail::Together => {
            hash ^= mix(rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)));
        }
        Tail::Signed if rest.is_empty() => {}
        Tail::Signed => {
            let signed = rest.iter().zip((0..).step_by(8));
            hash ^= mix(signed.fold(0, |word, (byte, shift)| {
                word ^ i32::from(byte.cast_signed()).cast_unsigned() << shift
            }));
        }
        Tail::Each => {
            let signed = |byte: &u8| i32::from(byte.cast_signed()).cast_unsigned();
            hash = rest.iter().fold(hash, |hash, byte| add(hash, signed(byte)));
        }
    }
    hash ^= bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xC2B2_AE35);
    hash ^ (hash >> 16)
}

/// The first 64 bits of MurmurHash3_x64_128 as in Cassandra: the bytes after the last block are
/// signed.
pub(in crate::placement::systems) fn murmur3_cassandra(bytes: &[u8]) -> i64 {
    const C1: u64 = 0x87C3_7B91_1142_53D5;
    const C2: u64 = 0x4CF5_AD43_2745_937F;
    let mix_1 = |word: u64| word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix_2 = |word: u64| word.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        let (low, high) = block.split_at(8);
        let word = |half: &[u8]| half.first_chunk().map_or(0, |half| u64::from_le_bytes(*half));
        h1 = (h1 ^ mix_1(word(low))).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52DC_E729);
        h2 = (h2 ^ mix_2(word(high))).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5AB5);
    }
    let signed = |byte: u8| i64::from(byte.cast_signed()).cast_unsigned();
    let word = |part: &[u8]| {
        part.iter().zip((0..).step_by(8)).fold(0, |word: u64, (byte, shift)| word ^ (signed(*byte) << shift))
    };
    let (low, high) = rest.split_at(rest.len().min(8));
    if !high.is_empty() {
        h2 ^= mix_2(word(high));
    }
    if !low.is_empty() {
        h1 ^= mix_1(word(low));
    }
    let length = bytes.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    fmix64(h1).wrapping_add(fmix64(h2)).cast_signed()
}

/// MurmurHash2 of 32 bits.
pub(in crate::placement::systems) fn murmur2_32(bytes: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5BD1_E995;
    let (words, rest) = bytes.as_chunks::<4>();
    let mut hash = seed ^ bytes.len() as u32;
    for word in words {
        let word = u32::from_le_bytes(*word).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (word ^ (word >> 24)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        hash ^= rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// MurmurHash64A.
pub(in crate::placement::systems) fn murmur2_64(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xC6A4_A793_5BD1_E995;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    for word in words {
        let word = u64::from_le_bytes(*word).wrapping_mul(M);
        hash = (hash ^ (word ^ (word >> 47)).wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        hash ^= rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 47)).wrapping_mul(M);
    hash ^ (hash >> 47)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_hold() {
        // kudu, src/kudu/util/hash_util-test.cc.
        assert_eq!(murmur2_64(b"ab", 0), 7_115_271_465_109_541_368);
        assert_eq!(murmur2_64(b"abcdefg", 0), 2_601_573_339_036_254_301);
        assert_eq!(murmur2_64(b"quick brown fox", 42), 3_575_930_248_840_144_026);
        // Iceberg, appendix B of its specification.
        assert_eq!(murmur3_32(b"iceberg", 0, Tail::Together), 1_210_000_089);
        // Without remaining bytes, both tails give the same hash.
        assert_eq!(murmur3_32(b"eight by", 42, Tail::Each), murmur3_32(b"eight by", 42, Tail::Together));
    }
}
