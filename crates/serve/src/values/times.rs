//! Dates, times and intervals in both formats.

use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{
    DataType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use bytes::{BufMut, BytesMut};
use chrono::{Datelike, NaiveDate};

use crate::values::{ValueError, Write, out_of_range};

/// Days from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
const MICROS_OF_DAY: i64 = 86_400_000_000;
const MICROS_OF_SECOND: i64 = 1_000_000;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * MICROS_OF_DAY;

/// Returns the numbers of an array of times.
fn times(array: &ArrayRef, unit: TimeUnit) -> ScalarBuffer<i64> {
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

pub(super) fn date_text(days: i32, out: &mut BytesMut) -> Result<(), ValueError> {
    let after_christ = days.checked_add(719_163).ok_or_else(|| out_of_range("date", days))?;
    let date =
        NaiveDate::from_num_days_from_ce_opt(after_christ).ok_or_else(|| out_of_range("date", days))?;
    let (year, era) = year_and_era(date.year());
    let _ = write!(out, "{year:04}-{:02}-{:02}{era}", date.month(), date.day());
    Ok(())
}

/// Writes a date as days since 2000-01-01.
pub(super) fn date_binary(days: i32, out: &mut BytesMut) -> Result<(), ValueError> {
    out.put_i32(days.checked_sub(EPOCH_DAYS).ok_or_else(|| out_of_range("date", days))?);
    Ok(())
}

/// Year as it is written: PostgreSQL has no year 0.
fn year_and_era(year: i32) -> (i32, &'static str) {
    if year > 0 { (year, "") } else { (1 - year, " BC") }
}

pub(super) fn time_text(micros: i64, out: &mut BytesMut) {
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

/// Writes points in time in text, with the offset of UTC if they have a time zone.
pub(super) fn timestamps_text(array: &ArrayRef, unit: TimeUnit, has_zone: bool) -> Write {
    let (micros, values) = (micros_of(unit), times(array, unit));
    Box::new(move |row, out| timestamp_text(micros(values.get(row).copied().unwrap_or(0)), has_zone, out))
}

/// Writes points in time as microseconds since 2000-01-01.
pub(super) fn timestamps_binary(array: &ArrayRef, unit: TimeUnit) -> Write {
    let (micros, values) = (micros_of(unit), times(array, unit));
    Box::new(move |row, out| {
        let micros = micros(values.get(row).copied().unwrap_or(0));
        let since = micros.checked_sub(EPOCH_MICROS).ok_or_else(|| out_of_range("timestamp", micros))?;
        out.put_i64(since);
        Ok(())
    })
}

/// Writes durations in text, as intervals.
pub(super) fn durations_text(array: &ArrayRef, unit: TimeUnit) -> Write {
    let values = times(array, unit);
    Box::new(move |row, out| {
        let micros = duration_micros(values.get(row).copied().unwrap_or(0), unit)?;
        interval_text(0, 0, micros, out);
        Ok(())
    })
}

/// Writes durations as intervals without days and months.
pub(super) fn durations_binary(array: &ArrayRef, unit: TimeUnit) -> Write {
    let values = times(array, unit);
    Box::new(move |row, out| {
        out.put_i64(duration_micros(values.get(row).copied().unwrap_or(0), unit)?);
        out.put_i32(0);
        out.put_i32(0);
        Ok(())
    })
}

/// Writes an interval in the style `postgres`: `1 year 2 mons 3 days 04:05:06.7`.
pub(super) fn interval_text(months: i32, days: i32, micros: i64, out: &mut BytesMut) {
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
