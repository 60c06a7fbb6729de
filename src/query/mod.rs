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
mod provider;
mod pruning;
mod session;
mod system;

use datafusion::error::DataFusionError;
use thiserror::Error;

pub use crate::query::count::{PartitionKeys, VisibleRows, count_visible_rows};
pub use crate::query::newest_wins::NewestWinsExec;
pub use crate::query::provider::{ScanSummary, SnapshotTable};
pub use crate::query::session::{QueryResult, TableSession};
pub use crate::sql::{ParamError, Params};

/// Why a query fails.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum QueryError {
    #[error("{}", crate::sql::plain_message(.0))]
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
