//! Numbers in text.

use std::borrow::Cow;
use std::str::FromStr;

use crate::text_value::cell_error::CellError;

/// Converts a number with a decimal comma to one with a point, if `decimal_comma` is set: `1.234,5`
/// to `1234.5`.
///
/// ```text
/// number   = [sign] (grouped | digits) ["," digits]  |  [sign] digits ["," digits] exponent
///          | [sign] "," digits  |  word
/// grouped  = one to three digits, the first of them not 0, then groups of a point and three digits
/// exponent = ("e" | "E") [sign] digits
/// ```
/// `1.2e5`, `0.123` and `1234.567` are written with a decimal point, and `31.01.2026` is not a
/// number: all of these are rejected.
pub(super) fn with_point(text: &str, decimal_comma: bool) -> Cow<'_, str> {
    if !decimal_comma || !(text.contains('.') || text.contains(',')) {
        return text.into();
    }
    // No parser accepts a comma, so text of another form is rejected rather than misread.
    from_comma(text).map_or(Cow::Borrowed(","), Cow::Owned)
}

fn from_comma(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = text.get(..text.len() - unsigned.len())?;
    let (number, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => unsigned.split_at_checked(at)?,
        None => (unsigned, ""),
    };
    let (whole, fraction) = number.split_once(',').unwrap_or((number, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = whole.split('.');
    let first = groups.next()?;
    let grouped = whole.contains('.');
    let is_grouped = (1..=3).contains(&first.len()) && !first.starts_with('0') && exponent.is_empty();
    if !digits(first)
        || !groups.all(|group| group.len() == 3 && digits(group))
        || (grouped && !is_grouped)
        || fraction.is_empty()
        || !digits(fraction)
    {
        return None;
    }
    Some(format!("{sign}{}.{fraction}{exponent}", whole.replace('.', "")))
}

/// Parses a whole number, with or without a fraction of zeros. An empty error means "not a number
/// of this type".
pub(super) fn integer<T: FromStr>(text: &str) -> Result<T, CellError> {
    if let Ok(value) = text.parse() {
        return Ok(value);
    }
    let Some((whole, fraction)) = text.split_once('.') else { return Err(CellError::default()) };
    if fraction.is_empty() || fraction.bytes().any(|digit| digit != b'0') {
        return Err(CellError::default());
    }
    whole.parse().map_err(|_| CellError::default())
}

/// Parses the nearest 64-bit number, like every reader of decimal text. A number that is too large
/// does not become infinity, and one that is too small does not become 0.
pub(super) fn float64(text: &str) -> Result<f64, CellError> {
    let number: f64 = text.parse().map_err(|_| CellError::default())?;
    let lost = (number.is_infinite() && !spells_infinity(text)) || (number == 0.0 && !spells_zero(text));
    if lost { Err("is outside Double".into()) } else { Ok(number) }
}

fn spells_infinity(text: &str) -> bool {
    text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("inf")
}

fn spells_zero(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Parses the nearest 32-bit number, with the same checks as [`float64`].
pub(super) fn float32(text: &str) -> Result<f32, CellError> {
    let number: f32 = text.parse().map_err(|_| CellError::default())?;
    let lost = (number.is_infinite() && !spells_infinity(text)) || (number == 0.0 && !spells_zero(text));
    if lost { Err("is outside Float".into()) } else { Ok(number) }
}

/// Parses a decimal number, with or without a point and a sign; it has at most `scale` digits after
/// the point and `precision` digits in total, apart from leading and trailing zeros.
pub(super) fn decimal(text: &str, precision: u8, scale: i8) -> Result<i128, CellError> {
    let malformed = || CellError::from(format!("is not a Decimal({precision},{scale})"));
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return Err(malformed());
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let scale_digits = usize::from(scale.unsigned_abs());
    if fraction.len() > scale_digits {
        let too_fine =
            format!("has more than {scale} digits after the point of a Decimal({precision},{scale})");
        return Err(too_fine.into());
    }
    if whole.len() + scale_digits > usize::from(precision) {
        return Err(malformed());
    }
    let padded = fraction.bytes().chain(std::iter::repeat(b'0')).take(scale_digits);
    let value = whole
        .bytes()
        .chain(padded)
        .try_fold(0i128, |value, digit| value.checked_mul(10)?.checked_add(i128::from(digit - b'0')));
    let value = value.ok_or_else(malformed)?;
    Ok(if text.starts_with('-') { -value } else { value })
}
