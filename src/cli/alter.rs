//! `evenkeel alter`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::Table;
use evenkeel::table::{Ttl, write_create_table};

use crate::cli::create::column;
use crate::cli::{Failure, Output};

/// Add columns to a table, or change how long rows are kept.
///
/// Nothing is rewritten: rows that are there already have NULL in a new column. Other changes need a new table; for another
/// partition key or number of partitions see 'evenkeel repartition'.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel alter events --add-column country:utf8
  evenkeel alter events --ttl event_timestamp=30d")]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// Column to add at the end, as name:type; it takes NULL.
    #[arg(long, value_name = "NAME:TYPE")]
    add_column: Vec<String>,

    /// Keep rows so long, by a time column of the primary key.
    #[arg(long, value_name = "COLUMN=LENGTH", conflicts_with = "no_ttl")]
    ttl: Option<Ttl>,

    /// Keep rows for ever.
    #[arg(long)]
    no_ttl: bool,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let columns =
        args.add_column.iter().map(|text| column("--add-column", text)).collect::<Result<Vec<_>, _>>()?;
    if columns.is_empty() && args.ttl.is_none() && !args.no_ttl {
        return Err(Failure::wrong_usage("what should change? Give --add-column, --ttl or --no-ttl"));
    }
    let mut table = Table::open(&args.dir).await?;
    table
        .alter(|definition| {
            definition.columns.extend(columns.iter().cloned());
            if args.no_ttl || args.ttl.is_some() {
                definition.ttl.clone_from(&args.ttl);
            }
        })
        .await?;
    let (version, ddl) = (table.snapshot().version(), write_create_table(table.spec()));
    out.text(&format!("{}, version {version}:\n\n{ddl}", args.dir.display()))
}
