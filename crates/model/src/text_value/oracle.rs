//! Tests of text parsing against independent readers: whole numbers as i128, decimals as fractions,
//! days by counting, and grammars that are written differently. The texts follow the grammar,
//! exceed its limits, or have characters changed.

use arrow::array::{Array, AsArray, BinaryArray};
use arrow::datatypes::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use proptest::prelude::*;

use super::*;

fn column(text: &str, column_type: ColumnType, format: &TextFormat) -> ParsedColumn {
    parse_text_column(&BinaryArray::from_iter_values([text.as_bytes()]), column_type, format)
}

/// Returns the value if the text is accepted.
fn value<T: ArrowPrimitiveType>(
    text: &str,
    column_type: ColumnType,
    format: &TextFormat,
) -> Option<T::Native> {
    let column = column(text, column_type, format);
    assert_eq!(column.faults.is_empty(), column.values.is_valid(0), "{text}");
    column.faults.is_empty().then(|| column.values.as_primitive::<T>().value(0))
}

fn usual<T: ArrowPrimitiveType>(text: &str, column_type: ColumnType) -> Option<T::Native> {
    value::<T>(text, column_type, &TextFormat::default())
}

fn comma() -> TextFormat {
    TextFormat { decimal_comma: true, ..TextFormat::default() }
}

fn format(format: &str) -> TextFormat {
    TextFormat { timestamps: format.parse().unwrap(), ..TextFormat::default() }
}

/// Splits a decimal into its sign, its digits and the number of digits after the point, with a
/// state machine over the characters.
fn fraction(text: &str) -> Option<(bool, Vec<u8>, usize)> {
    let (mut digits, mut behind, mut seen_point, mut negative) = (Vec::new(), 0, false, false);
    for (at, character) in text.chars().enumerate() {
        match character {
            '+' | '-' if at == 0 => negative = character == '-',
            '.' if !seen_point => seen_point = true,
            '0'..='9' => {
                digits.push(character as u8 - b'0');
                behind += usize::from(seen_point);
            }
            _ => return None,
        }
    }
    (!digits.is_empty()).then_some((negative, digits, behind))
}

/// Multiplies a fraction by a power of ten; `None` if the product is not a whole number of up to 38
/// digits.
fn scaled(text: &str, power: usize) -> Option<i128> {
    let (negative, mut digits, behind) = fraction(text.trim())?;
    for _ in power..behind {
        if digits.pop()? != 0 {
            return None;
        }
    }
    digits.extend(std::iter::repeat_n(0, power.saturating_sub(behind)));
    let value = digits
        .iter()
        .try_fold(0i128, |value, digit| value.checked_mul(10)?.checked_add(i128::from(*digit)))?;
    Some(if negative { -value } else { value })
}

/// Parses an integer: a fraction of zeros adds nothing, and a point has digits on both sides.
fn whole(text: &str) -> Option<i128> {
    let text = text.trim();
    let digit = |character: Option<char>| character.is_some_and(|c| c.is_ascii_digit());
    let is_framed = text
        .split_once('.')
        .is_none_or(|(before, after)| digit(before.chars().last()) && digit(after.chars().next()));
    if is_framed { scaled(text, 0) } else { None }
}

/// Converts a number with a decimal comma to one with a point: groups the digits anew and compares.
fn with_comma(text: &str) -> Option<String> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (number, exponent) = unsigned.find(['e', 'E']).map_or((unsigned, ""), |at| unsigned.split_at(at));
    let (whole, fraction) = match number.split_once(',') {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole, fraction),
        None => (number, ""),
    };
    let digits = whole.replace('.', "");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push('.');
        }
        grouped.push(digit);
    }
    let is_plain = whole == digits;
    let is_grouped = whole == grouped && !digits.starts_with('0') && exponent.is_empty();
    if !(is_plain || is_grouped) || fraction.contains('.') {
        return None;
    }
    let sign = &text[..text.len() - unsigned.len()];
    Some(format!("{sign}{digits}{}{fraction}{exponent}", if fraction.is_empty() { "" } else { "." }))
}

/// Generates number-like text: by the grammar, with one character changed, or from any characters
/// that appear in numbers.
fn numbers() -> impl Strategy<Value = String> {
    let like = "[+-]?[0-9]{0,12}(\\.[0-9]{0,6}){0,2}|[+-]?0{0,3}[0-9]{1,40}(\\.[0-9]{0,3}0{0,40})?|-?(127|128|129|255|256|32767|32768|65535|65536|2147483647|2147483648|4294967295|4294967296|9223372036854775807|9223372036854775808|18446744073709551615|18446744073709551616)(\\.0{0,3})?";
    prop_oneof![
        like.prop_map(|text| text),
        (like, any::<prop::sample::Index>(), "[0-9+\\-.,eE x_\u{663}]").prop_map(|(text, at, with)| {
            let at = at.index(text.len() + 1);
            format!("{}{with}{}", &text[..at], text.get(at + 1..).unwrap_or_default())
        }),
        "[0-9+\\-., e]{0,8}".prop_map(|text| text),
    ]
}

/// Generates number-like text with a decimal comma.
fn numbers_with_comma() -> impl Strategy<Value = String> {
    prop_oneof![
        "[+-]?[0-9]{1,4}(\\.[0-9]{2,4}){0,3}(,[0-9]{0,4})?",
        "[+-]?[0-9]{0,3}(\\.[0-9]{3}){0,3}(,[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?",
        "[0-9.,e+-]{0,7}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn integers_are_those_of_i128(text in numbers()) {
        let exact = whole(&text);
        macro_rules! agree {
            ($($arrow:ty, $column:ident, $native:ty);*) => {$(
                let expected = exact.and_then(|value| <$native>::try_from(value).ok())
                    // An unsigned type accepts no minus, not even for 0.
                    .filter(|_| <$native>::MIN != 0 || !text.trim().starts_with('-'));
                prop_assert_eq!(usual::<$arrow>(&text, ColumnType::$column), expected, "{}", text);
            )*};
        }
        agree!(Int8Type, Int8, i8; Int16Type, Int16, i16; Int32Type, Int32, i32; Int64Type, Int64, i64;
               UInt8Type, Uint8, u8; UInt16Type, Uint16, u16; UInt32Type, Uint32, u32; UInt64Type, Uint64, u64);
    }

    #[test]
    fn decimals_are_exact_fractions(text in numbers(), precision in 1u8..=35, scale in 0i8..=9) {
        let scale = scale.min(precision as i8);
        let expected = scaled(&text, scale as usize).filter(|value| value.unsigned_abs() < 10u128.pow(precision.into()));
        let found = usual::<Decimal128Type>(&text, ColumnType::Decimal { precision, scale });
        prop_assert_eq!(found, expected, "{}", text);
    }

    #[test]
    fn floats_are_the_nearest_numbers(text in numbers(), exponent in prop::option::of(-30i32..30)) {
        let text = exponent.map_or(text.clone(), |exponent| format!("{}e{exponent}", text.trim()));
        let (mantissa, power) = match text.trim().split_once(['e', 'E']) {
            Some((mantissa, power)) => {
                let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
                let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                (mantissa, power.parse::<i32>().ok().filter(|_| plain))
            }
            None => (text.trim(), Some(0)),
        };
        let parts = fraction(mantissa).zip(power);
        let found = usual::<Float64Type>(&text, ColumnType::Double);
        // Numbers near or beyond the largest and the smallest have a table of their own.
        let is_number = |text: &str| text.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit());
        let is_far = text.split_once(['e', 'E']).is_some_and(|(_, power)| is_number(power.trim()) && power.len() > 3);
        if !is_far && power.is_none_or(|power| power.abs() < 200) {
            prop_assert_eq!(found.is_some(), parts.is_some(), "{}", text);
        }
        // Numerator and denominator are exact: their quotient is the nearest number.
        if let Some(((negative, digits, behind), power)) = parts {
            let power = power - behind as i32;
            let digits = digits.iter().skip_while(|digit| **digit == 0);
            let numerator = digits.clone().take(15).fold(0.0, |value, digit| value * 10.0 + f64::from(*digit));
            if digits.count() <= 15 && power.abs() <= 22 {
                let size = 10f64.powi(power.abs());
                let quotient = if power < 0 { numerator / size } else { numerator * size };
                prop_assert_eq!(found, Some(if negative { -quotient } else { quotient }), "{}", text);
            }
        }
    }

    #[test]
    fn a_decimal_comma_is_a_point_and_points_are_groups(text in numbers_with_comma()) {
        let plain = with_comma(&text);
        let double = plain.as_deref().and_then(|plain| usual::<Float64Type>(plain, ColumnType::Double));
        prop_assert_eq!(value::<Float64Type>(&text, ColumnType::Double, &comma()), double, "{}", text);
        let whole = plain.as_deref().and_then(|plain| usual::<Int64Type>(plain, ColumnType::Int64));
        prop_assert_eq!(value::<Int64Type>(&text, ColumnType::Int64, &comma()), whole, "{}", text);
        let price = ColumnType::Decimal { precision: 12, scale: 4 };
        let decimal = plain.as_deref().and_then(|plain| usual::<Decimal128Type>(plain, price));
        prop_assert_eq!(value::<Decimal128Type>(&text, price, &comma()), decimal, "{}", text);
    }

    #[test]
    fn numbers_survive_as_text(whole: i64, unsigned: u64, double: f64, single: f32) {
        prop_assert_eq!(usual::<Int64Type>(&whole.to_string(), ColumnType::Int64), Some(whole));
        prop_assert_eq!(usual::<UInt64Type>(&unsigned.to_string(), ColumnType::Uint64), Some(unsigned));
        for text in [double.to_string(), format!("{double:e}"), format!("+{}", double.abs())] {
            let found = usual::<Float64Type>(&text, ColumnType::Double).map(f64::abs);
            prop_assert!(found == Some(double.abs()) || double.is_nan(), "{}", text);
        }
        let found = usual::<Float32Type>(&single.to_string(), ColumnType::Float);
        prop_assert!(found == Some(single) || single.is_nan());
    }

    #[test]
    fn instants_are_those_of_the_calendar(at in moments()) {
        let expected = at.micros();
        let text = at.text();
        prop_assert_eq!(usual::<TimestampMicrosecondType>(&text, ColumnType::Timestamp64), expected, "{}", text);
        let whole = expected.filter(|micros| micros % 1_000_000 == 0).map(|micros| micros / 1000);
        prop_assert_eq!(usual::<TimestampMillisecondType>(&text, ColumnType::Datetime64), whole, "{}", text);
        let days = expected.filter(|micros| micros % DAY == 0).map(|micros| (micros / DAY) as i32);
        prop_assert_eq!(usual::<Date32Type>(&text, ColumnType::Date32), days, "{}", text);
        // The same instants, read with a declared format.
        if at.zone.is_none() && at.time.is_some() && at.year < 10_000 {
            let declared = format("%Y-%m-%dT%H:%M:%S%.f");
            let text = Moment { separator: 'T', slash: false, ..at.clone() }.text();
            prop_assert_eq!(value::<TimestampMicrosecondType>(&text, ColumnType::Timestamp64, &declared), expected, "{}", text);
        }
    }

    #[test]
    fn instants_agree_with_another_reader_of_rfc_3339(at in moments(), change in any::<prop::sample::Index>(), with in "[0-9TZ:+. -]") {
        let mut text = Moment { separator: 'T', slash: false, ..at }.text();
        let place = change.index(text.len());
        text.replace_range(place..=place, &with);
        // The other reader accepts leap seconds, and cuts digits after the ninth.
        let digits = text.split_once('.').map_or(0, |(_, after)| after.bytes().take_while(u8::is_ascii_digit).count());
        if let Ok(other) = chrono::DateTime::parse_from_rfc3339(&text)
            && other.timestamp_subsec_nanos() < 1_000_000_000
            && digits <= 9
        {
            let exact = (other.timestamp_subsec_nanos() % 1000 == 0).then(|| other.timestamp_micros());
            prop_assert_eq!(usual::<TimestampMicrosecondType>(&text, ColumnType::Timestamp64), exact, "{}", text);
        }
    }

    #[test]
    fn uuids_are_128_bits_in_hexadecimal(bits: u128, change in prop::option::of((any::<prop::sample::Index>(), "[0-9a-gA-F{}: -]"))) {
        let digits = format!("{bits:032x}");
        let hyphens = format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]);
        for mut text in [digits.clone(), hyphens.clone(), hyphens.to_uppercase(), format!("{{{hyphens}}}"), format!("urn:uuid:{hyphens}")] {
            let written = text.clone();
            if let Some((at, with)) = &change {
                let at = at.index(text.len());
                text.replace_range(at..=at, with);
            }
            let found = column(&text, ColumnType::Uuid, &TextFormat::default());
            let bytes = found.faults.is_empty().then(|| found.values.as_fixed_size_binary().value(0).to_vec());
            // Accepted text has the same form, and its own digits.
            let bare = |text: &str| match text.get(..9) {
                Some(urn) if urn.eq_ignore_ascii_case("urn:uuid:") => text[9..].to_owned(),
                _ => text.to_owned(),
            };
            let hex = |text: &str| bare(text).chars().filter(char::is_ascii_hexdigit).collect::<String>();
            match bytes {
                Some(bytes) => prop_assert_eq!(u128::from_str_radix(&hex(&text), 16).ok(), bytes.try_into().ok().map(u128::from_be_bytes), "{}", text),
                None => prop_assert!(text != written, "{}", text),
            }
        }
    }
}

const DAY: i64 = 86_400_000_000;

/// Parts of a point in time, some of them out of range.
#[derive(Debug, Clone)]
struct Moment {
    year: i64,
    month: i64,
    day: i64,
    /// Hour, minute, second and the digits of a fraction.
    time: Option<(i64, i64, i64, String)>,
    /// Sign, hours and minutes.
    zone: Option<(char, i64, i64)>,
    separator: char,
    slash: bool,
}

fn moments() -> impl Strategy<Value = Moment> {
    let time = (
        prop_oneof![0i64..24, 23i64..26],
        prop_oneof![0i64..60, 58i64..62],
        prop_oneof![0i64..60, 58i64..62],
        "|[0-9]{1,6}|[0-9]{1,9}0{0,4}|[0-9]{6}0{0,20}[0-9]?",
    );
    let zone = (
        prop_oneof![Just('+'), Just('-')],
        prop_oneof![0i64..15, 20i64..30, Just(99)],
        prop_oneof![0i64..60, 55i64..100],
    );
    let date = (prop_oneof![1970i64..2105, 0i64..10_000], 0i64..14, prop_oneof![1i64..29, 0i64..33]);
    (
        date,
        prop::option::weighted(0.9, time),
        prop::option::of(zone),
        prop_oneof![Just('T'), Just(' '), Just('t')],
        any::<bool>(),
    )
        .prop_map(|((year, month, day), time, zone, separator, slash)| {
            let zone = zone.filter(|_| time.is_some());
            Moment { year, month, day, time, zone, separator, slash }
        })
}

impl Moment {
    fn text(&self) -> String {
        let line = if self.slash { '/' } else { '-' };
        let mut text = format!("{:04}{line}{:02}{line}{:02}", self.year, self.month, self.day);
        if let Some((hour, minute, second, fraction)) = &self.time {
            text += &format!("{}{hour:02}:{minute:02}:{second:02}", self.separator);
            if !fraction.is_empty() {
                text += &format!(".{fraction}");
            }
        }
        if let Some((sign, hours, minutes)) = self.zone {
            text += &format!("{sign}{hours:02}:{minutes:02}");
        }
        text
    }

    /// Returns microseconds since 1970, counted day by day from year to year; `None` for dates and
    /// times that do not exist.
    fn micros(&self) -> Option<i64> {
        let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let lengths = [31, if leap(self.year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let length = usize::try_from(self.month - 1).ok().and_then(|month| lengths.get(month))?;
        (1..=*length).contains(&self.day).then_some(())?;
        let length_of = |year| if leap(year) { 366 } else { 365 };
        let years: i64 = match self.year {
            later if later >= 1970 => (1970..later).map(length_of).sum(),
            earlier => -(earlier..1970).map(length_of).sum::<i64>(),
        };
        let days = years + lengths[..self.month as usize - 1].iter().sum::<i64>() + self.day - 1;
        let mut micros = days * DAY;
        if let Some((hour, minute, second, fraction)) = &self.time {
            if *hour > 23 || *minute > 59 || *second > 59 {
                return None;
            }
            micros += ((hour * 60 + minute) * 60 + second) * 1_000_000;
            micros += i64::try_from(scaled(&format!("0.{fraction}"), 6)?).ok()?;
        }
        if let Some((sign, hours, minutes)) = self.zone {
            if hours > 23 || minutes > 59 {
                return None;
            }
            let offset = (hours * 60 + minutes) * 60_000_000;
            micros += if sign == '+' { -offset } else { offset };
        }
        Some(micros)
    }
}

#[test]
fn the_calendar_of_these_tests_is_right() {
    let at =
        |year, month, day| Moment { year, month, day, time: None, zone: None, separator: 'T', slash: false };
    assert_eq!(at(1970, 1, 1).micros(), Some(0));
    assert_eq!(at(2026, 1, 31).micros(), Some(1_769_817_600_000_000));
    assert_eq!(at(1969, 12, 31).micros(), Some(-DAY));
    assert_eq!(at(2000, 2, 29).micros(), Some(951_782_400_000_000));
    for (year, month, day) in
        [(1900, 2, 29), (2026, 2, 29), (2026, 4, 31), (2026, 0, 1), (2026, 13, 1), (2026, 1, 0)]
    {
        assert_eq!(at(year, month, day).micros(), None);
    }
}

#[test]
fn points_in_time_with_several_readings_or_none_are_refused() {
    for text in [
        "2016-12-31T23:59:60Z",
        "2016-12-31 23:59:60",
        "2016-12-31T23:59:60.5Z",
        "2016-12-31 235960",
        "Sat, 31 Dec 2016 23:59:60 GMT",
        "2026-01-31T24:00:00Z",
        "2026-01-31T10:00:00.1234567891Z",
        "2026-01-31T10:00:00.1234560000001Z",
        "2026-01-31 10:00:00.00000000001 +0200",
        "2026/01/31 10:00:00.0000000001",
        "2026-01-31T10:00:00+99:99",
        "2026-01-31T10:00:00+12:75",
        "2026-01-31T10:00:00+24:00",
        "2026-01-31T10:00:00+1",
        "2026-01-31T10:00:00+02:00:00",
        "2026-01-31T10:00:00.",
        "2026-01-31T10:00:00.Z",
        "2026-01-31T",
        "2026-01-3110:00",
        "2026-01-311:00",
        "26/01/31",
        "1/2/03",
        "26-01-31",
        "+2026-01-31",
        "-2026-01-31",
        "12026-01-31",
        "2026/01-31",
        "2026.01.31",
        "20260131",
        "2026-W05-6",
        "2026-01-31T10",
        "2026-01-31T10:0",
        "2026-01-31T10:00:0",
        "2026-01-31T10:00:00 PM",
        "2026-01-31T10:00:00ZZ",
        "2026-01-31T10:00:00 Mars/Olympus",
        // A spring night without that hour, and an autumn night that has it twice.
        "2026-03-29T02:30:00 Europe/Berlin",
        "2026-10-25T02:30:00 Europe/Berlin",
        "Sat, 31 Jan 2026 10:00:00 A",
        "Sun, 31 Jan 2026 10:00:00 GMT",
        "٢٠٢٦-01-31",
    ] {
        assert_eq!(usual::<TimestampMicrosecondType>(text, ColumnType::Timestamp64), None, "{text}");
    }
    const TEN: i64 = 1_769_853_600_000_000;
    for (text, micros) in [
        ("2026-01-31T10:00:00.000000000000000000Z", TEN),
        ("2026-01-31T10:00:00.12345600000000000000Z", TEN + 123_456),
        ("2026-01-31 100000", TEN),
        ("2026-01-31t10:00:00z", TEN),
        ("2026-01-31T05:00:00-0500", TEN),
        ("2026-01-31 12:00:00 +02", TEN),
        ("2026-01-31 11:00:00 Europe/Berlin", TEN),
        ("2026-1-31 10:00", TEN),
        ("2026/1/31", TEN - 36_000_000_000),
        ("Sat, 31 Jan 2026 10:00:00 +0000", TEN),
        ("2026-02-01T09:59:00+23:59", TEN),
    ] {
        assert_eq!(usual::<TimestampMicrosecondType>(text, ColumnType::Timestamp64), Some(micros), "{text}");
    }
    let leap = column("2016-12-31T23:59:60Z", ColumnType::Timestamp, &TextFormat::default());
    assert!(leap.faults[0].fault.to_string().contains("is a leap second"), "{:?}", leap.faults);
}

#[test]
fn a_declared_format_takes_no_instant_that_cannot_be_held() {
    let read = |text: &str, pattern: &str| {
        value::<TimestampMicrosecondType>(text, ColumnType::Timestamp64, &format(pattern))
    };
    assert_eq!(read("31.01.2026 10:00:00.1234560000", "%d.%m.%Y %H:%M:%S%.f"), Some(1_769_853_600_123_456));
    assert_eq!(read("31.01.2026 10:00:00.1234560001", "%d.%m.%Y %H:%M:%S%.f"), None);
    assert_eq!(read("31.12.2016 23:59:60", "%d.%m.%Y %H:%M:%S"), None);
    assert_eq!(
        read("31.01.2026 10:00 EST", "%d.%m.%Y %H:%M EST"),
        Some(1_769_853_600_000_000),
        "literal text"
    );
    for pattern in ["%Y-%m-%d %H:%M %Z", "%Z"] {
        assert!(pattern.parse::<TimestampFormat>().is_err(), "{pattern}");
    }
    for (unit, text, micros) in [
        ("unix-s", "1.5", None),
        ("unix-s", "1e3", None),
        ("unix-s", "0x10", None),
        ("unix-ms", "-1", Some(-1000)),
        ("unix-us", "-1", Some(-1)),
        ("unix-ns", "1500", None),
        ("unix-ns", "-1000", Some(-1)),
        ("unix-s", "9223372036854775807", None),
        ("unix-s", "1 000", None),
    ] {
        assert_eq!(read(text, unit), micros, "{unit} {text}");
    }
}

#[test]
fn spellings_of_floats_and_truth_values() {
    for (text, expected) in [
        ("inf", f64::INFINITY),
        ("-Infinity", f64::NEG_INFINITY),
        ("1e5", 1e5),
        ("1E+5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("0e999", 0.0),
        ("-0.0e-999", -0.0),
        ("5e-324", 5e-324),
        ("1.7976931348623157e308", f64::MAX),
    ] {
        assert_eq!(usual::<Float64Type>(text, ColumnType::Double), Some(expected), "{text}");
    }
    assert!(usual::<Float64Type>("NaN", ColumnType::Double).is_some_and(f64::is_nan));
    for text in [
        "1e999",
        "-1e999",
        "1e-999",
        "-0.001e-400",
        "0x1p3",
        "0x10",
        "1_000",
        "1,5",
        "1 000",
        "1e",
        "e5",
        ".",
        "+",
        "",
        "1e5.0",
        "infin",
        "nano",
        "NaN(1)",
        "1d",
        "1f",
        "٣",
    ] {
        assert_eq!(usual::<Float64Type>(text, ColumnType::Double), None, "{text}");
    }
    for text in ["1e39", "1e-50", "-1e39"] {
        assert_eq!(usual::<Float32Type>(text, ColumnType::Float), None, "{text}");
    }
    for text in [
        "1.2e5",
        "1.23e5",
        "0.123",
        "1234.567",
        "1.5",
        "01.234",
        "1.234,5e3",
        "1,",
        "1.,5",
        ".123",
        "1,2,3",
        "inf,0",
        "1,5e",
    ] {
        assert_eq!(value::<Float64Type>(text, ColumnType::Double, &comma()), None, "{text}");
    }
    for (text, expected) in [
        ("1,2e5", 1.2e5),
        ("1e5", 1e5),
        ("1.234.567,5", 1_234_567.5),
        ("1234,5", 1234.5),
        ("-,5", -0.5),
        ("inf", f64::INFINITY),
    ] {
        assert_eq!(value::<Float64Type>(text, ColumnType::Double, &comma()), Some(expected), "{text}");
    }
    let truth = |text: &str| {
        let column = column(text, ColumnType::Bool, &TextFormat::default());
        column.faults.is_empty().then(|| column.values.as_boolean().value(0))
    };
    for text in ["true", "TRUE", "t", "Yes", "1"] {
        assert_eq!(truth(text), Some(true), "{text}");
    }
    for text in ["false", "F", "no", "0"] {
        assert_eq!(truth(text), Some(false), "{text}");
    }
    for text in ["", "y", "n", "on", "off", "2", "-1", "01", "1.0", "null", "truе"] {
        assert_eq!(truth(text), None, "{text}");
    }
    for text in ["+.", "-.", ".", "", "+", "-", "+-1", "1-2", "--1", "1.2.3", "1e2", "٣", "1 2"] {
        assert_eq!(
            usual::<Decimal128Type>(text, ColumnType::Decimal { precision: 22, scale: 9 }),
            None,
            "{text}"
        );
    }
}
