//! Time to live of rows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bounded::quote;
use crate::table::{ColumnType, KeyValue};
use crate::units::{Micros, MicrosError};

/// Rows whose `column` is older than `keep` have expired; they are removed when their portions are
/// compacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ttl {
    /// Point-in-time or date column of the primary key, so that all versions of a row expire
    /// together.
    pub column: String,
    /// Maximum age of rows that are kept.
    #[serde(rename = "keep_micros")]
    pub keep: Micros,
}

/// Error for text that is not a time to live.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum TtlError {
    #[error("'{found}' is not a time to live; write column=length, such as event_timestamp=30d", found = quote(found))]
    Form { found: String },
    #[error("'{found}' is not a time to live: {source}", found = quote(found))]
    Length { found: String, source: MicrosError },
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.column, self.keep)
    }
}

impl FromStr for Ttl {
    type Err = TtlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || TtlError::Form { found: text.to_owned() };
        let (column, keep) = text.rsplit_once('=').ok_or_else(error)?;
        let column = column.trim().to_owned();
        if column.is_empty() {
            return Err(error());
        }
        let keep = keep.parse().map_err(|source| TtlError::Length { found: text.to_owned(), source })?;
        Ok(Self { column, keep })
    }
}

impl Ttl {
    /// Returns the smallest value of the column that is kept at `now`, in microseconds since 1970;
    /// `column_type` is the type of the column.
    #[must_use]
    pub fn oldest_kept(&self, now: i64, column_type: ColumnType) -> KeyValue {
        let unit = match column_type {
            ColumnType::Date | ColumnType::Date32 => Micros::DAY.get(),
            ColumnType::Datetime | ColumnType::Datetime64 => 1000,
            _ => 1,
        };
        let cutoff = now.saturating_sub(self.keep.get());
        // Rounded up: a value denotes the moment at which it begins.
        KeyValue::Int(-cutoff.saturating_neg().div_euclid(unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_prints_as_it_parses() {
        let ttl: Ttl = "event_timestamp=30d".parse().unwrap();
        assert_eq!((ttl.column.as_str(), ttl.keep.to_string().as_str()), ("event_timestamp", "30d"));
        assert_eq!(ttl.to_string(), "event_timestamp=30d");
        for text in ["", "at", "at=", "=1d", "at=1y", "at=-1d"] {
            assert!(text.parse::<Ttl>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_kept_depends_on_the_unit_of_the_column() {
        let ttl: Ttl = "at=1d".parse().unwrap();
        let day = Micros::DAY.get();
        for (now, column_type, expected) in [
            (10 * day, ColumnType::Timestamp, 9 * day),
            (10 * day + 1, ColumnType::Timestamp, 9 * day + 1),
            (10 * day, ColumnType::Date, 9),
            (10 * day + 1, ColumnType::Date, 10),
            (10 * day + 1, ColumnType::Datetime, 9 * day / 1000 + 1),
            (0, ColumnType::Date, -1),
        ] {
            assert_eq!(ttl.oldest_kept(now, column_type), KeyValue::Int(expected), "{now} {column_type}");
        }
    }
}
