//! Dates with the English name of the month between blanks: `Jan  6 2025  7:05AM` (SQL Server),
//! `Mon, 06 Jan 2025 19:05:00 GMT` (mail and HTTP), `Mon Jan 06 19:05:00 +0000 2025` (`ctime`),
//! `January 6, 2025`.

use chrono::{NaiveDate, NaiveTime};

use crate::clock::{SHORT_NAME, is_name, micros, month, number, time_format, time_of_day};

/// Longest text that is read: `Wednesday, September 30, 2026 at 12:30:00.000000 PM +02:00`.
const LONGEST: usize = 60;

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Parts of a text, each without blanks and the comma behind it.
#[derive(Debug)]
struct Parts<'a> {
    weekday: Option<&'a str>,
    month: &'a str,
    day: &'a str,
    year: &'a str,
    time: Option<&'a str>,
}

/// Whether a text begins like a date of this form, rather than with day and month in one word.
pub(crate) fn may_be_one(text: &str) -> bool {
    let first = text.split(' ').next().unwrap_or_default();
    first.starts_with(|c: char| c.is_ascii_alphabetic()) || number(first, 2).is_some()
}

/// Returns the point in time in a text, in microseconds since 1970; for a date, its first. Without
/// an offset, the time is UTC.
pub(crate) fn instant(text: &str) -> Option<i64> {
    let parts = parts(text)?;
    let month = u32::try_from(month(parts.month)? + 1).ok()?;
    let year = i32::try_from(number(parts.year, 4)?).ok().filter(|year| (1900..2100).contains(year))?;
    let date = NaiveDate::from_ymd_opt(year, month, number(parts.day, 2)?)?;
    let (time, offset) = match parts.time {
        Some(time) => time_of_day(time)?,
        None => (NaiveTime::MIN, 0),
    };
    Some(micros(date, time, offset))
}

/// Returns the `strftime` format that reads a text like this one; `None` if none does.
pub(crate) fn format_like(text: &str) -> Option<String> {
    let parts = parts(text)?;
    let length_format = |name: &str, short, long| if name.len() == SHORT_NAME { short } else { long };
    let mut replaced = vec![
        (parts.month, length_format(parts.month, "%b", "%B").to_owned()),
        (parts.day, "%d".to_owned()),
        (parts.year, "%Y".to_owned()),
    ];
    replaced.extend(parts.weekday.map(|name| (name, length_format(name, "%a", "%A").to_owned())));
    if let Some(time) = parts.time {
        replaced.push((time, time_format(time)?));
    }
    // Replaces the last part first: the places of the others stay the same.
    let place = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
    replaced.sort_by_key(|(part, _)| std::cmp::Reverse(place(part)));
    let mut format = text.to_owned();
    for (part, by) in replaced {
        let at = place(part);
        format.replace_range(at..at + part.len(), &by);
    }
    Some(format.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
}

/// Splits a text into its parts.
fn parts(text: &str) -> Option<Parts<'_>> {
    if text.len() > LONGEST || !text.is_ascii() {
        return None;
    }
    let (first, rest) = word(text);
    let (weekday, rest) = if is_weekday(first) { (Some(first), rest) } else { (None, text) };
    let (first, rest) = word(rest);
    let (second, rest) = word(rest);
    let (month, day) = if number(first, 2).is_some() { (second, first) } else { (first, second) };
    let (third, behind) = word(rest);
    if number(third, 4).is_some() && third.len() == 4 {
        let (at, after_at) = word(behind);
        let time = if at == "at" { after_at } else { behind }.trim();
        return Some(Parts { weekday, month, day, year: third, time: (!time.is_empty()).then_some(time) });
    }
    // The year may come last.
    let rest = rest.trim();
    let (time, year) = rest.rsplit_once(' ')?;
    let year = Some(year).filter(|year| year.len() == 4)?;
    Some(Parts { weekday, month, day, year, time: Some(time.trim_end()) })
}

/// Splits the first word off, without the comma behind it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_at(text.find(' ').unwrap_or(text.len()));
    (word.strip_suffix([',', '.']).unwrap_or(word), rest)
}

fn is_weekday(name: &str) -> bool {
    WEEKDAYS.iter().any(|known| is_name(name, known))
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
    fn dates_are_read_by_themselves_and_by_the_format_that_is_like_them() {
        for (text, expected, format) in [
            ("Jan 6 2025 7:05AM", "2025-01-06T07:05:00Z", "%b %d %Y %I:%M%p"),
            ("Jan  6 2025  7:05PM", "2025-01-06T19:05:00Z", "%b %d %Y %I:%M%p"),
            ("Mon, 06 Jan 2025 19:05:00 GMT", "2025-01-06T19:05:00Z", "%a, %d %b %Y %H:%M:%S GMT"),
            ("Mon, 6 Jan 2025 19:05:00 +0200", "2025-01-06T17:05:00Z", "%a, %d %b %Y %H:%M:%S %z"),
            ("Mon Jan 06 19:05:00 2025", "2025-01-06T19:05:00Z", "%a %b %d %H:%M:%S %Y"),
            ("Mon Jan  6 19:05:00 +0000 2025", "2025-01-06T19:05:00Z", "%a %b %d %H:%M:%S %z %Y"),
            ("January 6, 2025", "2025-01-06T00:00:00Z", "%B %d, %Y"),
            ("6 January 2025", "2025-01-06T00:00:00Z", "%d %B %Y"),
            ("May 6, 2025 at 12:30:15.5 am", "2025-05-06T00:30:15.500Z", "%b %d, %Y at %I:%M:%S%.f %p"),
            ("Tuesday, May 06, 2025 12:30", "2025-05-06T12:30:00Z", "%A, %b %d, %Y %H:%M"),
        ] {
            let found = instant(text).and_then(DateTime::from_timestamp_micros);
            assert_eq!(found, Some(expected.parse().unwrap()), "{text}");
            let found = format_like(text).unwrap();
            assert_eq!(found, format, "{text}");
            let cells = BinaryArray::from(vec![text.as_bytes()]);
            let timestamps = TimestampFormat::Strftime(found);
            let options = TextFormat { timestamps, ..TextFormat::default() };
            let read = parse_text_column(&cells, ColumnType::Timestamp, &options);
            assert!(read.faults.is_empty(), "{text}: {:?}", read.faults);
            let read = read.values.as_primitive::<TimestampMicrosecondType>().value(0);
            assert_eq!(Some(read), instant(text), "{text}");
        }
    }

    #[test]
    fn texts_that_only_begin_like_dates_are_none() {
        for text in [
            "",
            "May",
            "May 6",
            "May 2025",
            "March of 2025 men",
            "Jan 32 2025",
            "Sun 6 2025",
            "6 7 2025",
            "Jan 6 25",
            "Jan 6 2025 noon",
            "Jan 6 2025 25:00",
            "1 Mai 2025",
            "12 May 3025",
            "6",
            "Mon",
            "Jän 6 2025",
            "2025 Jan 6",
        ] {
            assert_eq!(instant(text), None, "{text}");
        }
    }
}
