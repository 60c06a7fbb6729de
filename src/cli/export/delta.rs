//! `evenkeel export delta`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::compact::{CompactionOptions, CompactionPolicy, CompactionReport, MIN_MEMORY};
use evenkeel::delta::{DeltaExport, DeltaOptions};
use evenkeel::units::ByteSize;
use evenkeel::{Table, report};
use serde::Serialize;

use crate::cli::compact::compact;
use crate::cli::output::Format;
use crate::cli::{Failure, Output, check_memory, trimmed};

/// Write a Delta log next to the files of a table, so that Spark, DuckDB, Polars and others can
/// read it. No data is copied.
///
/// The newest version becomes the next one of the Delta log in DIR/_delta_log. Its portions must
/// not overlap in keys, because readers of Delta would see superseded rows. Delta tools may read
/// the table, and refuse to write to it or to vacuum it.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  evenkeel export delta events --compact\n  evenkeel export delta events --without user_hash"
)]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// First merge portions that overlap in keys.
    #[arg(long)]
    compact: bool,

    /// Columns to leave out, such as a Uint64 with values beyond the largest integer of Delta.
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    without: Vec<String>,

    /// Memory budget of --compact; at least 128MiB.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    memory: ByteSize,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// An exported table.
#[derive(Debug, Serialize)]
struct Exported {
    /// Report of the compaction before the export; `None` if it was not requested.
    compaction: Option<CompactionReport>,
    #[serde(flatten)]
    export: DeltaExport,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    check_memory(args.memory, MIN_MEMORY)?;
    let mut table = Table::open(&args.dir).await?;
    let compaction = match args.compact {
        true => {
            let policy = CompactionPolicy { max_depth: 1, ..CompactionPolicy::default() };
            let interrupt = out.interrupt();
            let options =
                CompactionOptions { policy, memory: args.memory, interrupt, ..CompactionOptions::default() };
            Some(compact(&mut table, &options, out).await?)
        }
        false => None,
    };
    let options = DeltaOptions { without: trimmed(&args.without), now: None };
    let exported = Exported { compaction, export: table.export_delta(&options).await? };
    out.result(args.format, &exported, |exported, layout| {
        let merged = exported.compaction.as_ref().map(|report| report::compaction(report, layout));
        merged.unwrap_or_default() + &report::delta_export(&exported.export, layout)
    })
}
