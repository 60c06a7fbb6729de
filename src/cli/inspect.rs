//! `evenkeel inspect`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::report;

use crate::cli::output::Format;
use crate::cli::{Failure, Output, open};

/// Show the definition and contents of a table: version, rows, keys, columns and partitions.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  evenkeel inspect events --format json\n  evenkeel inspect events --history\n  evenkeel inspect events --files --format json"
)]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// Version to read [default: the newest].
    #[arg(long = "version", value_name = "N")]
    at_version: Option<u64>,

    /// List the commits instead.
    #[arg(long)]
    history: bool,

    /// List the files that a query reads instead, for programs that read Parquet.
    #[arg(long, conflicts_with = "history")]
    files: bool,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let table = open(&args.dir, args.at_version).await?;
    if args.history {
        return out.result(args.format, &table.history(), report::history);
    }
    if args.files {
        return out.result(args.format, &table.files(), report::files);
    }
    let overview =
        table.inspect().await.map_err(|error| Failure::from(error).with_hint_of_damage(&args.dir))?;
    out.result(args.format, &overview, report::overview)
}
