//! Figures of all candidates.

use serde::Serialize;

use crate::evaluate::figures::partition_key::PartitionKeyReport;
use crate::evaluate::figures::primary_key::PrimaryKeyReport;
use evenkeel_stats::windows::TimeRange;

/// A part of an export.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SampleReport {
    /// The share of the rows that was asked for.
    pub fraction: f64,
    /// Rows of the export.
    pub rows_read: u64,
    /// Rows of the sample.
    pub rows_sampled: u64,
}

/// What one pass over the rows gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Rows that the figures are for.
    pub rows: u64,
    /// Bytes of their values, before compression.
    pub bytes: u64,
    /// Where only a sample was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleReport>,
    /// The time column.
    pub time: Option<String>,
    /// How the export runs through it.
    pub time_range: Option<TimeRange>,
    /// Candidates for the partition key, in the order in which they were asked for.
    pub candidates: Vec<PartitionKeyReport>,
    /// Candidates for the primary key, likewise.
    pub primary_keys: Vec<PrimaryKeyReport>,
}
