//! Bob Jenkins' functions: lookup3 as in PostgreSQL, and lookup2 for 64 bits.

/// The three words of lookup3.
#[derive(Debug, Clone, Copy)]
struct Lookup3 {
    a: u32,
    b: u32,
    c: u32,
}

impl Lookup3 {
    fn new(length: usize, seed: u64) -> Self {
        let word = 0x9E37_79B9u32.wrapping_add(length as u32).wrapping_add(3_923_095);
        let mut words = Self { a: word, b: word, c: word };
        if seed != 0 {
            words.a = words.a.wrapping_add((seed >> 32) as u32);
            words.b = words.b.wrapping_add(seed as u32);
            words.mix();
        }
        words
    }

    fn mix(&mut self) {
        let Self { a, b, c } = self;
        let step = |x: &mut u32, y: &mut u32, z: u32, shift: u32| {
            *x = x.wrapping_sub(*y) ^ y.rotate_left(shift);
            *y = y.wrapping_add(z);
        };
        step(a, c, *b, 4);
        step(b, a, *c, 6);
        step(c, b, *a, 8);
        step(a, c, *b, 16);
        step(b, a, *c, 19);
        step(c, b, *a, 4);
    }

    fn finish(&mut self) {
        let Self { a, b, c } = self;
        let step = |x: &mut u32, y: u32, shift: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(shift));
        step(c, *b, 14);
        step(a, *c, 11);
        step(b, *a, 25);
        step(c, *b, 16);
        step(a, *c, 4);
        step(b, *a, 14);
        step(c, *b, 24);
    }
}

fn lookup3(bytes: &[u8], seed: u64) -> Lookup3 {
    let mut words = Lookup3::new(bytes.len(), seed);
    let (blocks, rest) = bytes.as_chunks::<12>();
    let word = |part: &[u8]| part.iter().rev().fold(0, |word: u32, byte| word << 8 | u32::from(*byte));
    for block in blocks {
        let (first, others) = block.split_at(4);
        let (second, third) = others.split_at(4);
        words.a = words.a.wrapping_add(word(first));
        words.b = words.b.wrapping_add(word(second));
        words.c = words.c.wrapping_add(word(third));
        words.mix();
    }
    let (first, others) = rest.split_at(rest.len().min(4));
    let (second, third) = others.split_at(others.len().min(4));
    words.a = words.a.wrapping_add(word(first));
    words.b = words.b.wrapping_add(word(second));
    // The lowest byte is reserved for the length.
    words.c = words.c.wrapping_add(word(third) << 8);
    words.finish();
    words
}

/// `hash_bytes` of PostgreSQL.
pub(in crate::placement::systems) fn hash_bytes(bytes: &[u8]) -> u32 {
    lookup3(bytes, 0).c
}

/// `hash_bytes_extended` of PostgreSQL.
pub(in crate::placement::systems) fn hash_bytes_extended(bytes: &[u8], seed: u64) -> u64 {
    let words = lookup3(bytes, seed);
    u64::from(words.b) << 32 | u64::from(words.c)
}

/// lookup2 for 64 bits with a seed, as in gutil.
pub(in crate::placement::systems) fn lookup2_64(bytes: &[u8], seed: u64) -> u64 {
    let (mut a, mut b, mut c) = (0xE08C_1D66_8B75_6F82u64, 0xE08C_1D66_8B75_6F82u64, seed);
    let word = |part: &[u8]| part.iter().rev().fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
    let mix = |a: &mut u64, b: &mut u64, c: &mut u64| {
        for (first, second, third) in [(43, 9, 8), (38, 23, 5), (35, 49, 11), (12, 18, 22)] {
            *a = a.wrapping_sub(*b).wrapping_sub(*c) ^ (*c >> first);
            *b = b.wrapping_sub(*c).wrapping_sub(*a) ^ (*a << second);
            *c = c.wrapping_sub(*a).wrapping_sub(*b) ^ (*b >> third);
        }
    };
    let (blocks, rest) = bytes.as_chunks::<24>();
    for block in blocks {
        let (first, others) = block.split_at(8);
        let (second, third) = others.split_at(8);
        a = a.wrapping_add(word(first));
        b = b.wrapping_add(word(second));
        c = c.wrapping_add(word(third));
        mix(&mut a, &mut b, &mut c);
    }
    c = c.wrapping_add(bytes.len() as u64);
    let (first, others) = rest.split_at(rest.len().min(8));
    let (second, third) = others.split_at(others.len().min(8));
    a = a.wrapping_add(word(first));
    b = b.wrapping_add(word(second));
    // The lowest byte is reserved for the length.
    c = c.wrapping_add(word(third) << 8);
    mix(&mut a, &mut b, &mut c);
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_hold() {
        // PostgreSQL: hashint4.
        for (number, hash) in
            [(0, -272_711_505), (1, -1_905_060_026), (2, 1_134_484_726), (123, -205_084_363)]
        {
            assert_eq!(hash_bytes(&i32::to_le_bytes(number)).cast_signed(), hash, "{number}");
        }
        // YugabyteDB: test_jenkins.cpp of its C++ driver.
        let bytes = |hex: &str| {
            let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            (0..hex.len()).step_by(2).map(digit).collect::<Vec<u8>>()
        };
        for (hex, hash) in [
            ("c7251d5d753a4e4622294d6c677aa82571", 1_789_751_740_810_280_356),
            (
                "838e7ef071ef9b3e4ae61260c0a1f9945a859bb1f68697e1ab87c8abc128d172730bda50e3e6f942",
                4_001_818_822_847_464_429,
            ),
        ] {
            assert_eq!(lookup2_64(&bytes(hex), 97), hash);
        }
    }
}
