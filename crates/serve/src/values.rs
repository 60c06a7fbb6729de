//! Values of Arrow arrays in the two formats of the PostgreSQL protocol.
//!
//! In text, values are written as PostgreSQL writes them with `DateStyle` ISO and `TimeZone` UTC. The
//! binary format of each type is that of its `send` function: numbers in network byte order, times in
//! microseconds and dates in days since 2000-01-01.

use std::fmt::Write as _;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, GenericListArray, OffsetSizeTrait, RecordBatch,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, DecimalType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::datatypes::{Decimal128Type, Decimal256Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::{BufMut, BytesMut};
use chrono::{Datelike, NaiveDate};
use pgwire::api::Type;
use thiserror::Error;

use crate::types::{PgType, element_of, pg_type};

/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i32 = 10_957;
const MICROS_OF_DAY: i64 = 86_400_000_000;
const MICROS_OF_SECOND: i64 = 1_000_000;
/// Microseconds from 1970-01-01 to 2000-01-01.
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * MICROS_OF_DAY;

/// A value that clients cannot be given.
#[derive(Debug, Error)]
pub(crate) enum ValueError {
    #[error("{kind} out of range: {value} cannot be sent")]
    OutOfRange { kind: &'static str, value: String },
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// The format of a column of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Binary,
}

impl Format {
    /// Code of the format in messages.
    pub(crate) fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }
}

/// Writes one value that is not NULL.
type Write = Box<dyn Fn(usize, &mut BytesMut) -> Result<(), ValueError> + Send>;

/// Writes the values of a column.
pub(crate) struct Column {
    /// Logical: an array of type Null is all NULL, without a mask.
    nulls: Option<NullBuffer>,
    write: Write,
}

impl Column {
    /// Whether a value is NULL.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends a value that is not NULL.
    pub(crate) fn write(&self, row: usize, out: &mut BytesMut) -> Result<(), ValueError> {
        (self.write)(row, out)
    }

    /// Appends a value with its length in front, which is -1 for NULL.
    pub(crate) fn write_with_length(&self, row: usize, out: &mut BytesMut) -> Result<(), ValueError> {
        if self.is_null(row) {
            out.put_i32(-1);
            return Ok(());
        }
        let start = out.len();
        out.put_i32(0);
        self.write(row, out)?;
        let length = i32::try_from(out.len() - start - 4).map_err(|_| ValueError::OutOfRange {
            kind: "length",
            value: format!("a value of {} bytes", out.len() - start),
        })?;
        if let Some(place) = out.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }
}

/// Returns what writes the columns of a batch. `formats` has one for each column, or one for all.
pub(crate) fn columns(batch: &RecordBatch, formats: &[Format]) -> Result<Vec<Column>, ValueError> {
    let fields = batch.schema_ref().fields().iter().zip(batch.columns());
    let format = |at: usize| match formats {
        [] => Format::Text,
        [all] => *all,
        several => several.get(at).copied().unwrap_or(Format::Text),
    };
    let column = |(at, (field, array)): (usize, (&arrow::datatypes::FieldRef, &ArrayRef))| {
        column(array, &pg_type(field), format(at))
    };
    fields.enumerate().map(column).collect()
}

/// Returns what writes an array as values of a type.
fn column(array: &ArrayRef, pg: &PgType, format: Format) -> Result<Column, ValueError> {
    // Types that differ only in width or layout have one representation here.
    let normal = match array.data_type() {
        DataType::Dictionary(_, values) => {
            let flat = cast(array, values)?;
            return column(&flat, pg, format);
        }
        DataType::Float16 => Some(DataType::Float32),
        DataType::Utf8 | DataType::LargeUtf8 => Some(DataType::Utf8View),
        DataType::Binary | DataType::LargeBinary => Some(DataType::BinaryView),
        DataType::Date64 => Some(DataType::Date32),
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => Some(DataType::Decimal128(*p, *s)),
        DataType::Time32(_) | DataType::Time64(TimeUnit::Nanosecond) => {
            Some(DataType::Time64(TimeUnit::Microsecond))
        }
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
            Some(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        DataType::Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime) => {
            Some(DataType::Interval(IntervalUnit::MonthDayNano))
        }
        DataType::FixedSizeList(field, _) => Some(DataType::List(field.clone())),
        _ => None,
    };
    let array = match normal {
        // A value that does not fit is an error, not NULL.
        Some(normal) => &arrow::compute::cast_with_options(
            array,
            &normal,
            &arrow::compute::CastOptions { safe: false, ..Default::default() },
        )?,
        None => array,
    };
    let write = match format {
        Format::Text => text(array, &pg.base)?,
        Format::Binary => binary(array, &pg.base)?,
    };
    Ok(Column { nulls: array.logical_nulls(), write })
}

/// Writes a primitive value by a function of it.
fn of<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    write: impl Fn(T::Native, &mut BytesMut) -> Result<(), ValueError> + Send + 'static,
) -> Write {
    let values = array.as_primitive::<T>().values().clone();
    Box::new(move |row, out| match values.get(row) {
        Some(value) => write(*value, out),
        None => Ok(()),
    })
}

/// Like [`of`], for values that can always be written.
fn sure<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    write: impl Fn(T::Native, &mut BytesMut) + Send + 'static,
) -> Write {
    of::<T>(array, move |value, out| {
        write(value, out);
        Ok(())
    })
}

/// Writes a number in decimal digits.
fn digits<T: ArrowPrimitiveType>(array: &ArrayRef) -> Write
where
    T::Native: std::fmt::Display,
{
    sure::<T>(array, |value, out| {
        let _ = write!(out, "{value}");
    })
}

fn text(array: &ArrayRef, base: &Type) -> Result<Write, ValueError> {
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
        DataType::FixedSizeBinary(16) => {
            let values = array.as_fixed_size_binary().clone();
            Box::new(move |row, out| {
                uuid_text(values.value(row), out);
                Ok(())
            })
        }
        DataType::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary().clone();
            Box::new(move |row, out| {
                hexadecimal(values.value(row), out);
                Ok(())
            })
        }
        DataType::Date32 => of::<Date32Type>(array, date_text),
        DataType::Time64(_) => sure::<arrow::datatypes::Time64MicrosecondType>(array, time_text),
        DataType::Timestamp(unit, zone) => {
            let (micros, has_zone) = (micros_of(*unit), zone.is_some());
            let values = times(array, *unit);
            Box::new(move |row, out| {
                timestamp_text(micros(values.get(row).copied().unwrap_or(0)), has_zone, out)
            })
        }
        DataType::Duration(unit) => {
            let values = times(array, *unit);
            let unit = *unit;
            Box::new(move |row, out| {
                let micros = duration_micros(values.get(row).copied().unwrap_or(0), unit)?;
                interval_text(0, 0, micros, out);
                Ok(())
            })
        }
        DataType::Interval(_) => sure::<IntervalMonthDayNanoType>(array, |value, out| {
            interval_text(value.months, value.days, value.nanoseconds.div_euclid(1000), out);
        }),
        DataType::List(_) if element_of(base).is_some() => list_text::<i32>(array, base)?,
        DataType::LargeList(_) if element_of(base).is_some() => list_text::<i64>(array, base)?,
        _ => shown(array),
    })
}

fn binary(array: &ArrayRef, base: &Type) -> Result<Write, ValueError> {
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
        DataType::UInt64 => of::<UInt64Type>(array, |value, out| numeric_binary(&value.to_string(), out)),
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
        DataType::Date32 => of::<Date32Type>(array, |days, out| {
            out.put_i32(days.checked_sub(EPOCH_DAYS).ok_or_else(|| out_of_range("date", days))?);
            Ok(())
        }),
        DataType::Time64(_) => {
            sure::<arrow::datatypes::Time64MicrosecondType>(array, |micros, out| out.put_i64(micros))
        }
        DataType::Timestamp(unit, _) => {
            let (micros, values) = (micros_of(*unit), times(array, *unit));
            Box::new(move |row, out| {
                let micros = micros(values.get(row).copied().unwrap_or(0));
                let since =
                    micros.checked_sub(EPOCH_MICROS).ok_or_else(|| out_of_range("timestamp", micros))?;
                out.put_i64(since);
                Ok(())
            })
        }
        DataType::Duration(unit) => {
            let (unit, values) = (*unit, times(array, *unit));
            Box::new(move |row, out| {
                out.put_i64(duration_micros(values.get(row).copied().unwrap_or(0), unit)?);
                out.put_i32(0);
                out.put_i32(0);
                Ok(())
            })
        }
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

fn out_of_range(kind: &'static str, value: impl std::fmt::Display) -> ValueError {
    ValueError::OutOfRange { kind, value: value.to_string() }
}

/// Returns the numbers of an array of times.
fn times(array: &ArrayRef, unit: TimeUnit) -> arrow::buffer::ScalarBuffer<i64> {
    use arrow::datatypes::{
        DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    };
    match (array.data_type(), unit) {
        (DataType::Duration(_), TimeUnit::Second) => array.as_primitive::<DurationSecondType>().values(),
        (DataType::Duration(_), TimeUnit::Millisecond) => {
            array.as_primitive::<DurationMillisecondType>().values()
        }
        (DataType::Duration(_), TimeUnit::Microsecond) => {
            array.as_primitive::<DurationMicrosecondType>().values()
        }
        (DataType::Duration(_), TimeUnit::Nanosecond) => {
            array.as_primitive::<DurationNanosecondType>().values()
        }
        (_, TimeUnit::Second) => array.as_primitive::<TimestampSecondType>().values(),
        (_, TimeUnit::Millisecond) => array.as_primitive::<TimestampMillisecondType>().values(),
        (_, TimeUnit::Microsecond) => array.as_primitive::<TimestampMicrosecondType>().values(),
        (_, TimeUnit::Nanosecond) => array.as_primitive::<TimestampNanosecondType>().values(),
    }
    .clone()
}

/// Converts points in time to microseconds, the finest unit of PostgreSQL.
fn micros_of(unit: TimeUnit) -> fn(i64) -> i64 {
    match unit {
        TimeUnit::Nanosecond => |nanos| nanos.div_euclid(1000),
        // Coarser units were converted before.
        _ => |micros| micros,
    }
}

fn duration_micros(value: i64, unit: TimeUnit) -> Result<i64, ValueError> {
    let micros = match unit {
        TimeUnit::Second => value.checked_mul(MICROS_OF_SECOND),
        TimeUnit::Millisecond => value.checked_mul(1000),
        TimeUnit::Microsecond => Some(value),
        TimeUnit::Nanosecond => Some(value.div_euclid(1000)),
    };
    micros.ok_or_else(|| out_of_range("interval", value))
}

fn date_text(days: i32, out: &mut BytesMut) -> Result<(), ValueError> {
    let after_christ = days.checked_add(719_163).ok_or_else(|| out_of_range("date", days))?;
    let date =
        NaiveDate::from_num_days_from_ce_opt(after_christ).ok_or_else(|| out_of_range("date", days))?;
    let (year, era) = year_and_era(date.year());
    let _ = write!(out, "{year:04}-{:02}-{:02}{era}", date.month(), date.day());
    Ok(())
}

/// Year as it is written: there is no year 0 before the first one.
fn year_and_era(year: i32) -> (i32, &'static str) {
    if year > 0 { (year, "") } else { (1 - year, " BC") }
}

fn time_text(micros: i64, out: &mut BytesMut) {
    let (seconds, fraction) = (micros.div_euclid(MICROS_OF_SECOND), micros.rem_euclid(MICROS_OF_SECOND));
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    fraction_text(fraction, out);
}

/// Writes microseconds as a fraction, without zeros at its end.
fn fraction_text(micros: i64, out: &mut BytesMut) {
    if micros != 0 {
        let digits = format!("{micros:06}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
}

fn timestamp_text(micros: i64, has_zone: bool, out: &mut BytesMut) -> Result<(), ValueError> {
    let error = || out_of_range("timestamp", micros);
    let days = i32::try_from(micros.div_euclid(MICROS_OF_DAY)).map_err(|_| error())?;
    let after_christ = days.checked_add(719_163).ok_or_else(error)?;
    let date = NaiveDate::from_num_days_from_ce_opt(after_christ).ok_or_else(error)?;
    let (year, era) = year_and_era(date.year());
    let _ = write!(out, "{year:04}-{:02}-{:02} ", date.month(), date.day());
    time_text(micros.rem_euclid(MICROS_OF_DAY), out);
    if has_zone {
        out.put_slice(b"+00");
    }
    out.put_slice(era.as_bytes());
    Ok(())
}

/// Writes an interval in the style `postgres`: `1 year 2 mons 3 days 04:05:06.7`.
fn interval_text(months: i32, days: i32, micros: i64, out: &mut BytesMut) {
    let start = out.len();
    let parts = [(months / 12, "year", "years"), (months % 12, "mon", "mons"), (days, "day", "days")];
    let mut is_after_negative = false;
    for (value, one, many) in parts {
        if value != 0 {
            let space = if out.len() > start { " " } else { "" };
            let sign = if is_after_negative && value > 0 { "+" } else { "" };
            let _ = write!(out, "{space}{sign}{value} {}", if value == 1 { one } else { many });
            is_after_negative = value < 0;
        }
    }
    if micros != 0 || out.len() == start {
        let space = if out.len() > start { " " } else { "" };
        let sign = match micros {
            negative if negative < 0 => "-",
            _ if is_after_negative => "+",
            _ => "",
        };
        let size = micros.unsigned_abs();
        let seconds = size / MICROS_OF_SECOND.unsigned_abs();
        let _ =
            write!(out, "{space}{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        fraction_text(i64::try_from(size % MICROS_OF_SECOND.unsigned_abs()).unwrap_or(0), out);
    }
}

/// Digits before the point up to which PostgreSQL writes a float without an exponent: those that the
/// type always holds.
const FLOAT4_DIGITS: i32 = 6;
const FLOAT8_DIGITS: i32 = 15;

/// Writes a float from its shortest digits with exponent, such as `1.5e-7`, as PostgreSQL does.
fn float_text(scientific: &str, whole_digits: i32, out: &mut BytesMut) {
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

fn decimal_text<T: DecimalType>(array: &ArrayRef, precision: u8, scale: i8) -> Write
where
    T::Native: Send,
{
    sure::<T>(array, move |value, out| {
        out.put_slice(T::format_decimal(value, precision, scale).as_bytes());
    })
}

fn decimal_binary<T: DecimalType>(array: &ArrayRef, precision: u8, scale: i8) -> Write {
    of::<T>(array, move |value, out| numeric_binary(&T::format_decimal(value, precision, scale), out))
}

/// Writes a number in decimal digits as a numeric: digits of base 10,000, the power of the first one,
/// the sign, and the number of decimal places.
fn numeric_binary(text: &str, out: &mut BytesMut) -> Result<(), ValueError> {
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

/// Returns the elements of a list with the offsets of each row.
fn elements<O: OffsetSizeTrait>(
    array: &ArrayRef,
    base: &Type,
    format: Format,
) -> Result<(Column, GenericListArray<O>), ValueError> {
    let list = array.as_list::<O>().clone();
    let base = element_of(base).unwrap_or(Type::TEXT);
    let element = column(list.values(), &PgType { base, modifier: -1 }, format)?;
    Ok((element, list))
}

/// Rows of the elements that belong to a list.
fn range_of<O: OffsetSizeTrait>(list: &GenericListArray<O>, row: usize) -> std::ops::Range<usize> {
    let offset = |at: usize| list.value_offsets().get(at).map_or(0, |offset| offset.as_usize());
    offset(row)..offset(row + 1)
}

fn list_text<O: OffsetSizeTrait>(array: &ArrayRef, base: &Type) -> Result<Write, ValueError> {
    let (element, list) = elements::<O>(array, base, Format::Text)?;
    if *base == Type::INT2_VECTOR {
        return Ok(Box::new(move |row, out| {
            for (at, row) in range_of(&list, row).enumerate() {
                if at > 0 {
                    out.put_u8(b' ');
                }
                element.write(row, out)?;
            }
            Ok(())
        }));
    }
    Ok(Box::new(move |row, out| {
        out.put_u8(b'{');
        let mut value = BytesMut::new();
        for (at, row) in range_of(&list, row).enumerate() {
            if at > 0 {
                out.put_u8(b',');
            }
            if element.is_null(row) {
                out.put_slice(b"NULL");
                continue;
            }
            value.clear();
            element.write(row, &mut value)?;
            let is_plain = !value.is_empty()
                && !value.eq_ignore_ascii_case(b"null")
                && value.iter().all(|byte| !b"{},\"\\ \t\n\r\x0b\x0c".contains(byte));
            if is_plain {
                out.put_slice(&value);
                continue;
            }
            out.put_u8(b'"');
            for byte in &value {
                if matches!(byte, b'"' | b'\\') {
                    out.put_u8(b'\\');
                }
                out.put_u8(*byte);
            }
            out.put_u8(b'"');
        }
        out.put_u8(b'}');
        Ok(())
    }))
}

fn list_binary<O: OffsetSizeTrait>(array: &ArrayRef, base: &Type) -> Result<Write, ValueError> {
    let (element, list) = elements::<O>(array, base, Format::Binary)?;
    let oid = element_of(base).unwrap_or(Type::TEXT).oid();
    Ok(Box::new(move |row, out| {
        let rows = range_of(&list, row);
        let has_null = rows.clone().any(|row| element.is_null(row));
        out.put_i32(i32::from(!rows.is_empty()));
        out.put_i32(i32::from(has_null));
        out.put_u32(oid);
        if !rows.is_empty() {
            out.put_i32(i32::try_from(rows.len()).map_err(|_| out_of_range("array", rows.len()))?);
            // Arrays are counted from 1.
            out.put_i32(1);
        }
        rows.into_iter().try_for_each(|row| element.write_with_length(row, out))
    }))
}

/// Writes values as they are shown in tables, for types that PostgreSQL does not have.
fn shown(array: &ArrayRef) -> Write {
    let array = array.clone();
    Box::new(move |row, out| {
        let options = FormatOptions::default().with_null("NULL");
        let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
        let _ = write!(out, "{}", formatter.value(row).try_to_string()?);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Decimal256Array, DictionaryArray,
        DurationMicrosecondArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array,
        IntervalMonthDayNanoArray, ListArray, NullArray, StringArray, Time64MicrosecondArray,
        TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
    };
    use arrow::datatypes::{Int32Type, IntervalMonthDayNano, i256};
    use datafusion::common::ScalarValue;
    use proptest::prelude::*;

    use super::*;
    use crate::parameters::{Parameter, read};
    use crate::types::from_arrow;

    fn texts(array: impl Array + 'static) -> Vec<Option<String>> {
        written(&(Arc::new(array) as ArrayRef), Format::Text)
            .into_iter()
            .map(|bytes| bytes.map(|bytes| String::from_utf8(bytes).unwrap()))
            .collect()
    }

    fn written(array: &ArrayRef, format: Format) -> Vec<Option<Vec<u8>>> {
        let column = column(array, &from_arrow(array.data_type()), format).unwrap();
        let value = |row: usize| {
            let mut bytes = BytesMut::new();
            column.write_with_length(row, &mut bytes).unwrap();
            let length = i32::from_be_bytes(bytes[..4].try_into().unwrap());
            assert_eq!(
                length,
                if column.is_null(row) { -1 } else { i32::try_from(bytes.len() - 4).unwrap() }
            );
            (length >= 0).then(|| bytes[4..].to_vec())
        };
        (0..array.len()).map(value).collect()
    }

    fn all(expected: &[&str]) -> Vec<Option<String>> {
        expected.iter().map(|text| Some((*text).to_owned())).collect()
    }

    /// Texts that PostgreSQL 16 writes for these values, with TimeZone UTC.
    #[test]
    fn texts_are_those_of_postgres() {
        assert_eq!(texts(BooleanArray::from(vec![true, false])), all(&["t", "f"]));
        assert_eq!(texts(UInt64Array::from(vec![u64::MAX, 0])), all(&["18446744073709551615", "0"]));
        let floats = vec![0.0, -0.0, 1.0, 1.5, 1e14, 1e15, 1e20, -1e-4, 1e-5, 0.1 + 0.2, f64::MAX, 5e-324];
        let expected = [
            "0",
            "-0",
            "1",
            "1.5",
            "100000000000000",
            "1e+15",
            "1e+20",
            "-0.0001",
            "1e-05",
            "0.30000000000000004",
            "1.7976931348623157e+308",
            "5e-324",
        ];
        assert_eq!(texts(Float64Array::from(floats)), all(&expected));
        let special = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        assert_eq!(texts(Float64Array::from(special)), all(&["NaN", "Infinity", "-Infinity"]));
        let floats = vec![1e5, 1e6, 16_777_216.0, 0.1, 3.4e38];
        assert_eq!(
            texts(Float32Array::from(floats)),
            all(&["100000", "1e+06", "1.6777216e+07", "0.1", "3.4e+38"])
        );
        let decimals = Decimal128Array::from(vec![12_345, -5, 0]).with_precision_and_scale(10, 2).unwrap();
        assert_eq!(texts(decimals), all(&["123.45", "-0.05", "0.00"]));
        let nines = "9".repeat(76);
        let most = i256::from_string(&nines).unwrap();
        let decimal = Decimal256Array::from(vec![most]).with_precision_and_scale(76, 10).unwrap();
        assert_eq!(texts(decimal), all(&[&format!("{}.{}", "9".repeat(66), "9".repeat(10))]));
        let dates = Date32Array::from(vec![0, 19_782, -719_162, -719_163, -719_528, 2_932_896]);
        let expected =
            ["1970-01-01", "2024-02-29", "0001-01-01", "0001-12-31 BC", "0001-01-01 BC", "9999-12-31"];
        assert_eq!(texts(dates), all(&expected));
        let times =
            TimestampMicrosecondArray::from(vec![0, 1, -1, 1_000_000, 1_500_000, -62_135_596_800_000_001]);
        let expected = [
            "1970-01-01 00:00:00",
            "1970-01-01 00:00:00.000001",
            "1969-12-31 23:59:59.999999",
            "1970-01-01 00:00:01",
            "1970-01-01 00:00:01.5",
            "0001-12-31 23:59:59.999999 BC",
        ];
        assert_eq!(texts(times), all(&expected));
        let zoned = TimestampSecondArray::from(vec![1_700_000_000]).with_timezone("Europe/Berlin");
        assert_eq!(texts(zoned), all(&["2023-11-14 22:13:20+00"]));
        assert_eq!(texts(TimestampNanosecondArray::from(vec![-1])), all(&["1969-12-31 23:59:59.999999"]));
        let times = Time64MicrosecondArray::from(vec![0, 86_399_999_999]);
        assert_eq!(texts(times), all(&["00:00:00", "23:59:59.999999"]));
        let spans = DurationMicrosecondArray::from(vec![0, 178_200_000_000, -1, 90_061_500_000]);
        assert_eq!(texts(spans), all(&["00:00:00", "49:30:00", "-00:00:00.000001", "25:01:01.5"]));
        let interval = |months, days, nanos| IntervalMonthDayNano::new(months, days, nanos);
        let intervals = IntervalMonthDayNanoArray::from(vec![
            interval(14, 3, 14_706_700_000_000),
            interval(-1, 1, 0),
            interval(0, -1, 3_600_000_000_000),
            interval(1, 0, 0),
        ]);
        let expected = ["1 year 2 mons 3 days 04:05:06.7", "-1 mons +1 day", "-1 days +01:00:00", "1 mon"];
        assert_eq!(texts(intervals), all(&expected));
        let bytes = FixedSizeBinaryArray::try_from_iter([[0x01u8, 0xff]].into_iter()).unwrap();
        assert_eq!(texts(bytes), all(&["\\x01ff"]));
        let uuid = uuid_bytes();
        let uuids = FixedSizeBinaryArray::try_from_iter([uuid].into_iter()).unwrap();
        assert_eq!(texts(uuids), all(&["f79c3e09-677c-4bbd-a479-3f349cb785e7"]));
    }

    fn uuid_bytes() -> [u8; 16] {
        0xf79c_3e09_677c_4bbd_a479_3f34_9cb7_85e7_u128.to_be_bytes()
    }

    #[test]
    fn null_is_null_whatever_holds_it() {
        assert_eq!(texts(NullArray::new(2)), [None, None]);
        assert_eq!(texts(Int32Array::from(vec![None, Some(1)])), [None, Some("1".to_owned())]);
        // NULL as a value of the dictionary, and as a key.
        let values = Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef;
        let keys = Int32Array::from(vec![Some(0), Some(1), None]);
        let dictionary = DictionaryArray::<Int32Type>::try_new(keys, values).unwrap();
        assert_eq!(texts(dictionary), [Some("a".to_owned()), None, None]);
    }

    #[test]
    fn arrays_are_quoted_where_they_have_to_be() {
        let rows = vec![
            Some(vec![Some("a"), None, Some("b c"), Some(""), Some("null"), Some("x\"\\y"), Some("{,}")]),
            Some(vec![]),
            None,
        ];
        let mut builder = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
        for row in rows {
            match row {
                Some(items) => builder.append_value(items),
                None => builder.append_null(),
            }
        }
        let list = builder.finish();
        let expected = r#"{a,NULL,"b c","","null","x\"\\y","{,}"}"#;
        assert_eq!(texts(list.clone()), [Some(expected.to_owned()), Some("{}".to_owned()), None]);
        // The same without its first row.
        assert_eq!(texts(list.slice(1, 2)), [Some("{}".to_owned()), None]);
        let numbers = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), Some(-2)])]);
        assert_eq!(texts(numbers), all(&["{1,-2}"]));
    }

    #[test]
    fn what_no_type_of_postgres_holds_is_an_error() {
        let dates = Arc::new(Date32Array::from(vec![i32::MAX])) as ArrayRef;
        let column = column(&dates, &from_arrow(dates.data_type()), Format::Text).unwrap();
        assert!(column.write(0, &mut BytesMut::new()).is_err());
    }

    /// Reads a binary value as a parameter of its type would be read.
    fn read_back(bytes: &[u8], data_type: &DataType) -> ScalarValue {
        let base = from_arrow(data_type).base;
        match read(1, Some(bytes), true, Some(&base), Some(data_type)).unwrap() {
            Parameter::Value(value) => value,
            Parameter::Text(text) => panic!("{text}"),
        }
    }

    fn check_binary(value: ScalarValue) -> Result<(), TestCaseError> {
        let array = value.to_array().unwrap();
        let bytes = written(&array, Format::Binary).remove(0).unwrap();
        let back = read_back(&bytes, array.data_type());
        prop_assert_eq!(&back, &value);
        // And as text.
        let text = written(&array, Format::Text).remove(0).unwrap();
        let base = from_arrow(array.data_type()).base;
        let data_type = array.data_type();
        if !matches!(data_type, DataType::Timestamp(..) | DataType::Interval(_) | DataType::Float64) {
            match read(1, Some(&text), false, Some(&base), Some(data_type)).unwrap() {
                Parameter::Value(back) => prop_assert_eq!(back, value),
                // The engine reads it, as the type of the query.
                Parameter::Text(back) => prop_assert_eq!(back.as_bytes(), text),
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn values_come_back(
            integer in any::<i64>(),
            small in any::<i16>(),
            unsigned in any::<u64>(),
            float in any::<f64>().prop_filter("NaN is not equal to itself", |float| !float.is_nan()),
            digits in -99_999_999_999_999_999_999_999_999_999_999_999_999i128..=99_999_999_999_999_999_999_999_999_999_999_999_999,
            scale in 0i8..=38,
            // Half of the texts are made of what arrays quote, escape or trim.
            text in prop_oneof!["\\PC*", "[ \t\n\r\u{b}\u{c}\u{85}\u{a0}\u{2000}\u{3000}{},\"\\\\nulNUL]{0,6}"],
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            days in -719_162i32..2_932_896,
            micros in -62_000_000_000_000_000i64..250_000_000_000_000_000,
            flag in any::<bool>(),
        ) {
            for value in [
                ScalarValue::Int64(Some(integer)),
                ScalarValue::Int16(Some(small)),
                ScalarValue::UInt64(Some(unsigned)),
                ScalarValue::Float64(Some(float)),
                ScalarValue::Decimal128(Some(digits), 38, scale),
                ScalarValue::Utf8(Some(text.clone())),
                ScalarValue::Binary(Some(bytes.clone())),
                ScalarValue::FixedSizeBinary(16, Some(uuid_bytes().to_vec())),
                ScalarValue::Date32(Some(days)),
                ScalarValue::TimestampMicrosecond(Some(micros), None),
                ScalarValue::Boolean(Some(flag)),
                ScalarValue::List(ScalarValue::new_list(
                    &[ScalarValue::Utf8(Some(text)), ScalarValue::Utf8(None), ScalarValue::Utf8(Some(String::new()))],
                    &DataType::Utf8,
                    true,
                )),
            ] {
                check_binary(value)?;
            }
        }

        /// The shortest digits that PostgreSQL writes are read as the same float.
        #[test]
        fn floats_in_text_are_exact(float in any::<f64>(), small in any::<f32>()) {
            let text = texts(Float64Array::from(vec![float])).remove(0).unwrap();
            let back: f64 = text.parse().unwrap();
            prop_assert!(back.to_bits() == float.to_bits() || (back.is_nan() && float.is_nan()), "{}", text);
            let text = texts(Float32Array::from(vec![small])).remove(0).unwrap();
            let back: f32 = text.parse().unwrap();
            prop_assert!(back.to_bits() == small.to_bits() || (back.is_nan() && small.is_nan()), "{}", text);
        }
    }
}
