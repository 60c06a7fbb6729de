//! Tables as DataFusion reads them: SQL, compaction, repartitioning and the handle of a table.

pub mod compact;
pub mod handle;
pub mod overview;
pub mod query;
pub mod repartition;
pub mod sql;

pub use handle::{Table, TableError};
