//! Data that all placements of a report share.

use std::collections::HashMap;

use crate::evaluate::figures::interval::SampleSize;
use evenkeel_model::units::Micros;
use evenkeel_stats::sketch::DistinctKeys;
use evenkeel_stats::skew::KeyWeights;
use evenkeel_stats::windows::MomentAxis;

/// Data that the placements of one key share.
pub(super) struct KeyContext<'a> {
    pub(crate) weights: &'a KeyWeights,
    pub(crate) distinct: DistinctKeys,
    /// Whether the weights are counted, not estimated.
    pub(crate) exact: bool,
}

/// Context in which a counter computes its figures.
#[derive(Clone, Copy)]
pub(crate) struct ReportContext<'a> {
    /// Length of windows for each number of partitions; empty without time.
    pub(crate) windows: &'a HashMap<usize, Micros>,
    /// Whether that length was requested.
    pub(crate) window_is_requested: bool,
    /// Short windows; `None` without time.
    pub(crate) moments: Option<&'a MomentAxis>,
    pub(crate) batch_rows: u64,
    pub(crate) partition_rate: f64,
    pub(crate) weights: &'a [f64],
    /// Sample that was counted; `None` if it is all rows.
    pub(crate) sample: Option<SampleSize>,
}
