//! Fingerprint64 of FarmHash, the function of `FARM_FINGERPRINT` (Pike and Alakuijala, 2014;
//! `farmhashna` of the reference code).

const K0: u64 = 0xC3A5_C85C_97CB_3127;
const K1: u64 = 0xB492_B66F_BE98_F273;
const K2: u64 = 0x9AE1_6A3B_2F90_404F;
/// Number of bytes mixed per step in longer inputs.
const BLOCK: usize = 64;

/// Returns the eight bytes at a position as a number.
fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

fn half_word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u64::from(u32::from_le_bytes(*word)))
}

fn fold(word: u64) -> u64 {
    word ^ (word >> 47)
}

/// Joins two words into one.
fn join(u: u64, v: u64, factor: u64) -> u64 {
    let a = fold((u ^ v).wrapping_mul(factor));
    fold((v ^ a).wrapping_mul(factor)).wrapping_mul(factor)
}

/// Returns the fingerprint of bytes.
pub(super) fn fingerprint(bytes: &[u8]) -> u64 {
    match bytes.len() {
        0..=16 => hash_up_to_16(bytes),
        17..=32 => hash_up_to_32(bytes),
        33..=64 => hash_up_to_64(bytes),
        _ => hash_long(bytes),
    }
}

fn hash_up_to_16(bytes: &[u8]) -> u64 {
    let length = bytes.len() as u64;
    let factor = factor_of(bytes);
    match bytes {
        [] => K2,
        [first, .., last] | [first @ last] if bytes.len() < 4 => {
            let middle = bytes.get(bytes.len() / 2).copied().unwrap_or(*first);
            let y = u64::from(*first) + (u64::from(middle) << 8);
            let z = length + (u64::from(*last) << 2);
            fold(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
        }
        _ if bytes.len() < 8 => {
            let (a, b) = (half_word(bytes, 0), half_word(bytes, bytes.len() - 4));
            join(length.wrapping_add(a << 3), b, factor)
        }
        _ => {
            let a = word(bytes, 0).wrapping_add(K2);
            let b = word(bytes, bytes.len() - 8);
            let c = b.rotate_right(37).wrapping_mul(factor).wrapping_add(a);
            let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(factor);
            join(c, d, factor)
        }
    }
}

/// Returns the factor for the length of the input.
fn factor_of(bytes: &[u8]) -> u64 {
    K2.wrapping_add(bytes.len() as u64 * 2)
}

/// Mixes the first and the last sixteen of 17 to 64 bytes into two words; `a` is the first word,
/// multiplied.
fn ends(bytes: &[u8], a: u64) -> (u64, u64) {
    let length = bytes.len();
    let b = word(bytes, 8);
    let c = word(bytes, length - 8).wrapping_mul(factor_of(bytes));
    let d = word(bytes, length - 16).wrapping_mul(K2);
    let first = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let second = a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c);
    (first, second)
}

fn hash_up_to_32(bytes: &[u8]) -> u64 {
    let (first, second) = ends(bytes, word(bytes, 0).wrapping_mul(K1));
    join(first, second, factor_of(bytes))
}

fn hash_up_to_64(bytes: &[u8]) -> u64 {
    let (length, factor) = (bytes.len(), factor_of(bytes));
    let a = word(bytes, 0).wrapping_mul(K2);
    let (y, second) = ends(bytes, a);
    let z = join(y, second, factor);
    let e = word(bytes, 16).wrapping_mul(factor);
    let f = word(bytes, 24);
    let g = y.wrapping_add(word(bytes, length - 32)).wrapping_mul(factor);
    let h = z.wrapping_add(word(bytes, length - 24)).wrapping_mul(factor);
    let first = e.wrapping_add(f).rotate_right(43).wrapping_add(g.rotate_right(30)).wrapping_add(h);
    let second = e.wrapping_add(f.wrapping_add(a).rotate_right(18)).wrapping_add(g);
    join(first, second, factor)
}

/// State after some blocks.
struct State {
    x: u64,
    y: u64,
    z: u64,
    v: (u64, u64),
    w: (u64, u64),
}

impl State {
    /// Mixes a block in; the last one uses other factors.
    fn mix(&mut self, block: &[u8], factor: u64, weight: u64) {
        let Self { x, y, z, v, w } = self;
        *x = x
            .wrapping_add(*y)
            .wrapping_add(v.0)
            .wrapping_add(word(block, 8))
            .rotate_right(37)
            .wrapping_mul(factor);
        *y = y.wrapping_add(v.1).wrapping_add(word(block, 48)).rotate_right(42).wrapping_mul(factor);
        *x ^= w.1.wrapping_mul(weight);
        *y = y.wrapping_add(v.0.wrapping_mul(weight)).wrapping_add(word(block, 40));
        *z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(factor);
        *v = pair(block, v.1.wrapping_mul(factor), x.wrapping_add(w.0));
        let upper = block.get(BLOCK / 2..).unwrap_or_default();
        *w = pair(upper, z.wrapping_add(w.1), y.wrapping_add(word(block, 16)));
        std::mem::swap(x, z);
    }
}

/// Mixes four words and two seeds into two words.
fn pair(bytes: &[u8], a: u64, b: u64) -> (u64, u64) {
    let a = a.wrapping_add(word(bytes, 0));
    let last = word(bytes, 24);
    let b = b.wrapping_add(a).wrapping_add(last).rotate_right(21);
    let sum = a.wrapping_add(word(bytes, 8)).wrapping_add(word(bytes, 16));
    (sum.wrapping_add(last), b.wrapping_add(sum.rotate_right(44)).wrapping_add(a))
}

fn hash_long(bytes: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let y = SEED.wrapping_mul(K1).wrapping_add(113);
    let z = fold(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2);
    let x = SEED.wrapping_mul(K2).wrapping_add(word(bytes, 0));
    let mut state = State { x, y, z, v: (0, 0), w: (0, 0) };
    // If the length is a multiple of 64, the last block is mixed only at the end.
    let rest = (bytes.len() - 1) % BLOCK;
    for block in bytes.chunks_exact(BLOCK).take((bytes.len() - 1) / BLOCK) {
        state.mix(block, K1, 1);
    }
    let factor = K1.wrapping_add((state.z & 0xFF) << 1);
    state.w.0 = state.w.0.wrapping_add(rest as u64);
    state.v.0 = state.v.0.wrapping_add(state.w.0);
    state.w.0 = state.w.0.wrapping_add(state.v.0);
    let last = bytes.get(bytes.len() - BLOCK..).unwrap_or_default();
    state.mix(last, factor, 9);
    let State { x, y, z, v, w } = state;
    let first = join(v.0, w.0, factor).wrapping_add(fold(y).wrapping_mul(K0)).wrapping_add(z);
    let second = join(v.1, w.1, factor).wrapping_add(x);
    join(first, second, factor)
}
