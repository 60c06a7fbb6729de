//! Reasons why a declaration is rejected, and the limits of a primary key.

use thiserror::Error;

use crate::bounded::{names, quote};
use crate::table::ColumnType;

/// Maximum number of columns in a primary key of YDB.
pub const MAX_KEY_COLUMNS: usize = 20;
/// Maximum size of a primary key of YDB in bytes (1 MB).
pub const MAX_KEY_BYTES: usize = 1 << 20;

/// Reason why a declaration is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum SpecError {
    #[error("the table has no name")]
    NoName,
    #[error("'{name}' cannot be the name of a table: a part called .sys is kept for system tables", name = quote(name))]
    ReservedName { name: String },
    #[error("a table needs at least one column")]
    NoColumns,
    #[error("a column has an empty name")]
    EmptyColumnName,
    #[error("column '{name}' is declared twice", name = quote(name))]
    DuplicateColumn { name: String },
    #[error("a table needs a primary key, such as --primary-key event_timestamp,user_id")]
    NoPrimaryKey,
    #[error("a primary key has at most {MAX_KEY_COLUMNS} columns, this one has {found}")]
    TooManyKeyColumns { found: usize },
    #[error("the {key} names column '{name}', which is not declared; declared: {}", names(declared), name = quote(name))]
    UnknownKeyColumn { key: &'static str, name: String, declared: Vec<String> },
    #[error("the {key} names column '{name}' twice", name = quote(name))]
    RepeatedKeyColumn { key: &'static str, name: String },
    #[error(
        "column '{name}' is part of the primary key and must be NOT NULL; declare it as {name}:{column_type}:not-null", name = quote(name)
)]
    NullableKeyColumn { name: String, column_type: ColumnType },
    #[error(
        "column '{name}' of type {column_type} cannot be part of a primary key; keys of evenkeel have the types Int32, \
         Int64, Uint8 to Uint64, Utf8, String, Date, Datetime, Datetime64, Timestamp and Timestamp64{}", wider_type(*column_type),
        name = quote(name)
)]
    KeyType { name: String, column_type: ColumnType },
    #[error(
        "partition-key column '{name}' is not in the primary key ({}); the partition key is a subset of the primary \
         key, so that rows with equal primary keys are in one partition. Add it to the primary key or partition by another column",
        names(primary_key), name = quote(name)
)]
    PartitionKeyOutsidePrimaryKey { name: String, primary_key: Vec<String> },
    #[error(
        "placement ydb-cloud-logs needs a partition key of at least two columns, the first of them a Timestamp; \
         this one is ({})",
        names(partition_key)
    )]
    CloudLogsKey { partition_key: Vec<String> },
    #[error(
        "placement ydb-cloud-logs needs at least one active partition and a period of at least 1 microsecond"
    )]
    CloudLogsParameters,
    #[error(
        "the time to live names column '{name}', which is not in the primary key ({}); all versions of a \
            row must expire together, and portions record only the ranges of key columns", names(primary_key), name = quote(name)
)]
    TtlOutsidePrimaryKey { name: String, primary_key: Vec<String> },
    #[error(
        "the time to live names column '{name}' of type {column_type}; it must be a date or a point in time", name = quote(name)
)]
    TtlType { name: String, column_type: ColumnType },
    #[error("column '{name}' of type {column_type}: a table keeps the text of it; declare it as {name}:{}", column_type.in_table(), name = quote(name))]
    NotInTable { name: String, column_type: ColumnType },
    #[error("column '{name}' exists already", name = quote(name))]
    ColumnExists { name: String },
    #[error("{what} cannot be changed once a table is declared; {instead}")]
    Fixed { what: String, instead: &'static str },
    #[error(
        "column '{name}' cannot be added as NOT NULL: existing rows have no value for it. Declare it as \
         {name}:{column_type}", name = quote(name)
)]
    AddedNotNull { name: String, column_type: ColumnType },
}

/// Advice for a type that no key has.
fn wider_type(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::Int8 | ColumnType::Int16 => "; declare it as Int32",
        ColumnType::Date32 => "; declare it as Timestamp64",
        ColumnType::Decimal { scale: 0, .. } => "; declare it as Int64 if its values fit",
        ColumnType::Interval | ColumnType::Interval64 => "; declare it as Int64, in microseconds",
        ColumnType::Bool => "; declare it as Uint8",
        ColumnType::Uuid => "; declare it as Utf8",
        _ => "",
    }
}
