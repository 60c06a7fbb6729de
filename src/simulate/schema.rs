//! The statements that declare a table under a strategy.

use crate::simulate::strategy::UuidForm;
use crate::simulate::{IndexSpec, KeyOrder, Strategy};
use crate::spanner::{Dialect, IndexDraft, KeyFront, SchemaKey, TableDraft};
use crate::table::Column;
use crate::transform::UuidKind;

/// A table that it is interleaved in, by its name and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its name.
    pub name: String,
    /// Its primary key.
    pub key: Vec<KeyOrder>,
}

/// A table as it is declared: what a strategy changes.
#[derive(Debug, Clone, Copy)]
pub struct Declaration<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its columns.
    pub columns: &'a [Column],
    /// Its primary key.
    pub key: &'a [KeyOrder],
    /// Its indexes.
    pub indexes: &'a [IndexSpec],
    /// What it is interleaved in.
    pub parent: Option<&'a Parent>,
    /// Columns that a shard in front is made of; where there are none, those that the strategy says.
    pub shard_columns: &'a [String],
}

impl Declaration<'_> {
    /// The statements for this strategy. None for hash partitions, which Spanner does not have, nor for the anti-patterns: sequences that
    /// count up and UUIDs that begin with the time.
    #[must_use]
    pub fn statements(&self, strategy: Strategy, dialect: Dialect) -> Option<String> {
        let is_time = |name: &str| {
            self.columns.iter().any(|column| column.name == name && column.column_type.is_time())
        };
        let mut key: Vec<SchemaKey> = self.key.iter().map(|part| self.schema_key(part)).collect();
        let names = |key: &[SchemaKey], of: usize| match self.shard_columns {
            [] => key.iter().take(of).map(|part| part.column.clone()).collect(),
            columns => columns.iter().map(|name| self.exact(name)).collect(),
        };
        let front = match strategy {
            Strategy::Declared => KeyFront::Nothing,
            Strategy::Swapped => {
                if let [first, second, ..] = key.as_mut_slice() {
                    std::mem::swap(first, second);
                }
                KeyFront::Nothing
            }
            Strategy::Descending => {
                key.iter_mut().for_each(|part| part.descending |= is_time(&part.column));
                KeyFront::Nothing
            }
            Strategy::Shards(shards) => KeyFront::Shard(names(&key, usize::MAX), shards),
            Strategy::GeneratedShards(shards) => KeyFront::SignedShard(names(&key, 1), shards),
            Strategy::BitReversed => KeyFront::BitReversed,
            Strategy::Uuid(UuidKind::Random, UuidForm::Text) => KeyFront::Uuid,
            Strategy::Uuid(UuidKind::Random, UuidForm::Bytes) => KeyFront::UuidBytes,
            Strategy::Uuid(UuidKind::Random, UuidForm::TwoIntegers) => KeyFront::UuidIntegers,
            Strategy::Uuid(..) | Strategy::Sequence | Strategy::HashPartitions(_) => return None,
        };
        let begins_with = |prefix: &[KeyOrder]| {
            front == KeyFront::Nothing
                && prefix.len() <= key.len()
                && prefix.iter().zip(&key).all(|(ours, part)| self.schema_key(ours) == *part)
        };
        let mut comments = String::new();
        let parent = self.parent.filter(|parent| {
            let kept = begins_with(&parent.key);
            if !kept {
                comments.push_str(&format!(
                    "-- not interleaved in {}: the key does not begin with that of {}, by name and order\n",
                    parent.name, parent.name
                ));
            }
            kept
        });
        let mut indexes = Vec::new();
        for index in self.indexes {
            let interleaved_in = parent.filter(|parent| {
                let same = |(ours, theirs): &(&KeyOrder, &KeyOrder)| {
                    self.schema_key(ours) == self.schema_key(theirs)
                };
                let shared = parent.key.iter().zip(&index.columns).filter(same);
                index.interleaved && shared.count() == parent.key.len()
            });
            if index.interleaved && interleaved_in.is_none() {
                comments.push_str(&format!(
                    "-- index {} is interleaved only in a parent of the table whose key it begins with; here it stands by itself\n",
                    index.name
                ));
            }
            indexes.push(IndexDraft {
                name: index.name.clone(),
                columns: index.columns.iter().map(|part| self.schema_key(part)).collect(),
                storing: index.storing.iter().map(|name| self.exact(name)).collect(),
                null_filtered: index.null_filtered,
                shards: index.shards,
                interleaved_in: interleaved_in.map(|parent| parent.name.clone()),
            });
        }
        let draft = TableDraft {
            name: self.name.to_owned(),
            columns: self.columns.to_vec(),
            parent: parent.map(|parent| parent.name.clone()),
            key,
            front,
            indexes,
        };
        Some(comments + &draft.write(dialect))
    }

    /// The name as its column has it: those of a schema do not differ by their case.
    fn exact(&self, name: &str) -> String {
        let alike = |column: &&Column| column.name.eq_ignore_ascii_case(name);
        let exact = self.columns.iter().find(|column| column.name == name);
        exact
            .or_else(|| self.columns.iter().find(alike))
            .map_or_else(|| name.to_owned(), |column| column.name.clone())
    }

    fn schema_key(&self, part: &KeyOrder) -> SchemaKey {
        SchemaKey { column: self.exact(&part.column), descending: part.descending }
    }
}
