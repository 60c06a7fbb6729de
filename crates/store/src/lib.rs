//! The files of a table: log, portions, ingest, cleaning, and the Delta log.

pub mod delta;
pub mod ingest;
pub mod log;
pub mod maintenance;
pub mod merge;
pub mod portion;
pub mod sort;
