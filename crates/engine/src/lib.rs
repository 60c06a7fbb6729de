//! Tables as DataFusion reads them: queries, compaction, repartitioning and the handle of a table.

pub mod compact;
pub mod inspect;
pub mod query;
pub mod repartition;
mod table;
#[cfg(test)]
mod testing;

pub use crate::table::{Table, TableError};
