//! `evenkeel clean`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::maintenance::CleanOptions;
use evenkeel::units::Micros;
use evenkeel::{Table, report};

use crate::cli::output::Format;
use crate::cli::{Failure, Output};

/// Delete old versions, and files left behind by interrupted ingests and compactions.
///
/// Compaction leaves merged portions in place, because earlier versions and running queries need
/// them. A file that a kept version needs is never deleted. Commits that are older than a day and
/// precede the kept versions are dropped from the history, so inputs that they ingested are no
/// longer recognised.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  evenkeel clean events --keep 7d --dry-run\n  evenkeel clean events --keep 0s"
)]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// Keep versions that were the newest within this time; 0s keeps only the newest, and queries
    /// that run on older versions fail.
    #[arg(long, value_name = "LENGTH", default_value = "7d")]
    keep: String,

    /// Keep files that no commit refers to if they are younger than this. An ingest or compaction
    /// that takes longer fails.
    #[arg(long, value_name = "LENGTH", default_value = "1d")]
    unnamed: Micros,

    /// Report the files that would be deleted, and delete nothing.
    #[arg(long)]
    dry_run: bool,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let keep = match args.keep.trim() {
        "0" | "0us" | "0ms" | "0s" | "0m" | "0h" | "0d" => None,
        text => Some(text.parse().map_err(Failure::usage)?),
    };
    let options =
        CleanOptions { keep, unnamed_age: args.unnamed, dry_run: args.dry_run, ..CleanOptions::default() };
    let report = Table::open(&args.dir).await?.clean(&options).await?;
    out.result(args.format, &report, report::clean)
}
