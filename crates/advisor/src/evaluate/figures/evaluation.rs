//! Figures of all candidates.

use serde::Serialize;

use crate::evaluate::figures::partition_key::PartitionKeyReport;
use crate::evaluate::figures::primary_key::PrimaryKeyReport;
use evenkeel_stats::windows::TimeRange;

/// Sample of an export.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SampleReport {
    /// Requested share of the rows, above 0 and at most 1.
    pub fraction: f64,
    /// Number of rows of the export.
    pub rows_read: u64,
    /// Number of rows of the sample.
    pub rows_sampled: u64,
}

/// Figures from one pass over the rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of rows counted: those of the sample, if there is one.
    pub rows: u64,
    /// Bytes of the values of these rows, before compression.
    pub bytes: u64,
    /// Sample that was counted; `None` if all rows were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleReport>,
    /// Name of the time column; `None` if there is none.
    pub time: Option<String>,
    /// Distribution of the export over the time column.
    pub time_range: Option<TimeRange>,
    /// Candidates for the partition key, in the requested order.
    pub candidates: Vec<PartitionKeyReport>,
    /// Candidates for the primary key, in the requested order.
    pub primary_keys: Vec<PrimaryKeyReport>,
}
