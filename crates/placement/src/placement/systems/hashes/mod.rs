//! Hash functions in variants that no well-maintained library offers.

pub(super) mod city;
pub(super) mod jenkins;
pub(super) mod murmur;

/// FNV-1 of 32 bits (Fowler, Noll and Vo): multiplies first.
pub(super) fn fnv1_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |hash: u32, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte))
}

/// A multiplication finalizer of MurmurHash3 for 64 bits.
pub(super) fn fmix64(word: u64) -> u64 {
    let word = (word ^ (word >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let word = (word ^ (word >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    word ^ (word >> 33)
}
