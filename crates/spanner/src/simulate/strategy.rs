//! Key designs from the guides, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use thiserror::Error;

use evenkeel_model::bounded::quote;
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::transform::UuidKind;

/// Form in which a UUID is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UuidForm {
    /// 36 characters, in lower case.
    Text,
    /// Two signed integers of 64 bits.
    TwoIntegers,
    /// 16 bytes.
    Bytes,
}

/// Key design that a simulation compares with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The primary key as declared.
    Declared,
    /// The first two key columns swapped.
    Swapped,
    /// Time columns in descending order.
    Descending,
    /// `MOD(MOD(FARM_FINGERPRINT(key), N) + N, N)` in front.
    Shards(u32),
    /// A generated column `MOD(FARM_FINGERPRINT(CAST(first column AS STRING)), N)` in front, as
    /// written in the guide.
    GeneratedShards(u32),
    /// An ascending number in front, in the order of arrival.
    Sequence,
    /// An ascending number with its bits reversed in front.
    BitReversed,
    /// A UUID in front.
    Uuid(UuidKind, UuidForm),
    /// The hash partitions of a column table, which never split.
    HashPartitions(PartitionCount),
}

/// Name of a simulated alternative: a strategy for one table, or the placement of child rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StrategyName {
    /// A strategy for the keys of one table.
    Table(Strategy),
    /// Children interleaved with their parent.
    Interleaved,
    /// Children in a separate table.
    Apart,
}

impl StrategyName {
    /// Whether the name is about a parent and its children.
    pub(crate) fn is_of_children(self) -> bool {
        matches!(self, Self::Interleaved | Self::Apart)
    }

    /// Returns the strategy for one table, if the name is one.
    #[must_use]
    pub fn table(self) -> Option<Strategy> {
        match self {
            Self::Table(strategy) => Some(strategy),
            Self::Interleaved | Self::Apart => None,
        }
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(strategy) => strategy.fmt(f),
            Self::Interleaved => f.write_str("interleaved"),
            Self::Apart => f.write_str("apart"),
        }
    }
}

impl Serialize for StrategyName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Strategy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Names of strategies without a number.
const NAMES: [(&str, Strategy); 14] = [
    ("declared", Strategy::Declared),
    ("swapped", Strategy::Swapped),
    ("desc", Strategy::Descending),
    ("sequence", Strategy::Sequence),
    ("bit-reversed", Strategy::BitReversed),
    ("uuid4", Strategy::Uuid(UuidKind::Random, UuidForm::Text)),
    ("uuid4-int64", Strategy::Uuid(UuidKind::Random, UuidForm::TwoIntegers)),
    ("uuid4-bytes", Strategy::Uuid(UuidKind::Random, UuidForm::Bytes)),
    ("uuid1", Strategy::Uuid(UuidKind::TimeLow, UuidForm::Text)),
    ("uuid1-int64", Strategy::Uuid(UuidKind::TimeLow, UuidForm::TwoIntegers)),
    ("uuid1-bytes", Strategy::Uuid(UuidKind::TimeLow, UuidForm::Bytes)),
    ("uuid7", Strategy::Uuid(UuidKind::TimeHigh, UuidForm::Text)),
    ("uuid7-int64", Strategy::Uuid(UuidKind::TimeHigh, UuidForm::TwoIntegers)),
    ("uuid7-bytes", Strategy::Uuid(UuidKind::TimeHigh, UuidForm::Bytes)),
];

/// Maximum number of shards or partitions.
const MOST: u64 = 100_000;

/// Error for an unknown strategy name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "unknown strategy '{found}'; known: declared, swapped, desc, shard-N, generated-N, sequence, \
        bit-reversed, uuid4, uuid4-int64, \
     uuid4-bytes, uuid1, uuid1-int64, uuid1-bytes, uuid7, uuid7-int64, uuid7-bytes, hash-N, with N from 1 to {MOST}", found = quote(found)
)]
pub struct StrategyError {
    found: String,
}

impl FromStr for Strategy {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<Self, StrategyError> {
        let unknown = || StrategyError { found: text.to_owned() };
        if let Some((_, strategy)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*strategy);
        }
        let (name, number) = text.rsplit_once('-').ok_or_else(unknown)?;
        let number: u64 = number.parse().map_err(|_| unknown())?;
        if !(1..=MOST).contains(&number) {
            return Err(unknown());
        }
        Ok(match name {
            "shard" => Self::Shards(number as u32),
            "generated" => Self::GeneratedShards(number as u32),
            "hash" => Self::HashPartitions(PartitionCount::new(number).map_err(|_| unknown())?),
            _ => return Err(unknown()),
        })
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shards(shards) => write!(f, "shard-{shards}"),
            Self::GeneratedShards(shards) => write!(f, "generated-{shards}"),
            Self::HashPartitions(partitions) => write!(f, "hash-{}", partitions.len()),
            other => {
                let named = NAMES.iter().find(|(_, strategy)| strategy == other);
                f.write_str(named.map_or("", |(name, _)| name))
            }
        }
    }
}

impl Strategy {
    /// Describes the strategy in words.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Declared => "the key as declared".to_owned(),
            Self::Swapped => "the first two key columns swapped".to_owned(),
            Self::Descending => "times descending".to_owned(),
            Self::Shards(shards) => format!("ShardId of the key, {shards} shards, in front"),
            Self::GeneratedShards(shards) => {
                format!("MOD(FARM_FINGERPRINT(first column), {shards}) as a generated column in front")
            }
            Self::Sequence => "a sequence in front".to_owned(),
            Self::BitReversed => "a bit-reversed sequence in front".to_owned(),
            Self::Uuid(kind, form) => {
                let kind = match kind {
                    UuidKind::Random => "a random UUID (version 4)",
                    UuidKind::TimeLow => "a UUID of version 1",
                    UuidKind::TimeHigh => "a UUID of version 7",
                };
                let form = match form {
                    UuidForm::Text => "as STRING(36)",
                    UuidForm::TwoIntegers => "as two INT64",
                    UuidForm::Bytes => "as BYTES(16)",
                };
                format!("{kind} {form} in front")
            }
            Self::HashPartitions(partitions) => {
                format!("{} hash partitions of a column table", partitions.len())
            }
        }
    }

    /// Whether the strategy models Spanner rather than the hash partitions of this store.
    pub(crate) fn is_range(self) -> bool {
        !matches!(self, Self::HashPartitions(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_print_as_they_parse() {
        let numbered = ["shard-16", "generated-2048", "hash-64"];
        for name in NAMES.iter().map(|(name, _)| *name).chain(numbered) {
            assert_eq!(name.parse::<Strategy>().unwrap().to_string(), name);
        }
        for name in ["", "shard", "shard-0", "shard-x", "hash-100001", "uuid9", "swapped-2"] {
            assert!(name.parse::<Strategy>().is_err(), "{name}");
        }
    }
}
