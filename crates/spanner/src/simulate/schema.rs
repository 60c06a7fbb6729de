//! Writes the statements that declare a table under a strategy.

use crate::schema::{Dialect, IndexDraft, KeyFront, SchemaKey, ShardFront, TableDraft};
use crate::simulate::declared::{Declared, Parent, Written};
use crate::simulate::strategy::UuidForm;
use crate::simulate::{IndexSpec, KeyOrder, Strategy};
use evenkeel_model::table::{Column, Ttl};
use evenkeel_model::units::Micros;
use evenkeel_placement::transform::UuidKind;

/// A declared table, to which strategies are applied.
#[derive(Debug, Clone, Copy)]
pub struct Declaration<'a> {
    /// Name of the table.
    pub name: &'a str,
    /// Columns of the table.
    pub columns: &'a [Column],
    /// Columns of the primary key.
    pub key: &'a [KeyOrder],
    /// Indexes of the table.
    pub indexes: &'a [IndexSpec],
    /// Table that this one is interleaved in.
    pub parent: Option<&'a Parent>,
    /// Columns that are NULL in some rows.
    pub nullable: &'a [String],
    /// Original declaration, if there is one: its own key, which one of the strategies represents,
    /// and its columns as written.
    pub declared: Option<&'a Declared>,
    /// Expiry of the rows.
    pub ttl: Option<&'a Ttl>,
}

impl Declaration<'_> {
    /// Returns the statements for a strategy. `None` for hash partitions, which Spanner does not
    /// have, and for the anti-patterns: ascending sequences and UUIDs that begin with the time.
    #[must_use]
    pub fn statements(&self, strategy: Strategy, dialect: Dialect) -> Option<String> {
        let is_time = |name: &str| {
            self.columns.iter().any(|column| column.name == name && column.column_type.is_time())
        };
        let written = self.declared.and_then(|declared| declared.written.as_ref());
        let written = written.filter(|written| written.dialect == dialect);
        let named = Names { columns: self.columns, written };
        let mut key: Vec<SchemaKey> = self.key.iter().map(|part| named.key(part)).collect();
        // If the declared key is kept as it is, its own columns determine the prefix.
        let judged = self.declared.filter(|declared| declared.strategy == Some(strategy));
        let as_written = judged.is_some().then_some(written).flatten();
        let names =
            |key: &[SchemaKey], of: usize| match judged.map(|declared| declared.shard_columns.as_slice()) {
                None | Some([]) => key.iter().take(of).map(|part| part.column.clone()).collect(),
                Some(columns) => columns.iter().map(|name| named.exact(name)).collect(),
            };
        let front = match strategy {
            Strategy::Declared => KeyFront::Nothing,
            Strategy::Swapped => {
                let [first, second, ..] = key.as_mut_slice() else { return None };
                std::mem::swap(first, second);
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
        let front = match as_written {
            Some(written) => {
                key = written.key.iter().map(|part| named.key(part)).collect();
                KeyFront::Nothing
            }
            None => front,
        };
        let begins_with = |prefix: &[KeyOrder]| {
            front == KeyFront::Nothing
                && prefix.len() <= key.len()
                && prefix.iter().zip(&key).all(|(ours, part)| named.key(ours) == *part)
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
                let same = |(ours, theirs): &(&KeyOrder, &KeyOrder)| named.key(ours) == named.key(theirs);
                let shared = parent.key.iter().zip(&index.columns).filter(same);
                index.interleaved && shared.count() == parent.key.len()
            });
            if index.interleaved && interleaved_in.is_none() {
                comments.push_str(&format!(
                    "-- index {} is not interleaved: it does not begin with the key of a parent of the \
                        table\n",
                    index.name
                ));
            }
            indexes.push(IndexDraft {
                name: index.name.clone(),
                columns: index.columns.iter().map(|part| named.key(part)).collect(),
                storing: index.storing.iter().map(|name| named.exact(name)).collect(),
                null_filtered: index.null_filtered,
                unique: index.unique,
                shard: index.shard.as_ref().map(|shard| ShardFront {
                    columns: shard.columns.iter().map(|name| named.exact(name)).collect(),
                    ..shard.clone()
                }),
                interleaved_in: interleaved_in.map(|parent| parent.name.clone()),
            });
        }
        // A front column that another strategy does not need is left out; the export may lack it
        // too.
        let is_front = |name: &String| {
            let front = written.filter(|_| as_written.is_none()).and_then(|written| written.key.first());
            let of_index = |index: &IndexSpec| {
                let shard = index.shard.as_ref().and_then(|shard| shard.name.as_ref());
                shard.is_some_and(|shard| shard.eq_ignore_ascii_case(name))
            };
            front.is_some_and(|front| {
                front.column.eq_ignore_ascii_case(name)
                    && !self.indexes.iter().any(of_index)
                    && self.declared.is_some_and(|declared| declared.strategy.is_some())
            })
        };
        let columns_written = |written: &Written| {
            written.columns.iter().filter(|(name, _)| !is_front(name)).cloned().collect::<Vec<_>>()
        };
        let draft = TableDraft {
            name: self.name.to_owned(),
            columns: self.columns.to_vec(),
            declared: written.map(columns_written),
            clauses: match self.ttl {
                Some(ttl) => self.deletion_policy(ttl, dialect, &mut comments),
                None => written.map(|written| written.clauses.clone()).unwrap_or_default(),
            },
            nullable: self.nullable.to_vec(),
            parent: parent.map(|parent| parent.name.clone()),
            key,
            front,
            indexes,
        };
        Some(comments + &draft.write(dialect))
    }

    /// Returns the clause that lets rows expire, in whole days.
    fn deletion_policy(&self, ttl: &Ttl, dialect: Dialect, comments: &mut String) -> String {
        let column = self.columns.iter().find(|column| column.name == ttl.column);
        if !column.is_some_and(|column| column.column_type.is_timestamp()) {
            comments.push_str(&format!(
                "-- rows expire {} after {}: the policy is left out, since Spanner needs a TIMESTAMP for \
                    it\n",
                ttl.keep, ttl.column
            ));
            return String::new();
        }
        let days = (ttl.keep.get() - 1) / Micros::DAY.get() + 1;
        if ttl.keep.get() % Micros::DAY.get() > 0 {
            comments.push_str(&format!("-- rows expire after {}, here after whole days\n", ttl.keep));
        }
        match dialect {
            Dialect::GoogleSql => {
                format!("ROW DELETION POLICY (OLDER_THAN({}, INTERVAL {days} DAY))", ttl.column)
            }
            Dialect::Postgres => format!("TTL INTERVAL '{days} days' ON {}", ttl.column),
        }
    }
}

/// Resolves names to the spelling of the columns; names in a schema do not differ by case.
struct Names<'a> {
    columns: &'a [Column],
    written: Option<&'a Written>,
}

impl Names<'_> {
    fn exact(&self, name: &str) -> String {
        let written =
            self.written.iter().flat_map(|written| &written.columns).map(|(column, _)| column.as_str());
        let mut written = written.filter(|column| column.eq_ignore_ascii_case(name));
        let exported = || self.columns.iter().map(|column| column.name.as_str());
        let exact = exported().find(|column| *column == name);
        let alike = || exported().find(|column| column.eq_ignore_ascii_case(name));
        written.next().or(exact).or_else(alike).unwrap_or(name).to_owned()
    }

    fn key(&self, part: &KeyOrder) -> SchemaKey {
        SchemaKey { column: self.exact(&part.column), descending: part.descending }
    }
}
