//! Extended JSON of MongoDB: values without a JSON form, as objects whose first key begins with
//! `$`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/>, version 2
//! canonical and relaxed, and what `mongoexport` wrote before version 4.2.

use std::borrow::Cow;

use arrow::temporal_conversions::timestamp_ms_to_datetime;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{Datelike, SecondsFormat, Timelike};
use serde_json::{Map, Value};

/// Kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Number,
    Bool,
    Text,
    Time,
    ObjectId,
    /// Text of fixed form: other identifiers.
    Id,
    /// An object or an array.
    Nested,
    Null,
}

/// Reads a value of Extended JSON; `None` for any other object. The text of a value without a table
/// type, such as a regular expression, is its JSON.
pub(super) fn read(object: &str) -> Option<(Kind, Option<Cow<'_, str>>)> {
    let first = object.strip_prefix('{')?.trim_ascii_start();
    if !first.starts_with("\"$") {
        return None;
    }
    if let Some((name, text)) = only_text(first)
        && let Some(kind) = kind_of_text(name)
    {
        return Some((kind, Some(Cow::Borrowed(text))));
    }
    if let Some(millis) = date_of_long(first) {
        return Some((Kind::Time, Some(Cow::Owned(rfc_3339(millis)?))));
    }
    let members: Map<String, Value> = serde_json::from_str(object).ok()?;
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
    let names: Vec<&str> = members.keys().map(String::as_str).collect();
    match names.as_slice() {
        ["$undefined"] => Some((Kind::Null, None)),
        ["$date"] => Some((Kind::Time, Some(Cow::Owned(date(members.get("$date")?)?)))),
        ["$binary"] => match members.get("$binary")? {
            Value::Object(inner) => binary(inner.get("base64")?.as_str()?, inner.get("subType")?.as_str()?),
            Value::String(base64) => binary(base64, "00"),
            _ => None,
        },
        ["$binary", "$type"] => binary(&text("$binary")?, &text("$type")?),
        [name] => Some((kind_of_text(name)?, Some(Cow::Owned(text(name)?)))),
        _ => None,
    }
}

/// Returns the name and the text of an object after its brace, if it has one member, which is a
/// string without escapes.
fn only_text(members: &str) -> Option<(&str, &str)> {
    let (name, rest) = members.strip_prefix('"')?.split_once('"')?;
    let value = rest.trim_ascii_start().strip_prefix(':')?.trim_ascii_start().strip_prefix('"')?;
    let (text, rest) = value.split_once('"')?;
    let is_plain = !name.contains('\\') && !text.contains('\\');
    (is_plain && rest.trim_ascii() == "}").then_some((name, text))
}

/// Returns the kind of a value whose only member is a string.
fn kind_of_text(name: &str) -> Option<Kind> {
    match name {
        "$oid" => Some(Kind::ObjectId),
        "$uuid" => Some(Kind::Id),
        "$symbol" => Some(Kind::Text),
        "$numberInt" | "$numberLong" | "$numberDouble" | "$numberDecimal" => Some(Kind::Number),
        "$date" => Some(Kind::Time),
        _ => None,
    }
}

/// Returns the text of a point in time: RFC 3339, or milliseconds since 1970.
fn date(value: &Value) -> Option<String> {
    let millis = match value {
        Value::String(text) => return Some(text.clone()),
        Value::Number(number) => number.as_i64()?,
        Value::Object(inner) => inner.get("$numberLong")?.as_str()?.parse().ok()?,
        _ => return None,
    };
    rfc_3339(millis)
}

/// Returns the milliseconds of the usual spelling of a point in time,
/// `{"$date":{"$numberLong":"7"}}`, after its first brace.
fn date_of_long(members: &str) -> Option<i64> {
    let value = members.strip_prefix("\"$date\"")?.trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
    let inner = value.strip_prefix('{')?.trim_ascii_start();
    let (name, text) = only_text(inner.trim_ascii_end().strip_suffix('}')?)?;
    (name == "$numberLong").then(|| text.parse().ok())?
}

/// Returns a point in time as text. Each row of an export has some, so usual years are written
/// digit by digit.
fn rfc_3339(millis: i64) -> Option<String> {
    let at = timestamp_ms_to_datetime(millis)?;
    let Ok(year @ 0..=9999) = u32::try_from(at.year()) else {
        return Some(at.and_utc().to_rfc3339_opts(SecondsFormat::Millis, true));
    };
    let mut text = String::with_capacity(24);
    let parts = [
        (year, 4, '-'),
        (at.month(), 2, '-'),
        (at.day(), 2, 'T'),
        (at.hour(), 2, ':'),
        (at.minute(), 2, ':'),
        (at.second(), 2, '.'),
        (at.nanosecond() / 1_000_000 % 1_000, 3, 'Z'),
    ];
    for (number, digits, end) in parts {
        for place in (0..digits).rev() {
            let digit = number / 10_u32.pow(place) % 10;
            text.push(char::from_digit(digit, 10)?);
        }
        text.push(end);
    }
    Some(text)
}

/// Returns the text of binary data: a UUID as such, anything else in Base64.
fn binary(base64: &str, subtype: &str) -> Option<(Kind, Option<Cow<'static, str>>)> {
    let bytes = BASE64_STANDARD.decode(base64).ok()?;
    let id = matches!(subtype, "04" | "4").then(|| uuid::Uuid::from_slice(&bytes).ok()).flatten();
    Some(match id {
        Some(id) => (Kind::Id, Some(Cow::Owned(id.to_string()))),
        None => (Kind::Text, Some(Cow::Owned(base64.to_owned()))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_both_versions_are_read() {
        for (object, kind, text) in [
            (r#"{"$oid":"546651e74bf6e4cb017c5312"}"#, Kind::ObjectId, Some("546651e74bf6e4cb017c5312")),
            (r#"{ "$numberLong" : "9223372036854775807" }"#, Kind::Number, Some("9223372036854775807")),
            (r#"{"$numberDouble":"NaN"}"#, Kind::Number, Some("NaN")),
            (r#"{"$numberDecimal":"1.5"}"#, Kind::Number, Some("1.5")),
            (r#"{"$date":"2021-07-06T10:18:12.036Z"}"#, Kind::Time, Some("2021-07-06T10:18:12.036Z")),
            (r#"{"$date":{"$numberLong":"1625566692036"}}"#, Kind::Time, Some("2021-07-06T10:18:12.036Z")),
            (r#"{"$date":1625566692036}"#, Kind::Time, Some("2021-07-06T10:18:12.036Z")),
            (r#"{"$date":{"$numberLong":"-1"}}"#, Kind::Time, Some("1969-12-31T23:59:59.999Z")),
            (
                r#"{"$binary":{"base64":"YfDEBFyzEeeQe6YAatPboA==","subType":"04"}}"#,
                Kind::Id,
                Some("61f0c404-5cb3-11e7-907b-a6006ad3dba0"),
            ),
            (
                r#"{"$binary":"YfDEBFyzEeeQe6YAatPboA==","$type":"04"}"#,
                Kind::Id,
                Some("61f0c404-5cb3-11e7-907b-a6006ad3dba0"),
            ),
            (r#"{"$binary":{"base64":"YQ==","subType":"00"}}"#, Kind::Text, Some("YQ==")),
            (r#"{"$symbol":"a\"b"}"#, Kind::Text, Some("a\"b")),
            (r#"{"$undefined":true}"#, Kind::Null, None),
        ] {
            assert_eq!(read(object), Some((kind, text.map(Cow::Borrowed))), "{object}");
        }
    }

    #[test]
    fn points_in_time_are_those_of_chrono() {
        let span = 8_000_000_000_000_i64;
        for step in -2_000..2_000_i64 {
            let millis = step * (span / 50) + step.pow(3);
            let time = timestamp_ms_to_datetime(millis).unwrap().and_utc();
            assert_eq!(rfc_3339(millis), Some(time.to_rfc3339_opts(SecondsFormat::Millis, true)), "{millis}");
        }
        assert_eq!(rfc_3339(i64::MAX), None);
    }

    #[test]
    fn other_objects_stay_as_they_are() {
        for object in [
            "{}",
            r#"{"a":1}"#,
            r#"{"$oid":7}"#,
            r#"{"$oid":"x","y":1}"#,
            r#"{"$timestamp":{"t":1,"i":1}}"#,
            r#"{"$regularExpression":{"pattern":"a","options":""}}"#,
            r#"{"$date":{"$numberLong":"99999999999999999999"}}"#,
            r#"{"$binary":{"base64":"?","subType":"00"}}"#,
        ] {
            assert_eq!(read(object), None, "{object}");
        }
    }
}
