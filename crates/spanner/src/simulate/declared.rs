//! Declaration of a table in a schema, in the terms of a simulation.

use crate::schema::{Dialect, Made, Schema, SchemaColumn, SchemaIndex, SchemaTable, ShardFront};
use crate::simulate::index::IndexSpec;
use crate::simulate::key::KeyOrder;
use crate::simulate::strategy::{Strategy, UuidForm};
use evenkeel_placement::transform::UuidKind;

/// Parent table, by name and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Name of the parent.
    pub name: String,
    /// Primary key of the parent.
    pub key: Vec<KeyOrder>,
}

/// Declaration of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared {
    /// Name of the table; `None` if only its key was declared.
    pub table: Option<String>,
    /// Primary key, without a first column that the database generates.
    pub primary_key: Vec<KeyOrder>,
    /// Indexes of the table.
    pub indexes: Vec<IndexSpec>,
    /// Strategy that represents the first column of the key, if the database generates it.
    pub strategy: Option<Strategy>,
    /// Columns that the shard in front is computed from, if there is one.
    pub shard_columns: Vec<String>,
    /// Table that this one is interleaved in.
    pub parent: Option<Parent>,
    /// Declaration as written in the schema, if there is one.
    pub written: Option<WrittenTable>,
    /// Columns that the database generates by an expression that is not modelled.
    pub unmodelled: Vec<String>,
    /// Notes on parts that are left out or modelled differently, one sentence each.
    pub notes: Vec<String>,
}

/// Declaration of a table, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenTable {
    /// Dialect of the declaration.
    pub dialect: Dialect,
    /// Names and declarations of the columns.
    pub columns: Vec<(String, String)>,
    /// Whole primary key.
    pub key: Vec<KeyOrder>,
    /// Clauses after the key and the parent, verbatim.
    pub clauses: String,
}

impl Declared {
    /// Returns the declaration of a table in a schema, with a generated first key column replaced
    /// by the strategy that it represents.
    pub(crate) fn new(schema: &Schema, table: &SchemaTable) -> Self {
        let mut declared = Self::as_exported(schema, table);
        declared.first_column(table);
        declared
    }

    /// Returns the declaration of a table in a schema, with all key columns as the export has them.
    pub(crate) fn as_exported(schema: &Schema, table: &SchemaTable) -> Self {
        let mut declared = Self {
            table: Some(table.name.clone()),
            primary_key: table.primary_key.iter().map(KeyOrder::from).collect(),
            notes: schema.notes.clone(),
            ..Self::default()
        };
        let parent = table.parent.as_ref().and_then(|parent| schema.table(Some(parent)).ok());
        declared.parent = parent.map(|parent| Parent {
            name: parent.name.clone(),
            key: parent.primary_key.iter().map(KeyOrder::from).collect(),
        });
        let written = |column: &SchemaColumn| (column.name.clone(), column.declaration.clone());
        declared.written = Some(WrittenTable {
            dialect: table.dialect,
            columns: table.columns.iter().map(written).collect(),
            key: declared.primary_key.clone(),
            clauses: table.clauses.clone(),
        });
        let unmodelled = table.columns.iter().filter(|column| column.made == Some(Made::Other));
        declared.unmodelled = unmodelled.map(|column| column.name.clone()).collect();
        for index in schema.indexes_of(table) {
            declared.index(table, index);
        }
        declared
    }

    /// Replaces a generated first column of the key by a strategy.
    fn first_column(&mut self, table: &SchemaTable) {
        let [first, _, ..] = self.primary_key.as_slice() else { return };
        self.strategy = match made_of(table, &first.column) {
            Some(Made::Shard(shard)) => {
                self.shard_columns.clone_from(&shard.columns);
                Some(match shard.signed {
                    true => Strategy::GeneratedShards(shard.shards),
                    false => Strategy::Shards(shard.shards),
                })
            }
            Some(Made::Uuid) => Some(Strategy::Uuid(UuidKind::Random, UuidForm::Text)),
            Some(Made::Sequence) => Some(Strategy::BitReversed),
            Some(Made::Other) | None => None,
        };
        if let Some(strategy) = self.strategy {
            let front = self.primary_key.remove(0).column;
            self.notes.push(format!(
                "{front} is made by the database: strategy {strategy} stands for the key as declared"
            ));
        }
    }

    fn index(&mut self, table: &SchemaTable, index: &SchemaIndex) {
        // A shard column at the start of an index is a shard in front of its entries.
        let front = index.columns.first().map(|part| (&part.column, made_of(table, &part.column)));
        let shard = match front {
            Some((name, Some(Made::Shard(shard)))) => Some(ShardFront {
                shards: shard.shards,
                columns: shard.columns.clone(),
                signed: shard.signed,
                name: Some(name.clone()),
            }),
            _ => None,
        };
        if shard.is_some() && index.columns.len() == 1 {
            self.notes.push(format!("index {} is of a shard alone: it is left out", index.name));
            return;
        }
        let inside = |name: &String| {
            table.parent.as_ref().is_some_and(|parent| parent.eq_ignore_ascii_case(name))
                || table.name.eq_ignore_ascii_case(name)
        };
        let interleaved = index.interleaved_in.as_ref().is_some_and(inside);
        if let Some(parent) = index.interleaved_in.as_ref().filter(|_| !interleaved || shard.is_some()) {
            self.notes.push(format!(
                "index {} is modelled as a key space of its own, not within {parent}",
                index.name
            ));
        }
        self.indexes.push(IndexSpec {
            name: index.name.clone(),
            columns: index.columns.iter().skip(usize::from(shard.is_some())).map(KeyOrder::from).collect(),
            storing: index.storing.clone(),
            unique: index.unique,
            null_filtered: index.null_filtered,
            interleaved: interleaved && shard.is_none(),
            shard,
        });
    }
}

fn made_of<'a>(table: &'a SchemaTable, name: &str) -> Option<&'a Made> {
    let column = table.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))?;
    column.made.as_ref()
}
