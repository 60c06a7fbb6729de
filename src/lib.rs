//! A workbench and store for hash-partitioned columnar tables in the style of the YDB column store.
//!
//! A table sends each row to one of a fixed number of partitions by the hash of its *partition key*, and keeps the rows of
//! a partition in the order of its *primary key*. This crate declares such tables, ingests batches and files into them
//! atomically, runs SQL on them with DataFusion, and measures how even they are. Start at [`Table`].
//!
//! Placement is exact: a row lands in the partition that YDB would give it.
//!
//! ```
//! use evenkeel::placement::{Placement, parse_key};
//! use evenkeel::table::{ColumnType, PlacementFunction};
//! use evenkeel::units::{PartitionCount, PartitionId};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let placement = Placement::new(PlacementFunction::Ydb, PartitionCount::new(64)?, vec![ColumnType::Uint64]);
//! let key = parse_key(&[ColumnType::Uint64], &["42".to_owned()])?;
//! assert_eq!(placement.assign(&key)?, [PartitionId(45)]);
//! # Ok(())
//! # }
//! ```
//!
//! Modules form layers, and import downward only; `docs/ARCHITECTURE.md` draws them.

pub mod bench;
pub mod bounded;
pub mod capacity;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod compact;
pub mod delta;
pub mod evaluate;
pub mod finding;
pub mod generate;
pub mod handle;
pub mod ingest;
pub mod lint;
pub mod log;
pub mod maintenance;
pub mod merge;
pub mod note;
pub mod numbering;
pub mod overlap;
pub mod overview;
pub mod placement;
pub mod portion;
pub mod query;
pub mod repartition;
pub mod report;
pub mod simulate;
pub mod sink;
pub mod sketch;
pub mod skew;
pub mod sort;
pub mod source;
pub mod spanner;
pub mod sql;
pub mod storage;
pub mod table;
pub mod text_value;
pub mod transform;
pub mod units;
pub mod values;
pub mod windows;
mod wire;
pub mod workload;

pub use handle::{Table, TableError};
