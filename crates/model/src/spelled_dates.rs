//! Dates with the English name of the month between blanks: `Jan  6 2025  7:05AM` (SQL Server),
//! `Mon, 06 Jan 2025 19:05:00 GMT` (mail and HTTP), `Mon Jan 06 19:05:00 +0000 2025` (`ctime`),
//! `January 6, 2025`.

use chrono::{NaiveDate, NaiveTime};

use crate::clock::{MONTHS, micros, number, time_format, time_of_day};

/// Longest text that is read: `Wednesday, September 30, 2026 at 12:30:00.000000 PM +02:00`.
const LONGEST: usize = 60;

/// Length of the shortest name of a month or a weekday.
const SHORTEST_NAME: usize = 3;

const FULL_MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Parts of a text, each without blanks and the comma behind it.
#[derive(Debug, Default)]
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
    let mut format = text.to_owned();
    let time = parts.time.map(|time| Some((time, time_format(time)?)));
    if time.as_ref().is_some_and(Option::is_none) {
        return None;
    }
    let length_format = |name: &str, short, long| if name.len() == SHORTEST_NAME { short } else { long };
    // Each part is replaced where it stands; the last first, so that the others stay in place.
    let mut replaced = vec![
        (parts.month, length_format(parts.month, "%b", "%B").to_owned()),
        (parts.day, "%d".to_owned()),
        (parts.year, "%Y".to_owned()),
    ];
    replaced.extend(parts.weekday.map(|name| (name, length_format(name, "%a", "%A").to_owned())));
    replaced.extend(time.flatten());
    let place = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
    replaced.sort_by_key(|(part, _)| std::cmp::Reverse(place(part)));
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

/// Number of a month from 0, by its name or the first three letters of it.
fn month(name: &str) -> Option<usize> {
    let is_it = |names: &[&str; 12]| names.iter().position(|known| name.eq_ignore_ascii_case(known));
    is_it(&MONTHS).or_else(|| is_it(&FULL_MONTHS))
}

fn is_weekday(name: &str) -> bool {
    WEEKDAYS.iter().any(|known| {
        name.eq_ignore_ascii_case(known)
            || known.get(..SHORTEST_NAME).is_some_and(|short| name.eq_ignore_ascii_case(short))
    })
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
            ("Tuesday, May 06, 2025 12:30", "2025-05-06T12:30:00Z", "%A, %B %d, %Y %H:%M"),
        ] {
            let found = instant(text).and_then(DateTime::from_timestamp_micros);
            assert_eq!(found, Some(expected.parse().unwrap()), "{text}");
            let found = format_like(text).unwrap();
            // A month of three letters has no other form.
            assert_eq!(found.replace("%B", "%b"), format.replace("%B", "%b"), "{text}");
            let cells = BinaryArray::from(vec![text.as_bytes()]);
            let timestamps = TimestampFormat::Strftime(found);
            let options = TextFormat { timestamps, ..TextFormat::default() };
            let read = parse_text_column(&cells, ColumnType::Timestamp, &options);
            if format.contains("%S") || format.contains("%M") {
                assert!(read.faults.is_empty(), "{text}: {:?}", read.faults);
                let read = read.values.as_primitive::<TimestampMicrosecondType>().value(0);
                assert_eq!(Some(read), instant(text), "{text}");
            }
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
