//! Choices, and the reasons for them.

use serde::Serialize;

use evenkeel_stats::skew::Verdict;

/// A candidate for the partition key among the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankedKey {
    /// The key.
    pub partition_key: Vec<String>,
    /// The judgement of its balance.
    pub verdict: Verdict,
    /// Inserts that the table sustains, in bytes per second.
    pub sustained_rate: f64,
    /// The same if all partitions were equally busy.
    pub rate_if_even: f64,
    /// Partitions that a statement visits, on average; none without statements.
    pub mean_partitions_read: Option<f64>,
    /// Statements that visit all partitions.
    pub statements_on_all: usize,
    /// Bytes of a key, on average.
    pub mean_key_bytes: f64,
    /// Why a table of this export cannot have it as it is; none where it can.
    pub obstacle: Option<String>,
}

/// What to choose, and why.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Recommendation {
    /// The partition key; empty where no candidate can serve.
    pub partition_key: Vec<String>,
    /// The primary key; empty where none can serve.
    pub primary_key: Vec<String>,
    /// The number of partitions.
    pub partitions: u32,
    /// Why, the weightiest first.
    pub reasons: Vec<String>,
    /// What another choice would give and cost.
    pub trade_offs: Vec<String>,
    /// The YQL of the table.
    pub ddl: Option<String>,
    /// Commands that make it and fill it, in YDB and here.
    pub commands: Vec<String>,
}
