//! Points in time.
//!
//! A plain number is not a point in time: seconds, milliseconds and microseconds look alike. It is taken only when the
//! format says the unit.

use std::fmt;
use std::str::FromStr;

use arrow::compute::kernels::cast_utils::string_to_datetime;
use chrono::format::{Item, Parsed, StrftimeItems, parse};
use chrono::{DateTime, NaiveDateTime, NaiveTime, Utc};
use thiserror::Error;

use crate::text_value::CellError;

/// How points in time are written. Without a zone they are UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum TimestampFormat {
    /// The usual spellings: RFC 3339 (`2026-01-31T10:00:00.25Z`, a space for the T, an offset or none, the time or
    /// none), the same with slashes, without seconds or with ` UTC` behind, and RFC 2822.
    #[default]
    Usual,
    /// Whole units since 1970-01-01T00:00:00Z.
    Unix(UnixUnit),
    /// A format of `strftime`, as the chrono crate reads it.
    Strftime(String),
}

/// The unit of a number that is a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs, reason = "the variants are the units")]
pub enum UnixUnit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

/// A timestamp format that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{found}' is not a timestamp format; write unix-s, unix-ms, unix-us, unix-ns or a strftime format such as \
     '%d/%m/%Y %H:%M:%S'"
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
        let valid = items.iter().all(|item| !matches!(item, Item::Error));
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
        })
    }
}

/// Spellings beside RFC 3339 that exports use.
const OTHER_SPELLINGS: [&str; 6] = [
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%Y-%m-%d %H:%M:%S%.f %z",
];

/// Microseconds since 1970, for `Timestamp`.
pub(super) fn micros(text: &str, format: &TimestampFormat) -> Result<i64, CellError> {
    let time = instant(text, format)?;
    if time.timestamp_subsec_nanos() % 1000 != 0 {
        return Err("is finer than the microseconds of a Timestamp".into());
    }
    Ok(time.timestamp_micros())
}

/// Milliseconds since 1970 of a whole second, for `Datetime`.
pub(super) fn whole_second_millis(text: &str, format: &TimestampFormat) -> Result<i64, CellError> {
    let time = instant(text, format)?;
    if time.timestamp_subsec_nanos() != 0 {
        return Err("is finer than the seconds of a Datetime".into());
    }
    Ok(time.timestamp_millis())
}

/// Days since 1970, for `Date`. A declared format is mostly meant for points in time; days may have the usual spellings too.
pub(super) fn days(text: &str, format: &TimestampFormat) -> Result<i32, CellError> {
    let time = instant(text, format).or_else(|error| usual(text).map_err(|_| error))?;
    if time.time() != NaiveTime::MIN {
        return Err("has a time of day, a Date has none".into());
    }
    i32::try_from(time.timestamp().div_euclid(86_400)).map_err(|_| "is outside the days of a Date".into())
}

fn instant(text: &str, format: &TimestampFormat) -> Result<DateTime<Utc>, CellError> {
    match format {
        TimestampFormat::Usual => usual(text),
        TimestampFormat::Unix(unit) => {
            unix(text, *unit).ok_or_else(|| format!("is not a whole number in the format {format}").into())
        }
        TimestampFormat::Strftime(pattern) => {
            strftime(text, pattern).ok_or_else(|| format!("does not match the format '{pattern}'").into())
        }
    }
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
    let without_zone = text.strip_suffix(" UTC").unwrap_or(text);
    string_to_datetime(&Utc, without_zone)
        .ok()
        .or_else(|| OTHER_SPELLINGS.iter().find_map(|pattern| strftime(without_zone, pattern)))
        .or_else(|| DateTime::parse_from_rfc2822(text).ok().map(|time| time.with_timezone(&Utc)))
        .ok_or_else(|| {
            "is not a point in time such as 2026-01-31T10:00:00Z (create and ingest read other spellings with \
             --timestamp-format)".into()
        })
}

fn unix(text: &str, unit: UnixUnit) -> Option<DateTime<Utc>> {
    let number: i64 = crate::text_value::number::integer(text).ok()?;
    match unit {
        UnixUnit::Seconds => DateTime::from_timestamp(number, 0),
        UnixUnit::Millis => DateTime::from_timestamp_millis(number),
        UnixUnit::Micros => DateTime::from_timestamp_micros(number),
        UnixUnit::Nanos => Some(DateTime::from_timestamp_nanos(number)),
    }
}

/// Reads `text` by a `strftime` pattern; a pattern without a time of day gives midnight, without a zone UTC.
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
mod tests {
    use super::*;

    const TEN: i64 = 1_769_853_600_000_000; // 2026-01-31T10:00:00Z

    #[test]
    fn the_usual_spellings_are_read() {
        for text in [
            "2026-01-31T10:00:00Z",
            "2026-01-31T10:00:00",
            "2026-01-31 10:00:00",
            "2026-01-31 10:00:00.000000",
            "2026-01-31T12:00:00+02:00",
            "2026-01-31 12:00:00 +0200",
            "2026-01-31 10:00:00 UTC",
            "2026-01-31 10:00",
            "2026-01-31T10:00",
            "2026/01/31 10:00:00",
            "Sat, 31 Jan 2026 10:00:00 GMT",
        ] {
            assert_eq!(micros(text, &TimestampFormat::Usual), Ok(TEN), "{text}");
        }
        assert_eq!(micros("2026-01-31", &TimestampFormat::Usual), Ok(TEN - 36_000_000_000));
        assert_eq!(micros("2026-01-31T10:00:00.000001Z", &TimestampFormat::Usual), Ok(TEN + 1));
    }

    #[test]
    fn numbers_need_a_unit() {
        assert!(micros("1769853600", &TimestampFormat::Usual).unwrap_err().contains("unix-s"));
        for (format, text) in [
            ("unix-s", "1769853600"),
            ("unix-s", "1769853600.0"),
            ("unix-ms", "1769853600000"),
            ("unix-us", "1769853600000000"),
            ("unix-ns", "1769853600000000000"),
        ] {
            assert_eq!(micros(text, &format.parse().unwrap()), Ok(TEN), "{format} {text}");
        }
        assert!(micros("17x", &"unix-s".parse().unwrap()).is_err());
    }

    #[test]
    fn a_declared_format_is_the_only_one() {
        let format: TimestampFormat = "%d/%m/%Y %H:%M".parse().unwrap();
        assert_eq!(micros("31/01/2026 10:00", &format), Ok(TEN));
        assert!(micros("2026-01-31T10:00:00Z", &format).is_err());
        assert_eq!(micros("31.01.2026", &"%d.%m.%Y".parse().unwrap()), Ok(TEN - 36_000_000_000));
        assert_eq!(micros("31.01.2026 12:00 +0200", &"%d.%m.%Y %H:%M %z".parse().unwrap()), Ok(TEN));
        for text in ["", "seconds", "%Q"] {
            assert!(text.parse::<TimestampFormat>().is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_is_cut_off() {
        let usual = TimestampFormat::Usual;
        assert!(micros("2026-01-31T10:00:00.0000001Z", &usual).is_err());
        assert!(whole_second_millis("2026-01-31T10:00:00.5Z", &usual).is_err());
        assert!(days("2026-01-31T10:00:00Z", &usual).is_err());
        assert_eq!(days("1970-01-02", &usual), Ok(1));
        assert_eq!(days("1970-01-02", &"unix-ms".parse().unwrap()), Ok(1));
        assert_eq!(days("1970-01-02T00:00:00Z", &usual), Ok(1));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "soon", "2026-02-30", "2026-01-31T25:00:00Z", "10:00", "日本"] {
            assert!(micros(text, &TimestampFormat::Usual).is_err(), "{text}");
        }
    }
}
