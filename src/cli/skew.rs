//! `evenkeel skew`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::report;

use crate::cli::output::Format;
use crate::cli::{Failure, Output, open};

/// Report how evenly rows are spread over partitions: by partition, by all common measures, and by
/// commit.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  evenkeel skew events --format json")]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// Version to read [default: the newest].
    #[arg(long = "version", value_name = "N")]
    at_version: Option<u64>,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let table = open(&args.dir, args.at_version).await?;
    let skew = table.skew().await.map_err(|error| Failure::from(error).with_hint_of_damage(&args.dir))?;
    out.result(args.format, &skew, report::skew)
}
