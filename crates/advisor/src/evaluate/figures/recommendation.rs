//! Choices, and the reasons for them.

use std::fmt;

use serde::Serialize;

use evenkeel_stats::skew::Verdict;

/// Candidate for the partition key among the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankedKey {
    /// Parts of the key.
    pub partition_key: Vec<String>,
    /// Whether its hottest partition stays within the limits of rate and headroom.
    pub qualifies: bool,
    /// Expected share of the partitions that a statement visits, plus the costs of unevenness and
    /// further columns.
    pub cost: f64,
    /// Verdict on its balance.
    pub verdict: Verdict,
    /// Rate of inserts that the table sustains, in bytes per second.
    pub sustained_rate: f64,
    /// Rate that it would sustain if all partitions were equally busy.
    pub rate_if_even: f64,
    /// Average number of partitions that a statement visits; `None` without statements.
    pub mean_partitions_read: Option<f64>,
    /// Number of statements that visit all partitions.
    pub statements_on_all: usize,
    /// Bytes of a key, on average.
    pub mean_key_bytes: f64,
    /// Rows with NULL in it, which need a value before they are loaded.
    pub null_rows: u64,
    /// Reason why a table of this export cannot have it; `None` if it can.
    pub obstacle: Option<String>,
}

/// Reason why another key is a real choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlternativeKind {
    /// The existing table has this key.
    Current,
    /// Some statements visit fewer partitions.
    Statements,
    /// Keeps another entity's rows together.
    Entity,
    /// No row has NULL in it, as some do in the recommended key.
    Complete,
    /// Splits heavy values of the recommended key.
    Split,
    /// Sustains the highest rate of inserts.
    MostEven,
}

/// Another key, when to choose it, and its price in reads and inserts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// Reason why it is a choice.
    pub kind: AlternativeKind,
    /// Parts of the key.
    pub partition_key: Vec<String>,
    /// When to choose it, in words.
    pub when: String,
    /// Cost in partitions read and in inserts, in words.
    pub price: String,
}

impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HASH({}) {}; {}", self.partition_key.join(", "), self.when, self.price)
    }
}

/// Recommended keys and number of partitions, and why.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Recommendation {
    /// Partition key; empty if no candidate can serve.
    pub partition_key: Vec<String>,
    /// Primary key; empty if no candidate can serve.
    pub primary_key: Vec<String>,
    /// Whether the partition key is the best of bad ones: no column identifies anything that reads
    /// would name, or what does has too few values for the partitions.
    pub makeshift: bool,
    /// Number of partitions.
    pub partitions: u32,
    /// Reasons, the most important first.
    pub reasons: Vec<String>,
    /// Other keys that are a real choice.
    pub alternatives: Vec<Alternative>,
    /// Statements that create the table, or their clause on partitions.
    pub ddl: Option<String>,
    /// Language of the statements, as Markdown names it.
    #[serde(skip)]
    pub language: &'static str,
    /// Commands that create and fill it, in YDB and here.
    pub commands: Vec<String>,
}
