//! `evenkeel delete`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::ingest::{IngestOptions, MIN_MEMORY};
use evenkeel::query::Params;
use evenkeel::units::{ByteSize, Version};
use evenkeel::{Table, TableError, report};
use serde::Serialize;

use crate::cli::limits::{LimitArgs, within};
use crate::cli::output::Format;
use crate::cli::tables::{ExportArgs, Tables};
use crate::cli::{Failure, Output, check_memory};

/// Delete the rows of a table that meet a condition, with a single commit.
///
/// Queries do not see them from then on. Their bytes stay in files until a compaction leaves them
/// out and a cleaning deletes the old files: 'evenkeel compact DIR --full', then 'evenkeel clean
/// DIR --keep 0s'. To delete rows by a file of primary keys, see 'evenkeel ingest --deletes'.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel delete events --where \"user_id = 'u600000007'\"
  evenkeel delete events --where 'event_timestamp < $before' --param before=2026-01-01T00:00:00Z --dry-run
  evenkeel delete events --where 'user_id IN (SELECT id FROM gone)' --table gone=gone.csv")]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// SQL condition, as after WHERE.
    #[arg(long = "where", value_name = "SQL", allow_hyphen_values = true)]
    condition: String,

    /// Another table that the condition reads, and its name: a directory of a table, or an export
    /// in any input format; repeatable.
    #[arg(long = "table", value_name = "NAME=PLACE")]
    tables: Vec<String>,

    #[command(flatten)]
    exports: ExportArgs,

    /// Value for $NAME in the condition, converted to the type that it needs.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,

    /// Count the rows, and delete nothing.
    #[arg(long)]
    dry_run: bool,

    /// Memory budget for writing the deletes; at least 128MiB.
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    write_memory: ByteSize,

    #[command(flatten)]
    limits: LimitArgs,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Result of a delete.
#[derive(Debug, Serialize)]
struct Deleted {
    /// Version that the delete made; `None` if there was nothing to delete, or in a dry run.
    version: Option<Version>,
    /// Rows that met the condition.
    rows: u64,
    dry_run: bool,
}

/// Converts a failure; wrong parameters are wrong usage.
fn failure(error: TableError) -> Failure {
    match error {
        TableError::Query(error) => Failure::from_query(error),
        error => error.into(),
    }
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    check_memory(args.write_memory, MIN_MEMORY)?;
    let limits = args.limits.limits()?;
    let params = Params::parse(&args.params).map_err(Failure::usage)?;
    let mut table = Table::open(&args.dir).await?;
    let others = Tables::beside(table.spec().name(), &args.tables, &args.exports, out).await?;
    let work = async {
        if args.dry_run {
            let counted = table.count_where(&others, &args.condition, &params, &limits).await;
            let rows = counted.map_err(failure)?;
            return Ok(Deleted { version: None, rows, dry_run: true });
        }
        let options = IngestOptions { memory: args.write_memory, ..IngestOptions::default() };
        let deleted = table.delete_where_beside(&others, &args.condition, &params, &limits, &options).await;
        let committed = deleted.map_err(failure)?;
        let rows = committed.as_ref().map_or(0, |committed| committed.rows);
        Ok(Deleted { version: committed.map(|committed| committed.version), rows, dry_run: false })
    };
    let deleted = within(&limits, work).await.map_err(|failure| failure.with_hint_of_damage(&args.dir))?;
    out.result(args.format, &deleted, |deleted, _| {
        let rows = report::counted(deleted.rows, "row");
        match deleted.version {
            Some(version) => format!("version {version}: {rows} deleted\n"),
            None if deleted.dry_run => format!("{rows} would be deleted\n"),
            None => "no row meets the condition; nothing was committed\n".to_owned(),
        }
    })
}
