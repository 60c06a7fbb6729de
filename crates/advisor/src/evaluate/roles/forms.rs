//! Form of the values of a column: whole numbers, fractions, texts.

use std::net::IpAddr;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use evenkeel_model::time_reading::is_written_date;

/// Maximum number of values whose form is examined.
const MAX_FORMS: usize = 4_000;

/// Maximum number of bytes examined of one text: nothing longer is a number, a date, an address or
/// an id.
const LONGEST_LOOK: usize = 4_096;

/// Seconds since 1970 of the years 2000 to 2050.
pub(super) const SECONDS: std::ops::Range<f64> = 946_684_800.0..2_524_608_000.0;

/// Greatest number of bytes of a date with a time of day.
const LONGEST_DATE: usize = 40;

/// Form of the values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Form {
    Whole(WholeNumbers),
    /// Numbers, some of which have a fraction.
    Fractions,
    Text(Words),
    Other,
}

/// Whole numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WholeNumbers {
    pub(crate) least: i128,
    pub(crate) greatest: i128,
    pub(crate) negative: bool,
    /// Share of the rows with the value 0.
    pub(crate) zeros: f64,
    /// Range of the highest hundredth of the rows, relative to the range of the others: about 0.01
    /// for numbers that fill a range evenly.
    pub(crate) tail: f64,
    /// Variance over mean of the rows per value, around those of its neighbours: about 1 if the
    /// rows are drawn from a smooth distribution, more if each value has its own frequency.
    pub(crate) dispersion: f64,
    /// Whether the values are mostly multiples of 10 or 100.
    pub(crate) rounded: bool,
    /// Share of the rows in the middle half of the range: a half if they fill it evenly, more if
    /// they crowd around a mean.
    pub(crate) middle: f64,
    /// Whether all are times of day written as hours and minutes: 0, 830, 2359.
    pub(crate) hours_and_minutes: bool,
    /// Whether all numbers are dates in six digits: 260131.
    pub(crate) six_digit_dates: bool,
    /// Greatest common divisor of the differences.
    pub(crate) step: u128,
}

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
    /// Share of the values that are dates with the year last, or times of day: "31.01.2026 09:30",
    /// "09:30:00".
    pub(crate) dates: f64,
    /// Share of the values that are times of day.
    pub(crate) clocks: f64,
    /// Share of the values that are numbers with a fraction and may be seconds since 1970.
    pub(crate) seconds: f64,
}

impl Form {
    /// Whether values are words with blanks between them, and no codes.
    pub(crate) fn is_words(&self) -> bool {
        matches!(self, Self::Text(words) if words.mean_words >= 1.5 && words.codes < 0.1)
    }
}

pub(super) fn form(arrays: &[&ArrayRef]) -> Form {
    let Some(first) = arrays.first() else { return Form::Other };
    let data_type = first.data_type();
    if data_type.is_numeric() {
        let numbers: Option<Vec<Vec<i128>>> = arrays.iter().map(|array| whole_numbers(array)).collect();
        return match numbers {
            Some(numbers) => WholeNumbers::from_numbers(numbers.concat()).map_or(Form::Other, Form::Whole),
            None => Form::Fractions,
        };
    }
    if !matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
        return Form::Other;
    }
    let step = (arrays.iter().map(|array| array.len()).sum::<usize>() / MAX_FORMS).max(1);
    let mut texts = Vec::new();
    for array in arrays {
        let Ok(array) = cast(array, &DataType::Utf8) else { continue };
        texts.extend(array.as_string::<i32>().iter().step_by(step).flatten().map(excerpt));
    }
    form_of_texts(texts)
}

/// Form of texts. Numbers may be texts only because of words for NULL, or because of signs: "NA",
/// "1,083", "$ 5,000.00", "12 %".
fn form_of_texts(mut texts: Vec<String>) -> Form {
    let of_all = texts.len();
    if texts.iter().any(|text| !stands_for_null(text)) {
        texts.retain(|text| !stands_for_null(text));
    }
    let mut has_marks = texts.len() < of_all;
    let mut numbers = Vec::with_capacity(texts.len());
    for text in &texts {
        let plain = without_marks(text);
        has_marks |= plain.len() < text.trim().len();
        numbers.push(plain);
    }
    if has_marks && numbers.iter().all(|text| is_number(text)) {
        let whole: Option<Vec<i128>> = numbers.iter().map(|text| text.parse().ok()).collect();
        return match whole {
            Some(whole) => WholeNumbers::from_numbers(whole).map_or(Form::Other, Form::Whole),
            None => Form::Fractions,
        };
    }
    Words::from_texts(&texts).map_or(Form::Other, Form::Text)
}

/// Whether a text denotes a missing value.
fn stands_for_null(text: &str) -> bool {
    const NULLS: &[&str] =
        &["", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "\\n", "-", "--", "?", ".", "(null)"];
    NULLS.iter().any(|null| text.trim().eq_ignore_ascii_case(null))
}

/// A number without the marks of currencies, shares and thousands; other texts as they are.
fn without_marks(text: &str) -> String {
    const CURRENCIES: &[char] = &['$', '€', '£', '¥', '₹', '₽'];
    let number = text.trim().trim_end_matches(['%', ' ']).trim_matches(CURRENCIES).trim();
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits.trim_matches(CURRENCIES)),
        None => ("", number),
    };
    let (whole, fraction) =
        digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let are_thousands = (1..=3).contains(&first.len())
        && is_digits(first)
        && groups.clone().all(|group| group.len() == 3 && is_digits(group));
    let whole = if are_thousands { whole.replace(',', "") } else { whole.to_owned() };
    let plain = [sign, &whole].concat();
    let plain = fraction.map_or(plain.clone(), |fraction| format!("{plain}.{fraction}"));
    if is_plain_number(&plain) || is_decimal(&plain) { plain } else { text.trim().to_owned() }
}

/// Whether a text is a number as programs write it, with or without a fraction and an exponent.
fn is_number(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    (is_plain_number(mantissa) || is_decimal(mantissa)) && exponent.parse::<i16>().is_ok()
}

/// Whether a text is a whole number as programs write it: no code with zeros in front.
fn is_plain_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'))
}

/// A text, or the start and the last character of a long one.
fn excerpt(text: &str) -> String {
    if text.len() <= LONGEST_LOOK {
        return text.to_owned();
    }
    let start = text.get(..text.floor_char_boundary(LONGEST_LOOK)).unwrap_or(text);
    start.chars().chain(text.chars().last()).collect()
}

impl Words {
    fn from_texts(texts: &[String]) -> Option<Self> {
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

/// Whether a text is an ISO 8601 date. Such columns are text if a word stands for NULL.
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
fn is_decimal(text: &str) -> bool {
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

impl WholeNumbers {
    pub(super) fn from_numbers(mut numbers: Vec<i128>) -> Option<Self> {
        numbers.sort_unstable();
        let (least, greatest) = (*numbers.first()?, *numbers.last()?);
        let rows = numbers.len();
        let at = |share: f64| numbers.get((share * (rows - 1) as f64) as usize).copied().unwrap_or(least);
        let reach = (at(0.99) - least).max(1) as f64;
        let mut counts: Vec<(i128, f64)> = Vec::new();
        for number in &numbers {
            match counts.last_mut() {
                Some((last, count)) if last == number => *count += 1.0,
                _ => counts.push((*number, 1.0)),
            }
        }
        let step = counts.windows(2).fold(0u128, |step, pair| match pair {
            [(a, _), (b, _)] => divisor(step, a.abs_diff(*b)),
            _ => step,
        });
        // Zero often means "none", which says nothing about the spread of the others.
        let some: Vec<(i128, f64)> = counts.iter().copied().filter(|(number, _)| *number != 0).collect();
        let round = counts.iter().filter(|(number, _)| number % 10 == 0).count();
        Some(Self {
            least,
            greatest,
            negative: least < 0,
            zeros: numbers.iter().filter(|number| **number == 0).count() as f64 / rows as f64,
            tail: (greatest - at(0.99)) as f64 / reach,
            dispersion: dispersion(&some),
            rounded: counts.len() > 20 && round * 10 > counts.len() * 8,
            middle: middle(&numbers),
            hours_and_minutes: (0..=2359).contains(&least)
                && greatest <= 2359
                && numbers.iter().all(|number| number % 100 < 60),
            six_digit_dates: (10_101..=991_231).contains(&least)
                && greatest <= 991_231
                && counts.iter().all(|(number, _)| is_six_digit_date(*number)),
            step: step.max(1),
        })
    }
}

/// Whether a number is a date in six digits, year, month and day.
fn is_six_digit_date(number: i128) -> bool {
    let (month, day) = (number / 100 % 100, number % 100);
    (1..=12).contains(&month) && (1..=31).contains(&day)
}

/// Share of sorted numbers in the middle half of the range that all but a hundredth at each end
/// fill.
fn middle(numbers: &[i128]) -> f64 {
    let at = |share: f64| numbers.get((share * (numbers.len() - 1) as f64) as usize).copied();
    let (Some(low), Some(high)) = (at(0.01), at(0.99)) else { return 0.0 };
    let quarter = (high - low) / 4;
    let within = |number: &&i128| (low + quarter..=high - quarter).contains(*number);
    numbers.iter().filter(within).count() as f64 / numbers.len() as f64
}

pub(super) fn divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Variance over mean of the counts, each against the mean of its two neighbours on either side.
pub(super) fn dispersion(counts: &[(i128, f64)]) -> f64 {
    let mut sum = (0.0, 0.0);
    for five in counts.windows(5) {
        let [(_, a), (_, b), (_, own), (_, c), (_, d)] = five else { continue };
        let around = (a + b + c + d) / 4.0;
        // The mean of four neighbours varies by a quarter itself.
        sum = (sum.0 + (own - around).powi(2) / 1.25, sum.1 + around.max(*own));
    }
    if sum.1 > 0.0 { sum.0 / sum.1 } else { 1.0 }
}

/// Whole numbers, dates and points in time without NULLs; `None` for other types, and for numbers
/// with fractions.
pub(super) fn whole_numbers(array: &ArrayRef) -> Option<Vec<i128>> {
    match array.data_type() {
        DataType::UInt64 => {
            Some(array.as_primitive::<UInt64Type>().iter().flatten().map(i128::from).collect())
        }
        DataType::Date32 => {
            let days = cast(array, &DataType::Int32).ok()?;
            let days = cast(&days, &DataType::Int64).ok()?;
            Some(days.as_primitive::<Int64Type>().iter().flatten().map(i128::from).collect())
        }
        DataType::Timestamp(..) | DataType::Duration(_) => {
            let numbers = cast(array, &DataType::Int64).ok()?;
            Some(numbers.as_primitive::<Int64Type>().iter().flatten().map(i128::from).collect())
        }
        data_type if data_type.is_integer() => {
            let numbers = cast(array, &DataType::Int64).ok()?;
            Some(numbers.as_primitive::<Int64Type>().iter().flatten().map(i128::from).collect())
        }
        DataType::Float32 | DataType::Float64 | DataType::Decimal128(..) => {
            let numbers = cast(array, &DataType::Float64).ok()?;
            let numbers = numbers.as_primitive::<Float64Type>();
            let whole =
                |number: f64| (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i128);
            numbers.iter().flatten().map(whole).collect()
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "forms_tests.rs"]
mod tests;
