//! 64-bit identities of values of any type, and of several values together.
//!
//! The mixing step multiplies to 128 bits and folds the halves, as wyhash and foldhash do.
//! Identities are compared between machines, and stored in profiles: a change needs a new version
//! of their format.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use twox_hash::XxHash3_64;

/// Odd numbers without structure: the first digits of pi and e.
const MULTIPLIER: u64 = 0x243F_6A88_85A3_08D3;
const NULL: u64 = 0xB7E1_5162_8AED_2A6B;

/// Mixes two numbers; few pairs collide.
#[inline]
#[must_use]
pub fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9E37_79B9_7F4A_7C15) * u128::from(b ^ MULTIPLIER);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Returns the identity of every value of a column. NULL has a separate identity.
#[must_use]
pub fn column_identities(array: &ArrayRef) -> Vec<u64> {
    let mut identities = match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean();
            (0..values.len()).map(|row| fold(u64::from(values.value(row)), 1)).collect()
        }
        DataType::Int8 => fixed::<Int8Type>(array, |v| i64::from(v).cast_unsigned()),
        DataType::Int16 => fixed::<Int16Type>(array, |v| i64::from(v).cast_unsigned()),
        DataType::Int32 => fixed::<Int32Type>(array, |v| i64::from(v).cast_unsigned()),
        DataType::Int64 => fixed::<Int64Type>(array, i64::cast_unsigned),
        DataType::UInt8 => fixed::<UInt8Type>(array, u64::from),
        DataType::UInt16 => fixed::<UInt16Type>(array, u64::from),
        DataType::UInt32 => fixed::<UInt32Type>(array, u64::from),
        DataType::UInt64 => fixed::<UInt64Type>(array, |v| v),
        DataType::Float32 => fixed::<Float32Type>(array, |v| u64::from(v.to_bits())),
        DataType::Float64 => fixed::<Float64Type>(array, f64::to_bits),
        DataType::Date32 => fixed::<Date32Type>(array, |v| i64::from(v).cast_unsigned()),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            fixed::<TimestampMillisecondType>(array, i64::cast_unsigned)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            fixed::<TimestampMicrosecondType>(array, i64::cast_unsigned)
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            fixed::<DurationMicrosecondType>(array, i64::cast_unsigned)
        }
        DataType::Decimal128(_, _) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            values.iter().map(|v| fold((*v >> 64) as u64, fold(*v as u64, 1))).collect()
        }
        DataType::Utf8 => bytes(array.as_string::<i32>().iter().map(|v| v.map(str::as_bytes))),
        DataType::LargeUtf8 => bytes(array.as_string::<i64>().iter().map(|v| v.map(str::as_bytes))),
        DataType::Utf8View => bytes(array.as_string_view().iter().map(|v| v.map(str::as_bytes))),
        DataType::Binary => bytes(array.as_binary::<i32>().iter()),
        DataType::BinaryView => bytes(array.as_binary_view().iter()),
        DataType::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().iter()),
        // No column of a table has another type; its text distinguishes values as well.
        _ => {
            let text = arrow::compute::cast(array, &DataType::Utf8);
            return text.map_or_else(|_| vec![NULL; array.len()], |text| column_identities(&text));
        }
    };
    if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
        for (identity, valid) in identities.iter_mut().zip(nulls.iter()) {
            if !valid {
                *identity = NULL;
            }
        }
    }
    identities
}

fn fixed<T: ArrowPrimitiveType>(array: &ArrayRef, bits: impl Fn(T::Native) -> u64) -> Vec<u64> {
    array.as_primitive::<T>().values().iter().map(|value| fold(bits(*value), 1)).collect()
}

fn bytes<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Vec<u64> {
    values.map(|value| value.map_or(NULL, identity_of_bytes)).collect()
}

/// Mixes up to 16 bytes as two numbers with the length; longer values use XXH3.
#[inline]
fn identity_of_bytes(value: &[u8]) -> u64 {
    let length = value.len() as u64;
    let (first, last) = match (value.first_chunk::<8>(), value.last_chunk::<8>()) {
        (Some(first), Some(last)) if value.len() <= 16 => {
            (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
        }
        (None, _) => (value.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0),
        _ => return XxHash3_64::oneshot(value),
    };
    fold(fold(first, last), length)
}

/// Combines the identities of every row's values, in the order of the columns. Empty without
/// columns.
#[must_use]
pub fn combine(columns: &[&[u64]]) -> Vec<u64> {
    let Some((first, others)) = columns.split_first() else { return Vec::new() };
    let mut identities = first.to_vec();
    for column in others {
        for (identity, value) in identities.iter_mut().zip(*column) {
            *identity = fold(*identity, *value);
        }
    }
    identities
}

/// Returns the identity of every row's values in some columns, in their order.
#[must_use]
pub fn key_identities<'a>(columns: impl IntoIterator<Item = &'a ArrayRef>) -> Vec<u64> {
    let columns: Vec<Vec<u64>> = columns.into_iter().map(column_identities).collect();
    combine(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use arrow::array::{Decimal128Array, Int32Array, Int64Array, StringArray, UInt64Array};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn a_million_keys_of_small_numbers_are_all_told_apart() {
        // Small numbers in two columns: the worst case for a weak mixing step.
        let a: ArrayRef = Arc::new(Int64Array::from_iter_values((0..1_000_000).map(|i| i / 1000)));
        let b: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..1_000_000).map(|i| i % 1000)));
        let (a, b) = (column_identities(&a), column_identities(&b));
        let pairs: HashSet<u64> = combine(&[&a, &b]).into_iter().collect();
        assert_eq!(pairs.len(), 1_000_000);
        let (there, back) = (combine(&[&a, &b]), combine(&[&b, &a]));
        // (x, y) and (y, x) are two keys; only (x, x) is the same in both orders.
        assert_eq!(there.iter().zip(&back).filter(|(there, back)| there == back).count(), 1000);
    }

    #[test]
    fn null_the_empty_text_and_split_texts_differ() {
        let text =
            |values: Vec<Option<&str>>| column_identities(&(Arc::new(StringArray::from(values)) as ArrayRef));
        let first = text(vec![Some("ab"), Some("a"), None, Some("")]);
        let second = text(vec![Some("c"), Some("bc"), Some("abc"), Some("abc")]);
        let distinct: HashSet<u64> = combine(&[&first, &second]).into_iter().collect();
        assert_eq!(distinct.len(), 4);
        let decimals: ArrayRef = Arc::new(Decimal128Array::from(vec![1, 2, 1]));
        let decimals = column_identities(&decimals);
        assert!(decimals[0] == decimals[2] && decimals[0] != decimals[1]);
    }

    #[test]
    fn texts_of_every_length_are_told_apart() {
        // Numbers as text, cut and padded: texts that differ in one byte, in length, and in zeros
        // at their ends.
        let texts = (0..200_000u32).flat_map(|i| {
            [format!("u{i}"), format!("{i:09}"), format!("{i:017}"), "\0".repeat(i as usize % 40)]
        });
        let texts: HashSet<String> = texts.collect();
        let array: ArrayRef = Arc::new(StringArray::from_iter_values(&texts));
        let identities: HashSet<u64> = column_identities(&array).into_iter().collect();
        assert_eq!(identities.len(), texts.len());
    }

    proptest! {
        #[test]
        fn identities_are_equal_where_values_are(values in proptest::collection::vec(any::<Option<i32>>(), 0..50)) {
            let identities = column_identities(&(Arc::new(Int32Array::from(values.clone())) as ArrayRef));
            for (a, x) in values.iter().zip(&identities) {
                for (b, y) in values.iter().zip(&identities) {
                    prop_assert_eq!(a == b, x == y);
                }
            }
        }
    }
}
