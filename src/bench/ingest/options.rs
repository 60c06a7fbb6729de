//! Options and errors of an ingest bench.

use arrow::error::ArrowError;
use thiserror::Error;

use crate::bench::backlog::Limits;
use evenkeel_advisor::evaluate::{Candidate, EvaluateError};
use evenkeel_engine::TableError;
use evenkeel_input::source::SourceError;
use evenkeel_model::bounded::quote;
use evenkeel_model::table::SpecError;
use evenkeel_model::units::{ByteSize, PartitionCount};

/// Options of an ingest bench.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// Partition keys; each gets a separate table.
    pub partition_keys: Vec<Candidate>,
    /// Primary key; the columns of a table's partition key that it lacks are appended.
    pub primary_key: Candidate,
    /// Partitions of each table.
    pub partitions: PartitionCount,
    /// Rows per batch; each batch is one commit.
    pub batch_rows: u64,
    /// Rows per second offered to each table; `None` for the highest possible rate.
    pub rows_per_second: Option<f64>,
    /// Capacities of the backlog model.
    pub limits: Limits,
    /// Memory budget of an ingest.
    pub memory: ByteSize,
}

/// Error of a bench.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the variants say what failed")]
pub enum BenchError {
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    #[error("a table with PARTITION BY HASH({key}): {source}", key = quote(key))]
    Spec { key: String, source: SpecError },
    #[error("HASH({key}): {source}", key = quote(key))]
    Table { key: String, source: TableError },
    #[error("cannot join batches: {0}")]
    Batch(#[from] ArrowError),
    #[error("HASH({key}): partition {partition} has {found} rows, but {predicted} were predicted", key = quote(key))]
    Prediction { key: String, partition: usize, predicted: u64, found: u64 },
    #[error("a worker stopped: {0}")]
    Worker(String),
}

impl From<SourceError> for BenchError {
    fn from(error: SourceError) -> Self {
        Self::Evaluate(error.into())
    }
}
