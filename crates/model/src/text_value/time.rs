//! Points in time in text.
//!
//! A plain number is not a point in time: seconds, milliseconds and microseconds look the same. It
//! is accepted only if the format gives the unit.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use arrow::array::timezone::Tz;
use chrono::format::{Fixed, Item, Parsed, StrftimeItems, parse};
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use thiserror::Error;

use crate::bounded::quote;
use crate::text_value::cell_error::CellError;

/// Spelling of points in time. Without a zone they are UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum TimestampFormat {
    /// The usual spellings: RFC 3339 (`2026-01-31T10:00:00.25Z`; a space may replace the T, the
    /// offset may be the name of a zone or absent, and the time may be absent), the same with
    /// slashes or without seconds, and RFC 2822. Years have four digits.
    #[default]
    Usual,
    /// Units since 1970-01-01T00:00:00Z, also with a fraction.
    Unix(UnixUnit),
    /// A `strftime` format, as the chrono crate reads it.
    Strftime(String),
    /// Dumps of YDB: the usual spellings, but Date32, Datetime64 and Timestamp64 are whole numbers
    /// of days, seconds and microseconds since 1970.
    YdbDump,
}

/// Unit of a number that is a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs, reason = "the variants are the units")]
pub enum UnixUnit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

/// Error for a timestamp format that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{}' is not a timestamp format; write unix-s, unix-ms, unix-us, unix-ns or a strftime format such as \
     '%d/%m/%Y %H:%M:%S'; zones can only be offsets (%z)",
    quote(found)
)]
pub struct TimestampFormatError {
    /// The text that was given.
    pub found: String,
}

impl FromStr for TimestampFormat {
    type Err = TimestampFormatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || TimestampFormatError { found: text.to_owned() };
        match text {
            "unix-s" => return Ok(Self::Unix(UnixUnit::Seconds)),
            "unix-ms" => return Ok(Self::Unix(UnixUnit::Millis)),
            "unix-us" => return Ok(Self::Unix(UnixUnit::Micros)),
            "unix-ns" => return Ok(Self::Unix(UnixUnit::Nanos)),
            _ => {}
        }
        let items: Vec<Item<'_>> = StrftimeItems::new(text).collect();
        let has_fields = items.iter().any(|item| matches!(item, Item::Numeric(..) | Item::Fixed(_)));
        // Zone names would be skipped, and the time taken as UTC.
        let readable = |item: &Item<'_>| !matches!(item, Item::Error | Item::Fixed(Fixed::TimezoneName));
        let valid = items.iter().all(readable);
        if valid && has_fields { Ok(Self::Strftime(text.to_owned())) } else { Err(error()) }
    }
}

impl fmt::Display for TimestampFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Usual => "the usual spellings",
            Self::Unix(UnixUnit::Seconds) => "unix-s",
            Self::Unix(UnixUnit::Millis) => "unix-ms",
            Self::Unix(UnixUnit::Micros) => "unix-us",
            Self::Unix(UnixUnit::Nanos) => "unix-ns",
            Self::Strftime(format) => format,
            Self::YdbDump => "that of YDB dumps",
        })
    }
}

/// Maximum number of fraction digits that are read; any further ones must be zeros.
const NANO_DIGITS: usize = 9;
/// Error for a leap second. Unix time has no leap seconds, and neither neighbour is the instant
/// that was written.
const LEAP_SECOND: &str =
    "is a leap second, which points in time of YDB do not have; write the second before or after it";
/// Error for an instant that falls between two representable ones.
const TOO_FINE: &str = "is finer than the microseconds of a Timestamp";

/// Parses microseconds since 1970, for `Timestamp`.
pub(super) fn micros(text: &str, format: &TimestampFormat) -> Result<i64, CellError> {
    let time = instant(text, format)?;
    if time.timestamp_subsec_nanos() % 1000 != 0 {
        return Err(TOO_FINE.into());
    }
    Ok(time.timestamp_micros())
}

/// Parses milliseconds since 1970 of a whole second, for `Datetime`.
pub(super) fn whole_second_millis(text: &str, format: &TimestampFormat) -> Result<i64, CellError> {
    let time = instant(text, format)?;
    if time.timestamp_subsec_nanos() != 0 {
        return Err("is finer than the seconds of a Datetime".into());
    }
    Ok(time.timestamp_millis())
}

/// Parses days since 1970, for `Date`. A declared format is mostly meant for points in time, so
/// days may also have the usual spellings.
pub(super) fn days(text: &str, format: &TimestampFormat) -> Result<i32, CellError> {
    let time = instant(text, format).or_else(|error| usual(text).map_err(|_| error))?;
    if time.time() != NaiveTime::MIN {
        return Err("has a time of day, a Date has none".into());
    }
    i32::try_from(time.timestamp().div_euclid(86_400)).map_err(|_| "is outside the days of a Date".into())
}

fn instant(text: &str, format: &TimestampFormat) -> Result<DateTime<Utc>, CellError> {
    match format {
        TimestampFormat::Usual | TimestampFormat::YdbDump => usual(text),
        TimestampFormat::Unix(unit) => {
            unix(text, *unit).unwrap_or_else(|| Err(format!("is not a number in the format {format}").into()))
        }
        TimestampFormat::Strftime(pattern) => {
            let text = without_fine_zeros(text)?;
            let time = strftime(&text, pattern)
                .ok_or_else(|| CellError::from(format!("does not match the format '{}'", quote(pattern))))?;
            if has_short_year(&text, time.year()) {
                return Err(format!(
                    "matches the format '{}' only as the year {}; write %y for years of two digits",
                    quote(pattern),
                    time.year()
                )
                .into());
            }
            without_leap_second(time)
        }
    }
}

/// Whether a year before 100 was read from fewer than four digits: chrono reads 26 as a year of
/// `%Y`, too.
fn has_short_year(text: &str, year: i32) -> bool {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    // An offset may move the first and the last day into the neighbouring years.
    (-1..=100).contains(&year) && !numbers.any(|digits| digits.len() >= 4 && digits.starts_with("00"))
}

fn usual(text: &str) -> Result<DateTime<Utc>, CellError> {
    let number =
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
    if number && text.parse::<f64>().is_ok() {
        return Err(
            "is a number, not a point in time; write it as 2026-01-31T10:00:00Z, or name its unit when rows \
                    are read: --timestamp-format unix-s, unix-ms, unix-us or unix-ns"
                .into(),
        );
    }
    numeric(text).map_or_else(|| rfc2822(text), Some).unwrap_or_else(|| {
        Err("is not a point in time such as 2026-01-31T10:00:00Z (create and ingest read other spellings with \
             --timestamp-format)"
            .into())
    })
}

/// Text that is read from left to right.
struct Scanner<'a>(&'a str);

impl<'a> Scanner<'a> {
    /// Reads the number in the next digits; `None` unless there are `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<u32> {
        let digits = self.digits();
        let length = digits.len();
        (least..=most).contains(&length).then_some(())?;
        digits.parse().ok()
    }

    /// Reads all digits that follow.
    fn digits(&mut self) -> &'a str {
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at_checked(end).unwrap_or_default();
        self.0 = rest;
        digits
    }

    fn accept(&mut self, wanted: &[char]) -> Option<char> {
        let next = self.0.chars().next().filter(|next| wanted.contains(next))?;
        self.0 = self.0.strip_prefix(next)?;
        Some(next)
    }
}

/// Parses a year of four digits, month and day, with an optional time of day and zone.
///
/// ```text
/// date = YYYY-MM-DD | YYYY/MM/DD                      month, day and hour may have one digit
/// time = ("T" | "t" | blanks) (HH:MM[:SS[.digits]] | HHMMSS)
/// zone = [blanks] ("Z" | "z" | (+|-)HH[[:]MM] | IANA name, such as UTC or Europe/Berlin)
/// ```
/// `None` for other text, and for a local time that does not exist or is ambiguous in its zone.
fn numeric(text: &str) -> Option<Result<DateTime<Utc>, CellError>> {
    let mut scanner = Scanner(text);
    let year = scanner.number(4, 4)?;
    let separator = scanner.accept(&['-', '/'])?;
    let month = scanner.number(1, 2)?;
    scanner.accept(&[separator])?;
    let day = scanner.number(1, 2)?;
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    if scanner.0.is_empty() {
        return Some(Ok(date.and_time(NaiveTime::MIN).and_utc()));
    }
    if scanner.accept(&['T', 't', ' '])? == ' ' {
        scanner.0 = scanner.0.trim_start_matches(' ');
    }
    let time = match time_of_day(&mut scanner)? {
        Ok(time) => time,
        Err(error) => return Some(Err(error)),
    };
    let local = date.and_time(time);
    Some(Ok(with_zone(local, scanner.0.trim_start_matches(' '))?))
}

fn time_of_day(scanner: &mut Scanner<'_>) -> Option<Result<NaiveTime, CellError>> {
    let hour = scanner.digits();
    let (hour, minute, second, mut nanos) = match hour.len() {
        6 => (hour.get(..2)?.parse().ok()?, hour.get(2..4)?.parse().ok()?, hour.get(4..)?.parse().ok()?, 0),
        1 | 2 => {
            scanner.accept(&[':'])?;
            let minute = scanner.number(2, 2)?;
            let second = if scanner.accept(&[':']).is_some() { scanner.number(2, 2)? } else { 0 };
            (hour.parse().ok()?, minute, second, 0)
        }
        _ => return None,
    };
    if scanner.accept(&['.']).is_some() {
        let digits = scanner.digits();
        let held = digits.get(..digits.len().min(NANO_DIGITS))?;
        if digits.is_empty() {
            return None;
        }
        if digits.bytes().skip(NANO_DIGITS).any(|digit| digit != b'0') {
            return Some(Err(TOO_FINE.into()));
        }
        nanos = held.parse::<u32>().ok()? * 10u32.pow(u32::try_from(NANO_DIGITS - held.len()).ok()?);
    }
    if second == 60 {
        return Some(Err(LEAP_SECOND.into()));
    }
    NaiveTime::from_hms_nano_opt(hour, minute, second, nanos).map(Ok)
}

/// Returns the instant of a local time in a zone; without a zone it is UTC.
fn with_zone(local: NaiveDateTime, zone: &str) -> Option<DateTime<Utc>> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(local.and_utc());
    }
    let mut scanner = Scanner(zone);
    if let Some(sign) = scanner.accept(&['+', '-']) {
        let digits = scanner.digits();
        let (hours, minutes): (i64, i64) = match (digits.len(), scanner.accept(&[':'])) {
            (2, Some(_)) => (digits.parse().ok()?, scanner.number(2, 2)?.into()),
            (2, None) => (digits.parse().ok()?, 0),
            (4, None) => (digits.get(..2)?.parse().ok()?, digits.get(2..)?.parse().ok()?),
            _ => return None,
        };
        if !scanner.0.is_empty() || hours > 23 || minutes > 59 {
            return None;
        }
        let offset = TimeDelta::minutes(hours * 60 + minutes);
        let utc =
            if sign == '+' { local.checked_sub_signed(offset) } else { local.checked_add_signed(offset) };
        return utc.map(|utc| utc.and_utc());
    }
    if !zone.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let zone: Tz = zone.parse().ok()?;
    Some(zone.from_local_datetime(&local).single()?.with_timezone(&Utc))
}

/// Parses an RFC 2822 date, such as `Sat, 31 Jan 2026 10:00:00 GMT`. One-letter zones are rejected,
/// because writers disagree on them.
fn rfc2822(text: &str) -> Option<Result<DateTime<Utc>, CellError>> {
    let zone = text.rsplit(' ').next().unwrap_or_default();
    if zone.len() == 1 && !zone.eq_ignore_ascii_case("z") {
        return None;
    }
    let time = DateTime::parse_from_rfc2822(text).ok()?;
    Some(without_leap_second(time.with_timezone(&Utc)))
}

/// Rejects a leap second: chrono keeps it as a fraction of more than a second, which would become
/// the next second.
fn without_leap_second(time: DateTime<Utc>) -> Result<DateTime<Utc>, CellError> {
    if time.timestamp_subsec_nanos() >= 1_000_000_000 { Err(LEAP_SECOND.into()) } else { Ok(time) }
}

/// Parses units since 1970 with a fraction of up to nanoseconds; `None` if it is no number.
fn unix(text: &str, unit: UnixUnit) -> Option<Result<DateTime<Utc>, CellError>> {
    let Some((whole, digits)) = text.split_once('.') else { return whole_unix(text, unit).map(Ok) };
    if !is_digits(digits) || !whole.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let fraction = digits.trim_end_matches('0');
    let (places, of_second) = match unit {
        UnixUnit::Seconds => (9, 1),
        UnixUnit::Millis => (6, 1_000),
        UnixUnit::Micros => (3, 1_000_000),
        UnixUnit::Nanos => (0, 1_000_000_000),
    };
    let whole: i64 = crate::text_value::number::integer(whole).ok()?;
    if fraction.len() > places {
        return Some(Err("has more digits than nanoseconds".into()));
    }
    let scale = 10_i128.pow(places as u32);
    let fraction: i128 = format!("0{fraction:0<places$}").parse().ok()?;
    let is_negative = text.starts_with('-');
    let nanos = (i128::from(whole) * scale + if is_negative { -fraction } else { fraction }) * 1_000_000_000
        / of_second
        / scale;
    let (seconds, nanos) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    Some(Ok(DateTime::from_timestamp(i64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?)?))
}

fn whole_unix(text: &str, unit: UnixUnit) -> Option<DateTime<Utc>> {
    let number: i64 = crate::text_value::number::integer(text).ok()?;
    match unit {
        UnixUnit::Seconds => DateTime::from_timestamp(number, 0),
        UnixUnit::Millis => DateTime::from_timestamp_millis(number),
        UnixUnit::Micros => DateTime::from_timestamp_micros(number),
        UnixUnit::Nanos => Some(DateTime::from_timestamp_nanos(number)),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Removes the zeros after the ninth digit of a fraction; the parser would ignore any digits there.
fn without_fine_zeros(text: &str) -> Result<Cow<'_, str>, CellError> {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('.') {
        let mut scanner = Scanner(after);
        let digits = scanner.digits();
        let (held, fine) = digits.split_at_checked(NANO_DIGITS).unwrap_or((digits, ""));
        if fine.bytes().any(|digit| digit != b'0') {
            return Err(TOO_FINE.into());
        }
        kept.push_str(before);
        kept.push('.');
        kept.push_str(held);
        rest = scanner.0;
    }
    if kept.is_empty() {
        return Ok(text.into());
    }
    kept.push_str(rest);
    Ok(kept.into())
}

/// Parses `text` by a `strftime` pattern; a pattern without a time of day gives midnight, and one
/// without a zone gives UTC.
fn strftime(text: &str, pattern: &str) -> Option<DateTime<Utc>> {
    let mut parsed = Parsed::new();
    parse(&mut parsed, text, StrftimeItems::new(pattern)).ok()?;
    if let Some(time) = parsed.timestamp() {
        return DateTime::from_timestamp(time, parsed.nanosecond().unwrap_or(0));
    }
    if parsed.offset().is_some() {
        return parsed.to_datetime().ok().map(|time| time.with_timezone(&Utc));
    }
    let date = parsed.to_naive_date().ok()?;
    let has_time = parsed.hour_div_12().is_some() || parsed.hour_mod_12().is_some();
    let time = if has_time { parsed.to_naive_time().ok()? } else { NaiveTime::MIN };
    Some(NaiveDateTime::new(date, time).and_utc())
}

#[cfg(test)]
#[path = "time_tests.rs"]
mod tests;
