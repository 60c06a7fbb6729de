//! `evenkeel compact`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::compact::{CompactionOptions, CompactionPolicy, CompactionReport, MIN_MEMORY, Scope};
use evenkeel::units::ByteSize;
use evenkeel::{Table, TableError, report};

use crate::cli::output::Format;
use crate::cli::{Failure, Output, check_memory};

/// Merge portions, remove superseded rows, and drop expired rows.
///
/// Without --full, compaction does only what pays off: it merges portions if more than --max-depth
/// of them overlap, or if many small ones are adjacent. Ingests and queries continue meanwhile.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  evenkeel compact events\n  evenkeel compact events --full --memory 2GiB"
)]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// Merge everything into one sorted run per partition.
    #[arg(long)]
    full: bool,

    /// Maximum number of portions that may overlap at one key.
    #[arg(long, value_name = "COUNT", default_value_t = CompactionPolicy::default().max_depth)]
    max_depth: usize,

    /// Size of a merged portion.
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    target: ByteSize,

    /// Memory budget of the program; at least 128MiB.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(super) memory: ByteSize,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    check_memory(args.memory, MIN_MEMORY)?;
    if args.max_depth == 0 || args.target.0 == 0 {
        return Err(Failure::wrong_usage("--max-depth and --target must be at least 1"));
    }
    let mut table = Table::open(&args.dir).await?;
    let options = CompactionOptions {
        policy: CompactionPolicy {
            max_depth: args.max_depth,
            target: args.target,
            ..CompactionPolicy::default()
        },
        scope: if args.full { Scope::Everything } else { Scope::Policy },
        memory: args.memory,
        interrupt: out.interrupt(),
        now: None,
    };
    let report = compact(&mut table, &options, out).await?;
    out.result(args.format, &report, report::compaction)
}

/// Compacts a table and shows a progress bar.
pub(super) async fn compact(
    table: &mut Table,
    options: &CompactionOptions,
    out: &Output,
) -> Result<CompactionReport, TableError> {
    let bar = out.progress(None, "rows merged");
    let report = table
        .compact(options, &|progress| {
            bar.set_position(progress.rows);
            bar.set_message(format!("{} of {} merges", progress.merged, progress.merges));
        })
        .await;
    bar.finish_and_clear();
    report
}
