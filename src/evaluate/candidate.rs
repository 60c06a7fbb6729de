//! A key that might be chosen.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// What is done to a column before it is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// Nothing.
    Identity,
    /// `date(column)`: the day of a point in time, a Date.
    Date,
    /// `hour(column)`: a point in time cut to the hour, a Timestamp.
    Hour,
}

/// One part of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    /// Column of the export.
    pub column: String,
    /// What is done to it.
    pub transform: Transform,
}

/// A partition key under evaluation: parts in hash order, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    parts: Vec<KeyPart>,
}

/// A candidate that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{found}' is not a key; write columns separated by commas, such as user_id,date(event_timestamp)")]
pub struct CandidateError {
    /// The text that was given.
    pub found: String,
}

impl Candidate {
    /// The parts in hash order.
    #[must_use]
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }
}

impl FromStr for Candidate {
    type Err = CandidateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || CandidateError { found: text.to_owned() };
        let part = |part: &str| {
            let part = part.trim();
            let (transform, column) = match part.strip_suffix(')').and_then(|inner| inner.split_once('(')) {
                Some((name, column)) if name.eq_ignore_ascii_case("date") => (Transform::Date, column.trim()),
                Some((name, column)) if name.eq_ignore_ascii_case("hour") => (Transform::Hour, column.trim()),
                Some(_) => return Err(error()),
                None => (Transform::Identity, part),
            };
            if column.is_empty() {
                Err(error())
            } else {
                Ok(KeyPart { column: column.to_owned(), transform })
            }
        };
        Ok(Self { parts: text.split(',').map(part).collect::<Result<_, _>>()? })
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            match part.transform {
                Transform::Identity => f.write_str(&part.column)?,
                Transform::Date => write!(f, "date({})", part.column)?,
                Transform::Hour => write!(f, "hour({})", part.column)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_print_as_they_parse() {
        for text in ["user_id", "user_id, event_timestamp", "date(at), hour(at), id"] {
            assert_eq!(text.parse::<Candidate>().unwrap().to_string(), text);
        }
        for text in ["", "a,", "week(at)", "date()", "a,,b"] {
            assert!(text.parse::<Candidate>().is_err(), "{text}");
        }
    }
}
