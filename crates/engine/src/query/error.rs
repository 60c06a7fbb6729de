//! Error of a query.

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use thiserror::Error;

use crate::query::limits::LimitExceeded;
use evenkeel_model::bounded::quote;
use evenkeel_model::units::PartitionId;
use evenkeel_placement::placement::PlacementError;
use evenkeel_sql::{FILTER_FAILED, ParamError, SqlLimitError, plain_message};
use evenkeel_storage::StorageError;

/// Error of a query.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum QueryError {
    #[error("{}", plain_message(.0))]
    DataFusion(#[from] DataFusionError),
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    #[error(transparent)]
    Sql(#[from] SqlLimitError),
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("there is no table '{name}'; there are: {known}", name = quote(name))]
    UnknownTable { name: String, known: String },
    #[error("no SQL is given")]
    Empty,
    #[error("there are {count} statements; run one at a time")]
    Several { count: usize },
    #[error(
        "this outer join with USING or NATURAL is not run, because the text does not tell which tables have its columns; \
        write ON a.k = b.k, and coalesce(a.k, b.k) for the column of both"
    )]
    OuterJoinByName,
    #[error(
        "EXCEPT ALL and INTERSECT ALL are not run; to count equal rows, number them on both sides with \
        row_number() OVER (PARTITION BY all columns), and use EXCEPT or INTERSECT"
    )]
    CountedRows,
    #[error(
        "only queries are run; this statement would {action}. To add rows, use 'evenkeel ingest', and to delete some, 'evenkeel delete'"
    )]
    NotAQuery { action: &'static str },
    #[error("the query returns no column; write SELECT * FROM ...")]
    NoColumn,
    #[error("cannot count the rows of partition {partition}: {reason}")]
    Count { partition: PartitionId, reason: String },
    /// The machines that run queries in place of this process failed.
    #[error("{reason}")]
    Elsewhere { reason: String },
}

impl QueryError {
    /// Whether the error is about reading a file, which may be damaged or gone, rather than about
    /// the query.
    #[must_use]
    pub fn is_file_error(&self) -> bool {
        let Self::DataFusion(error) = self else { return matches!(self, Self::Storage(_)) };
        match error.find_root() {
            // Filters are evaluated while a file is read; a value that they reject does not mean a
            // damaged file.
            DataFusionError::ParquetError(error) => !error.to_string().contains(FILTER_FAILED),
            DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => true,
            DataFusionError::ArrowError(error, _) => {
                matches!(
                    **error,
                    ArrowError::ParquetError(_) | ArrowError::ExternalError(_) | ArrowError::IoError(..)
                )
            }
            _ => false,
        }
    }
}
