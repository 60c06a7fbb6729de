//! Floats as they are stored and compared.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};

/// Returns floats in which each NaN has the same bits; `None` if that is already so, or if the
/// values are not floats.
///
/// On x86, results that are not defined have the sign bit set. Exports from NumPy hold such values
/// among others, and DataFusion orders and compares NaN by its bits.
#[must_use]
pub fn with_plain_nans(values: &ArrayRef) -> Option<ArrayRef> {
    match values.data_type() {
        DataType::Float64 => {
            let is_other = |value: f64| value.is_nan() && value.to_bits() != f64::NAN.to_bits();
            plain::<Float64Type>(values.as_primitive(), f64::NAN, is_other)
        }
        DataType::Float32 => {
            let is_other = |value: f32| value.is_nan() && value.to_bits() != f32::NAN.to_bits();
            plain::<Float32Type>(values.as_primitive(), f32::NAN, is_other)
        }
        DataType::Float16 => {
            let nan = <Float16Type as ArrowPrimitiveType>::Native::NAN;
            plain::<Float16Type>(values.as_primitive(), nan, |value| {
                value.is_nan() && value.to_bits() != nan.to_bits()
            })
        }
        _ => None,
    }
}

fn plain<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    nan: T::Native,
    is_other: impl Fn(T::Native) -> bool,
) -> Option<ArrayRef> {
    // Values below NULL may be anything, and changing them changes nothing.
    values.values().iter().any(|value| is_other(*value)).then(|| {
        let plain = values.unary::<_, T>(|value| if is_other(value) { nan } else { value });
        Arc::new(plain) as ArrayRef
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float32Array, Float64Array, Int64Array};

    use super::*;

    #[test]
    fn only_the_bits_of_nan_change() {
        let values = vec![
            Some(-f64::NAN),
            None,
            Some(-0.0),
            Some(f64::NEG_INFINITY),
            Some(f64::from_bits(0x7ff0_0000_0000_0001)),
            Some(f64::NAN),
            Some(-1.5),
        ];
        let array: ArrayRef = Arc::new(Float64Array::from(values.clone()));
        let plain = with_plain_nans(&array).unwrap();
        let bits = |value: &Option<f64>| value.map(f64::to_bits);
        let found: Vec<_> = plain.as_primitive::<Float64Type>().iter().map(|value| bits(&value)).collect();
        let mut expected: Vec<_> = values.iter().map(bits).collect();
        expected[0] = Some(f64::NAN.to_bits());
        expected[4] = expected[0];
        assert_eq!(found, expected);
        assert!(with_plain_nans(&plain).is_none());

        let array: ArrayRef = Arc::new(Float32Array::from(vec![1.0, -f32::NAN]));
        let plain = with_plain_nans(&array).unwrap();
        assert!(plain.as_primitive::<Float32Type>().value(1).is_sign_positive());
        assert!(with_plain_nans(&(Arc::new(Int64Array::from(vec![-1])) as ArrayRef)).is_none());
    }
}
