//! `evenkeel inspect`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::{Table, report};

use crate::cli::output::Format;
use crate::cli::{Failure, Output};

/// Show what a table is and holds: version, rows, keys, columns and partitions.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  evenkeel inspect events --format json")]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// How the result is printed.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let overview = Table::open(&args.dir).await?.inspect().await?;
    out.result(args.format, &overview, report::overview)
}
