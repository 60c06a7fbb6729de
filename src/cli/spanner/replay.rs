//! Replay of an export in the background.

use std::sync::atomic::AtomicBool;

use evenkeel::placement::PlacementError;
use evenkeel::source::{Export, SourceError};
use evenkeel::spanner::simulate::{
    KeyOrder, SimulateError, SimulateOptions, Simulation, simulate, simulate_interleaved,
};
use indicatif::ProgressBar;

use crate::cli::{Failure, Output};

/// Strategies of the guide.
pub(super) const GUIDE: &str =
    "declared,swapped,desc,shard-16,generated-2048,bit-reversed,uuid4,uuid1,uuid7,hash-16";

/// Children interleaved in a parent, with their key.
pub(super) struct Tree {
    pub(super) export: Export,
    pub(super) key: Vec<KeyOrder>,
    /// Name of the parent.
    pub(super) parent: String,
}

/// Simulates in a thread that Ctrl-C stops.
pub(super) async fn in_background(
    export: Export,
    tree: Option<Tree>,
    options: SimulateOptions,
    out: &Output,
) -> Result<Simulation, Failure> {
    // The rows of two exports are read alternately.
    let reading = if tree.is_none() { export.reading() } else { None };
    let work = move |bar: &ProgressBar, stop: &AtomicBool| {
        let progress = |rows| bar.set_position(rows);
        match &tree {
            None => simulate(&export, &options, &progress, stop),
            Some(Tree { export: children, key, parent }) => {
                simulate_interleaved((&export, parent), (children, key), &options, &progress, stop)
            }
        }
    };
    out.in_background(reading, work).await?.map_err(failure)
}

/// Classifies an error: wrong usage if the request cannot be met, else a failure.
pub(super) fn failure(error: SimulateError) -> Failure {
    match error {
        error @ (SimulateError::UnknownColumn { .. }
        | SimulateError::KeyType { .. }
        | SimulateError::Repeated { .. }
        | SimulateError::RepeatedIndex { .. }
        | SimulateError::ChildKey { .. }
        | SimulateError::Unsuited { .. }
        | SimulateError::NoClock
        | SimulateError::Source(SourceError::NoSuchColumn { .. })
        | SimulateError::Placement(PlacementError::System { .. } | PlacementError::CloudLogsKey)
        | SimulateError::Time { .. }) => Failure::usage(error),
        other => other.into(),
    }
}
