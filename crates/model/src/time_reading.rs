//! Points in time that columns of other types carry: epochs, and ids that begin with a time.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use chrono::{DateTime, Datelike};
use serde::{Deserialize, Serialize};

use crate::local_times::{DateOrder, format_like, instant};
use crate::time_digits::{begin_with_dates, compact_time, date_of_digits, has_workers, time_of_digits};
use crate::units::Micros;
use crate::values::instants;

/// Way to read points in time from a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeReading {
    /// The type of the column is a point in time or a date.
    #[default]
    Native,
    /// Dates in eight digits, such as 20260301.
    EightDigits,
    /// Points in time in digits, such as 20260301120000, and text that begins with a date in eight
    /// digits, such as `20260301-12:00:00.250` and `20260301T120000Z`.
    Compact,
    /// Dates and points in time that are written as text, such as `2026-03-01` and
    /// `2026-03-01T12:00:00Z`.
    Text,
    /// Dates as text with the day first, such as `31.01.2026`, with or without a time of day.
    DayFirst,
    /// Dates as text with the month first, such as `1/31/2026`, with or without a time of day.
    MonthFirst,
    /// Dates as text with the name of the month, such as `31-JAN-26`, with or without a time of
    /// day.
    MonthName,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Microseconds since 1970.
    Microseconds,
    /// Nanoseconds since 1970.
    Nanoseconds,
    /// Ids of 64 bits that begin with milliseconds since 2010-11-04, like Twitter's.
    Snowflake,
    /// UUIDs of version 7 (RFC 9562), which begin with milliseconds since 1970.
    UuidV7,
    /// UUIDs of version 1 (RFC 9562), with steps of 100 ns since 1582-10-15.
    UuidV1,
    /// ULIDs, which begin with milliseconds since 1970.
    Ulid,
    /// ObjectIds of MongoDB, which begin with seconds since 1970.
    ObjectId,
}

/// Start of Twitter's snowflake ids, in milliseconds since 1970.
const SNOWFLAKE_EPOCH: i64 = 1_288_834_974_657;
/// Bits of a snowflake id below its time.
const SNOWFLAKE_SHIFT: i64 = 22;
/// 1582-10-15 to 1970-01-01, in steps of 100 ns.
const GREGORIAN_EPOCH: i64 = 0x01B2_1DD2_1381_4000;
/// Digits of ULIDs: Crockford's base 32.
const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Points in time that are taken for such: from 2000 to 2050, in microseconds.
const PLAUSIBLE: std::ops::Range<i64> = 946_684_800_000_000..2_524_608_000_000_000;
/// Earliest time of a snowflake id, in milliseconds after its epoch: small numbers are not such
/// ids.
const MIN_SNOWFLAKE: i64 = 180 * 86_400_000;
/// Longest span of the times of one export: numbers and ids that only look like times vary more.
const LONGEST_SPAN: i64 = 10 * 366 * 86_400_000_000;
/// Minimum number of values that show a reading.
const FEWEST: usize = 20;
/// Number of values that are read before all others.
const FEW: usize = 64;

impl TimeReading {
    /// Readings of whole numbers, and of text and UUIDs.
    const OF_NUMBERS: [Self; 7] = [
        Self::EightDigits,
        Self::Compact,
        Self::Seconds,
        Self::Milliseconds,
        Self::Microseconds,
        Self::Snowflake,
        Self::Nanoseconds,
    ];
    const OF_TEXT: [Self; 10] = [
        Self::EightDigits,
        Self::Compact,
        Self::Text,
        Self::DayFirst,
        Self::MonthFirst,
        Self::MonthName,
        Self::UuidV7,
        Self::UuidV1,
        Self::Ulid,
        Self::ObjectId,
    ];

    /// Whether a value is only a point in time, unlike an id that begins with one.
    #[must_use]
    pub fn is_time_alone(self) -> bool {
        !matches!(self, Self::Snowflake | Self::UuidV7 | Self::UuidV1 | Self::Ulid | Self::ObjectId)
    }

    /// Whether values count since 1970.
    fn is_epoch(self) -> bool {
        matches!(self, Self::Seconds | Self::Milliseconds | Self::Microseconds | Self::Nanoseconds)
    }

    /// Whether values sort by time. Dates in local forms sort by their day or month.
    #[must_use]
    pub fn keeps_order(self) -> bool {
        self.date_order().is_none()
    }

    /// Whether values look like points in time by their form, rather than by their size.
    #[must_use]
    pub fn is_written_out(self) -> bool {
        self.date_order().is_some() || matches!(self, Self::EightDigits | Self::Compact | Self::Text)
    }

    /// Returns the points in time of a column, in microseconds since 1970, NULL for other values;
    /// `None` if the type of the column cannot hold any.
    #[must_use]
    pub fn instants(self, array: &ArrayRef) -> Option<ArrayRef> {
        if self == Self::Native {
            return instants(array);
        }
        let instants: TimestampMicrosecondArray = match array.data_type() {
            data_type if data_type.is_integer() => {
                let numbers = cast(array, &DataType::Int64).ok()?;
                numbers
                    .as_primitive::<Int64Type>()
                    .iter()
                    .map(|n| n.and_then(|n| self.instant_of_number(n)))
                    .collect()
            }
            data_type if data_type.is_floating() => {
                let numbers = cast(array, &DataType::Float64).ok()?;
                let numbers = numbers.as_primitive::<Float64Type>().iter();
                numbers.map(|n| n.and_then(|n| self.instant_of_fraction(n))).collect()
            }
            DataType::FixedSizeBinary(16) => {
                let ids = array.as_fixed_size_binary();
                let of_id =
                    |id: Option<&[u8]>| self.instant_of_uuid(u128::from_be_bytes(id?.try_into().ok()?));
                ids.iter().map(of_id).collect()
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if self == Self::Text => {
                return cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None)).ok();
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = cast(array, &DataType::Utf8View).ok()?;
                texts
                    .as_string_view()
                    .iter()
                    .map(|text| text.and_then(|text| self.instant_of_text(text)))
                    .collect()
            }
            _ => return None,
        };
        Some(Arc::new(instants))
    }

    /// Returns the reading of a column with which all its values are plausible points in time, with
    /// the first and last of them in microseconds since 1970; `None` without such a reading.
    #[must_use]
    pub fn detect(array: &ArrayRef) -> Option<(Self, i64, i64)> {
        let readings: &[Self] =
            if array.data_type().is_numeric() { &Self::OF_NUMBERS } else { &Self::OF_TEXT };
        let filled = array.len() - array.null_count();
        if filled < FEWEST {
            return None;
        }
        // Each value must be a time, so a few rule out nearly all readings.
        let few = array.slice(0, array.len().min(FEW));
        let few = Some(few).filter(|few| few.null_count() < few.len());
        let detected = readings.iter().find_map(|reading| {
            if few.as_ref().is_some_and(|few| reading.span(few).is_none())
                || (*reading == Self::Snowflake && !has_workers(array))
                || (reading.is_epoch() && begin_with_dates(array))
            {
                return None;
            }
            let (first, last) = reading.span(array).filter(|(first, last)| first < last)?;
            Some((*reading, first, last))
        })?;
        Some(if detected.0 == Self::DayFirst { Self::day_or_month_first(array, detected) } else { detected })
    }

    /// Returns the first and last point in time of a column, in microseconds since 1970; `None` if a
    /// value is no point in time, or not a plausible one, or if there are no values.
    fn span(self, array: &ArrayRef) -> Option<(i64, i64)> {
        let times = self.instants(array)?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        if times.null_count() > array.null_count() {
            return None;
        }
        let (first, last) = (arrow::compute::min(times)?, arrow::compute::max(times)?);
        let is_plausible = PLAUSIBLE.contains(&first) && PLAUSIBLE.contains(&last);
        let is_likely = self.is_written_out() || (is_plausible && last - first <= LONGEST_SPAN);
        is_likely.then_some((first, last))
    }

    /// Decides whether days or months are first in ambiguous dates such as 01/02/2026. Read in the
    /// wrong order, the days of a month are spread over a year.
    fn day_or_month_first(array: &ArrayRef, day_first: (Self, i64, i64)) -> (Self, i64, i64) {
        let times = Self::MonthFirst.instants(array);
        let times = times.as_ref().map(|times| times.as_primitive::<TimestampMicrosecondType>());
        let month_first = times.filter(|times| times.null_count() == array.null_count()).and_then(|times| {
            let (first, last) = (arrow::compute::min(times)?, arrow::compute::max(times)?);
            (first < last).then_some((Self::MonthFirst, first, last))
        });
        let span = |(_, first, last): (Self, i64, i64)| last - first;
        // The first days of several months are no days of one.
        month_first.filter(|reading| span(*reading) < span(day_first) / 3).unwrap_or(day_first)
    }

    /// Order of the parts of dates; `None` for other readings.
    fn date_order(self) -> Option<DateOrder> {
        match self {
            Self::DayFirst => Some(DateOrder::DayFirst),
            Self::MonthFirst => Some(DateOrder::MonthFirst),
            Self::MonthName => Some(DateOrder::MonthName),
            _ => None,
        }
    }

    /// Returns the numbers that encode points in time in microseconds since 1970; `None` for
    /// readings that are not epochs.
    #[must_use]
    pub fn numbers(self, micros: &[i64]) -> Option<Int64Array> {
        let number = |micros: i64| match self {
            Self::Seconds => Some(micros.div_euclid(1_000_000)),
            Self::Milliseconds => Some(micros.div_euclid(1_000)),
            Self::Microseconds => Some(micros),
            Self::Nanoseconds => Some(micros.saturating_mul(1_000)),
            Self::EightDigits => DateTime::from_timestamp_micros(micros)
                .map(|at| i64::from(at.year()) * 10_000 + i64::from(at.month()) * 100 + i64::from(at.day())),
            _ => None,
        };
        micros.iter().map(|micros| number(*micros)).collect::<Option<Vec<_>>>().map(Int64Array::from)
    }

    /// Returns the shortest time that values can differ by.
    #[must_use]
    pub fn resolution(self) -> Micros {
        match self {
            Self::EightDigits => Micros::DAY,
            Self::Seconds | Self::ObjectId => Micros::SECOND,
            Self::Milliseconds | Self::Snowflake | Self::UuidV7 | Self::Ulid => Micros::new(1_000),
            Self::Compact
            | Self::DayFirst
            | Self::MonthFirst
            | Self::MonthName
            | Self::Native
            | Self::Text
            | Self::Microseconds
            | Self::Nanoseconds
            | Self::UuidV1 => Micros::new(1),
        }
    }

    fn instant_of_number(self, number: i64) -> Option<i64> {
        match self {
            Self::EightDigits => date_of_digits(number),
            Self::Compact => time_of_digits(number),
            Self::Seconds => number.checked_mul(1_000_000),
            Self::Milliseconds => number.checked_mul(1_000),
            Self::Microseconds => Some(number),
            Self::Nanoseconds => Some(number.div_euclid(1_000)),
            Self::Snowflake => {
                let millis = number >> SNOWFLAKE_SHIFT;
                (millis >= MIN_SNOWFLAKE).then(|| (millis + SNOWFLAKE_EPOCH).checked_mul(1_000))?
            }
            _ => None,
        }
    }

    /// Reads an epoch that may have a fraction.
    fn instant_of_fraction(self, number: f64) -> Option<i64> {
        let micros = number
            * match self {
                Self::Seconds => 1e6,
                Self::Milliseconds => 1e3,
                Self::Microseconds => 1.0,
                Self::Nanoseconds => 1e-3,
                _ => return None,
            };
        // Fractions below 2^63 fit.
        (micros.abs() < 9.2e18).then_some(micros as i64)
    }

    fn instant_of_uuid(self, id: u128) -> Option<i64> {
        let version = (id >> 76) as u8 & 0xF;
        let has_variant = (id >> 62) as u8 & 0b11 == 0b10;
        match (self, version) {
            (Self::UuidV7, 7) if has_variant => i64::try_from(id >> 80).ok()?.checked_mul(1_000),
            (Self::UuidV1, 1) if has_variant => {
                let (low, middle, high) = (id >> 96, (id >> 80) & 0xFFFF, (id >> 64) & 0x0FFF);
                let steps = i64::try_from(high << 48 | middle << 32 | low).ok()?;
                Some((steps - GREGORIAN_EPOCH).div_euclid(10))
            }
            _ => None,
        }
    }

    fn instant_of_text(self, text: &str) -> Option<i64> {
        if let Some(order) = self.date_order() {
            return instant(text, order);
        }
        let text = text.trim();
        match (self, text.len()) {
            (Self::Compact, 14..=28) => compact_time(text),
            (Self::UuidV7 | Self::UuidV1, 32 | 36) => {
                self.instant_of_uuid(uuid::Uuid::try_parse(text).ok()?.as_u128())
            }
            (Self::EightDigits, 8) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                date_of_digits(text.parse().ok()?)
            }
            (Self::Ulid, 26) => {
                let digit = |byte: u8| CROCKFORD.iter().position(|digit| *digit == byte.to_ascii_uppercase());
                let digits = text.bytes().map(digit).collect::<Option<Vec<usize>>>()?;
                let millis = digits.iter().take(10).fold(0, |millis, digit| millis * 32 + *digit as i64);
                millis.checked_mul(1_000)
            }
            (Self::ObjectId, 24) if text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                i64::from_str_radix(text.get(..8)?, 16).ok()?.checked_mul(1_000_000)
            }
            _ => None,
        }
    }
}

/// Whether a text is a date with the year last, with or without a time of day: `31.01.2026 09:30`,
/// `1/31/2026`, `31-JAN-26`.
#[must_use]
pub fn is_written_date(text: &str) -> bool {
    DateOrder::ALL.into_iter().any(|order| instant(text, order).is_some())
}

/// Returns the `strftime` formats that read dates and times written like a text with the year last;
/// two if either the day or the month comes first.
#[must_use]
pub fn formats_like(text: &str) -> Vec<String> {
    DateOrder::ALL.into_iter().filter_map(|order| format_like(text, order)).collect()
}

impl fmt::Display for TimeReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "points in time",
            Self::EightDigits => "dates in eight digits",
            Self::Compact => "dates in eight digits with times of day",
            Self::Text => "times written as text",
            Self::DayFirst => "dates written as text, day first",
            Self::MonthFirst => "dates written as text, month first",
            Self::MonthName => "dates written as text, with the name of the month",
            Self::Seconds => "seconds since 1970",
            Self::Milliseconds => "milliseconds since 1970",
            Self::Microseconds => "microseconds since 1970",
            Self::Nanoseconds => "nanoseconds since 1970",
            Self::Snowflake => "snowflake ids, which begin with milliseconds since 2010-11-04",
            Self::UuidV7 => "UUIDs of version 7, which begin with milliseconds since 1970",
            Self::UuidV1 => "UUIDs of version 1, which contain the time at which they were made",
            Self::Ulid => "ULIDs, which begin with milliseconds since 1970",
            Self::ObjectId => "ObjectIds, which begin with seconds since 1970",
        })
    }
}

#[cfg(test)]
#[path = "time_reading_tests.rs"]
mod tests;
