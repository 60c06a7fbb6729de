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

mod array_has;
mod catalog;
mod checked;
mod checked_sum;
mod computed_once;
mod count;
mod database;
mod dates_as_times;
mod decimal_arithmetic;
mod distinct_matches;
mod distinct_statistics;
mod drawn_values;
mod error;
mod exact_subqueries;
mod explanation;
mod export_table;
mod expression_schema;
mod filter_pushdown;
mod float_extremes;
mod float_groups;
mod functions;
mod grouping_sets;
mod guards;
mod interval_literals;
mod join_filters;
mod kept_order;
mod key_order;
mod later_values;
mod limit_barrier;
mod limits;
mod local_joins;
mod merge_runs;
mod newest_time;
mod newest_wins;
mod no_rows;
mod nullable_lists;
mod opaque_casts;
mod operation;
mod optimizer_rules;
mod ordered_scan;
mod overlap;
mod parsing;
mod partition_aware;
mod plain_nans;
mod portion_files;
mod portion_readers;
mod portion_statistics;
mod progress;
mod projection_pushdown;
mod provider;
mod pruning;
mod repeated_orders;
mod run_queries;
mod runtime;
mod scan_filters;
mod scan_summary;
mod selective_joins_first;
mod semi_joins_first;
mod session;
mod session_state;
mod signless_zeros;
mod static_conditions;
mod stoppable;
mod system;
mod tasks;
mod unnested_rows;
mod visible_scan;
mod watch;
mod whole_orders;
mod window_frames;
mod yielding;

pub(crate) use crate::query::count::{PartitionKeys, count_visible_rows};
pub use crate::query::database::{Database, DatabaseError};
pub use crate::query::error::QueryError;
pub use crate::query::explanation::Explanation;
pub use crate::query::functions::{aggregates, functions, window_functions};
pub use crate::query::key_order::key_ordering;
pub use crate::query::limits::{
    LEAST_QUERY_MEMORY, LimitExceeded, QueryLimits, default_memory, expect_panics, panics_are_caught,
    process_memory, running_queries,
};
pub use crate::query::local_joins::JoinSummary;
pub use crate::query::optimizer_rules::corrected_rules;
pub use crate::query::overlap::OverlapGroup;
pub use crate::query::partition_aware::{PartitionAware, declare_scans};
pub use crate::query::progress::QueryProgress;
pub use crate::query::provider::SnapshotTable;
pub use crate::query::run_queries::RunQueries;
pub use crate::query::runtime::QueryEnvironment;
pub(crate) use crate::query::runtime::{runtime_within, shared_runtime};
pub use crate::query::scan_summary::ScanSummary;
pub use crate::query::session::{QueryDescription, QueryResult, TableSession};
pub use crate::query::watch::{Watch, report_failed_allocation};
pub use crate::sql::{ParamError, Params, SqlLimitError};
