//! `evenkeel spanner`.

mod access_log;
mod ddl;
mod migrate;
mod simulate;

use std::sync::atomic::AtomicBool;

use clap::{Args as ClapArgs, Subcommand};
use evenkeel::placement::PlacementError;
use evenkeel::source::{Export, SourceError};
use evenkeel::spanner::simulate::{
    KeyOrder, SimulateError, SimulateOptions, Simulation, simulate as replay, simulate_interleaved,
};
use indicatif::ProgressBar;

use crate::cli::{Failure, Output};

/// Model range splits of Spanner on an export, migrate generated keys, and write schemas.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Simulate(Box<simulate::Args>),
    Migrate(migrate::Args),
    Ddl(ddl::Args),
    AccessLog(access_log::Args),
}

/// Strategies of the guide.
const GUIDE: &str = "declared,swapped,desc,shard-16,generated-2048,bit-reversed,uuid4,uuid1,uuid7,hash-16";

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    match args.what {
        What::Simulate(args) => simulate::run(*args, out).await,
        What::Migrate(args) => migrate::run(args, out).await,
        What::Ddl(args) => ddl::run(args, out).await,
        What::AccessLog(args) => access_log::run(args, out).await,
    }
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    let number =
        text.replace('_', "").parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| "write a number above 0".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share >= 0.0 && share.is_finite());
    share.ok_or_else(|| "write a share such as 0.1".to_owned())
}

/// Children interleaved in a parent.
pub(super) struct Tree {
    export: Export,
    key: Vec<KeyOrder>,
    /// Name of the parent.
    parent: String,
}

/// Simulates in a thread that Ctrl-C stops.
pub(super) async fn in_background(
    export: Export,
    tree: Option<Tree>,
    options: SimulateOptions,
    out: &Output,
) -> Result<Simulation, Failure> {
    let work = move |bar: &ProgressBar, stop: &AtomicBool| {
        let progress = |rows| bar.set_position(rows);
        match &tree {
            None => replay(&export, &options, &progress, stop),
            Some(Tree { export: children, key, parent }) => {
                simulate_interleaved((&export, parent), (children, key), &options, &progress, stop)
            }
        }
    };
    out.in_background(work).await?.map_err(failure)
}

/// Classifies an error: wrong usage if the request cannot be met, else a failure.
fn failure(error: SimulateError) -> Failure {
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
