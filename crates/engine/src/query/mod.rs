//! SQL on a table: a DataFusion `TableProvider` over a snapshot.
//!
//! ```text
//! filters -> partitions (equality or IN on all partition-key columns)
//!         -> portions (ranges of the primary key)
//!         -> per partition, groups of portions whose key ranges overlap, in key order
//!              no overlap anywhere:  plain Parquet scan, a partition's portions one after another
//!              else NewestWinsExec:  portions without overlap are chained; groups are packed into
//!                                    runs, merged by primary key, and the newest row of each key
//!                                    is kept
//! ```
//! Either way each partition returns its rows in the order of the primary key, and declares that
//! order. With [`PartitionAware`], grouping by the partition key needs no repartitioning. Whatever
//! the plan, of two rows with one primary key only the newest is visible.

mod checked;
mod checked_sum;
mod count;
mod float_extremes;
mod float_groups;
mod functions;
mod kept_orders;
mod limit_barrier;
mod limits;
mod newest_wins;
mod optimizer_rules;
mod ordered_scan;
mod overlap;
mod partition_aware;
mod portion_readers;
mod provider;
mod pruning;
mod session;
mod system;
mod window_frames;
mod yielding;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use thiserror::Error;

pub use crate::query::count::{PartitionKeys, VisibleRows, count_visible_rows};
pub use crate::query::functions::{aggregates, functions};
pub use crate::query::limits::{
    LEAST_QUERY_MEMORY, LimitExceeded, OnStuck, QueryLimits, QueryMemory, Watch, default_memory,
    panics_are_caught, report_failed_allocation,
};
pub use crate::query::newest_wins::NewestWinsExec;
pub use crate::query::newest_wins::key_ordering;
pub use crate::query::optimizer_rules::corrected_rules;
pub use crate::query::partition_aware::PartitionAware;
pub use crate::query::partition_aware::declare_scans;
pub use crate::query::provider::{ScanSummary, SnapshotTable};
pub use crate::query::session::{QueryResult, TableSession, runtime_within, shared_runtime};
pub use crate::sql::SqlLimitError;
pub use crate::sql::{ParamError, Params};
use evenkeel_model::bounded::quote;

use evenkeel_model::table::TableSpec;

/// Casts a batch of a scan of all columns to the types that the table declares: scans return text
/// as views.
///
/// # Errors
/// [`ArrowError`] if the columns are not those of the table, or a text column would exceed 2 GiB.
pub fn as_declared(spec: &TableSpec, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = spec.schema().fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| match column.data_type() == field.data_type() {
        true => Ok(ArrayRef::clone(column)),
        false => cast(column, field.data_type()),
    });
    RecordBatch::try_new(SchemaRef::clone(spec.schema()), columns.collect::<Result<Vec<_>, _>>()?)
}

/// Error of a query.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum QueryError {
    #[error("{}", crate::sql::plain_message(.0))]
    DataFusion(#[from] DataFusionError),
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    #[error(transparent)]
    Sql(#[from] SqlLimitError),
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error(transparent)]
    Placement(#[from] evenkeel_placement::placement::PlacementError),
    #[error(transparent)]
    Storage(#[from] evenkeel_storage::StorageError),
    #[error("there is no table '{name}'; there are: {known}", name = quote(name))]
    UnknownTable { name: String, known: String },
    #[error("no SQL is given")]
    Empty,
    #[error("there are {count} statements; run one at a time")]
    Several { count: usize },
    #[error("only queries are run; this statement would {action}. To add rows, use 'evenkeel ingest'")]
    NotAQuery { action: &'static str },
    #[error("cannot count the rows of partition {partition}: {reason}")]
    Count { partition: evenkeel_model::units::PartitionId, reason: String },
}

use crate::sql::FILTER_FAILED;

impl QueryError {
    /// Whether the error is about reading a file, which may be damaged or gone, rather than about
    /// the query.
    #[must_use]
    pub fn is_of_a_file(&self) -> bool {
        let Self::DataFusion(error) = self else { return matches!(self, Self::Storage(_)) };
        match error.find_root() {
            // Filters are evaluated while a file is read; a value that they cannot take is not the
            // file's fault.
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
