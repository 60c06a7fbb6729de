//! Measurements of an ingest bench.

use serde::Serialize;

use crate::bench::backlog::{Backlog, Limits};
use evenkeel_advisor::evaluate::{LayoutReport, Spread};
use evenkeel_model::units::PartitionCount;
use evenkeel_stats::skew::SkewFigures;

/// Measurements of one batch in one table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchWrite {
    /// Rows of the batch.
    pub rows: u64,
    /// Bytes of values.
    pub bytes: u64,
    /// Seconds from the first row to the commit.
    pub seconds: f64,
    /// Rows per partition.
    pub rows_per_partition: Vec<u64>,
    /// Bytes of values per partition.
    pub bytes_per_partition: Vec<u64>,
    /// Bytes of files per partition.
    pub stored_bytes_per_partition: Vec<u64>,
    /// Seconds to sort, encode and store each partition; partitions overlap in time.
    pub seconds_per_partition: Vec<f64>,
    /// Rows superseded by a later row of the batch with the same primary key.
    pub replaced: u64,
    /// Portions written.
    pub portions: u64,
    /// Share of the rows in the fullest partition.
    pub share_of_fullest: f64,
    /// Effective number of partitions.
    pub effective_partitions: f64,
}

/// Measurements for one partition key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyBench {
    /// The partition key.
    pub partition_key: Vec<String>,
    /// The primary key of its table.
    pub primary_key: Vec<String>,
    /// Rows ingested.
    pub rows: u64,
    /// Seconds taken by all batches.
    pub seconds: f64,
    /// Rows per second.
    pub rows_per_second: f64,
    /// Bytes of values per second.
    pub bytes_per_second: f64,
    /// Share of the time that the table was busy, if rows were offered at a given rate; above 1 it
    /// cannot keep up.
    pub utilization: Option<f64>,
    /// Bytes of files.
    pub stored_bytes: u64,
    /// Rows superseded by a later row of their batch with the same primary key.
    pub replaced: u64,
    /// Portions written.
    pub portions: u64,
    /// Rows per partition over all batches, checked against the prediction.
    pub rows_per_partition: Vec<u64>,
    /// Skew of the rows per partition.
    pub skew: SkewFigures,
    /// Share of a batch's rows that its fullest partition gets.
    pub share_of_fullest: Spread,
    /// Effective number of partitions of a batch.
    pub effective_partitions: Spread,
    /// Overlap of the portions, and the amount that merging them would write.
    pub layout: LayoutReport,
    /// Modelled backlog.
    pub backlog: Option<Backlog>,
    /// Measurements of each batch.
    pub batches: Vec<BatchWrite>,
}

/// Result of an ingest bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IngestBench {
    /// Partitions of each table.
    pub partitions: PartitionCount,
    /// Rows of a batch.
    pub batch_rows: u64,
    /// Capacities of the backlog model.
    pub limits: Limits,
    /// Measurements of each key, in the given order.
    pub keys: Vec<KeyBench>,
}
