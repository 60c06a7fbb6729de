//! Candidate keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bounded::quote;
use crate::units::Micros;
use crate::wire::{Wire, WireError, WireReader, wire};

/// Transform of a column before it is hashed or sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transform {
    /// No change.
    Identity,
    /// `date(column)`: the day of a point in time, as a Date.
    Date,
    /// `hour(column)` and `trunc(column, 5m)`: a point in time cut to a multiple of a duration, as
    /// a Timestamp.
    Truncate(Micros),
}

/// One part of a candidate key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyPart {
    /// Column of the export.
    pub column: String,
    /// Transform of the column.
    pub transform: Transform,
}

impl KeyPart {
    /// Creates a part from a column without a transform.
    #[must_use]
    pub fn column(name: impl Into<String>) -> Self {
        Self { column: name.into(), transform: Transform::Identity }
    }
}

/// A key under evaluation: at least one part, in hash order or in sort order, without repeats.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Candidate {
    parts: Vec<KeyPart>,
}

wire!(KeyPart { column, transform });
wire!(Candidate { parts });

/// Encoded as a number for the variant, followed by the duration of [`Transform::Truncate`].
impl Wire for Transform {
    fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Identity => bytes.push(0),
            Self::Date => bytes.push(1),
            Self::Truncate(length) => {
                bytes.push(2);
                length.put(bytes);
            }
        }
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        Ok(match left.bytes(1)? {
            [0] => Self::Identity,
            [1] => Self::Date,
            [2] => Self::Truncate(Micros::take(left)?),
            _ => return Err(WireError("unknown transform")),
        })
    }
}

/// Error for text that is not a candidate key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum CandidateError {
    #[error(
        "'{found}' is not a key; write columns separated by commas, each as it is or as date(column), hour(column) or \
         trunc(column, 5m): user_id,date(event_timestamp)", found = quote(found)
)]
    Syntax { found: String },
    #[error("key '{found}' names '{part}' twice", found = quote(found), part = quote(part))]
    Repeated { found: String, part: String },
}

impl Candidate {
    /// Creates a key from columns without transforms.
    #[must_use]
    pub fn from_columns<S: AsRef<str>>(columns: &[S]) -> Self {
        Self { parts: columns.iter().map(|column| KeyPart::column(column.as_ref())).collect() }
    }

    /// Returns the parts in order.
    #[must_use]
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Returns each part as text; a column without a transform by its bare name.
    #[must_use]
    pub fn part_names(&self) -> Vec<String> {
        let name = |part: &KeyPart| match part.transform {
            Transform::Identity => part.column.clone(),
            _ => part.to_string(),
        };
        self.parts.iter().map(name).collect()
    }

    /// Returns the column of each part.
    #[must_use]
    pub fn columns(&self) -> Vec<String> {
        self.parts.iter().map(|part| part.column.clone()).collect()
    }

    /// Whether no part has a transform, so that a table of the export can have this key.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.parts.iter().all(|part| part.transform == Transform::Identity)
    }

    /// Whether every part of `other` is one of this key.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        other.parts.iter().all(|part| self.parts.contains(part))
    }

    /// Returns this key, followed by the parts of `other` that it lacks.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let more = other.parts.iter().filter(|part| !self.parts.contains(part));
        Self { parts: self.parts.iter().chain(more).cloned().collect() }
    }
}

impl FromStr for Candidate {
    type Err = CandidateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let syntax = || CandidateError::Syntax { found: text.to_owned() };
        let bare =
            text.trim().strip_prefix("HASH(").and_then(|inner| inner.strip_suffix(')')).unwrap_or(text);
        let mut parts: Vec<KeyPart> = Vec::new();
        for part in split_outside_brackets(bare) {
            let part = parse_part(part).ok_or_else(syntax)?;
            if parts.contains(&part) {
                return Err(CandidateError::Repeated { found: text.to_owned(), part: part.to_string() });
            }
            parts.push(part);
        }
        Ok(Self { parts })
    }
}

/// Splits at the commas outside brackets and quotes.
fn split_outside_brackets(text: &str) -> Vec<&str> {
    let (mut depth, mut quote) = (0usize, None);
    text.split(|character| {
        match (quote, character) {
            (None, '"' | '`') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0 && quote.is_none()
    })
    .collect()
}

/// Returns the name within double quotes or backticks, which are doubled within the name; `None` if
/// the text has neither.
fn unquoted(text: &str) -> Option<String> {
    let text = text.trim();
    ['"', '`'].into_iter().find_map(|quote| {
        let name = text.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(name.replace(&format!("{quote}{quote}"), &quote.to_string()))
    })
}

fn parse_part(text: &str) -> Option<KeyPart> {
    let text = text.trim();
    if let Some(name) = unquoted(text) {
        return (!name.is_empty()).then(|| KeyPart::column(&name));
    }
    let (column, transform) = match text.strip_suffix(')').and_then(|inner| inner.split_once('(')) {
        None => (text, Transform::Identity),
        Some((name, inner)) => match name.trim().to_ascii_lowercase().as_str() {
            "date" => (inner, Transform::Date),
            "hour" => (inner, Transform::Truncate(Micros::HOUR)),
            "trunc" => {
                let (column, length) = inner.rsplit_once(',')?;
                (column, Transform::Truncate(length.parse().ok()?))
            }
            _ => return None,
        },
    };
    let column = unquoted(column).unwrap_or_else(|| column.trim().to_owned());
    (!column.is_empty()).then_some(KeyPart { column, transform })
}

impl fmt::Display for KeyPart {
    /// Prints the part as it is parsed; a name with brackets, commas or quotes is quoted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = format!("\"{}\"", self.column.replace('"', "\"\""));
        let column = if self.column.contains(['(', ')', ',', '`', '"']) { &quoted } else { &self.column };
        match self.transform {
            Transform::Identity => f.write_str(column),
            Transform::Date => write!(f, "date({column})"),
            Transform::Truncate(Micros::HOUR) => write!(f, "hour({column})"),
            Transform::Truncate(length) => write!(f, "trunc({column}, {length})"),
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_print_as_they_parse() {
        for text in [
            "user_id",
            "user_id, event_timestamp",
            "date(at), hour(at), trunc(at, 5m), id",
            "\"price (EUR)\", date(\"a, b\"), trunc(\"a, b\", 5m)",
            "\"the \"\"net\"\" price\", \"a\"\", b\"",
        ] {
            assert_eq!(text.parse::<Candidate>().unwrap().to_string(), text);
        }
        for text in
            ["", "a,", "week(at)", "date()", "a,,b", "trunc(at)", "trunc(at, 5)", "trunc(at, 0s)", "a, b, a"]
        {
            assert!(text.parse::<Candidate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_may_be_written_as_in_yql() {
        assert_eq!("HASH(a, date(b))".parse::<Candidate>(), "a, date(b)".parse());
    }

    #[test]
    fn keys_contain_and_extend_each_other() {
        let key = |text: &str| text.parse::<Candidate>().unwrap();
        assert!(key("a, b, c").contains(&key("c, a")));
        assert!(!key("a, date(b)").contains(&key("b")));
        assert_eq!(key("a, b").with(&key("c, a")), key("a, b, c"));
    }
}
