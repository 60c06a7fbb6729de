//! Values in the binary format.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use bytes::BufMut;
use pgwire::api::Type;

use crate::types::element_of;
use crate::values::lists::list_binary;
use crate::values::numbers::{decimal_binary, numeric_binary};
use crate::values::text::text;
use crate::values::times::{date_binary, durations_binary, timestamps_binary};
use crate::values::{ValueError, Write, each_primitive, sure};

/// Returns the writer of an array in the binary format.
pub(super) fn binary(array: &ArrayRef, base: &Type) -> Result<Write, ValueError> {
    Ok(match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().clone();
            Box::new(move |row, out| {
                out.put_u8(u8::from(values.value(row)));
                Ok(())
            })
        }
        DataType::Int8 => sure::<Int8Type>(array, |value, out| out.put_i16(value.into())),
        DataType::Int16 => sure::<Int16Type>(array, |value, out| out.put_i16(value)),
        DataType::Int32 => sure::<Int32Type>(array, |value, out| out.put_i32(value)),
        DataType::Int64 => sure::<Int64Type>(array, |value, out| out.put_i64(value)),
        DataType::UInt8 => sure::<UInt8Type>(array, |value, out| out.put_i16(value.into())),
        DataType::UInt16 => sure::<UInt16Type>(array, |value, out| out.put_i32(value.into())),
        DataType::UInt32 => sure::<UInt32Type>(array, |value, out| out.put_i64(value.into())),
        DataType::UInt64 => {
            each_primitive::<UInt64Type>(array, |value, out| numeric_binary(&value.to_string(), out))
        }
        DataType::Float32 => sure::<Float32Type>(array, |value, out| out.put_f32(value)),
        DataType::Float64 => sure::<Float64Type>(array, |value, out| out.put_f64(value)),
        DataType::Decimal128(precision, scale) => decimal_binary::<Decimal128Type>(array, *precision, *scale),
        DataType::Decimal256(precision, scale) => decimal_binary::<Decimal256Type>(array, *precision, *scale),
        DataType::BinaryView => {
            let values = array.as_binary_view().clone();
            Box::new(move |row, out| {
                out.put_slice(values.value(row));
                Ok(())
            })
        }
        DataType::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary().clone();
            Box::new(move |row, out| {
                out.put_slice(values.value(row));
                Ok(())
            })
        }
        DataType::Date32 => each_primitive::<Date32Type>(array, date_binary),
        DataType::Time64(_) => sure::<Time64MicrosecondType>(array, |micros, out| out.put_i64(micros)),
        DataType::Timestamp(unit, _) => timestamps_binary(array, *unit),
        DataType::Duration(unit) => durations_binary(array, *unit),
        DataType::Interval(_) => sure::<IntervalMonthDayNanoType>(array, |value, out| {
            out.put_i64(value.nanoseconds.div_euclid(1000));
            out.put_i32(value.days);
            out.put_i32(value.months);
        }),
        DataType::List(_) if element_of(base).is_some() => list_binary::<i32>(array, base)?,
        DataType::LargeList(_) if element_of(base).is_some() => list_binary::<i64>(array, base)?,
        // Text has the same form in both formats.
        _ => text(array, base)?,
    })
}
