//! Options and results of a simulation.

use serde::Serialize;

use crate::simulate::index::IndexSpec;
use crate::simulate::key::KeyOrder;
use crate::simulate::splits::{DatabaseOutcome, ModelParameters};
use crate::simulate::strategy::{Strategy, StrategyName};
use evenkeel_input::source::OnUnreadable;
use evenkeel_model::finding::Finding;
use evenkeel_model::remark::Remark;
use evenkeel_model::units::Micros;

/// Options of a simulation.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// Columns of the declared primary key.
    pub primary_key: Vec<KeyOrder>,
    /// Columns hashed for hash partitions; if empty, those of the primary key.
    pub partition_key: Vec<String>,
    /// Indexes of the table, the same for every strategy.
    pub indexes: Vec<IndexSpec>,
    /// Strategies to compare, in the order in which they are reported.
    pub strategies: Vec<Strategy>,
    /// Parameters of the model. The scale is used only if `find_scale` is not set.
    pub parameters: ModelParameters,
    /// Strategy that represents the declared key; `declared` if `None`.
    pub judged: Option<Strategy>,
    /// Columns that the shard of the judged strategy is computed from, if it has one; if empty, as
    /// defined by the strategy.
    pub shard_columns: Vec<String>,
    /// Whether to choose the scale so that the export makes sixteen full splits.
    pub find_scale: bool,
    /// Rows of the real table per second, used instead of the times of the export.
    pub rate: Option<f64>,
    /// Time column; if `None`, the only one.
    pub time: Option<String>,
    /// Column whose history is read; if `None`, the first key column that is not a time.
    pub owner: Option<String>,
    /// Number of initial boundaries, taken from the keys of the first rows.
    pub presplits: usize,
    /// Rows per transaction.
    pub transaction_rows: u64,
    /// Handling of rows that cannot be read.
    pub on_unreadable: OnUnreadable,
}

/// Reads whose cost a simulation compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadKind {
    /// The rows of the newest time range.
    TimeRange,
    /// All rows of one owner.
    History,
    /// One row by its declared key.
    Row,
    /// A row of the parent and all of its children.
    ParentWithChildren,
}

/// Cost of a read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadReport {
    /// Kind of read.
    pub kind: ReadKind,
    /// Number of splits that it touches.
    pub splits: usize,
    /// Number of key ranges that it visits; `None` if it has to scan all keys.
    pub ranges: Option<usize>,
    /// Number of rows that it finds, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Whether the newest rows are returned first rather than last; `None` if the rows are
    /// unordered.
    pub newest_first: Option<bool>,
}

/// Costs and benefits of an index.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IndexReport {
    /// Name of the index.
    pub name: String,
    /// Whether its entries are interleaved with the rows of the table.
    pub interleaved: bool,
    /// Number of entries; fewer than rows if NULLs are filtered.
    pub entries: u64,
    /// Share of the entries that went to the hottest split of their window; for an interleaved
    /// index, the share of the table.
    pub hottest_share: f64,
    /// Size of the entries, in bytes.
    pub bytes: u64,
    /// Number of splits touched by a read of the first column: of the newest time range if that is
    /// the time column, of one value otherwise.
    pub splits: usize,
    /// Number of rows that such a read finds.
    #[serde(rename = "found")]
    pub matching_rows: u64,
    /// Number of rows that it has to look up in the table, for columns that the index does not
    /// hold.
    pub back_joins: u64,
}

/// Results of one strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StrategyReport {
    /// Name of the strategy.
    pub strategy: StrategyName,
    /// The change to the declared key, in words.
    pub words: String,
    /// Whether the strategy models Spanner rather than this store.
    pub is_range: bool,
    /// Effects of the writes.
    pub outcome: DatabaseOutcome,
    /// Cost of reads at the end of the replay.
    pub reads: Vec<ReadReport>,
    /// Costs and benefits of the indexes.
    pub indexes: Vec<IndexReport>,
}

/// Source of the rate of a simulated load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateSource {
    /// Rows of the export divided by the span of their times.
    Measured,
    /// The measured rate multiplied by the given scale.
    Scaled,
    /// The given rate.
    Given,
}

/// Average load of the real table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// Rows per second; `None` if all rows arrive at the same time.
    pub rows_per_second: Option<f64>,
    /// Bytes of values per second; `None` if all rows arrive at the same time.
    pub bytes_per_second: Option<f64>,
    /// Origin of the rate.
    pub source: RateSource,
    /// Microseconds from the first time of the export to the last.
    pub span_micros: i64,
    /// Whether rows are replayed in order of time because the export is in another order.
    pub is_sorted_by_time: bool,
}

/// A simulation: a model, not a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulation {
    /// Always true: the figures come from a model.
    pub model: bool,
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Number of rows.
    pub rows: u64,
    /// Size of their values, in bytes.
    pub bytes: u64,
    /// Columns of the declared primary key.
    pub primary_key: Vec<KeyOrder>,
    /// Name of the time column; `None` if all rows exist from the beginning.
    pub time: Option<String>,
    /// Rows of the real table per second, if a rate was given.
    #[serde(rename = "rate_rows_per_second")]
    pub rate: Option<f64>,
    /// Load of the real table.
    pub load: Load,
    /// Rows whose time is more than one window before that of a preceding row.
    pub late_rows: u64,
    /// Length of the time range that is read.
    #[serde(rename = "read_length_micros")]
    pub read_length: Option<Micros>,
    /// Name of the column whose history is read.
    pub owner: Option<String>,
    /// Rows per transaction.
    pub transaction_rows: u64,
    /// Number of initial boundaries.
    pub presplits: usize,
    /// Assumptions of the model.
    pub parameters: ModelParameters,
    /// Whether the scale of the size was chosen automatically rather than given.
    #[serde(rename = "scale_is_assumed")]
    pub is_scale_found: bool,
    /// Results of the strategies.
    pub strategies: Vec<StrategyReport>,
    /// Strategy that is judged; `declared` if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Strategy>,
    /// Key columns that are NULL in some rows.
    pub nullable: Vec<String>,
    /// Key columns that hold time-ordered UUIDs, with their version.
    pub timed_uuids: Vec<(String, u8)>,
    /// Reason why load cannot be judged, if so; then no strategy is recommended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsure: Option<String>,
    /// Strategy that the figures recommend; `None` if no strategy cools its hot splits.
    pub recommended: Option<StrategyName>,
    /// Findings, most severe first.
    pub findings: Vec<Finding>,
    /// Other remarks, one sentence each.
    pub notes: Vec<Remark>,
    /// Duration of the simulation, in seconds.
    pub seconds: f64,
}
