//! A parsed `CREATE TABLE`, with the notes and errors of its parser.

use std::fmt;

use thiserror::Error;

use crate::bounded::quote;
use crate::remark::Remark;
use crate::table::{ColumnTypeError, TableDefinition};
use crate::units::PartitionCountError;

/// Option that fixes the number of partitions of a column table, both the minimum and the maximum.
pub(super) const PARTITIONS_OPTION: &str = "AUTO_PARTITIONING_MIN_PARTITIONS_COUNT";
/// Number of partitions that YDB gives a column table if the DDL does not specify it.
pub(super) const YDB_DEFAULT_PARTITIONS: u64 = 64;

/// A parsed statement. The definition is not yet checked: see [`crate::table::TableSpec::new`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTable {
    /// The declared table.
    pub definition: TableDefinition,
    /// Clauses without effect, and assumptions about unspecified parts; one sentence each.
    pub notes: Vec<DdlNote>,
}

/// A remark on a statement: a clause without effect, or an assumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DdlNote {
    /// The statement does not say that the table is a column table.
    StoreAssumed,
    /// The statement does not give the number of partitions.
    PartitionsAssumed,
    /// The time to live refers to a column outside the primary key.
    TtlOutsideKey {
        /// Name of the column.
        column: String,
    },
    /// The time to live has an unknown form.
    TtlUnknown,
    /// A column family.
    Family {
        /// Name of the family.
        family: String,
        /// The column assigned to the family; `None` for the declaration of the family.
        column: Option<String>,
    },
    /// An option without effect.
    Option {
        /// Name of the option.
        name: String,
    },
}

impl From<&DdlNote> for Remark {
    fn from(note: &DdlNote) -> Self {
        let (code, column) = match note {
            DdlNote::StoreAssumed => ("store_assumed", None),
            DdlNote::PartitionsAssumed => ("partitions_assumed", None),
            DdlNote::TtlOutsideKey { column } => ("ttl_left_out", Some(column)),
            DdlNote::TtlUnknown => ("ttl_left_out", None),
            DdlNote::Family { column, .. } => ("family_without_effect", column.as_ref()),
            DdlNote::Option { .. } => ("option_without_effect", None),
        };
        match column {
            Some(column) => Self::on_column(code, column, note.to_string()),
            None => Self::new(code, note.to_string()),
        }
    }
}

impl fmt::Display for DdlNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StoreAssumed => f.write_str("STORE = COLUMN is not given; a column table is assumed"),
            Self::PartitionsAssumed => write!(
                f,
                "{PARTITIONS_OPTION} is not given; the table gets {YDB_DEFAULT_PARTITIONS} partitions, as \
                    in YDB"
            ),
            Self::TtlOutsideKey { column } => write!(
                f,
                "TTL is left out: '{}' is not in the primary key, and portions record only the ranges of \
                    key columns",
                quote(column)
            ),
            Self::TtlUnknown => f.write_str(
                "TTL is left out: only Interval(\"P30D\") ON column, in days, hours, minutes or seconds, \
                    is supported here",
            ),
            Self::Family { family, column: Some(column) } => {
                write!(f, "FAMILY {} of column {} has no effect here", quote(family), quote(column))
            }
            Self::Family { family, column: None } => write!(f, "FAMILY {} has no effect here", quote(family)),
            Self::Option { name } => write!(f, "option {} has no effect here", quote(name)),
        }
    }
}

/// Reason why a statement cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum DdlError {
    #[error("line {line}, column {column}: {message}")]
    Text { line: u64, column: u64, message: String },
    #[error("line {line}, column {column}: expected {expected}, found {found}")]
    Unexpected { line: u64, column: u64, expected: &'static str, found: String },
    #[error("line {line}, column {column}: {source}")]
    Type { line: u64, column: u64, source: ColumnTypeError },
    #[error("line {line}, column {column}: {source}")]
    Partitions { line: u64, column: u64, source: PartitionCountError },
    #[error(
        "line {line}, column {column}: STORE = {found}: only column tables (STORE = COLUMN) are partitioned by hash", found = quote(found)
)]
    NotColumnStore { line: u64, column: u64, found: String },
    #[error("line {line}, column {column}: column tables have no secondary indexes; remove the INDEX clause")]
    Index { line: u64, column: u64 },
}
