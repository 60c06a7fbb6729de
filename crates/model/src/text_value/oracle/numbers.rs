//! Numbers in arbitrary spellings, against fractions of digits.

use arrow::datatypes::{
    Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use proptest::prelude::*;

use super::*;

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
pub(super) fn scaled(text: &str, power: usize) -> Option<i128> {
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

/// Converts a number with a decimal comma to one with a point: regroups the digits and compares.
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
        let parsed = usual::<Float64Type>(&text, ColumnType::Double);
        // Numbers near or beyond the largest and the smallest have a separate table.
        let is_number = |text: &str| text.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit());
        let is_far = text.split_once(['e', 'E']).is_some_and(|(_, power)| is_number(power.trim()) && power.len() > 3);
        if !is_far && power.is_none_or(|power| power.abs() < 200) {
            prop_assert_eq!(parsed.is_some(), parts.is_some(), "{}", text);
        }
        // Numerator and denominator are exact: their quotient is the nearest number.
        if let Some(((negative, digits, behind), power)) = parts {
            let power = power - behind as i32;
            let digits = digits.iter().skip_while(|digit| **digit == 0);
            let numerator = digits.clone().take(15).fold(0.0, |value, digit| value * 10.0 + f64::from(*digit));
            if digits.count() <= 15 && power.abs() <= 22 {
                let size = 10f64.powi(power.abs());
                let quotient = if power < 0 { numerator / size } else { numerator * size };
                prop_assert_eq!(parsed, Some(if negative { -quotient } else { quotient }), "{}", text);
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
            let parsed = usual::<Float64Type>(&text, ColumnType::Double).map(f64::abs);
            prop_assert!(parsed == Some(double.abs()) || double.is_nan(), "{}", text);
        }
        let parsed = usual::<Float32Type>(&single.to_string(), ColumnType::Float);
        prop_assert!(parsed == Some(single) || single.is_nan());
    }
}
