//! Forms of texts: codes, identifiers, addresses, numbers, dates and times of day.

use std::net::IpAddr;

use evenkeel_model::time_reading::is_written_date;

/// Seconds since 1970 of the years 2000 to 2050.
pub(super) const SECONDS: std::ops::Range<f64> = 946_684_800.0..2_524_608_000.0;

/// Greatest number of bytes of a date with a time of day.
const LONGEST_DATE: usize = 40;

/// Texts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Words {
    pub(crate) mean_chars: f64,
    pub(crate) mean_words: f64,
    /// Share of the values that contain digits and no blanks.
    pub(crate) codes: f64,
    /// Share of the values that are UUIDs or hexadecimal numbers of 16 digits or more.
    pub(crate) opaque: f64,
    /// Share of the values that are objects or lists of JSON, or the like.
    pub(crate) structured: f64,
    /// Share of the values that are IP addresses or URLs.
    pub(crate) addresses: f64,
    /// Share of the values that are IP addresses.
    pub(crate) networks: f64,
    /// Share of the values that are numbers with a fraction, also with a sign or a bound: "<0.5".
    pub(crate) decimals: f64,
    /// Share of the values that are numbers.
    pub(crate) numeric: f64,
    /// Share of the values that are dates with the year last, or times of day: "31.01.2026 09:30",
    /// "09:30:00".
    pub(crate) dates: f64,
    /// Share of the values that are times of day.
    pub(crate) clocks: f64,
    /// Share of the values that are numbers with a fraction and may be seconds since 1970.
    pub(crate) seconds: f64,
}

/// Maximum mean number of characters with which texts may be names of things.
const MAX_CHARACTERS_OF_NAMES: f64 = 60.0;

impl Words {
    /// Whether texts are single words with digits, as "#1001".
    pub(crate) fn are_codes(&self) -> bool {
        self.codes >= 0.9 && self.mean_words < 1.1
    }

    /// Whether texts of fewer than `max_words` words may be names of things.
    pub(crate) fn may_be_names(&self, max_words: f64) -> bool {
        self.mean_chars <= MAX_CHARACTERS_OF_NAMES && self.mean_words < max_words && self.structured < 0.5
    }

    pub(super) fn from_texts(texts: &[String]) -> Option<Self> {
        if texts.is_empty() {
            return None;
        }
        let share = |holds: &dyn Fn(&str) -> bool| {
            texts.iter().filter(|text| holds(text)).count() as f64 / texts.len() as f64
        };
        let mean = |count: &dyn Fn(&str) -> usize| {
            texts.iter().map(|text| count(text)).sum::<usize>() as f64 / texts.len() as f64
        };
        Some(Self {
            mean_chars: mean(&|text| text.chars().count()),
            mean_words: mean(&|text| text.split_whitespace().count()),
            codes: share(&|text| {
                !text.contains(char::is_whitespace) && text.chars().any(|c| c.is_ascii_digit())
            }),
            opaque: share(&is_opaque),
            structured: share(&is_structured),
            addresses: share(&is_address),
            networks: share(&|text| text.parse::<IpAddr>().is_ok()),
            decimals: share(&is_decimal),
            numeric: share(&|text| is_decimal(text) || text.trim().parse::<f64>().is_ok()),
            dates: share(&|text| {
                text.len() <= LONGEST_DATE
                    && (is_written_date(text)
                        || is_iso_date(text)
                        || is_time_of_day(text)
                        || is_month_of_year(text)
                        || is_end_of_time(text))
            }),
            clocks: share(&is_time_of_day),
            seconds: share(&|text| {
                is_decimal(text) && text.parse().is_ok_and(|seconds: f64| SECONDS.contains(&seconds))
            }),
        })
    }
}

/// Whether a text is a date that means "no end": "31.12.9999", "31/12/2999".
fn is_end_of_time(text: &str) -> bool {
    let ends = ["9999", "2999"].into_iter().filter(|year| text.contains(year));
    ends.into_iter().any(|year| is_written_date(&text.replace(year, "2099")))
}

/// Whether a text is a date as in ISO 8601, which columns have as text if words stand for NULL.
fn is_iso_date(text: &str) -> bool {
    let (date, rest) = text.split_at_checked(10).unwrap_or((text, ""));
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let within = |part: &str, most: &str| part.len() == 2 && ("01"..=most).contains(&part);
    let is_time = || rest.starts_with(['T', ' ']) && rest.get(1..).is_some_and(|time| time.contains(':'));
    year.len() == 4
        && year.bytes().all(|byte| byte.is_ascii_digit())
        && within(month, "12")
        && within(day, "31")
        && (rest.is_empty() || is_time())
}

/// Whether a text is a month of a year: "Jan-2026", "Jan 26", "01/2026", "2026-01".
fn is_month_of_year(text: &str) -> bool {
    let Some((month, year)) = text.split_once(['-', ' ', '/']) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_month = |text: &str| text.len() == 2 && ("01"..="12").contains(&text);
    let is_year = |text: &str| is_number(text) && text.len() == 4 && ("1900".."2100").contains(&text);
    match is_number(month) {
        true => {
            (text.contains('/') && is_month(month) && is_year(year))
                || (!text.contains(' ') && is_year(month) && is_month(year))
        }
        false => {
            is_number(year) && [2, 4].contains(&year.len()) && is_written_date(&format!("01-{month}-2026"))
        }
    }
}

/// Whether a text is a UUID or a long hexadecimal number.
pub(super) fn is_opaque(text: &str) -> bool {
    let text = text.strip_prefix("0x").unwrap_or(text);
    let digits = text.chars().filter(char::is_ascii_hexdigit).count();
    let others = text.chars().filter(|c| !c.is_ascii_hexdigit());
    digits >= 16 && others.clone().all(|c| c == '-') && others.count() <= 4
}

/// Whether a text is an IP address, a URL, or the path of one.
fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok() || text.contains("://") || text.starts_with('/')
}

/// Whether a text is a number with a fraction.
pub(super) fn is_decimal(text: &str) -> bool {
    let number = text.trim().trim_start_matches(['<', '>', '=', '+', '-', ' ']);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number.split_once(['.', ',']).is_some_and(|(whole, fraction)| digits(whole) && digits(fraction))
}

/// Whether a text is a time of day, with or without seconds and their fraction.
fn is_time_of_day(text: &str) -> bool {
    let half = [" AM", " PM", " am", " pm"].iter().find_map(|half| text.strip_suffix(half));
    let padded =
        half.map(|text| if text.find(':') == Some(1) { format!("0{text}") } else { text.to_owned() });
    let text = padded.as_deref().unwrap_or(text.trim_end_matches(['Z', 'z']));
    let parts: Vec<&str> = text.split(':').collect();
    let hours = if half.is_some() { 12 } else { 24 };
    let within =
        |part: &str, most: u32| part.len() == 2 && part.parse().is_ok_and(|number: u32| number <= most);
    let is_second = |part: &str| {
        let (second, fraction) = part.split_once('.').unwrap_or((part, "0"));
        within(second, 60) && fraction.bytes().all(|byte| byte.is_ascii_digit())
    };
    match parts.as_slice() {
        [hour, minute] => within(hour, hours) && within(minute, 59),
        [hour, minute, second] => within(hour, hours) && within(minute, 59) && is_second(second),
        _ => false,
    }
}

/// Whether a text is enclosed in braces or brackets and has several parts.
pub(super) fn is_structured(text: &str) -> bool {
    let text = text.trim();
    let enclosed = |open, close| text.starts_with(open) && text.ends_with(close);
    // As PHP writes them: a:2:{s:4:"name";i:7;}.
    let is_serialized = || {
        let mut parts = text.splitn(3, ':');
        let kind = parts.next().is_some_and(|kind| kind == "a" || kind == "O");
        let length = parts.next().is_some_and(|length| length.parse::<u32>().is_ok());
        kind && length && parts.next().is_some_and(|rest| rest.starts_with(['{', '"']))
    };
    (enclosed('{', '}') && (text.contains([':', '=']) || text.len() == 2))
        || enclosed('[', ']')
        || (text.ends_with('}') && is_serialized())
}

#[cfg(test)]
#[path = "texts_tests.rs"]
mod tests;
