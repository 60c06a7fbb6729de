//! Points in time in digits without separators, and in the bits of ids.

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use chrono::{NaiveDate, NaiveTime, Timelike};

/// Number of values whose bits are examined.
const MAX_BITS: usize = 1_000;

/// The start of the day in eight digits, from 1900 to 2099, in microseconds since 1970.
pub(crate) fn date_of_digits(number: i64) -> Option<i64> {
    let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
    let year = i32::try_from(year).ok().filter(|year| (1900..2100).contains(year))?;
    let date = NaiveDate::from_ymd_opt(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?)?;
    Some(date.and_time(NaiveTime::MIN).and_utc().timestamp_micros())
}

/// The point in time in fourteen digits, from 1900 to 2099, in microseconds since 1970.
pub(crate) fn time_of_digits(number: i64) -> Option<i64> {
    let (date, time) = (number / 1_000_000, number % 1_000_000);
    let part = |unit: i64| u32::try_from(time / unit % 100).ok();
    let time = NaiveTime::from_hms_opt(part(10_000)?, part(100)?, part(1)?)?;
    Some(date_of_digits(date)? + i64::from(time.num_seconds_from_midnight()) * 1_000_000)
}

/// The point in time of a date in eight digits and a time of day, with or without marks between
/// them and a fraction, in microseconds since 1970.
pub(crate) fn compact_time(text: &str) -> Option<i64> {
    let text = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let (date, time) = whole.split_at_checked(8)?;
    let time = time.strip_prefix(['T', ' ', '-', '_', ':']).unwrap_or(time);
    let digits: String = match time.len() {
        6 => time.to_owned(),
        8 if time.bytes().filter(|byte| *byte == b':').count() == 2 => time.replace(':', ""),
        _ => return None,
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(date) || digits.len() != 6 || !is_number(&digits) || !is_number(fraction) {
        return None;
    }
    let micros = format!("{:0<6}", fraction.get(..6).unwrap_or(fraction)).parse::<i64>().ok()?;
    Some(time_of_digits(format!("{date}{digits}").parse().ok()?)? + micros)
}

/// Whether whole numbers consist of a date in eight digits and further ones, as numbers of documents
/// do: 2026010300017. As counts since 1970, nearly all of them would be times in 2033 to 2036.
pub(crate) fn begin_with_dates(array: &ArrayRef) -> bool {
    let Ok(numbers) = cast(array, &DataType::Int64) else { return false };
    let begins_with_date = |number: i64| {
        let further = number.checked_ilog10().unwrap_or(0).saturating_sub(7);
        further > 0 && date_of_digits(number / 10_i64.pow(further)).is_some()
    };
    let mut numbers = numbers.as_primitive::<Int64Type>().iter().flatten().peekable();
    numbers.peek().is_some() && numbers.all(begins_with_date)
}

/// Whether the low bits of whole numbers look like those of snowflake ids: a few workers, or
/// sequence numbers that begin at 0 in each millisecond. Nanoseconds and random numbers have
/// arbitrary low bits.
pub(crate) fn has_workers(array: &ArrayRef) -> bool {
    const SEQUENCE_BITS: u32 = 12;
    let Ok(numbers) = cast(array, &DataType::Int64) else { return false };
    let numbers = numbers.as_primitive::<Int64Type>();
    let (mut workers, mut low, mut all) = (std::collections::BTreeSet::new(), 0usize, 0usize);
    for number in numbers.iter().flatten().take(MAX_BITS) {
        workers.insert(number >> SEQUENCE_BITS & 0x3FF);
        low += usize::from(number & 0xFFF < 64);
        all += 1;
    }
    all > 0 && (workers.len() * 3 <= all.min(192) || low * 10 >= all * 9)
}
