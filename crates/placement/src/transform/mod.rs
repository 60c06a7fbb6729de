//! Key transforms of Spanner, exact: the results of its functions and generators.
//!
//! Sources: the GoogleSQL reference of `FARM_FINGERPRINT` and `BIT_REVERSE`; the bit-reversed
//! positive sequence of `CREATE SEQUENCE`; RFC 9562 for UUIDs.

mod fingerprint;
mod generated;
mod text;

use arrow::array::{ArrayRef, Int64Array};
use arrow::error::ArrowError;

pub use crate::transform::generated::{BitReversedSequence, UuidKind, UuidSource};
pub use crate::transform::text::instant as instant_text;

use crate::transform::text::Texts;

/// `FARM_FINGERPRINT(bytes)`: Fingerprint64 of FarmHash as a signed number.
#[must_use]
pub fn farm_fingerprint(bytes: &[u8]) -> i64 {
    fingerprint::fingerprint(bytes).cast_signed()
}

/// `BIT_REVERSE(value, preserve_sign)`: the bits in reverse order; if the sign is preserved, only
/// those below it.
#[must_use]
pub fn bit_reverse(value: i64, preserve_sign: bool) -> i64 {
    if preserve_sign {
        // The lowest 63 bits in reverse order, below the unchanged sign.
        let below = (value.cast_unsigned() << 1).reverse_bits();
        return (below | (value.cast_unsigned() & (1 << 63))).cast_signed();
    }
    value.cast_unsigned().reverse_bits().cast_signed()
}

/// Returns the fingerprint of each row's values: `FARM_FINGERPRINT(CONCAT(CAST(a AS STRING), CAST(b
/// AS STRING)))`, with points in time in UTC, and bytes in the form of `TO_HEX`; a single column of
/// bytes is hashed unchanged. NULL if one of the values is NULL.
///
/// # Errors
/// [`ArrowError`] if a type has no text form.
pub fn fingerprints(columns: &[ArrayRef]) -> Result<Int64Array, ArrowError> {
    let texts_of = |column| if columns.len() > 1 { Texts::among_others(column) } else { Texts::new(column) };
    let texts: Vec<Texts<'_>> = columns.iter().map(texts_of).collect::<Result<_, _>>()?;
    let mut row_text = Vec::new();
    let of_row = |row: usize| {
        row_text.clear();
        texts.iter().all(|text| text.append(row, &mut row_text)).then(|| farm_fingerprint(&row_text))
    };
    Ok((0..columns.first().map_or(0, |column| column.len())).map(of_row).collect())
}

/// Returns the logical shard of a fingerprint: 0 to `shards` - 1. In GoogleSQL this is
/// `MOD(MOD(fingerprint, N) + N, N)`, because MOD of a negative number is negative, and ABS fails
/// for the smallest one.
#[must_use]
pub fn shard_id(fingerprint: i64, shards: u32) -> i64 {
    fingerprint.rem_euclid(i64::from(shards.max(1)))
}

/// `MOD(fingerprint, N)` as in GoogleSQL: 1 - `shards` to `shards` - 1, nearly twice as many
/// values.
#[must_use]
pub fn signed_shard_id(fingerprint: i64, shards: u32) -> i64 {
    fingerprint % i64::from(shards.max(1))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{BooleanArray, Int64Array, StringArray};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn fingerprints_are_those_of_the_googlesql_reference() {
        for (text, expected) in [
            ("", -7286425919675154353),
            ("1", -9142586270102516767),
            ("2", 6920640749119438759),
            ("foo", 6150913649986995171),
            ("apple", 6447335267136888601),
            ("true", 8572766038233537570),
            ("1footrue", -1541654101129638711),
            ("2applefalse", 2794438866806483259),
            ("3true", -4880158226897771312),
        ] {
            assert_eq!(farm_fingerprint(text.as_bytes()), expected, "{text}");
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![1, 2, 3])),
            Arc::new(StringArray::from(vec![Some("foo"), Some("apple"), None])),
            Arc::new(BooleanArray::from(vec![true, false, true])),
        ];
        let found = fingerprints(&columns).unwrap();
        let expected = Int64Array::from(vec![Some(-1541654101129638711), Some(2794438866806483259), None]);
        assert_eq!(found, expected);
    }

    #[test]
    fn fingerprints_of_any_length_are_those_of_clickhouse() {
        let printed = include_str!("../../../../tests/fixtures/farm_fingerprint.tsv");
        let mut lengths = 0;
        for line in printed.lines().filter(|line| !line.starts_with('#')) {
            let (length, expected) = line.split_once('\t').unwrap();
            let length: usize = length.parse().unwrap();
            let text: Vec<u8> = (0..length).map(|i| 33 + ((i * 7 + length) % 90) as u8).collect();
            assert_eq!(farm_fingerprint(&text), expected.parse::<i64>().unwrap(), "{length}");
            lengths += 1;
        }
        assert_eq!(lengths, 301);
    }

    #[test]
    fn bits_are_reversed_as_in_the_googlesql_reference() {
        assert_eq!(bit_reverse(100, true), 1369094286720630784);
        assert_eq!(bit_reverse(100, false), 2738188573441261568);
        assert_eq!(bit_reverse(-100, true), -7133701809754865665);
    }

    proptest! {
        #[test]
        fn reversing_twice_gives_the_value_back(value: i64, preserve: bool) {
            prop_assert_eq!(bit_reverse(bit_reverse(value, preserve), preserve), value);
            prop_assert_eq!(bit_reverse(value, true) < 0, value < 0);
        }

        #[test]
        fn shards_are_in_range(fingerprint in any::<i64>(), shards in 1u32..5000) {
            let shard = shard_id(fingerprint, shards);
            prop_assert!((0..i64::from(shards)).contains(&shard));
            prop_assert_eq!((signed_shard_id(fingerprint, shards) - shard).rem_euclid(i64::from(shards)), 0);
        }
    }
}
