//! SQL on a table: a DataFusion `TableProvider` over a snapshot.
//!
//! ```text
//! filters -> partitions (equality or IN on all partition-key columns) -> portions (ranges of the primary key)
//!         -> groups of portions whose key ranges overlap
//!              one portion:  plain Parquet scan
//!              several:      merge by primary key, newest first, keep the first row of each key
//! ```
//! Whatever the plan, of two rows with one primary key only the newest is seen.

mod count;
mod newest_wins;
mod overlap;
mod params;
mod provider;
mod pruning;
mod session;
mod system;

use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use thiserror::Error;

pub use crate::query::count::{PartitionKeys, VisibleRows, count_visible_rows};
pub use crate::query::newest_wins::NewestWinsExec;
pub use crate::query::params::{ParamError, Params};
pub use crate::query::provider::{ScanSummary, SnapshotTable};
pub use crate::query::session::{QueryResult, TableSession};

/// Why a query fails.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum QueryError {
    #[error("{}", plain_message(.0))]
    DataFusion(#[from] DataFusionError),
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error(transparent)]
    Placement(#[from] crate::placement::PlacementError),
    #[error(transparent)]
    Storage(#[from] crate::storage::StorageError),
    #[error("there is no table '{name}'; there are: {known}")]
    UnknownTable { name: String, known: String },
    #[error("no SQL is given")]
    Empty,
    #[error("only queries are run; this statement would {action}. Rows come in with 'evenkeel ingest'")]
    NotAQuery { action: &'static str },
    #[error("cannot count the rows of partition {partition}: {reason}")]
    Count { partition: crate::units::PartitionId, reason: String },
}

/// The message of the innermost cause, on one line, without DataFusion's stack traces.
fn plain_message(error: &DataFusionError) -> String {
    let text = match error.find_root() {
        DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => {
                let mut known: Vec<&str> = valid_fields.iter().map(Column::name).collect();
                known.sort_unstable();
                known.dedup();
                format!(
                    "there is no column '{}'; there are: {} (text stands in single quotes)",
                    field.name(),
                    known.join(", ")
                )
            }
            other => other.to_string(),
        },
        DataFusionError::SQL(parser, _) => match parser.as_ref() {
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                format!("cannot read the SQL: {message}")
            }
            other => other.to_string(),
        },
        other => other.strip_backtrace(),
    };
    text.lines().next().unwrap_or(&text).to_owned()
}
