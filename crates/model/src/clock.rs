//! Times of day as people write them, `9:30 PM`, `09.30.00`, and what dates of several forms share.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

/// English names of months.
const MONTHS: [&str; 12] = [
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

/// Length of a short name of a month or a weekday.
pub(crate) const SHORT_NAME: usize = 3;

/// Number of a month from 0, by its name or the first three letters of it.
pub(crate) fn month(name: &str) -> Option<usize> {
    MONTHS.iter().position(|known| is_name(name, known))
}

/// Whether a text is a name, or the first three letters of it.
pub(crate) fn is_name(text: &str, name: &str) -> bool {
    let short = name.get(..SHORT_NAME);
    text.eq_ignore_ascii_case(name) || short.is_some_and(|short| text.eq_ignore_ascii_case(short))
}

/// Microseconds since 1970 of a time of day that is `offset` seconds ahead of UTC.
pub(crate) fn micros(date: NaiveDate, time: NaiveTime, offset: i64) -> i64 {
    NaiveDateTime::new(date, time).and_utc().timestamp_micros() - offset * 1_000_000
}

/// Returns the `strftime` format of a time of day; `None` for one with a comma.
pub(crate) fn time_format(time: &str) -> Option<String> {
    let numbers = time.find(|c: char| !c.is_ascii_digit() && ![':', '.'].contains(&c)).unwrap_or(time.len());
    let (clock, behind) = time.split_at_checked(numbers)?;
    let mark = if clock.contains(':') { ":" } else { "." };
    let half = behind.trim_start().get(..2);
    let half = half.filter(|half| ["am", "pm"].iter().any(|known| half.eq_ignore_ascii_case(known)));
    let hour = if half.is_some() { "%I" } else { "%H" };
    let seconds = match clock.matches(mark).count() + usize::from(mark == ":" && clock.contains('.')) {
        1 => String::new(),
        2 => format!("{mark}%S"),
        _ => format!("{mark}%S%.f"),
    };
    if behind.starts_with(',') {
        return None;
    }
    let behind = match half {
        Some(half) => behind.replacen(half, "%p", 1),
        None => behind.to_owned(),
    };
    let behind = match behind.find(['+', '-']) {
        Some(at) => format!("{}%z", behind.get(..at)?),
        None => behind,
    };
    Some(format!("{hour}{mark}%M{seconds}{behind}"))
}

/// Parses a number with at most `digits` digits.
pub(crate) fn number(text: &str, digits: usize) -> Option<u32> {
    let is_number = (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Reads a time of day, with colons or points, and its offset from UTC in seconds.
pub(crate) fn time_of_day(text: &str) -> Option<(NaiveTime, i64)> {
    let (text, offset) = offset(text)?;
    let (text, is_afternoon) = match text.to_ascii_lowercase() {
        lower if lower.ends_with("am") => (text.get(..text.len() - 2)?.trim_end(), Some(false)),
        lower if lower.ends_with("pm") => (text.get(..text.len() - 2)?.trim_end(), Some(true)),
        _ => (text, None),
    };
    let mut parts = match text.contains(':') {
        true => text.split(':').collect::<Vec<_>>(),
        false => text.splitn(4, '.').collect(),
    };
    if !(2..=if text.contains(':') { 3 } else { 4 }).contains(&parts.len()) {
        return None;
    }
    // The fraction of a second follows a point or a comma.
    let mut nanos = 0;
    let fraction = match parts.as_slice() {
        [_, _, second] => second.split_once(['.', ',']).map(|(_, fraction)| fraction),
        [_, _, _, fraction] => Some(*fraction),
        _ => None,
    };
    if let Some(fraction) = fraction {
        number(fraction, 9)?;
        nanos = format!("{fraction:0<9}").parse().ok()?;
    }
    parts.truncate(3);
    let second = match parts.get(2) {
        Some(second) => number(second.split(['.', ',']).next()?, 2)?,
        None => 0,
    };
    let hour = number(parts.first()?, 2)?;
    let hour = match is_afternoon {
        None => hour,
        Some(is_afternoon) if (1..=12).contains(&hour) => hour % 12 + if is_afternoon { 12 } else { 0 },
        Some(_) => return None,
    };
    let time = NaiveTime::from_hms_nano_opt(hour, number(parts.get(1)?, 2)?, second, nanos)?;
    Some((time, offset))
}

/// Cuts an offset from UTC off: `Z`, `GMT`, `+02:00`, `-0500`.
fn offset(text: &str) -> Option<(&str, i64)> {
    if let Some(time) = ["Z", "z", "GMT", "UTC"].iter().find_map(|zone| text.strip_suffix(zone)) {
        return Some((time.trim_end(), 0));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let (time, offset) = text.split_at_checked(at)?;
    let (sign, digits) = offset.split_at_checked(1)?;
    let digits = digits.replace(':', "");
    if digits.len() != 4 {
        return None;
    }
    let digits = i64::from(number(&digits, 4)?);
    let seconds = (digits / 100 * 60 + digits % 100) * 60;
    Some((time.trim_end(), if sign == "-" { -seconds } else { seconds }))
}
