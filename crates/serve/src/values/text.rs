//! Values in the text format.

use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::{BufMut, BytesMut};
use pgwire::api::Type;

use crate::types::element_of;
use crate::values::lists::list_text;
use crate::values::numbers::{FLOAT4_DIGITS, FLOAT8_DIGITS, decimal_text, digits, float_text};
use crate::values::times::{date_text, durations_text, interval_text, time_text, timestamps_text};
use crate::values::{ValueError, Write, each_primitive, sure};

/// Returns the writer of an array in the text format.
pub(super) fn text(array: &ArrayRef, base: &Type) -> Result<Write, ValueError> {
    Ok(match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().clone();
            Box::new(move |row, out| {
                out.put_u8(if values.value(row) { b't' } else { b'f' });
                Ok(())
            })
        }
        DataType::Int8 => digits::<Int8Type>(array),
        DataType::Int16 => digits::<Int16Type>(array),
        // Identifiers of objects have no sign.
        DataType::Int32 if *base == Type::OID => sure::<Int32Type>(array, |value, out| {
            let _ = write!(out, "{}", value.cast_unsigned());
        }),
        DataType::Int32 => digits::<Int32Type>(array),
        DataType::Int64 => digits::<Int64Type>(array),
        DataType::UInt8 => digits::<UInt8Type>(array),
        DataType::UInt16 => digits::<UInt16Type>(array),
        DataType::UInt32 => digits::<UInt32Type>(array),
        DataType::UInt64 => digits::<UInt64Type>(array),
        DataType::Float32 => {
            sure::<Float32Type>(array, |value, out| float_text(&format!("{value:e}"), FLOAT4_DIGITS, out))
        }
        DataType::Float64 => {
            sure::<Float64Type>(array, |value, out| float_text(&format!("{value:e}"), FLOAT8_DIGITS, out))
        }
        DataType::Decimal128(precision, scale) => decimal_text::<Decimal128Type>(array, *precision, *scale),
        DataType::Decimal256(precision, scale) => decimal_text::<Decimal256Type>(array, *precision, *scale),
        DataType::Utf8View => {
            let values = array.as_string_view().clone();
            Box::new(move |row, out| {
                out.put_slice(values.value(row).as_bytes());
                Ok(())
            })
        }
        DataType::BinaryView => {
            let values = array.as_binary_view().clone();
            Box::new(move |row, out| {
                hexadecimal(values.value(row), out);
                Ok(())
            })
        }
        DataType::FixedSizeBinary(16) => fixed_size_text(array, uuid_text),
        DataType::FixedSizeBinary(_) => fixed_size_text(array, hexadecimal),
        DataType::Date32 => each_primitive::<Date32Type>(array, date_text),
        DataType::Time64(_) => sure::<Time64MicrosecondType>(array, time_text),
        DataType::Timestamp(unit, zone) => timestamps_text(array, *unit, zone.is_some()),
        DataType::Duration(unit) => durations_text(array, *unit),
        DataType::Interval(_) => sure::<IntervalMonthDayNanoType>(array, |value, out| {
            interval_text(value.months, value.days, value.nanoseconds.div_euclid(1000), out);
        }),
        DataType::List(_) if element_of(base).is_some() => list_text::<i32>(array, base)?,
        DataType::LargeList(_) if element_of(base).is_some() => list_text::<i64>(array, base)?,
        _ => shown(array),
    })
}

/// Writes values of one size by a function of their bytes.
fn fixed_size_text(array: &ArrayRef, write: fn(&[u8], &mut BytesMut)) -> Write {
    let values = array.as_fixed_size_binary().clone();
    Box::new(move |row, out| {
        write(values.value(row), out);
        Ok(())
    })
}

fn hexadecimal(bytes: &[u8], out: &mut BytesMut) {
    out.put_slice(b"\\x");
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
}

fn uuid_text(bytes: &[u8], out: &mut BytesMut) {
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.put_u8(b'-');
        }
        let _ = write!(out, "{byte:02x}");
    }
}

/// Writes values as tables show them, for types that PostgreSQL lacks.
fn shown(array: &ArrayRef) -> Write {
    let array = array.clone();
    Box::new(move |row, out| {
        let options = FormatOptions::default().with_null("NULL");
        let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
        let _ = write!(out, "{}", formatter.value(row).try_to_string()?);
        Ok(())
    })
}
