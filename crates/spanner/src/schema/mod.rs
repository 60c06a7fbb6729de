//! Schemas of Spanner, in both of its dialects: read as far as keys go, and written.

mod check;
mod names;
mod parse;
mod types;
mod write;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

pub use crate::schema::parse::parse_schema;
pub use crate::schema::write::{
    IndexDraft, KeyFront, MadeKey, ShardFront, TableDraft, write_migrated_table, write_sequence,
};
use evenkeel_model::bounded::{names, quote};

/// A dialect of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// GoogleSQL.
    GoogleSql,
    /// PostgreSQL.
    Postgres,
}

/// What a schema declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// Its tables.
    pub tables: Vec<SchemaTable>,
    /// Its indexes.
    pub indexes: Vec<SchemaIndex>,
    /// What was left out, one sentence each.
    pub notes: Vec<String>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaTable {
    /// Its name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<SchemaColumn>,
    /// Its primary key.
    pub primary_key: Vec<SchemaKey>,
    /// The table that it is interleaved in.
    pub parent: Option<String>,
    /// What stands behind that, as it is written: `ON DELETE CASCADE`, a policy of deletion.
    pub clauses: String,
    /// The dialect that it is written in: where the primary key stands behind the columns, it is GoogleSQL.
    pub dialect: Dialect,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaColumn {
    /// Its name.
    pub name: String,
    /// How its values come to be, where the database makes them.
    pub made: Option<Made>,
    /// Its type and what else is declared of it, as it is written.
    pub declaration: String,
}

/// How a database makes values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// The remainder of a fingerprint.
    Shard(Shard),
    /// A random UUID.
    Uuid,
    /// A bit-reversed sequence.
    Sequence,
    /// Otherwise.
    Other,
}

/// The remainder of the fingerprint of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// By how many it is.
    pub shards: u32,
    /// The columns, in order.
    pub columns: Vec<String>,
    /// Whether it may be negative.
    pub signed: bool,
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaKey {
    /// The column.
    pub column: String,
    /// Whether it descends.
    pub descending: bool,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaIndex {
    /// Its name.
    pub name: String,
    /// Its table.
    pub table: String,
    /// What it is ordered by.
    pub columns: Vec<SchemaKey>,
    /// What it holds besides.
    pub storing: Vec<String>,
    /// Whether no two rows have the same entry.
    pub unique: bool,
    /// Whether rows with a NULL have no entry.
    pub null_filtered: bool,
    /// The table that it is interleaved in.
    pub interleaved_in: Option<String>,
}

/// Why a schema is not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum SchemaError {
    #[error("line {line}, column {column}: {message}")]
    Text { line: u64, column: u64, message: String },
    #[error("line {line}, column {column}: expected {expected}, found {found}, in {statement}")]
    Unexpected { line: u64, column: u64, expected: &'static str, found: String, statement: String },
    #[error("line {line}, column {column}: {statement}: {problem}; {next}")]
    Refused { line: u64, column: u64, statement: String, problem: String, next: String },
    #[error("there is no CREATE TABLE")]
    NoTable,
    #[error("there is no table '{name}'; there are: {}", names(known), name = quote(name))]
    UnknownTable { name: String, known: Vec<String> },
    #[error("there are several tables: {}; name one with --table", names(known))]
    SeveralTables { known: Vec<String> },
}

impl Schema {
    /// The table of this name, whatever its case; the only one where none is named.
    ///
    /// # Errors
    /// [`SchemaError`] where there is none, or several and none is named.
    pub fn table(&self, name: Option<&str>) -> Result<&SchemaTable, SchemaError> {
        let known = || self.tables.iter().map(|table| table.name.clone()).collect();
        match (name, self.tables.as_slice()) {
            (_, []) => Err(SchemaError::NoTable),
            (None, [only]) => Ok(only),
            (None, _) => Err(SchemaError::SeveralTables { known: known() }),
            (Some(name), tables) => {
                let found = tables.iter().find(|table| table.name.eq_ignore_ascii_case(name));
                found.ok_or_else(|| SchemaError::UnknownTable { name: name.to_owned(), known: known() })
            }
        }
    }

    /// The indexes of a table.
    pub fn indexes_of<'a>(&'a self, table: &'a SchemaTable) -> impl Iterator<Item = &'a SchemaIndex> {
        self.indexes.iter().filter(|index| index.table.eq_ignore_ascii_case(&table.name))
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "spanner" => Ok(Self::GoogleSql),
            "spanner-postgres" => Ok(Self::Postgres),
            other => Err(format!("unknown target '{other}'; there are: spanner, spanner-postgres")),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GoogleSql => "spanner",
            Self::Postgres => "spanner-postgres",
        })
    }
}
