//! The load on the partitions of every key, window by window, from one pass over an export.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use crate::arrivals::Arrivals;
use crate::error::CapacityError;
use crate::result::NodeOptions;
use evenkeel_advisor::evaluate::{EvaluateError, EvaluateOptions, KeyLoads, Loads, count_loads};
use evenkeel_input::source::Export;
use evenkeel_model::units::{ByteSize, Micros, PartitionCount};
use evenkeel_stats::skew::KeyWeights;
use evenkeel_stats::throughput::{Concentration, DEFAULT_PARTITION_RATE};
use evenkeel_stats::windows::TimeRange;

/// Memory budget of the count; if it is below the minimum, this is added to the minimum.
const MEMORY: ByteSize = ByteSize::mib(1280);

/// Loads counted in one pass.
pub(super) struct LoadCount {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) unreadable_rows: u64,
    pub(super) without_time: u64,
    /// Time column; `None` if rows arrive at the requested rate.
    pub(super) time: Option<String>,
    pub(super) window: Micros,
    pub(super) range: TimeRange,
    pub(super) keys: Vec<CountedKey>,
}

/// Counts of one partition key.
pub(super) struct CountedKey {
    pub(super) weights: KeyWeights,
    /// Load on its partitions, for each partition count; each row counts for itself.
    pub(super) arrivals: BTreeMap<PartitionCount, Arrivals>,
    /// Concentration on the busiest partition, as an evaluation judges it.
    pub(super) concentrations: BTreeMap<PartitionCount, Concentration>,
}

/// Reads an export once. `progress` is called with the number of rows so far; `stop` aborts the
/// read.
pub(super) fn count(
    export: &Export,
    options: &NodeOptions,
    partitions: Vec<PartitionCount>,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<LoadCount, CapacityError> {
    let evaluate = EvaluateOptions {
        partition_keys: options.partition_keys.clone(),
        placements: vec![options.placement],
        partitions,
        time: options.time.clone(),
        window: options.window,
        partition_rate: DEFAULT_PARTITION_RATE,
        memory: MEMORY,
        ..EvaluateOptions::default()
    };
    let count = |memory: ByteSize| {
        let evaluate = EvaluateOptions { memory, ..evaluate.clone() };
        count_loads(export, evaluate, options.rate, options.on_unreadable, progress, stop)
    };
    let loads = match count(MEMORY) {
        // Such options are refused before the first row.
        Err(EvaluateError::Memory { least, .. }) => count(ByteSize(least.0.saturating_add(MEMORY.0)))?,
        counted => counted?,
    };
    counted(loads)
}

fn counted(loads: Loads) -> Result<LoadCount, CapacityError> {
    let window = loads.window;
    let of_key = |KeyLoads { report, weights, windows }: KeyLoads| {
        let mut concentrations = BTreeMap::new();
        for placement in &report.placements {
            let count = PartitionCount::new(placement.skew.partitions as u64);
            concentrations
                .insert(count.map_err(|_| CapacityError::Columns)?, placement.capacity.concentration);
        }
        let arrivals = windows.into_iter();
        let arrivals = arrivals.map(|(count, windows)| (count, Arrivals { window, scale: 1.0, windows }));
        Ok(CountedKey { weights, arrivals: arrivals.collect(), concentrations })
    };
    Ok(LoadCount {
        rows: loads.rows,
        bytes: loads.bytes,
        unreadable_rows: loads.unreadable.rows,
        without_time: loads.rows_without_time,
        time: loads.time,
        window,
        range: loads.time_range.ok_or(CapacityError::NoTimes)?,
        keys: loads.keys.into_iter().map(of_key).collect::<Result<_, CapacityError>>()?,
    })
}
