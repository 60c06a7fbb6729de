//! What all placements of a report have in common.

use std::collections::HashMap;

use crate::evaluate::figures::interval::Drawn;
use evenkeel_model::units::Micros;
use evenkeel_stats::sketch::DistinctKeys;
use evenkeel_stats::skew::KeyWeights;
use evenkeel_stats::windows::MomentAxis;

/// What the placements of one key share.
pub(super) struct KeyContext<'a> {
    pub(crate) weights: &'a KeyWeights,
    pub(crate) distinct: DistinctKeys,
    /// Whether the weights are counted, not estimated.
    pub(crate) exact: bool,
}

/// Where a counter's figures come from.
#[derive(Clone, Copy)]
pub(crate) struct ReportContext<'a> {
    /// The length of windows for each number of partitions, where there is time.
    pub(crate) windows: &'a HashMap<usize, Micros>,
    /// Whether that length was asked for.
    pub(crate) window_is_asked: bool,
    /// The short windows, where there is time.
    pub(crate) moments: Option<&'a MomentAxis>,
    pub(crate) batch_rows: u64,
    pub(crate) partition_rate: f64,
    pub(crate) weights: &'a [f64],
    /// The sample that was counted, if that is not all rows.
    pub(crate) sample: Option<Drawn>,
}
