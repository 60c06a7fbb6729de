//! `evenkeel check`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::maintenance::{CheckScope, TableCheck};
use evenkeel::{Table, TableError, report};

use crate::cli::output::Format;
use crate::cli::{Failure, Output, open};

/// Verify the files of a table against their checksums: the whole log, and the portions of one
/// version.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Example:\n  evenkeel check events --all\n\nExit code 1 if a file is damaged. 'evenkeel \
        query --skip-damaged' reads the rest."
)]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// Version to check [default: the newest].
    #[arg(long = "version", value_name = "N")]
    at_version: Option<u64>,

    /// Check the portions of every readable version.
    #[arg(long)]
    all: bool,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let table = open(&args.dir, args.at_version).await?;
    let scope = if args.all { CheckScope::EveryVersion } else { CheckScope::OneVersion };
    let checked = check(&table, scope, out).await?;
    out.result(args.format, &checked, report::check)?;
    let damaged = checked.damaged.len() + checked.damaged_log.len();
    match damaged {
        0 => Ok(()),
        _ => Err(anyhow::anyhow!(
            "{}: {} damaged. Restore from a copy; without one, 'evenkeel query --skip-damaged' reads the \
                rest; with -c 'SELECT * FROM t' --output rows.parquet it writes the rest to a file for a new table",
            args.dir.display(),
            report::counted(damaged as u64, "file")
        )
        .into()),
    }
}

/// Checks a table and shows a progress bar.
pub(super) async fn check(table: &Table, scope: CheckScope, out: &Output) -> Result<TableCheck, TableError> {
    let bar = out.progress(None, "bytes checked");
    let checked = table.check(scope, &|bytes| bar.set_position(bytes)).await;
    bar.finish_and_clear();
    checked
}
