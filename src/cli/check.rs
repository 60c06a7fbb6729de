//! `evenkeel check`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::maintenance::TableCheck;
use evenkeel::{Table, report};

use crate::cli::output::Format;
use crate::cli::{Failure, Output, open};

/// Read every file of a table and compare it with its checksum.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Example:\n  evenkeel check events\n\nExit code 1 where a file is damaged. 'evenkeel query --skip-damaged' reads the rest."
)]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// The version to check [default: the newest].
    #[arg(long = "version", value_name = "N")]
    at_version: Option<u64>,

    /// How the result is printed.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let table = open(&args.dir, args.at_version).await?;
    let checked = check(&table, out).await;
    out.result(args.format, &checked, report::check)?;
    match checked.damaged.len() {
        0 => Ok(()),
        damaged => Err(anyhow::anyhow!(
            "{damaged} damaged; restore them from a copy. 'evenkeel query --skip-damaged' reads the rest"
        )
        .into()),
    }
}

/// Checks a table behind a progress bar.
pub(super) async fn check(table: &Table, out: &Output) -> TableCheck {
    let bytes: u64 = table.snapshot().portions().iter().map(|portion| portion.bytes).sum();
    let bar = out.progress(Some(bytes), "bytes checked");
    let checked = table.check(&|bytes| bar.set_position(bytes)).await;
    bar.finish_and_clear();
    checked
}
