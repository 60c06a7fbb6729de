//! `evenkeel ddl`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::Table;
use evenkeel::table::write_create_table;

use crate::cli::{Failure, Output};

/// Print the YQL that declares a table.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  evenkeel ddl events > events.sql")]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let table = Table::open(&args.dir).await?;
    out.text(&write_create_table(table.spec()))
}
