//! Distinguishes identifiers from keys that only by chance repeat in no row of an export.
//!
//! The measure is the number of repeats that chance would make if the values were drawn
//! independently from those that the rows occupy: n (n - 1) / 2 pairs of rows, each equal with
//! probability q (the birthday problem; Feller, volume 1, II.3). The q of a key is the product of
//! the q of its columns. The q of a column is the share of pairs of rows that are equal in it. If
//! no two rows are, it is 1 over the values from the least to the greatest in steps of their
//! greatest common divisor; for text, it is the probability that every position has the same byte.
//!
//! Rows are often more alike than that: the changes of one day to one employee. So each column is
//! also taken alone: of the pairs of rows that are equal in all other columns of the key, it would
//! leave the share q equal by chance. The column that tells the most pairs apart counts.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use serde::Serialize;

use evenkeel_model::wire::{Wire, WireError, WireReader, wire};
use evenkeel_stats::sketch::{column_identities, combine};

/// Expected number of repeats above which having none is evidence of an identifier: the probability
/// of none by chance is below 1 in 100.
const EVIDENCE: f64 = 5.0;
/// Growth of a table, as a multiple of the rows of an export.
const GROWTH: f64 = 1000.0;
/// Expected number of repeats in a table of that size below which repeats are unlikely.
const HARDLY: f64 = 0.01;
/// For a key with time: largest probability that two rows are equal in the other columns with which
/// these columns still distinguish rows.
const OTHERS_TELL_APART: f64 = 0.01;
/// Smallest number of pairs of equal rows that gives a reliable share of such pairs.
const ENOUGH_PAIRS: f64 = 10.0;
/// Maximum number of positions of a text that are compared.
const MAX_PLACES: usize = 256;

/// Reason why no two rows of an export share a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UniqueBy {
    /// Chance alone explains it with this few rows; more rows may repeat a key.
    Chance,
    /// Chance would have repeated keys, so something keeps them distinct: the key is an identifier.
    Nature,
    /// There are enough possible values that a thousand times as many rows are unlikely to repeat
    /// one.
    ManyValues,
}

impl Wire for UniqueBy {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(match self {
            Self::Chance => 0,
            Self::Nature => 1,
            Self::ManyValues => 2,
        });
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        match left.bytes(1)? {
            [0] => Ok(Self::Chance),
            [1] => Ok(Self::Nature),
            [2] => Ok(Self::ManyValues),
            _ => Err(WireError("unknown kind of uniqueness")),
        }
    }
}

/// Significance of the uniqueness of a key in an export.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Uniqueness {
    /// Reason for the uniqueness.
    pub by: UniqueBy,
    /// Pairs of rows that would be equal in the key by chance, if the values of its columns, or of
    /// one of them, were independent of the others.
    pub repeats_by_chance: f64,
}

wire!(Uniqueness { by, repeats_by_chance });

/// Probability that two rows are equal in the columns of a key: in its points in time, and in the
/// others.
#[derive(Debug, Clone, Copy)]
struct EqualityChances {
    in_time: f64,
    in_others: f64,
    has_time: bool,
    has_others: bool,
}

impl Uniqueness {
    /// Judges a key that does not repeat in `rows` rows, from the values of some of them, column by
    /// column.
    pub(crate) fn by_chance(columns: &[ArrayRef], rows: u64) -> Option<Self> {
        if columns.is_empty() || rows < 2 {
            return None;
        }
        let mut alike = EqualityChances { in_time: 1.0, in_others: 1.0, has_time: false, has_others: false };
        let identities: Vec<Vec<u64>> = columns.iter().map(column_identities).collect();
        let mut told_apart = 0.0f64;
        for (at, column) in columns.iter().enumerate() {
            let chance = chance_of_equal(column, identities.get(at)?)?;
            if is_time(column) {
                (alike.in_time, alike.has_time) = (alike.in_time * chance, true);
            } else {
                (alike.in_others, alike.has_others) = (alike.in_others * chance, true);
                told_apart = told_apart.max(chance * pairs_equal_without(at, &identities));
            }
        }
        // At least as many more pairs as rows: neighbours are alike, and any two rows may be.
        let of_rows = rows as f64 / columns.first().map_or(1, |column| column.len().max(1)) as f64;
        Some(alike.judge(rows as f64, told_apart * of_rows))
    }
}

impl EqualityChances {
    /// Judges a key. One of its columns tells rows apart of which it would leave `told_apart` pairs
    /// equal by chance.
    fn judge(self, rows: f64, told_apart: f64) -> Uniqueness {
        let repeats = rows * (rows - 1.0) / 2.0 * self.in_time * self.in_others;
        // More rows cover more time, and so other values of it; an id keeps the number of its
        // possible values.
        let (later, is_distinguished) = match (self.has_time, self.has_others) {
            (true, false) => (f64::INFINITY, false),
            (true, true) => (repeats * GROWTH, self.in_others <= OTHERS_TELL_APART),
            (false, _) => (repeats * GROWTH * GROWTH, true),
        };
        let most = repeats.max(told_apart);
        let by = if most >= EVIDENCE {
            UniqueBy::Nature
        } else if is_distinguished && later <= HARDLY {
            UniqueBy::ManyValues
        } else {
            UniqueBy::Chance
        };
        Uniqueness { by, repeats_by_chance: most }
    }
}

fn is_time(column: &ArrayRef) -> bool {
    matches!(column.data_type(), DataType::Timestamp(..) | DataType::Date32)
}

/// Pairs among a number of rows.
fn pairs_of(rows: f64) -> f64 {
    rows * (rows - 1.0) / 2.0
}

/// Pairs of equal identities.
fn equal_pairs(mut identities: Vec<u64>) -> f64 {
    identities.sort_unstable();
    identities.chunk_by(|a, b| a == b).map(|equal| pairs_of(equal.len() as f64)).sum()
}

/// Pairs of rows that are equal in all columns of a key but one; none if that is the only one.
fn pairs_equal_without(column: usize, identities: &[Vec<u64>]) -> f64 {
    let others = identities.iter().enumerate().filter(|(at, _)| *at != column);
    let others: Vec<&[u64]> = others.map(|(_, of)| of.as_slice()).collect();
    equal_pairs(combine(&others))
}

/// Returns the probability that two rows have the same value, by the identities of the values;
/// `None` if there are no two rows.
fn chance_of_equal(column: &ArrayRef, identities: &[u64]) -> Option<f64> {
    let rows = identities.len() as f64;
    if rows < 2.0 {
        return None;
    }
    let alike = equal_pairs(identities.to_vec());
    let measured = alike / pairs_of(rows);
    if alike >= ENOUGH_PAIRS {
        return Some(measured);
    }
    Some(measured.max(1.0 / possible_values(column)))
}

/// Estimates the number of possible values of a column from its actual values.
fn possible_values(column: &ArrayRef) -> f64 {
    if let Some(values) = whole_numbers(column) {
        let (Some(least), Some(greatest)) = (values.iter().min(), values.iter().max()) else { return 1.0 };
        let step =
            values.iter().fold(0u128, |step, value| greatest_common_divisor(step, value.abs_diff(*least)));
        return greatest.abs_diff(*least) as f64 / step.max(1) as f64 + 1.0;
    }
    let texts = texts(column);
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0).min(MAX_PLACES);
    // Two texts are equal if every position has the same byte, or no byte, in both.
    let alike_at = |place: usize| {
        let mut counts: HashMap<Option<u8>, u64> = HashMap::new();
        texts.iter().for_each(|text| *counts.entry(text.get(place).copied()).or_default() += 1);
        counts.values().map(|count| (*count as f64 / texts.len().max(1) as f64).powi(2)).sum::<f64>()
    };
    (0..longest).map(|place| 1.0 / alike_at(place)).product()
}

fn greatest_common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Returns the values of integers, dates and points in time.
fn whole_numbers(column: &ArrayRef) -> Option<Vec<i128>> {
    if column.data_type() == &DataType::UInt64 {
        return Some(column.as_primitive::<UInt64Type>().iter().flatten().map(i128::from).collect());
    }
    let is_whole = column.data_type().is_integer()
        || matches!(
            column.data_type(),
            DataType::Timestamp(..) | DataType::Duration(_) | DataType::Boolean | DataType::Date32
        );
    // Dates are cast by their days.
    let of_days = if column.data_type() == &DataType::Date32 {
        cast(column, &DataType::Int32).ok()?
    } else {
        ArrayRef::clone(column)
    };
    let numbers = is_whole.then(|| cast(&of_days, &DataType::Int64).ok()).flatten()?;
    Some(numbers.as_primitive::<Int64Type>().iter().flatten().map(i128::from).collect())
}

/// Returns the bytes of texts and other values.
fn texts(column: &ArrayRef) -> Vec<Vec<u8>> {
    let text = |bytes: &[u8]| bytes.get(..MAX_PLACES).unwrap_or(bytes).to_vec();
    match column.data_type() {
        DataType::FixedSizeBinary(_) => column.as_fixed_size_binary().iter().flatten().map(text).collect(),
        DataType::Binary => column.as_binary::<i32>().iter().flatten().map(text).collect(),
        DataType::BinaryView => column.as_binary_view().iter().flatten().map(text).collect(),
        _ => match cast(column, &DataType::Utf8) {
            Ok(texts) => texts.as_string::<i32>().iter().flatten().map(|t| text(t.as_bytes())).collect(),
            Err(_) => Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, Int64Array, StringArray, TimestampMicrosecondArray, UInt64Array};

    use super::*;
    use evenkeel_stats::sketch::fold;

    fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(values))
    }

    fn times(values: impl IntoIterator<Item = i64>) -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::from_iter_values(values))
    }

    fn texts(values: impl IntoIterator<Item = String>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(values))
    }

    fn random(row: u64, below: u64) -> i64 {
        (fold(row, 77) % below).cast_signed()
    }

    fn by(columns: &[ArrayRef]) -> UniqueBy {
        Uniqueness::by_chance(columns, columns[0].len() as u64).unwrap().by
    }

    #[test]
    fn identifiers_are_told_from_what_chance_makes_unique() {
        let rows = 2_000u64;
        let day = 86_400_000_000u64;
        // Numbers that are assigned in sequence, in any order of arrival, with gaps, or in steps.
        assert_eq!(by(&[numbers((0..2000).rev())]), UniqueBy::Nature);
        assert_eq!(by(&[numbers((0..2000).map(|row| 5_000_000_000 + row * 3))]), UniqueBy::Nature);
        assert_eq!(by(&[numbers((0..2000).map(|row| row * 1000))]), UniqueBy::Nature);
        assert_eq!(by(&[texts((0..rows).map(|row| format!("order-{row:06}")))]), UniqueBy::Nature);
        // Points in time within a day, in microseconds and in seconds, all distinct by chance.
        let instants = (0..rows).map(|row| random(row, day));
        assert_eq!(by(&[times(instants.clone())]), UniqueBy::Chance);
        let seconds = (0..20).map(|row| row * 4_000 * 1_000_000 + random(row as u64, 4_000) * 1_000_000);
        assert_eq!(by(&[times(seconds)]), UniqueBy::Chance);
        // One row each second: a clock, not chance.
        assert_eq!(by(&[times((0..2000).map(|row| row * 1_000_000))]), UniqueBy::Nature);
        // The time with a column of few values is no better; with one of many values it is.
        let few = numbers((0..rows).map(|row| random(row, 3)));
        assert_eq!(by(&[times(instants.clone()), few]), UniqueBy::Chance);
        let many = numbers((0..rows).map(|row| random(row + 9_999, 50_000)));
        assert_eq!(by(&[times(instants), many]), UniqueBy::ManyValues);
        // Random numbers of 64 bits, and random text; then 100 random numbers below a million, all
        // distinct.
        let wide: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| fold(row, 3))));
        assert_eq!(by(&[wide]), UniqueBy::ManyValues);
        let uuid = |row: u64| format!("{:016x}-{:016x}", fold(row, 5), fold(row, 6));
        assert_eq!(by(&[texts((0..rows).map(uuid))]), UniqueBy::ManyValues);
        assert_eq!(by(&[numbers((0..100).map(|row| random(row, 1_000_000)))]), UniqueBy::Chance);
        // A number that starts over each day.
        let days: ArrayRef = Arc::new(Date32Array::from_iter_values((0..2000).map(|row| row / 100)));
        assert_eq!(by(&[days, numbers((0..2000).map(|row| row % 100))]), UniqueBy::Nature);
        // Employees have several changes of one day, which are numbered. A column of 100 kinds
        // would tell ten pairs of rows apart by chance.
        let person = numbers((0..rows).map(|row| random(row / 2, 900)));
        let changed_on = (0..rows).map(|row| random(row / 2 + 5_000, 9_000) as i32);
        let changed_on: ArrayRef = Arc::new(Date32Array::from_iter_values(changed_on));
        let numbers_of_day = numbers((0..2000).map(|row| row % 2));
        assert_eq!(by(&[person, changed_on, numbers_of_day]), UniqueBy::Nature);
        let pairs = numbers((0..2000).map(|row| if row < 20 { row / 2 } else { row }));
        let kinds = numbers((0..rows).map(|row| random(row, 100)));
        assert_eq!(by(&[pairs, kinds]), UniqueBy::Chance);
        // A single row is not judged.
        assert_eq!(Uniqueness::by_chance(&[numbers([5])], 1), None);
    }

    #[test]
    fn the_repeats_by_chance_are_those_of_draws() {
        // Draws of 500 from 20,000 numbers repeat 6.2 times on average.
        let (rows, values) = (500u64, 20_000u64);
        let mut repeats = 0.0;
        for draw in 0u64..200 {
            let mut drawn: Vec<i64> = (0..rows).map(|row| random(row * 1_000 + draw, values)).collect();
            drawn.sort_unstable();
            repeats += drawn.windows(2).filter(|pair| pair[0] == pair[1]).count() as f64 / 200.0;
        }
        // 500 distinct numbers of the same range.
        let column =
            numbers((0..500).map(|row| row * 40 + i64::from(row % 7 == 0)).chain([19_999]).take(500));
        let actual = Uniqueness::by_chance(&[column], rows).unwrap().repeats_by_chance;
        assert!((actual / repeats - 1.0).abs() < 0.1, "{actual} {repeats}");
    }
}
