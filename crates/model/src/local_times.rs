//! Dates and times as people of one country write them: `31.01.2026 09:30`, `1/31/2026 9:30 PM`,
//! `31-JAN-26 09.30.00`.

use chrono::{NaiveDate, NaiveTime};

use crate::clock::{SHORT_NAME, micros, month, number, time_format, time_of_day};
use crate::spelled_dates;

/// Order of the parts of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateOrder {
    /// Day, month, year.
    DayFirst,
    /// Month, day, year.
    MonthFirst,
    /// Day, name of the month in English, year; or as [`spelled_dates`] has it.
    MonthName,
}

impl DateOrder {
    /// All orders.
    pub(crate) const ALL: [Self; 3] = [Self::DayFirst, Self::MonthFirst, Self::MonthName];
}

/// Longest text that is read as a date with a time: `31-JAN-2026 09.30.00.000000000 PM +02:00`.
const LONGEST: usize = 40;

/// Length of the shortest date in bytes: `1SEP23`.
const SHORTEST: usize = 6;

/// Returns the point in time in a text, in microseconds since 1970; for a date, its first. A time
/// zone may be given as an offset; without one, the time is UTC.
pub(crate) fn instant(text: &str, order: DateOrder) -> Option<i64> {
    let text = text.trim();
    if order == DateOrder::MonthName && spelled_dates::may_be_one(text) {
        return spelled_dates::instant(text);
    }
    if text.len() > LONGEST || !begins_with_day(text, order) {
        return None;
    }
    let (date, rest) = split(text)?;
    let date = self::date(date, order)?;
    let (time, offset) = match rest.get(1..).unwrap_or_default().trim_start() {
        "" => (NaiveTime::MIN, 0),
        time => time_of_day(time)?,
    };
    Some(micros(date, time, offset))
}

/// Whether a text begins with one or two digits, followed by a separator or a month.
fn begins_with_day(text: &str, order: DateOrder) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let name = || text.get(digits..digits + SHORT_NAME).unwrap_or_default();
    let is_end = |byte: &u8| match byte {
        b'.' | b'/' | b'-' => true,
        _ => order == DateOrder::MonthName && month(name()).is_some(),
    };
    (1..=2).contains(&digits) && text.as_bytes().get(digits).is_some_and(is_end)
}

/// Splits a text into a date, and the rest including the separator.
fn split(text: &str) -> Option<(&str, &str)> {
    // The first separators belong to the date; the T in "Oct" is not one.
    let ends_date = |(at, c): &(usize, char)| *at >= SHORTEST && [' ', 'T', ':', ','].contains(c);
    let at = text.char_indices().find(ends_date).map_or(text.len(), |(at, _)| at);
    text.split_at_checked(at)
}

/// Returns the `strftime` format that reads a text like this one; `None` if none does.
pub(crate) fn format_like(text: &str, order: DateOrder) -> Option<String> {
    instant(text, order)?;
    let text = text.trim();
    if order == DateOrder::MonthName && spelled_dates::may_be_one(text) {
        return spelled_dates::format_like(text);
    }
    let (date, rest) = split(text)?;
    let mark = date.chars().find(|c| ['.', '/', '-'].contains(c));
    let mark = mark.map(String::from).unwrap_or_default();
    let year = if date.len() > 4 && date.bytes().rev().take(4).all(|byte| byte.is_ascii_digit()) {
        "%Y"
    } else {
        "%y"
    };
    let (first, second) = match order {
        DateOrder::DayFirst => ("%d", "%m"),
        DateOrder::MonthFirst => ("%m", "%d"),
        DateOrder::MonthName => ("%d", "%b"),
    };
    let date = format!("{first}{mark}{second}{mark}{year}");
    let Some(begin) = rest.find(|c: char| c.is_ascii_digit()) else { return Some(date) };
    let (between, time) = rest.split_at_checked(begin)?;
    Some(format!("{date}{between}{}", time_format(time)?))
}

fn date(text: &str, order: DateOrder) -> Option<NaiveDate> {
    let mark = text.chars().find(|c| ['.', '/', '-'].contains(c));
    let parts: Vec<&str> = match (mark, order) {
        (Some(mark), _) => text.split(mark).collect(),
        // 01SEP23.
        (None, DateOrder::MonthName) => {
            let day = text.bytes().take_while(u8::is_ascii_digit).count();
            let (day, rest) = text.split_at_checked(day)?;
            let (month, year) = rest.split_at_checked(3)?;
            vec![day, month, year]
        }
        (None, _) => return None,
    };
    let [first, second, year] = parts.as_slice() else { return None };
    let (day, month) = match order {
        DateOrder::DayFirst => (number(first, 2)?, number(second, 2)?),
        // Nobody writes points after a leading month.
        DateOrder::MonthFirst if mark == Some('.') => return None,
        DateOrder::MonthFirst => (number(second, 2)?, number(first, 2)?),
        DateOrder::MonthName => {
            let month = month(second).filter(|_| second.len() == SHORT_NAME)?;
            (number(first, 2)?, u32::try_from(month + 1).ok()?)
        }
    };
    let year = match (year.len(), order) {
        (4, _) => number(year, 4)?,
        // Oracle's default format, with the century of POSIX; two digits next to two others may be
        // anything.
        (2, DateOrder::MonthName) => match number(year, 2)? {
            year @ 0..=68 => 2000 + year,
            year => 1900 + year,
        },
        _ => return None,
    };
    let year = i32::try_from(year).ok().filter(|year| (1900..2100).contains(year))?;
    NaiveDate::from_ymd_opt(year, month, day)
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, BinaryArray};
    use arrow::datatypes::TimestampMicrosecondType;
    use chrono::DateTime;

    use super::*;
    use crate::table::ColumnType;
    use crate::text_value::{TextFormat, TimestampFormat, parse_text_column};

    #[test]
    fn formats_read_the_texts_that_they_are_like() {
        use DateOrder::{DayFirst, MonthFirst, MonthName};
        for (text, order, expected) in [
            ("31.01.2026", DayFirst, "%d.%m.%Y"),
            ("1.7.2025 06:05", DayFirst, "%d.%m.%Y %H:%M"),
            ("31/12/2026 23:59:59.5", DayFirst, "%d/%m/%Y %H:%M:%S%.f"),
            ("07/30/2023 11:56:58 PM", MonthFirst, "%m/%d/%Y %I:%M:%S %p"),
            ("7/4/2023, 12:30am", MonthFirst, "%m/%d/%Y, %I:%M%p"),
            ("18-MAR-24 06.00.00", MonthName, "%d-%b-%y %H.%M.%S"),
            ("18-MAR-24 06.00.00.250000 PM", MonthName, "%d-%b-%y %I.%M.%S%.f %p"),
            ("01Sep23", MonthName, "%d%b%y"),
            ("17-DEC-80", MonthName, "%d-%b-%y"),
            ("05/Mar/2026:10:00:00 +0200", MonthName, "%d/%b/%Y:%H:%M:%S %z"),
        ] {
            let format = format_like(text, order).unwrap();
            assert_eq!(format, expected, "{text}");
            let cells = BinaryArray::from(vec![text.as_bytes()]);
            let timestamps = TimestampFormat::Strftime(format);
            let options = TextFormat { timestamps, ..TextFormat::default() };
            let read = parse_text_column(&cells, ColumnType::Timestamp, &options);
            assert!(read.faults.is_empty(), "{text}: {:?}", read.faults);
            let read = read.values.as_primitive::<TimestampMicrosecondType>().value(0);
            assert_eq!(Some(read), instant(text, order), "{text}");
        }
        assert_eq!(format_like("31.13.2026", DayFirst), None);
        assert_eq!(format_like("31.12.2026 10:00:00,5", DayFirst), None);
    }

    #[test]
    fn dates_of_several_countries_are_read_as_they_are_there() {
        use DateOrder::{DayFirst, MonthFirst, MonthName};
        for (text, order, expected) in [
            ("31.01.2026", DayFirst, "2026-01-31T00:00:00Z"),
            ("1.7.2025 06:05", DayFirst, "2025-07-01T06:05:00Z"),
            ("31/12/2026 23:59:59.5", DayFirst, "2026-12-31T23:59:59.500Z"),
            ("31-12-2026T23:59:59,123456", DayFirst, "2026-12-31T23:59:59.123456Z"),
            ("07/30/2023 11:56:58 PM", MonthFirst, "2023-07-30T23:56:58Z"),
            ("7/4/2023 12:00 AM", MonthFirst, "2023-07-04T00:00:00Z"),
            ("7/4/2023, 12:30:00 pm", MonthFirst, "2023-07-04T12:30:00Z"),
            ("18-MAR-24 06.00.00", MonthName, "2024-03-18T06:00:00Z"),
            ("18-MAR-24 06.00.00.250000 PM", MonthName, "2024-03-18T18:00:00.250Z"),
            ("8-OCT-24 10.00", MonthName, "2024-10-08T10:00:00Z"),
            ("17-DEC-80", MonthName, "1980-12-17T00:00:00Z"),
            ("18-MAR-2024", MonthName, "2024-03-18T00:00:00Z"),
            ("01Sep23", MonthName, "2023-09-01T00:00:00Z"),
            ("05/Mar/2026:10:00:00 +0200", MonthName, "2026-03-05T08:00:00Z"),
            ("31.01.2026 00:30:00 -05:30", DayFirst, "2026-01-31T06:00:00Z"),
        ] {
            let found = instant(text, order).and_then(DateTime::from_timestamp_micros);
            assert_eq!(found, Some(expected.parse().unwrap()), "{text}");
        }
        for (text, order) in [
            ("31.13.2026", DayFirst),
            ("12.31.2026", DayFirst),
            ("31/12/2026", MonthFirst),
            ("12.31.2026", MonthFirst),
            ("31.01.2026 10:00:00:00:zz", DayFirst),
            ("31.01.26", DayFirst),
            ("2026-01-31", DayFirst),
            ("10.0.0.1", DayFirst),
            ("29.02.2025", DayFirst),
            ("31.01.2026 25:00", DayFirst),
            ("31.01.2026 13:00 PM", DayFirst),
            ("31.01.2026 x", DayFirst),
            ("31.01.2026 10:00 +5", DayFirst),
            ("18-MRZ-24", MonthName),
            ("", DayFirst),
            ("ü31.01.2026 ü", DayFirst),
        ] {
            assert_eq!(instant(text, order), None, "{text}");
        }
    }
}
