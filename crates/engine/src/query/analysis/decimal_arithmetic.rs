//! Arithmetic of decimals that fit into 64 bits, without a check of each result.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Datum, Decimal128Array};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::numeric::{add, mul, sub};
use arrow::datatypes::{DataType, Decimal128Type};
use arrow::error::ArrowError;

use crate::query::analysis::operation::Operation;

/// Maximum number of digits by which values are shifted: the factor fits into 64 bits.
const MAX_DIGITS: u32 = 18;

/// Computes decimals as the kernels of arrow do, which check each result for a 129th bit. Sums and
/// products of 64-bit numbers never have one.
///
/// Input: two arrays of one length, or an array and a scalar. Output: as many decimals.
///
/// # Errors
/// As of the kernels.
pub(in crate::query) fn compute(
    operation: Operation,
    left: &dyn Datum,
    right: &dyn Datum,
) -> Result<ArrayRef, ArrowError> {
    let kernel = match operation {
        Operation::Add => add,
        Operation::Subtract => sub,
        Operation::Multiply => mul,
    };
    let ((one, one_is_scalar), (other, other_is_scalar)) = (left.get(), right.get());
    let has_rows = one_is_scalar != other_is_scalar || one.len() == other.len();
    let types = (one.data_type(), other.data_type());
    let (DataType::Decimal128(_, one_scale), DataType::Decimal128(_, other_scale)) = types else {
        return kernel(left, right);
    };
    // The kernels know the type of the result.
    let of_nothing = kernel(&one.slice(0, 0), &other.slice(0, 0))?;
    let DataType::Decimal128(precision, scale) = *of_nothing.data_type() else { return kernel(left, right) };
    let shift = |from: i8| u32::from(scale.abs_diff(from)).min(MAX_DIGITS + 1);
    let shifts = (shift(*one_scale), shift(*other_scale));
    let is_sum = operation != Operation::Multiply;
    if !has_rows || (is_sum && shifts.0.max(shifts.1) > MAX_DIGITS) {
        return kernel(left, right);
    }
    let (one, other) = (one.as_primitive::<Decimal128Type>(), other.as_primitive::<Decimal128Type>());
    if !are_narrow(one) || !are_narrow(other) {
        return kernel(left, right);
    }
    let (by_one, by_other) = (10_i64.pow(shifts.0.min(MAX_DIGITS)), 10_i64.pow(shifts.1.min(MAX_DIGITS)));
    let (one, other) = ((one, one_is_scalar), (other, other_is_scalar));
    let computed = match operation {
        Operation::Add => combined(one, other, |a, b| wide(a, by_one).wrapping_add(wide(b, by_other))),
        Operation::Subtract => combined(one, other, |a, b| wide(a, by_one).wrapping_sub(wide(b, by_other))),
        Operation::Multiply => combined(one, other, |a, b| wide(a, b as i64)),
    };
    Ok(Arc::new(computed.with_precision_and_scale(precision, scale)?))
}

/// Product of two numbers with 64 significant bits.
fn wide(value: i128, by: i64) -> i128 {
    i128::from(value as i64).wrapping_mul(i128::from(by))
}

/// Whether all values, including the values below NULL, fit into 64 bits.
fn are_narrow(values: &Decimal128Array) -> bool {
    values.values().iter().fold(0, |lost, value| lost | (i128::from(*value as i64) ^ value)) == 0
}

fn combined(
    (one, one_is_scalar): (&Decimal128Array, bool),
    (other, other_is_scalar): (&Decimal128Array, bool),
    combine: impl Fn(i128, i128) -> i128,
) -> Decimal128Array {
    let only = |array: &Decimal128Array| array.values().first().copied().unwrap_or_default();
    let of_scalar = |array: &Decimal128Array, rows: usize| {
        if array.is_null(0) { NullBuffer::new_null(rows) } else { NullBuffer::new_valid(rows) }
    };
    if other_is_scalar {
        let b = only(other);
        let nulls = NullBuffer::union(one.nulls(), Some(&of_scalar(other, one.len())));
        return Decimal128Array::new(one.values().iter().map(|a| combine(*a, b)).collect(), nulls);
    }
    if one_is_scalar {
        let a = only(one);
        let nulls = NullBuffer::union(other.nulls(), Some(&of_scalar(one, other.len())));
        return Decimal128Array::new(other.values().iter().map(|b| combine(a, *b)).collect(), nulls);
    }
    let nulls = NullBuffer::union(one.nulls(), other.nulls());
    let values = one.values().iter().zip(other.values()).map(|(a, b)| combine(*a, *b));
    Decimal128Array::new(values.collect(), nulls)
}

#[cfg(test)]
mod tests {
    use arrow::array::Scalar;
    use proptest::prelude::*;

    use super::*;

    fn decimals(values: &[Option<i128>], precision: u8, scale: i8) -> Decimal128Array {
        values
            .iter()
            .copied()
            .collect::<Decimal128Array>()
            .with_precision_and_scale(precision, scale)
            .unwrap()
    }

    fn value() -> impl Strategy<Value = Option<i128>> {
        prop_oneof![
            Just(None),
            (-1000_i128..1000).prop_map(Some),
            any::<i64>().prop_map(|value| Some(value.into())),
            (i128::from(i64::MIN) - 2..i128::from(i64::MIN) + 2).prop_map(Some),
            (i128::from(i64::MAX) - 2..i128::from(i64::MAX) + 2).prop_map(Some),
            (-(10_i128.pow(37))..10_i128.pow(37)).prop_map(Some),
        ]
    }

    proptest! {
        #[test]
        fn results_and_errors_are_those_of_the_kernels(
            pairs in prop::collection::vec((value(), value()), 1..20),
            narrow in any::<bool>(),
            scales in (0_i8..30, 0_i8..30),
        ) {
            let keep = |value: Option<i128>| value.map(|value| if narrow { value as i64 as i128 } else { value });
            let one: Vec<_> = pairs.iter().map(|pair| keep(pair.0)).collect();
            let other: Vec<_> = pairs.iter().map(|pair| keep(pair.1)).collect();
            let (one, other) = (decimals(&one, 38, scales.0), decimals(&other, 38, scales.1));
            let scalar = Scalar::new(other.slice(0, 1));
            let operands: [(&dyn Datum, &dyn Datum); 4] =
                [(&one, &other), (&one, &scalar), (&scalar, &one), (&scalar, &scalar)];
            for (left, right) in operands {
                for (operation, kernel) in [
                    (Operation::Add, add as fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>),
                    (Operation::Subtract, sub),
                    (Operation::Multiply, mul),
                ] {
                    match (compute(operation, left, right), kernel(left, right)) {
                        (Ok(found), Ok(expected)) => prop_assert_eq!(&found, &expected),
                        (found, expected) => prop_assert_eq!(found.is_err(), expected.is_err()),
                    }
                }
            }
        }
    }

    #[test]
    fn arrays_of_different_lengths_are_refused() {
        let (one, other) = (decimals(&[Some(1), Some(2)], 10, 2), decimals(&[Some(1)], 10, 2));
        assert!(compute(Operation::Add, &one, &other).is_err());
    }
}
