//! Reads the keys of Spanner schemas in both dialects, and writes schemas.

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

/// Tables and indexes that a schema declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// Tables of the schema.
    pub tables: Vec<SchemaTable>,
    /// Indexes of the schema.
    pub indexes: Vec<SchemaIndex>,
    /// Statements and clauses that were ignored, one sentence each.
    pub notes: Vec<String>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaTable {
    /// Name of the table.
    pub name: String,
    /// Columns of the table, in order.
    pub columns: Vec<SchemaColumn>,
    /// Columns of the primary key.
    pub primary_key: Vec<SchemaKey>,
    /// Table that this one is interleaved in.
    pub parent: Option<String>,
    /// Other clauses after the columns, verbatim: `ON DELETE CASCADE`, a row deletion policy.
    pub clauses: String,
    /// Dialect of the statement: GoogleSQL if the primary key follows the columns, PostgreSQL
    /// otherwise.
    pub dialect: Dialect,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaColumn {
    /// Name of the column.
    pub name: String,
    /// Generator of the values, if the database generates them.
    pub made: Option<Made>,
    /// Type and other attributes of the column, verbatim.
    pub declaration: String,
}

/// Generator of the values of a column, in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// A shard: the remainder of a fingerprint.
    Shard(Shard),
    /// A random UUID.
    Uuid,
    /// A bit-reversed sequence.
    Sequence,
    /// Another expression or generator.
    Other,
}

/// A shard: the remainder of the fingerprint of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// Number of shards.
    pub shards: u32,
    /// Hashed columns, in order.
    pub columns: Vec<String>,
    /// Whether the remainder may be negative.
    pub signed: bool,
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaKey {
    /// Name of the column.
    pub column: String,
    /// Whether the order is descending.
    pub descending: bool,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaIndex {
    /// Name of the index.
    pub name: String,
    /// Name of the indexed table.
    pub table: String,
    /// Columns that the index is ordered by.
    pub columns: Vec<SchemaKey>,
    /// Stored columns.
    pub storing: Vec<String>,
    /// Whether no two rows have the same entry.
    pub unique: bool,
    /// Whether rows with a NULL have no entry.
    pub null_filtered: bool,
    /// Table that the index is interleaved in.
    pub interleaved_in: Option<String>,
}

/// Reasons why a schema cannot be read.
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
    /// Returns the table with this name, ignoring case, or the only table if `name` is `None`.
    ///
    /// # Errors
    /// [`SchemaError`] if there is no such table, or if there are several and `name` is `None`.
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

    /// Returns the indexes of a table.
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
            other => Err(format!("unknown target '{other}'; known: spanner, spanner-postgres")),
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
