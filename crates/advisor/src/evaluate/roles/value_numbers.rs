//! Values of a column as numbers that can be compared and counted.

use std::collections::HashMap;

use crate::evaluate::roles::carried_times::CarriedTimes;
use crate::evaluate::roles::forms::whole_numbers;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimestampMicrosecondType};
use evenkeel_model::time_reading::TimeReading;

/// Bound of numbers that are written as texts: longer ones identify things rather than count them.
const BOUND_OF_TEXTS: i128 = 1_000_000_000_000;
/// Maximum number of digits of a number, with the zeros that pad it.
const MAX_DIGITS: usize = 38;

/// Numbers identities in the order of their first row, and returns how many there are.
pub(super) fn numbered(identities: &[u64]) -> (Vec<u32>, Vec<u64>) {
    let mut numbers: HashMap<u64, u32, ahash::RandomState> = HashMap::default();
    let mut values = Vec::new();
    let codes = identities
        .iter()
        .map(|identity| {
            let next = u32::try_from(values.len()).unwrap_or(u32::MAX);
            *numbers.entry(*identity).or_insert_with(|| {
                values.push(*identity);
                next
            })
        })
        .collect();
    (codes, values)
}

/// Whether rows follow one of the same value in a fifth of the cases, and five times as often as in
/// a random order.
pub(super) fn gathered(codes: &[u32], counts: &[usize]) -> bool {
    let rows = codes.len() as f64;
    let together = codes.windows(2).filter(|pair| pair.first() == pair.last()).count() as f64;
    let by_chance: f64 = counts.iter().map(|count| (*count as f64).powi(2)).sum::<f64>() / rows.max(1.0);
    together >= 0.2 * rows && together >= 5.0 * by_chance
}

/// Whether the values of the rows rise, weakly and strictly, through all arrays.
pub(super) fn order(arrays: &[&ArrayRef]) -> (bool, bool) {
    let (mut rises, mut strictly, mut last) = (true, true, None::<Key>);
    for array in arrays {
        if array.null_count() > 0 {
            return (false, false);
        }
        let Some(keys) = keys(array) else { return (false, false) };
        for key in keys {
            if let Some(before) = &last {
                rises &= *before <= key;
                strictly &= *before < key;
            }
            if !rises {
                return (false, false);
            }
            last = Some(key);
        }
    }
    (rises, strictly)
}

/// Share of the numbers that are at least the one before.
pub(super) fn ascends(numbers: &[i128]) -> f64 {
    let ascending = numbers.iter().zip(numbers.iter().skip(1)).filter(|(a, b)| a <= b).count();
    ascending as f64 / numbers.len().saturating_sub(1).max(1) as f64
}

/// Value that can be compared.
#[derive(Debug, PartialEq, PartialOrd)]
pub(super) enum Key {
    Whole(i128),
    Text(String),
}

pub(super) fn keys(array: &ArrayRef) -> Option<Vec<Key>> {
    if let Some(numbers) = whole_numbers(array) {
        return Some(numbers.into_iter().map(Key::Whole).collect());
    }
    let is_text = matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let texts = is_text.then(|| cast(array, &DataType::Utf8).ok()).flatten()?;
    Some(texts.as_string::<i32>().iter().flatten().map(|text| Key::Text(text.to_owned())).collect())
}

/// The integers of all arrays, if none is NULL. Texts of equally many digits are integers that were
/// padded with zeros.
pub(super) fn numbers(arrays: &[&ArrayRef]) -> Option<Vec<i128>> {
    if arrays.iter().any(|array| array.null_count() > 0) {
        return None;
    }
    if arrays.iter().all(|array| array.data_type().is_integer()) {
        let numbers: Option<Vec<Vec<i128>>> = arrays.iter().map(|array| whole_numbers(array)).collect();
        return numbers.map(|numbers| numbers.concat());
    }
    let mut numbers = Vec::new();
    let mut digits = None;
    for array in arrays {
        if !array.data_type().is_string() {
            return None;
        }
        let texts = cast(array, &DataType::Utf8).ok()?;
        for text in texts.as_string::<i32>().iter().flatten() {
            if text.len() > MAX_DIGITS || *digits.get_or_insert(text.len()) != text.len() {
                return None;
            }
            let number: i128 =
                text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())??;
            if number >= BOUND_OF_TEXTS {
                return None;
            }
            numbers.push(number);
        }
    }
    Some(numbers)
}

/// Points in time in microseconds since 1970, by the type of the values or as they are read.
pub(super) fn micros(arrays: &[&ArrayRef], times: Option<CarriedTimes>) -> Option<Vec<i64>> {
    let reading = times.map_or(TimeReading::Native, |times| times.reading);
    if arrays
        .iter()
        .any(|array| array.null_count() > 0 || (times.is_none() && !array.data_type().is_temporal()))
    {
        return None;
    }
    let mut micros = Vec::new();
    for array in arrays {
        let instants = reading.instants(array)?;
        micros.extend(instants.as_primitive_opt::<TimestampMicrosecondType>()?.values());
    }
    Some(micros)
}

/// Numbers with fractions, in millionths.
pub(super) fn amounts(arrays: &[&ArrayRef]) -> Option<Vec<i128>> {
    let has_fractions = |array: &&&ArrayRef| {
        array.null_count() == 0
            && matches!(array.data_type(), DataType::Float32 | DataType::Float64 | DataType::Decimal128(..))
    };
    if arrays.iter().filter(has_fractions).count() < arrays.len() {
        return None;
    }
    let mut amounts = Vec::new();
    for array in arrays {
        let numbers = cast(array, &DataType::Float64).ok()?;
        amounts.extend(numbers.as_primitive::<Float64Type>().values().iter().map(|n| (n * 1e6) as i128));
    }
    Some(amounts)
}
