//! Numbers in both formats.

use std::fmt::Write as _;

use arrow::array::{ArrayRef, ArrowPrimitiveType};
use arrow::datatypes::DecimalType;
use bytes::{BufMut, BytesMut};

use crate::values::{ValueError, Write, each_primitive, out_of_range, sure};

/// Writes a number in decimal digits.
pub(super) fn digits<T: ArrowPrimitiveType>(array: &ArrayRef) -> Write
where
    T::Native: std::fmt::Display,
{
    sure::<T>(array, |value, out| {
        let _ = write!(out, "{value}");
    })
}

/// Maximum number of digits before the point for PostgreSQL to write a float without an exponent:
/// the digits that the type always preserves.
pub(super) const FLOAT4_DIGITS: i32 = 6;
pub(super) const FLOAT8_DIGITS: i32 = 15;

/// Writes a float from its shortest digits with exponent, such as `1.5e-7`, as PostgreSQL does.
pub(super) fn float_text(scientific: &str, whole_digits: i32, out: &mut BytesMut) {
    let Some((digits, exponent)) = scientific.split_once('e') else {
        let name = match scientific {
            "inf" => "Infinity",
            "-inf" => "-Infinity",
            _ => "NaN",
        };
        out.put_slice(name.as_bytes());
        return;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    if exponent < -4 || exponent >= whole_digits {
        let direction = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{sign}{digits}e{direction}{:02}", exponent.abs());
        return;
    }
    let plain: String = digits.chars().filter(|digit| *digit != '.').collect();
    out.put_slice(sign.as_bytes());
    match usize::try_from(exponent) {
        Ok(exponent) => {
            let whole = exponent + 1;
            let (before, after) = plain.split_at(whole.min(plain.len()));
            let _ = write!(out, "{before:0<whole$}");
            if !after.is_empty() {
                let _ = write!(out, ".{after}");
            }
        }
        Err(_) => {
            let zeros = usize::try_from(-1 - exponent).unwrap_or(0);
            let _ = write!(out, "0.{:0<zeros$}{plain}", "");
        }
    }
}

pub(super) fn decimal_text<T: DecimalType>(array: &ArrayRef, precision: u8, scale: i8) -> Write
where
    T::Native: Send,
{
    sure::<T>(array, move |value, out| {
        out.put_slice(T::format_decimal(value, precision, scale).as_bytes());
    })
}

pub(super) fn decimal_binary<T: DecimalType>(array: &ArrayRef, precision: u8, scale: i8) -> Write {
    each_primitive::<T>(array, move |value, out| {
        numeric_binary(&T::format_decimal(value, precision, scale), out)
    })
}

/// Writes a number in decimal digits as a numeric: digits of base 10,000, the power of the first
/// one, the sign, and the number of decimal places.
pub(super) fn numeric_binary(text: &str, out: &mut BytesMut) -> Result<(), ValueError> {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let error = || out_of_range("numeric", text);
    let scale = i16::try_from(fraction.len()).map_err(|_| error())?;
    let whole = whole.trim_start_matches('0');
    let padded = format!("{whole:0>width$}", width = whole.len().next_multiple_of(4));
    let fraction = format!("{fraction:0<width$}", width = fraction.len().next_multiple_of(4));
    let group = |digits: &[u8]| digits.iter().fold(0i16, |sum, digit| sum * 10 + i16::from(digit - b'0'));
    let mut groups: Vec<i16> =
        padded.as_bytes().chunks(4).chain(fraction.as_bytes().chunks(4)).map(group).collect();
    let mut weight = i16::try_from(padded.len() / 4).map_err(|_| error())? - 1;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let zeros = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..zeros);
    weight -= i16::try_from(zeros).map_err(|_| error())?;
    if groups.is_empty() {
        weight = 0;
    }
    out.put_i16(i16::try_from(groups.len()).map_err(|_| error())?);
    out.put_i16(weight);
    out.put_u16(if is_negative && !groups.is_empty() { 0x4000 } else { 0 });
    out.put_i16(scale);
    groups.iter().for_each(|group| out.put_i16(*group));
    Ok(())
}
