//! CityHash64 of version 1.0.2 (Pike and Alakuijala); later versions changed it.

const K0: u64 = 0xC3A5_C85C_97CB_3127;
const K1: u64 = 0xB492_B66F_BE98_F273;
const K2: u64 = 0x9AE1_6A3B_2F90_404F;
const K3: u64 = 0xC949_D7C7_509E_6557;

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

fn half_word(bytes: &[u8], at: usize) -> u64 {
    let half = bytes.get(at..).and_then(<[u8]>::first_chunk);
    half.map_or(0, |half| u64::from(u32::from_le_bytes(*half)))
}

fn fold(word: u64) -> u64 {
    word ^ (word >> 47)
}

/// Joins two words into one.
pub(in crate::placement::systems) fn join(low: u64, high: u64) -> u64 {
    const FACTOR: u64 = 0x9DDF_EA08_EB38_2D69;
    let a = fold((low ^ high).wrapping_mul(FACTOR));
    fold((high ^ a).wrapping_mul(FACTOR)).wrapping_mul(FACTOR)
}

/// CityHash64.
pub(in crate::placement::systems) fn city64(bytes: &[u8]) -> u64 {
    match bytes.len() {
        0..=16 => hash_up_to_16(bytes),
        17..=32 => hash_up_to_32(bytes),
        33..=64 => hash_up_to_64(bytes),
        _ => hash_long(bytes),
    }
}

fn hash_up_to_16(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    match bytes {
        [] => K2,
        _ if length > 8 => {
            let (a, b) = (word(bytes, 0), word(bytes, length - 8));
            join(a, b.wrapping_add(length as u64).rotate_right(length as u32)) ^ b
        }
        _ if length >= 4 => {
            join((length as u64).wrapping_add(half_word(bytes, 0) << 3), half_word(bytes, length - 4))
        }
        [first, ..] => {
            let middle = bytes.get(length / 2).unwrap_or(first);
            let last = bytes.last().unwrap_or(first);
            let y = u64::from(*first) + (u64::from(*middle) << 8);
            let z = length as u64 + (u64::from(*last) << 2);
            fold(y.wrapping_mul(K2) ^ z.wrapping_mul(K3)).wrapping_mul(K2)
        }
    }
}

fn hash_up_to_32(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    let a = word(bytes, 0).wrapping_mul(K1);
    let b = word(bytes, 8);
    let c = word(bytes, length - 8).wrapping_mul(K2);
    let d = word(bytes, length - 16).wrapping_mul(K0);
    join(
        a.wrapping_sub(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d),
        a.wrapping_add((b ^ K3).rotate_right(20)).wrapping_sub(c).wrapping_add(length as u64),
    )
}

fn hash_up_to_64(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    // Mixes the first or the last half, whose first word is already mixed in.
    let half = |a: u64, first: usize, z: u64, last: u64| {
        let (b, mut c) = (a.wrapping_add(z).rotate_right(52), a.rotate_right(37));
        let a = a.wrapping_add(word(bytes, first));
        c = c.wrapping_add(a.rotate_right(7));
        let a = a.wrapping_add(last);
        (a.wrapping_add(z), b.wrapping_add(a.rotate_right(31)).wrapping_add(c))
    };
    let a =
        word(bytes, 0).wrapping_add((length as u64).wrapping_add(word(bytes, length - 16)).wrapping_mul(K0));
    let (v_first, v_second) = half(a, 8, word(bytes, 24), word(bytes, 16));
    let a = word(bytes, 16).wrapping_add(word(bytes, length - 32));
    let (w_first, w_second) = half(a, length - 24, word(bytes, length - 8), word(bytes, length - 16));
    let r = fold(
        v_first
            .wrapping_add(w_second)
            .wrapping_mul(K2)
            .wrapping_add(w_first.wrapping_add(v_second).wrapping_mul(K0)),
    );
    fold(r.wrapping_mul(K0).wrapping_add(v_second)).wrapping_mul(K2)
}

/// Mixes the four words at `at` with two seeds.
fn weak(bytes: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let z = word(bytes, at + 24);
    let a = a.wrapping_add(word(bytes, at));
    let mut b = b.wrapping_add(a).wrapping_add(z).rotate_right(21);
    let c = a;
    let a = a.wrapping_add(word(bytes, at + 8)).wrapping_add(word(bytes, at + 16));
    b = b.wrapping_add(a.rotate_right(44));
    (a.wrapping_add(z), b.wrapping_add(c))
}

fn hash_long(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    let mut x = word(bytes, 0);
    let mut y = word(bytes, length - 16) ^ K1;
    let mut z = word(bytes, length - 56) ^ K0;
    let mut v = weak(bytes, length - 64, length as u64, y);
    let mut w = weak(bytes, length - 32, (length as u64).wrapping_mul(K1), K0);
    z = z.wrapping_add(fold(v.1).wrapping_mul(K1));
    x = z.wrapping_add(x).rotate_right(39).wrapping_mul(K1);
    y = y.rotate_right(33).wrapping_mul(K1);
    for at in (0..(length - 1) & !63).step_by(64) {
        let sum = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(word(bytes, at + 16));
        x = sum.rotate_right(37).wrapping_mul(K1) ^ w.1;
        let sum = y.wrapping_add(v.1).wrapping_add(word(bytes, at + 48));
        y = sum.rotate_right(42).wrapping_mul(K1) ^ v.0;
        z = (z ^ w.0).rotate_right(33);
        v = weak(bytes, at, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        w = weak(bytes, at + 32, z.wrapping_add(w.1), y);
        (x, z) = (z, x);
    }
    join(
        join(v.0, w.0).wrapping_add(fold(y).wrapping_mul(K1)).wrapping_add(z),
        join(v.1, w.1).wrapping_add(x),
    )
}
