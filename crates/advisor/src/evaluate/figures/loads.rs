//! Load on partitions over time.

use std::collections::BTreeMap;

use crate::evaluate::figures::partition_key::PartitionKeyReport;
use evenkeel_input::source::Unreadable;
use evenkeel_model::units::{Micros, PartitionCount};
use evenkeel_stats::skew::KeyWeights;
use evenkeel_stats::windows::TimeRange;

/// A window of time and the load on each partition in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadWindow {
    /// Start of the window, in microseconds since 1970.
    pub start_micros: i64,
    /// Number of rows of each partition.
    pub rows: Vec<u64>,
    /// Bytes of the values of these rows.
    pub bytes: Vec<u64>,
}

/// Load on the partitions of several keys.
#[derive(Debug)]
pub struct Loads {
    /// Number of rows counted.
    pub rows: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Rows without a time, which are in no window.
    pub rows_without_time: u64,
    /// Time column; `None` if rows arrive at a given rate.
    pub time: Option<String>,
    /// Times of the rows; `None` if no row has one.
    pub time_range: Option<TimeRange>,
    /// Length of a window.
    pub window: Micros,
    /// Each partition key, in the order of the options.
    pub keys: Vec<KeyLoads>,
    /// Rows that were left out.
    pub unreadable: Unreadable,
}

/// Load on the partitions of one key.
#[derive(Debug)]
pub struct KeyLoads {
    /// Figures of the key over the whole time.
    pub report: PartitionKeyReport,
    /// Numbers of rows of its distinct values.
    pub weights: KeyWeights,
    /// Windows that have rows, in order, for each number of partitions.
    pub windows: BTreeMap<PartitionCount, Vec<LoadWindow>>,
}
