//! Values of parameters, as clients send them.

use std::str::Chars;

use arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use bytes::Buf;
use datafusion::common::ScalarValue;
use pgwire::api::Type;

use crate::failure::{Failure, SqlState};
use crate::types::{element_of, to_arrow};
use crate::values::{EPOCH_DAYS, EPOCH_MICROS};

/// A parameter of a bound statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Parameter {
    /// A text, to be read as the type that the query needs.
    Text(String),
    Value(ScalarValue),
}

/// Reads one parameter. `number` counts from 1. `declared` is the type that the client gave it, and
/// `inferred` that which the query needs.
pub(crate) fn read(
    number: usize,
    bytes: Option<&[u8]>,
    is_binary: bool,
    declared: Option<&Type>,
    inferred: Option<&DataType>,
) -> Result<Parameter, Failure> {
    let read = read_as_given(number, bytes, is_binary, declared, inferred)?;
    Ok(match (read, inferred) {
        // In the type of the query, so that conditions on keys can prune.
        (Parameter::Value(value), Some(inferred)) => Parameter::Value(exactly(value, inferred)),
        (read, _) => read,
    })
}

/// Returns a value in another type if the type can represent it exactly.
fn exactly(value: ScalarValue, data_type: &DataType) -> ScalarValue {
    let cast = value.cast_to(data_type);
    let is_same = |cast: &ScalarValue| cast.cast_to(&value.data_type()).is_ok_and(|back| back == value);
    match cast.ok().filter(is_same) {
        Some(cast) => cast,
        None => value,
    }
}

fn read_as_given(
    number: usize,
    bytes: Option<&[u8]>,
    is_binary: bool,
    declared: Option<&Type>,
    inferred: Option<&DataType>,
) -> Result<Parameter, Failure> {
    let declared = declared.filter(|declared| **declared != Type::UNKNOWN);
    let declared_arrow = declared.and_then(to_arrow);
    let Some(bytes) = bytes else {
        let data_type = inferred.or(declared_arrow.as_ref()).unwrap_or(&DataType::Utf8);
        return Ok(Parameter::Value(ScalarValue::try_from(data_type)?));
    };
    if is_binary {
        let base = match (declared, inferred) {
            (Some(declared), _) => declared.clone(),
            (None, Some(inferred)) => crate::types::from_arrow(inferred).base,
            (None, None) => Type::TEXT,
        };
        return binary(bytes, &base).map(Parameter::Value).ok_or_else(|| {
            let message = format!("incorrect binary data for parameter ${number} of type {base}");
            Failure::new(SqlState::INVALID_BINARY, message)
        });
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Failure::new(SqlState("22021"), format!("parameter ${number} is not valid UTF-8")))?;
    let invalid = || {
        let message = format!("invalid input syntax for parameter ${number}: \"{text}\"");
        Failure::new(SqlState::INVALID_TEXT, message)
    };
    if declared == Some(&Type::NUMERIC_ARRAY) {
        let items = array_items(text).ok_or_else(invalid)?;
        let item = |item: Option<String>| item.map_or(Some(ScalarValue::Null), |text| decimal(&text));
        let items: Option<Vec<ScalarValue>> = items.into_iter().map(item).collect();
        return items.and_then(|items| numbers(&items)).map(Parameter::Value).ok_or_else(invalid);
    }
    if let (None | Some(&Type::TEXT), Some(DataType::Binary | DataType::LargeBinary | DataType::BinaryView)) =
        (declared, inferred)
    {
        let bytes = match text.strip_prefix("\\x") {
            Some(digits) => from_hexadecimal(digits).ok_or_else(invalid)?,
            None => text.as_bytes().to_vec(),
        };
        return Ok(Parameter::Value(ScalarValue::Binary(Some(bytes))));
    }
    if let (None, Some(list @ DataType::List(_))) = (declared, inferred) {
        return typed(number, text, &crate::types::from_arrow(list).base, list).map(Parameter::Value);
    }
    match (declared, declared_arrow, inferred) {
        // The type of the query is narrower, and describes the text best.
        (None, _, Some(DataType::Duration(_))) => {
            let interval = DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano);
            typed(number, text, &Type::INTERVAL, &interval).map(Parameter::Value)
        }
        (None, _, Some(_)) | (Some(_), _, Some(DataType::Timestamp(_, _))) => {
            Ok(Parameter::Text(text.to_owned()))
        }
        (Some(declared), Some(data_type), _) => {
            typed(number, text, declared, &data_type).map(Parameter::Value)
        }
        (Some(declared), None, None) if *declared == Type::NUMERIC => {
            let number_text = Parameter::Value(ScalarValue::Utf8(Some(text.to_owned())));
            Ok(decimal(text).map_or(number_text, Parameter::Value))
        }
        (Some(_), None, Some(_)) => Ok(Parameter::Text(text.to_owned())),
        (_, None, None) | (None, Some(_), None) => {
            Ok(Parameter::Value(ScalarValue::Utf8(Some(text.to_owned()))))
        }
    }
}

/// Reads a text as a value of a declared type.
fn typed(number: usize, text: &str, declared: &Type, data_type: &DataType) -> Result<ScalarValue, Failure> {
    let invalid = || {
        let message = format!("invalid input syntax for type {declared}: \"{text}\" (parameter ${number})");
        Failure::new(SqlState::INVALID_TEXT, message)
    };
    match data_type {
        DataType::Boolean => match text.trim().to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => Ok(ScalarValue::Boolean(Some(true))),
            "f" | "false" | "n" | "no" | "off" | "0" => Ok(ScalarValue::Boolean(Some(false))),
            _ => Err(invalid()),
        },
        DataType::Binary => {
            let digits = text.strip_prefix("\\x").ok_or_else(invalid)?;
            Ok(ScalarValue::Binary(Some(from_hexadecimal(digits).ok_or_else(invalid)?)))
        }
        DataType::FixedSizeBinary(16) => {
            let digits: String = text.chars().filter(|c| !matches!(c, '-' | '{' | '}')).collect();
            let bytes = from_hexadecimal(&digits).filter(|bytes| bytes.len() == 16).ok_or_else(invalid)?;
            Ok(ScalarValue::FixedSizeBinary(16, Some(bytes)))
        }
        DataType::List(element) => {
            let items = array_items(text).ok_or_else(invalid)?;
            let base = element_of(declared).unwrap_or(Type::TEXT);
            let item = |item: Option<String>| match item {
                Some(text) => typed(number, &text, &base, element.data_type()),
                None => Ok(ScalarValue::try_from(element.data_type())?),
            };
            let items: Vec<ScalarValue> = items.into_iter().map(item).collect::<Result<_, _>>()?;
            Ok(ScalarValue::List(ScalarValue::new_list(&items, element.data_type(), true)))
        }
        DataType::Utf8 => Ok(ScalarValue::Utf8(Some(text.to_owned()))),
        DataType::Interval(_) => {
            ScalarValue::try_from_string(with_units(text), data_type).map_err(|_| invalid())
        }
        _ => ScalarValue::try_from_string(text.trim().to_owned(), data_type).map_err(|_| invalid()),
    }
}

/// Writes an interval such as `1 day 02:03:04.5` with units throughout.
fn with_units(text: &str) -> String {
    let part = |part: &str| {
        let (sign, clock) = part.strip_prefix('-').map_or(("", part), |clock| ("-", clock));
        match clock.trim_start_matches('+').split(':').collect::<Vec<_>>().as_slice() {
            [hours, minutes] => format!("{sign}{hours} hours {sign}{minutes} minutes"),
            [hours, minutes, seconds] => {
                format!("{sign}{hours} hours {sign}{minutes} minutes {sign}{seconds} seconds")
            }
            _ => part.to_owned(),
        }
    };
    text.split_ascii_whitespace().map(part).collect::<Vec<_>>().join(" ")
}

/// Reads the elements of an array such as `{a,"b c",NULL}`; `None` for other text.
///
/// As in PostgreSQL 17, quotes surround a whole element or nothing, and text protected by a
/// backslash or a quote is neither trimmed nor NULL.
fn array_items(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim_matches(is_blank).strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    let mut rest = inner.trim_start_matches(is_blank).chars();
    if rest.as_str().is_empty() {
        return Some(items);
    }
    loop {
        rest = rest.as_str().trim_start_matches(is_blank).chars();
        items.push(match rest.as_str().strip_prefix('"') {
            Some(quoted) => {
                rest = quoted.chars();
                Some(quoted_item(&mut rest)?)
            }
            None => plain_item(&mut rest)?,
        });
        rest = rest.as_str().trim_start_matches(is_blank).chars();
        match rest.next() {
            Some(',') => {}
            Some(_) => return None,
            None => return Some(items),
        }
    }
}

/// Whether PostgreSQL skips a character around the elements of an array.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Reads an element up to its closing quote.
fn quoted_item(rest: &mut Chars<'_>) -> Option<String> {
    let mut item = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(item),
            '\\' => item.push(rest.next()?),
            other => item.push(other),
        }
    }
}

/// Reads an element without quotes, up to the comma or the end; NULL is `Some(None)`.
fn plain_item(rest: &mut Chars<'_>) -> Option<Option<String>> {
    let (mut item, mut protected) = (String::new(), 0);
    while !matches!(rest.as_str().chars().next(), None | Some(',')) {
        match rest.next()? {
            '\\' => {
                item.push(rest.next()?);
                protected = item.len();
            }
            // Arrays of arrays, and a quote in the middle.
            '{' | '}' | '"' => return None,
            other => item.push(other),
        }
    }
    let end = item.trim_end_matches(is_blank).len().max(protected);
    item.truncate(end);
    match protected {
        0 if item.is_empty() => None,
        0 if item.eq_ignore_ascii_case("null") => Some(None),
        _ => Some(Some(item)),
    }
}

/// Returns decimals of several scales as a list of one type; `None` if they have too many digits.
fn numbers(items: &[ScalarValue]) -> Option<ScalarValue> {
    let scale = |item: &ScalarValue| match item {
        ScalarValue::Decimal128(_, _, scale) => *scale,
        _ => 0,
    };
    let data_type = DataType::Decimal128(38, items.iter().map(scale).max().unwrap_or(0));
    let item = |item: &ScalarValue| match item {
        ScalarValue::Null => ScalarValue::try_from(&data_type).ok(),
        item => item.cast_to(&data_type).ok().filter(|cast| !cast.is_null()),
    };
    let items: Vec<ScalarValue> = items.iter().map(item).collect::<Option<_>>()?;
    Some(ScalarValue::List(ScalarValue::new_list(&items, &data_type, true)))
}

/// Reads the binary format of an array of one dimension.
fn binary_array(mut bytes: &[u8], element: &Type) -> Option<ScalarValue> {
    let is_numeric = *element == Type::NUMERIC;
    let data_type = if is_numeric { DataType::Null } else { to_arrow(element)? };
    let dimensions = bytes.try_get_i32().ok()?;
    let (_has_null, _type) = (bytes.try_get_i32().ok()?, bytes.try_get_u32().ok()?);
    let mut items = Vec::new();
    if dimensions == 1 {
        let count = usize::try_from(bytes.try_get_i32().ok()?).ok()?;
        let _first = bytes.try_get_i32().ok()?;
        for _ in 0..count {
            let length = bytes.try_get_i32().ok()?;
            items.push(match usize::try_from(length) {
                Err(_) => ScalarValue::try_from(&data_type).ok()?,
                Ok(length) => {
                    let (item, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    binary(item, element)?
                }
            });
        }
    }
    let is_whole = dimensions <= 1 && bytes.is_empty();
    if is_numeric {
        return is_whole.then(|| numbers(&items))?;
    }
    is_whole.then(|| ScalarValue::List(ScalarValue::new_list(&items, &data_type, true)))
}

fn from_hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

/// Reads a number in decimal digits exactly.
fn decimal(text: &str) -> Option<ScalarValue> {
    let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits: i128 = text.replacen('.', "", 1).parse().ok()?;
    let scale = i8::try_from(scale).ok().filter(|scale| *scale <= 38)?;
    let is_fitting = digits.unsigned_abs() < 10u128.pow(38);
    is_fitting.then_some(ScalarValue::Decimal128(Some(digits), 38, scale))
}

/// Reads the binary format of a type; `None` if the bytes are not such a value.
fn binary(mut bytes: &[u8], base: &Type) -> Option<ScalarValue> {
    let value = match *base {
        Type::BOOL => ScalarValue::Boolean(Some(bytes.try_get_u8().ok()? != 0)),
        Type::INT2 => ScalarValue::Int16(Some(bytes.try_get_i16().ok()?)),
        Type::INT4 => ScalarValue::Int32(Some(bytes.try_get_i32().ok()?)),
        Type::INT8 => ScalarValue::Int64(Some(bytes.try_get_i64().ok()?)),
        Type::OID => ScalarValue::Int64(Some(bytes.try_get_u32().ok()?.into())),
        Type::FLOAT4 => ScalarValue::Float32(Some(bytes.try_get_f32().ok()?)),
        Type::FLOAT8 => ScalarValue::Float64(Some(bytes.try_get_f64().ok()?)),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::CHAR | Type::JSON | Type::UNKNOWN => {
            let text = std::str::from_utf8(bytes).ok()?.to_owned();
            bytes = &[];
            ScalarValue::Utf8(Some(text))
        }
        Type::BYTEA => {
            let value = ScalarValue::Binary(Some(bytes.to_vec()));
            bytes = &[];
            value
        }
        Type::UUID => {
            let value: [u8; 16] = bytes.try_into().ok()?;
            bytes = &[];
            ScalarValue::FixedSizeBinary(16, Some(value.to_vec()))
        }
        Type::DATE => ScalarValue::Date32(Some(bytes.try_get_i32().ok()?.checked_add(EPOCH_DAYS)?)),
        Type::TIME => ScalarValue::Time64Microsecond(Some(bytes.try_get_i64().ok()?)),
        Type::TIMESTAMP | Type::TIMESTAMPTZ => {
            let micros = bytes.try_get_i64().ok()?.checked_add(EPOCH_MICROS)?;
            let zone = (*base == Type::TIMESTAMPTZ).then(|| "+00:00".into());
            ScalarValue::TimestampMicrosecond(Some(micros), zone)
        }
        Type::INTERVAL => {
            let micros = bytes.try_get_i64().ok()?;
            let days = bytes.try_get_i32().ok()?;
            let months = bytes.try_get_i32().ok()?;
            let value = IntervalMonthDayNano::new(months, days, micros.checked_mul(1000)?);
            ScalarValue::IntervalMonthDayNano(Some(value))
        }
        Type::NUMERIC => return numeric(bytes),
        _ => return binary_array(bytes, &element_of(base)?),
    };
    bytes.is_empty().then_some(value)
}

/// Reads a numeric: digits of base 10,000, from the power `weight` on.
fn numeric(mut bytes: &[u8]) -> Option<ScalarValue> {
    let groups = bytes.try_get_i16().ok()?;
    let weight = bytes.try_get_i16().ok()?;
    let sign = bytes.try_get_u16().ok()?;
    let scale = bytes.try_get_i16().ok()?;
    match sign {
        0 | 0x4000 => {}
        0xC000 => return Some(ScalarValue::Float64(Some(f64::NAN))),
        0xD000 => return Some(ScalarValue::Float64(Some(f64::INFINITY))),
        0xF000 => return Some(ScalarValue::Float64(Some(f64::NEG_INFINITY))),
        _ => return None,
    }
    let mut digits = String::from(if sign == 0x4000 { "-" } else { "" });
    let groups: Vec<i16> = (0..groups).map(|_| bytes.try_get_i16().ok()).collect::<Option<_>>()?;
    let group = |power: i16| {
        let at = usize::try_from(i32::from(weight) - i32::from(power)).ok();
        at.and_then(|at| groups.get(at)).copied().unwrap_or(0)
    };
    for power in (0..=weight.max(0)).rev() {
        digits.push_str(&format!("{:04}", group(power)));
    }
    let scale = usize::try_from(scale).ok()?;
    let mut fraction = String::new();
    let mut power = -1;
    while fraction.len() < scale {
        fraction.push_str(&format!("{:04}", group(power)));
        power -= 1;
    }
    if scale > 0 {
        digits.push('.');
        digits.push_str(fraction.get(..scale)?);
    }
    bytes.is_empty().then(|| decimal(&digits))?
}

/// Returns the Arrow type of a parameter that the client declared, for inference.
pub(crate) fn declared(base: &Type) -> Option<DataType> {
    match *base {
        Type::UNKNOWN => None,
        Type::NUMERIC => Some(DataType::Decimal128(38, 10)),
        Type::TIMESTAMP => Some(DataType::Timestamp(TimeUnit::Microsecond, None)),
        _ => to_arrow(base),
    }
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
