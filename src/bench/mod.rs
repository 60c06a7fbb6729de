//! Measures how evenly a real ingest spreads rows: an export is ingested into one table for each
//! partition key, batch by batch, in turn. Also measures the time of queries on a table.
//!
//! ```text
//! batches of the export -> for each key in turn: add derived columns
//!                            -> Table.ingest (one commit) -> BatchWrite
//!                       -> Evaluator: prediction for the key
//! BatchWrites -> balance over time, rates, backlog against a capacity
//! ```

#[cfg(test)]
mod agreement;
mod backlog;
mod ingest;
mod queries;
mod report;

pub use backlog::{Backlog, Limits, LoadAtATime, Resource};
pub use ingest::{BatchWrite, BenchError, BenchOptions, IngestBench, KeyBench, bench_ingest};
pub use queries::{QueryBench, bench_query};
pub use report::{ingest_table, query_table};
