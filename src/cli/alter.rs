//! `evenkeel alter`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::table::{TableDefinition, Ttl, write_create_table};
use evenkeel::units::Version;
use evenkeel::{Table, report};
use serde::Serialize;

use crate::cli::create::column;
use crate::cli::output::Format;
use crate::cli::{Failure, Output};

/// Add columns to a table, or change its time to live.
///
/// Nothing is rewritten: existing rows have NULL in a new column. Other changes need a new table;
/// to change the partition key or the number of partitions, see 'evenkeel repartition'.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel alter events --add-column country:utf8
  evenkeel alter events --ttl event_timestamp=30d")]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// Nullable column to add at the end, as name:type.
    #[arg(long, value_name = "NAME:TYPE")]
    add_column: Vec<String>,

    /// Keep rows for this long, by a time column of the primary key.
    #[arg(long, value_name = "COLUMN=LENGTH", conflicts_with = "no_ttl")]
    ttl: Option<Ttl>,

    /// Keep rows forever.
    #[arg(long)]
    no_ttl: bool,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// An altered table.
#[derive(Debug, Serialize)]
struct Altered {
    directory: PathBuf,
    version: Version,
    /// Whether anything was changed.
    changed: bool,
    /// Rows in fully expired portions; the next compaction drops them.
    rows_expired: u64,
    table: TableDefinition,
    ddl: String,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let columns =
        args.add_column.iter().map(|text| column("--add-column", text)).collect::<Result<Vec<_>, _>>()?;
    if columns.is_empty() && args.ttl.is_none() && !args.no_ttl {
        return Err(Failure::wrong_usage("no change given; pass --add-column, --ttl or --no-ttl"));
    }
    let mut table = Table::open(&args.dir).await?;
    table.refresh().await?;
    let before = table.snapshot().version();
    table
        .alter(|definition| {
            definition.columns.extend(columns.iter().cloned());
            if args.no_ttl || args.ttl.is_some() {
                definition.ttl.clone_from(&args.ttl);
            }
        })
        .await?;
    let altered = Altered {
        directory: args.dir,
        version: table.snapshot().version(),
        changed: table.snapshot().version() != before,
        rows_expired: table.expired_rows(),
        table: table.spec().definition().clone(),
        ddl: write_create_table(table.spec()),
    };
    out.result(args.format, &altered, |altered, _| {
        let mut text = match altered.changed {
            true => format!(
                "{} is altered, version {}:\n\n{}",
                altered.directory.display(),
                altered.version,
                altered.ddl
            ),
            false => format!(
                "{} already has this definition, version {}\n",
                altered.directory.display(),
                altered.version
            ),
        };
        if altered.rows_expired > 0 {
            let rows = report::counted(altered.rows_expired, "row");
            text.push_str(&format!("\nat least {rows} have expired; the next compaction removes them\n"));
        }
        text
    })
}
