//! What a candidate for the primary key would do, as a result.

use serde::Serialize;
use serde_json::Value;

use crate::evaluate::figures::interval::Interval;
use crate::evaluate::figures::layout::LayoutReport;
use crate::evaluate::figures::uniqueness::Uniqueness;
use evenkeel_model::table::Candidate;
use evenkeel_model::wire::wire;
use evenkeel_stats::sketch::RepeatedKey;

/// Two rows with one primary key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DuplicateExample {
    /// The key.
    pub key: Vec<Value>,
    /// Where the first row stands: input and number of the row in it, from 1.
    pub first: String,
    /// Where the second stands.
    pub second: String,
    /// Columns in which they differ; none where the rows are identical.
    pub differs_in: Vec<String>,
}

/// Rows that come after rows of their partition with a greater key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateRows {
    /// How many.
    pub rows: u64,
    /// How far back they reach in time, where the first column of the key is a time.
    pub reach: Option<LateReach>,
}

/// How far back late rows reach.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateReach {
    /// The farthest, in microseconds.
    pub max_micros: i64,
    /// Late rows by more than a second, a minute, an hour and a day.
    pub rows_by_more_than: [u64; 4],
}

/// What a condition leaves unread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pruning {
    /// The condition.
    pub condition: String,
    /// Share of the portions, as batches make them, whose range excludes it; on average over values of the data.
    pub portions_pruned: f64,
    /// The same of row groups, when all portions of a partition are merged into one; estimated from a sample of rows.
    pub merged_row_groups_pruned: f64,
}

/// What a candidate for the primary key would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrimaryKeyReport {
    /// The parts of the key.
    pub columns: Vec<String>,
    /// Whether no two rows share a key.
    pub unique: bool,
    /// What that is worth; none where keys repeat, and of a sample.
    pub uniqueness: Option<Uniqueness>,
    /// Distinct keys.
    pub distinct_keys: u64,
    /// Rows whose key an earlier row has.
    pub duplicate_rows: u64,
    /// Of those, rows that equal the row before them with their key: an upsert loses nothing.
    pub identical_rows: u64,
    /// Of those, rows that differ from it: an upsert replaces other values.
    pub conflicting_rows: u64,
    /// Where only a sample was read: a 95 % interval of the duplicate rows of the whole export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_rows_interval: Option<Interval>,
    /// Some of them.
    pub examples: Vec<DuplicateExample>,
    /// Rows with NULL in some column; a primary key takes none.
    pub null_rows: u64,
    /// Why a table cannot have this key, one sentence each.
    pub obstacles: Vec<String>,
    /// Bytes of a key, on average.
    pub mean_key_bytes: f64,
    /// Bytes of the longest key.
    pub max_key_bytes: u64,
    /// The partition key that the figures below are for.
    pub partitioned_by: Vec<String>,
    /// Its partitions.
    pub partitions: usize,
    /// Share of the rows that come in key order within their partition.
    pub in_order_fraction: f64,
    /// The others.
    pub late: LateRows,
    /// Pearson's correlation between the rank of a row's key and its place of arrival, as MongoDB `analyzeShardKey` judges
    /// monotonicity (from 0.7 on). From a sample of rows; none for fewer than two.
    pub rank_correlation: Option<f64>,
    /// The portions that batches make.
    pub layout: LayoutReport,
    /// What conditions leave unread.
    pub pruning: Vec<Pruning>,
    /// The key itself.
    #[serde(skip)]
    pub candidate: Candidate,
    /// Keys that repeat, of which examples are to be found.
    #[serde(skip)]
    pub(crate) repeated: Vec<RepeatedKey>,
}

wire!(DuplicateExample { key, first, second, differs_in });
wire!(LateRows { rows, reach });
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
    repeated,
});
