//! A workbench and store for hash-partitioned columnar tables in the style of the YDB column store.
//!
//! A table sends each row to one of a fixed number of partitions by the hash of its *partition
//! key*, and keeps the rows of a partition in the order of its *primary key*. This crate declares
//! such tables, ingests batches and files into them atomically, runs SQL on them with DataFusion,
//! and measures how even they are. Start at [`Table`].
//!
//! Placement is exact: a row lands in the partition that YDB would give it.
//!
//! ```
//! use evenkeel::placement::{Placement, parse_key};
//! use evenkeel::table::{ColumnType, PlacementFunction};
//! use evenkeel::units::{PartitionCount, PartitionId};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let placement =
//!     Placement::new(PlacementFunction::Ydb, PartitionCount::new(64)?, vec![ColumnType::Uint64]);
//! let key = parse_key(&[ColumnType::Uint64], &["42".to_owned()])?;
//! assert_eq!(placement.assign(&key)?, [PartitionId(45)]);
//! # Ok(())
//! # }
//! ```
//!
//! The work is done in separate crates that this one re-exports; see the diagrams in
//! `docs/ARCHITECTURE.md`.

// The command line uses this library as any other program does.
extern crate self as evenkeel;

pub mod bench;
pub mod cli;

pub use evenkeel_advisor::{evaluate, joins, lint, targets};
pub use evenkeel_capacity as capacity;
#[cfg(feature = "cluster")]
pub use evenkeel_cluster as cluster;
pub use evenkeel_engine::{Table, TableError, compact, inspect, query, repartition};
pub use evenkeel_input::{sink, source};
pub use evenkeel_model::{
    bounded, finding, masked_path, note, remark, table, text_value, time_reading, units, values, workload,
};
pub use evenkeel_placement::{placement, transform};
pub use evenkeel_report as report;
#[cfg(feature = "serve")]
pub use evenkeel_serve as serve;
pub use evenkeel_spanner as spanner;
pub use evenkeel_stats::{numbering, overlap, sketch, skew, throughput, windows};
pub use evenkeel_storage as storage;
pub use evenkeel_store::{delta, ingest, log, maintenance, merge, portion, sort};
pub use evenkeel_testkit as generate;

/// Statements before they reach a table.
pub mod sql {
    pub use evenkeel_sql::{
        ParamError, Params, QueryLog, SqlLimitError, Statement, StatementsError, call, check_text,
        is_query_log, plain_message, plain_text, plain_text_comparisons, plan_statement, plan_statements,
        quoted_name, read_query_log, read_statements, side_effect, walk, walk_mut,
    };
}
