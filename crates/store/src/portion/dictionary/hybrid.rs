//! Encodes small numbers as runs and packed bits: Parquet's "RLE / bit-packing hybrid"
//! (apache/parquet-format, Encodings.md).

/// Smallest number of equal values written as one run. Packed bits are in groups of eight.
const GROUP: usize = 8;

/// Returns the number of bits that hold every number up to `largest`, at least one.
pub(in crate::portion) fn width_of(largest: u32) -> u32 {
    (u32::BITS - largest.leading_zeros()).max(1)
}

/// Appends `values`, each below 2^`width`, to `out`.
pub(in crate::portion) fn encode(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let mut rest = values;
    let mut unpacked = values;
    let mut groups = 0;
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|value| *value == first).count();
        if run >= GROUP {
            pack(unpacked, groups, width, out);
            varint((run as u64) << 1, out);
            let bytes = first.to_le_bytes();
            out.extend_from_slice(bytes.get(..width.div_ceil(8) as usize).unwrap_or_default());
            rest = rest.get(run..).unwrap_or_default();
            (unpacked, groups) = (rest, 0);
        } else {
            rest = rest.get(GROUP..).unwrap_or_default();
            groups += 1;
        }
    }
    pack(unpacked, groups, width, out);
}

/// Appends the first `groups` groups of `values`, the last one padded with zeros.
fn pack(values: &[u32], groups: usize, width: u32, out: &mut Vec<u8>) {
    if groups == 0 {
        return;
    }
    varint((groups as u64) << 1 | 1, out);
    out.reserve(groups * width as usize);
    let count = groups * GROUP;
    let present = values.get(..count.min(values.len())).unwrap_or_default();
    let filling = std::iter::repeat_n(&0u32, count - present.len());
    let (mut bits, mut held) = (0u64, 0u32);
    for value in present.iter().chain(filling) {
        bits |= u64::from(*value) << held;
        held += width;
        if held >= 32 {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            held -= 32;
        }
    }
    // A group has as many bytes as the width has bits.
    let bytes = bits.to_le_bytes();
    out.extend_from_slice(bytes.get(..held.div_ceil(8) as usize).unwrap_or_default());
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    /// Decodes by the letter of the specification, bit by bit.
    fn decode(mut bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
        let mut values = Vec::new();
        let mut next = |n: usize| {
            let (head, tail) = bytes.split_at(n);
            bytes = tail;
            head.to_vec()
        };
        while values.len() < count {
            let (mut header, mut shift) = (0u64, 0);
            loop {
                let byte = next(1)[0];
                header |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            if header & 1 == 1 {
                let packed = next((header >> 1) as usize * width as usize);
                let bit = |at: usize| u32::from(packed[at / 8] >> (at % 8) & 1);
                for value in 0..(header >> 1) as usize * 8 {
                    let first = value * width as usize;
                    values.push((0..width as usize).map(|at| bit(first + at) << at).sum());
                }
            } else {
                let mut value = next(width.div_ceil(8) as usize);
                value.resize(4, 0);
                let value = u32::from_le_bytes(value.try_into().unwrap());
                values.extend(std::iter::repeat_n(value, (header >> 1) as usize));
            }
        }
        assert!(bytes.is_empty());
        values.truncate(count);
        values
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            runs in proptest::collection::vec((0u32..=u32::MAX, 1usize..40, proptest::bool::ANY), 0..40), width in 1u32..=32,
        ) {
            let most = u32::MAX >> (32 - width);
            let mut values = Vec::new();
            for (value, length, same) in runs {
                values.extend((0..length as u32).map(|i| if same { value } else { value.wrapping_mul(i + 7) } & most));
            }
            let mut bytes = Vec::new();
            encode(&values, width, &mut bytes);
            prop_assert_eq!(decode(&bytes, width, values.len()), values);
        }
    }

    #[test]
    fn widths_hold_the_largest_value() {
        assert_eq!([0, 1, 2, 3, 255, 256, u32::MAX].map(width_of), [1, 1, 2, 2, 8, 9, 32]);
    }
}
