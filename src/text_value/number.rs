//! Numbers.

use std::borrow::Cow;
use std::str::FromStr;

use arrow::array::types::Decimal128Type;
use arrow::compute::kernels::cast_utils::parse_decimal;
use arrow::datatypes::DECIMAL128_MAX_PRECISION;

use crate::text_value::CellError;

/// A number with a point, from one with a comma where that is how numbers are written: `1.234,5` to `1234.5`. Points stand
/// between groups of three digits or nowhere: `31.01.2026` is no number.
pub(super) fn with_point(text: &str, decimal_comma: bool) -> Cow<'_, str> {
    if !decimal_comma {
        return text.into();
    }
    let (whole, fraction) =
        text.split_once(',').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    if whole.split('.').skip(1).any(|group| group.len() != 3)
        || fraction.is_some_and(|f| f.contains(['.', ',']))
    {
        // Not written so; no parser takes the comma, so it is refused rather than misread.
        return text.replace('.', ",").into();
    }
    let whole = whole.replace('.', "");
    fraction.map_or(whole.clone(), |fraction| format!("{whole}.{fraction}")).into()
}

/// A whole number, perhaps with a fraction of zeros. An empty error stands for "not a number of this type".
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

/// A number that overflows is not taken for infinity.
pub(super) fn float64(text: &str) -> Result<f64, CellError> {
    let number: f64 = text.parse().map_err(|_| CellError::default())?;
    if number.is_infinite() && !spells_infinity(text) { Err("is outside Double".into()) } else { Ok(number) }
}

fn spells_infinity(text: &str) -> bool {
    text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("inf")
}

/// The nearest 32-bit number, as every reader of decimal text gives it.
pub(super) fn float32(text: &str) -> Result<f32, CellError> {
    let number: f32 = text.parse().map_err(|_| CellError::default())?;
    if number.is_infinite() && !spells_infinity(text) { Err("is outside Float".into()) } else { Ok(number) }
}

/// A decimal with at most `scale` digits after the point, trailing zeros aside.
pub(super) fn decimal(text: &str, precision: u8, scale: i8) -> Result<i128, CellError> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+'));
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction.trim_end_matches('0'));
    if plain && fraction.len() > usize::from(scale.unsigned_abs()) {
        return Err(format!(
            "has more than {scale} digits after the point of a Decimal({precision},{scale})"
        )
        .into());
    }
    // The parser counts digits in a byte, and would take a number of 270 digits for one of 14.
    let whole = text.split('.').next().unwrap_or_default().trim_start_matches(['-', '+', '0']);
    let plain = plain && whole.len() <= usize::from(DECIMAL128_MAX_PRECISION);
    let parsed = if plain { parse_decimal::<Decimal128Type>(text, precision, scale).ok() } else { None };
    parsed.ok_or_else(|| format!("is not a Decimal({precision},{scale})").into())
}
