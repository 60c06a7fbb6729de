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
//! order. With [`PartitionAware`], grouping by the partition key needs no repartitioning;
//! `local_joins` keeps joins within partitions. Whatever the plan, of two rows with one primary key
//! only the newest is visible.

mod analysis;
mod computed_once;
mod dictionary_groups;
mod error;
mod functions;
mod limits;
mod local_joins;
mod optimization;
mod out_of_range;
mod scan;
mod session;
mod threads;
mod walk;

pub use crate::query::error::QueryError;
pub use crate::query::functions::{aggregates, functions, window_functions};
pub use crate::query::limits::watch::{
    AfterFailedAllocation, Watch, outlive_failed_allocations, report_failed_allocation, stopped_threads,
};
pub use crate::query::limits::{
    LimitExceeded, MIN_QUERY_MEMORY, QueryLimits, default_memory, expect_panics, panics_are_caught,
    process_memory, running_queries,
};
pub use crate::query::local_joins::JoinSummary;
pub use crate::query::local_joins::partition_aware::{PartitionAware, declare_scans};
pub use crate::query::optimization::optimizer_rules::corrected_rules;
pub use crate::query::out_of_range::OutOfRange;
pub(crate) use crate::query::scan::count::{PartitionKeys, count_visible_rows};
pub use crate::query::scan::key_order::key_ordering;
pub use crate::query::scan::overlap::OverlapGroup;
pub use crate::query::scan::provider::SnapshotTable;
pub use crate::query::scan::scan_summary::ScanSummary;
pub use crate::query::session::database::{Database, DatabaseError};
pub use crate::query::session::explanation::Explanation;
pub use crate::query::session::progress::QueryProgress;
pub use crate::query::session::run_queries::RunQueries;
pub use crate::query::session::runtime::QueryEnvironment;
pub(crate) use crate::query::session::runtime::{runtime_within, shared_runtime};
pub use crate::query::session::session_state::{spill_without_waiting, without_filters_of_extremes};
pub use crate::query::session::table_session::{QueryDescription, QueryResult, TableSession};
pub use evenkeel_sql::{ParamError, Params, SqlLimitError};
