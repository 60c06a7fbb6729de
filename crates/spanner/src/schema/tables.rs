//! Tables and indexes that a schema declares.

use crate::schema::dialect::Dialect;
use crate::schema::error::SchemaError;
use evenkeel_model::remark::Remark;

/// Tables and indexes that a schema declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// Tables of the schema.
    pub tables: Vec<SchemaTable>,
    /// Indexes of the schema.
    pub indexes: Vec<SchemaIndex>,
    /// Statements and clauses that were ignored, one sentence each.
    pub notes: Vec<Remark>,
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
    /// A random UUID (`GENERATE_UUID()`).
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
    /// Columns whose fingerprint is hashed, in order.
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
    /// Name of the table.
    pub table: String,
    /// Columns that the index is ordered by.
    pub columns: Vec<SchemaKey>,
    /// Columns copied into the index (`STORING`).
    pub storing: Vec<String>,
    /// Whether no two rows have the same entry.
    pub unique: bool,
    /// Whether rows with a NULL have no entry.
    pub null_filtered: bool,
    /// Table that the index is interleaved in.
    pub interleaved_in: Option<String>,
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
                let table = tables.iter().find(|table| table.name.eq_ignore_ascii_case(name));
                table.ok_or_else(|| SchemaError::UnknownTable { name: name.to_owned(), known: known() })
            }
        }
    }

    /// Returns the indexes of a table.
    pub(crate) fn indexes_of<'a>(&'a self, table: &'a SchemaTable) -> impl Iterator<Item = &'a SchemaIndex> {
        self.indexes.iter().filter(|index| index.table.eq_ignore_ascii_case(&table.name))
    }
}
