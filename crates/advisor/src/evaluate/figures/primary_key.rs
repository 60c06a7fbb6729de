//! Figures of a candidate for the primary key.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::evaluate::figures::interval::Interval;
use crate::evaluate::figures::layout::LayoutReport;
use crate::evaluate::figures::uniqueness::Uniqueness;
use evenkeel_model::table::Candidate;
use evenkeel_model::wire::wire;
use evenkeel_stats::sketch::RepeatedKey;

/// Two rows with one primary key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DuplicateExample {
    /// Values of the key.
    pub key: Vec<Value>,
    /// Place of the first row: its input and its number in it, from 1.
    pub first: String,
    /// Place of the second row, in the same form.
    pub second: String,
    /// Columns in which they differ; empty if the rows are identical.
    pub differs_in: Vec<String>,
}

/// Rows that arrive after rows of their partition with a greater key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateRows {
    /// Number of late rows.
    pub rows: u64,
    /// Upper bound of it, if profiles were merged that overlap in the key; `rows` and `reach` are
    /// then lower bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
    /// Time that they reach back, if the first column of the key is a time.
    pub reach: Option<LateReach>,
}

/// Time that late rows reach back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateReach {
    /// Longest time that a row reaches back, in microseconds.
    pub max_micros: i64,
    /// Rows that are late by more than a second, a minute, an hour and a day.
    pub rows_by_more_than: [u64; 4],
}

/// Share of the data that a condition prunes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pruning {
    /// Condition on columns of the key, in words.
    pub condition: String,
    /// Share of the portions, one per batch and partition, whose range excludes the condition,
    /// averaged over values of the data.
    pub portions_pruned: f64,
    /// Share of the row groups left unread if all portions of a partition are merged into one,
    /// estimated from a sample of rows.
    pub merged_row_groups_pruned: f64,
}

/// Report on a candidate for the primary key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrimaryKeyReport {
    /// Parts of the key.
    pub columns: Vec<String>,
    /// Whether no two rows share a key.
    pub unique: bool,
    /// Significance of the uniqueness; `None` if keys repeat or only a sample was read.
    pub uniqueness: Option<Uniqueness>,
    /// Number of distinct keys.
    pub distinct_keys: u64,
    /// Rows with the key of an earlier row.
    pub duplicate_rows: u64,
    /// Duplicate rows that equal the row before them with their key: an upsert loses nothing.
    pub identical_rows: u64,
    /// Duplicate rows that differ from the row before them with their key: an upsert replaces other
    /// values.
    pub conflicting_rows: u64,
    /// 95 % interval of the duplicate rows of the whole export, if only a sample was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_rows_interval: Option<Interval>,
    /// Examples of duplicate rows.
    pub examples: Vec<DuplicateExample>,
    /// Rows with NULL in some column, which a primary key does not accept.
    pub null_rows: u64,
    /// Reasons why a table cannot have this key, one sentence each.
    pub obstacles: Vec<String>,
    /// Bytes of a key, on average.
    pub mean_key_bytes: f64,
    /// Length of the longest key, in bytes.
    pub max_key_bytes: u64,
    /// Partition key that the figures below are for.
    pub partitioned_by: Vec<String>,
    /// Number of its partitions.
    pub partitions: usize,
    /// Share of the rows that arrive in key order within their partition.
    pub in_order_fraction: f64,
    /// Rows that arrive late.
    pub late: LateRows,
    /// Pearson's correlation between the rank of a row's key and its place of arrival. MongoDB
    /// `analyzeShardKey` judges monotonicity by it (from 0.7). Computed from a sample of rows;
    /// `None` for fewer than two.
    pub rank_correlation: Option<f64>,
    /// Overlap of the portions that batches make.
    pub layout: LayoutReport,
    /// Shares of the data that conditions leave unread.
    pub pruning: Vec<Pruning>,
    /// Candidate that was evaluated.
    #[serde(skip)]
    pub candidate: Candidate,
    /// Partition key that the rows were placed by.
    #[serde(skip)]
    pub(crate) placed_by: Candidate,
    /// Repeated keys whose rows are still to be found for the examples.
    #[serde(skip)]
    pub(crate) repeated: Vec<RepeatedKey>,
}

wire!(DuplicateExample { key, first, second, differs_in });
wire!(LateRows { rows, at_most, reach });
wire!(LateReach { max_micros, rows_by_more_than });
wire!(Pruning { condition, portions_pruned, merged_row_groups_pruned });
wire!(PrimaryKeyReport {
    columns,
    unique,
    uniqueness,
    distinct_keys,
    duplicate_rows,
    identical_rows,
    conflicting_rows,
    duplicate_rows_interval,
    examples,
    null_rows,
    obstacles,
    mean_key_bytes,
    max_key_bytes,
    partitioned_by,
    partitions,
    in_order_fraction,
    late,
    rank_correlation,
    layout,
    pruning,
    candidate,
    placed_by,
    repeated,
});
