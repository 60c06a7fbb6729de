//! `evenkeel ddl`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::Table;
use evenkeel::table::{YdbVersion, write_create_table_for};

use crate::cli::{Failure, Output};

/// Print the YQL statement that declares a table.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  evenkeel ddl events > events.sql

'evenkeel spanner ddl' prints the statements for Spanner.")]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// YDB version that the YQL is for. Types that its column tables do not support are replaced by
    /// the nearest, with a note (docs/YDB_TYPES.md) [default: 26.2].
    #[arg(long, value_name = "VERSION")]
    ydb_version: Option<YdbVersion>,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let table = Table::open(&args.dir).await?;
    let statement = write_create_table_for(table.spec(), args.ydb_version.unwrap_or_default())?;
    statement.notes.iter().for_each(|note| out.note(note));
    out.text(&statement.text)
}
