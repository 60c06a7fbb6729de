//! `evenkeel skew`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::{Table, report};

use crate::cli::output::Format;
use crate::cli::{Failure, Output};

/// Show how even a table is: per partition, by every usual figure, and commit by commit.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  evenkeel skew events --format json")]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// How the result is printed.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let skew = Table::open(&args.dir).await?.skew().await?;
    out.result(args.format, &skew, report::skew)
}
