//! Requested indexes.

use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

use crate::schema::ShardFront;
use crate::simulate::key::{KeyColumn, KeyOrder};
use evenkeel_model::bounded::quote;

/// An index by the names of its columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexSpec {
    /// Name of the index.
    pub name: String,
    /// Columns that the index is ordered by, before the primary key.
    pub columns: Vec<KeyOrder>,
    /// Columns copied into the index (`STORING`).
    pub storing: Vec<String>,
    /// Whether rows with a NULL in its columns have no entry.
    pub null_filtered: bool,
    /// Whether the entries are interleaved with the rows of the table.
    pub interleaved: bool,
    /// Whether no two rows have the same entry.
    pub unique: bool,
    /// Shard in front of the index columns.
    pub shard: Option<ShardFront>,
}

/// An index by the positions of its columns.
#[derive(Debug, Clone)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) columns: Vec<KeyColumn>,
    pub(super) storing: Vec<usize>,
    pub(super) null_filtered: bool,
    pub(super) interleaved: bool,
    pub(super) shard: Option<IndexShard>,
}

/// A shard in front of an index.
#[derive(Debug, Clone)]
pub(super) struct IndexShard {
    pub(super) shards: u32,
    pub(super) columns: Vec<usize>,
    pub(super) signed: bool,
}

/// Error for the description of an index that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{found}' is not an index; write NAME(COLUMNS), optionally followed by storing(COLUMNS), \
        null_filtered, interleaved or shard-N, such as by_time(event_timestamp desc) storing(ad_id) null_filtered", found = quote(found)
)]
pub struct IndexSpecError {
    found: String,
}

/// Parses columns separated by commas, each optionally followed by `asc` or `desc`. `None` if the
/// text is malformed.
#[must_use]
pub fn parse_key_order(text: &str) -> Option<Vec<KeyOrder>> {
    let column = |part: &str| {
        let mut words = part.split_whitespace();
        let (name, order, more) = (words.next(), words.next(), words.next());
        let descending = match order.map(str::to_ascii_lowercase).as_deref() {
            None | Some("asc") => false,
            Some("desc") => true,
            Some(_) => return None,
        };
        name.filter(|_| more.is_none()).map(|name| KeyOrder { column: name.to_owned(), descending })
    };
    text.split(',').map(column).collect()
}

impl FromStr for IndexSpec {
    type Err = IndexSpecError;

    fn from_str(text: &str) -> Result<Self, IndexSpecError> {
        let wrong = || IndexSpecError { found: text.to_owned() };
        let (name, rest) = text.split_once('(').ok_or_else(wrong)?;
        let (columns, mut rest) = rest.split_once(')').ok_or_else(wrong)?;
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(wrong());
        }
        let mut index = Self {
            name: name.to_owned(),
            columns: parse_key_order(columns).ok_or_else(wrong)?,
            storing: Vec::new(),
            null_filtered: false,
            interleaved: false,
            unique: false,
            shard: None,
        };
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                // An index with a shard in front cannot be interleaved with the rows of a parent.
                return if index.interleaved && index.shard.is_some() { Err(wrong()) } else { Ok(index) };
            }
            let lower = rest.to_ascii_lowercase();
            if lower.starts_with("storing") {
                let (_, list) = rest.split_once('(').ok_or_else(wrong)?;
                let (list, after) = list.split_once(')').ok_or_else(wrong)?;
                index.storing = list.split(',').map(|column| column.trim().to_owned()).collect();
                rest = after;
                continue;
            }
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            match word.to_ascii_lowercase().as_str() {
                "null_filtered" => index.null_filtered = true,
                "interleaved" => index.interleaved = true,
                other => {
                    let shards = other.strip_prefix("shard-").and_then(|number| number.parse().ok());
                    let shards = shards.filter(|shards| (1..=100_000).contains(shards)).ok_or_else(wrong)?;
                    index.shard = Some(ShardFront { shards, columns: Vec::new(), signed: false, name: None });
                }
            }
            rest = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_says_what_it_is_made_of() {
        let index: IndexSpec = "by_time(at DESC, id) storing(a, b) null_filtered shard-8".parse().unwrap();
        assert_eq!(
            (index.name.as_str(), index.columns.len(), index.columns[0].descending),
            ("by_time", 2, true)
        );
        assert_eq!(
            (index.storing.join("+"), index.null_filtered, index.shard.map(|shard| shard.shards)),
            ("a+b".to_owned(), true, Some(8))
        );
        assert!("i(a) interleaved".parse::<IndexSpec>().unwrap().interleaved);
        for wrong in [
            "",
            "i",
            "i(",
            "i()",
            "(a)",
            "i(a) sorted",
            "i(a) shard-0",
            "i(a) interleaved shard-4",
            "i(a up)",
            "i j(a)",
            "i(a) storing a",
        ] {
            assert!(wrong.parse::<IndexSpec>().is_err(), "{wrong}");
        }
    }
}
