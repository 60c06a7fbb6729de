//! `evenkeel repartition`.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args as ClapArgs};
use evenkeel::compact::{CompactionOptions, CompactionReport};
use evenkeel::repartition::MIN_MEMORY;
use evenkeel::repartition::RepartitionPlan;
use evenkeel::storage::TableStorage;
use evenkeel::table::{PlacementFunction, TableDefinition};
use evenkeel::units::{ByteSize, Version};
use evenkeel::{Table, report};
use serde::Serialize;

use crate::cli::compact::compact;
use crate::cli::output::Format;
use crate::cli::{Failure, Output, check_memory, open, partition_count, trimmed};

/// Rewrite a table into a new one with another partition key, number of partitions or placement.
///
/// Reports first how many rows and bytes move. The old table is not changed.
#[derive(Debug, ClapArgs)]
#[command(
    group(ArgGroup::new("where").args(["to", "dry_run"]).required(true).multiple(true)),
    after_help = "\
Examples:
  evenkeel repartition events --partitions 32 --dry-run
  evenkeel repartition events --partition-key user_id --partitions 64 --to events_by_user"
)]
pub(crate) struct Args {
    /// Directory of the table to read.
    dir: PathBuf,

    /// Columns of the new partition key, in hash order; must be part of the primary key [default:
    /// unchanged].
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    partition_key: Vec<String>,

    /// New number of partitions [default: unchanged].
    #[arg(long, conflicts_with = "nodes")]
    partitions: Option<u64>,

    /// Number of nodes; the table gets 4 partitions per node.
    #[arg(long)]
    nodes: Option<u64>,

    /// New placement function [default: unchanged].
    #[arg(long, value_name = "FUNCTION")]
    placement: Option<PlacementFunction>,

    /// Directory of the new table, such as events_by_user; created if it does not exist, and must
    /// be empty.
    #[arg(long, value_name = "NEW_DIR")]
    to: Option<PathBuf>,

    /// Report the rows that would move, and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// Version to read [default: the newest].
    #[arg(long = "version", value_name = "N")]
    at_version: Option<u64>,

    /// Memory budget of the program, such as 2GiB; at least 256MiB.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(super) memory: ByteSize,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Opens the directory of the new table, which must be empty or left by an earlier attempt that
/// died.
async fn new_place(to: &Path) -> Result<TableStorage, Failure> {
    let storage = TableStorage::create(to)?;
    if storage.is_empty().await? {
        return Ok(storage);
    }
    // The directory may hold a table without commits. Writing checks whether it is the same table.
    let earlier = Table::open(to).await.is_ok_and(|table| table.snapshot().version() == Version::FIRST);
    if earlier {
        Ok(storage)
    } else {
        Err(anyhow::anyhow!("{} is not empty; choose a new directory", to.display()).into())
    }
}

/// A rewritten table, or the outcome of a dry run.
#[derive(Debug, Serialize)]
struct Repartitioned {
    plan: RepartitionPlan,
    /// Directory of the new table; `None` if nothing was to be written.
    table: Option<PathBuf>,
    version: Option<Version>,
    compaction: Option<CompactionReport>,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    check_memory(args.memory, MIN_MEMORY)?;
    let partitions = partition_count(args.partitions, args.nodes)?;
    let change = |definition: &mut TableDefinition| {
        if !args.partition_key.is_empty() {
            definition.partition_key = trimmed(&args.partition_key);
        }
        definition.partitions = partitions.unwrap_or(definition.partitions);
        definition.placement = args.placement.unwrap_or(definition.placement);
    };
    let table = open(&args.dir, args.at_version).await?;
    // Check that the new table can be written before anything is counted.
    let into = match args.to.as_ref().filter(|_| !args.dry_run) {
        Some(to) => Some(new_place(to).await?),
        None => None,
    };
    let bar = out.progress(None, "rows counted");
    let plan = table.plan_repartition(change, &|rows| bar.set_position(rows)).await;
    bar.finish_and_clear();
    let plan = plan?;
    let (Some(into), Some(to)) = (into, args.to) else {
        let planned = Repartitioned { plan, table: None, version: None, compaction: None };
        return out.result(args.format, &planned, |planned, layout| {
            report::repartition_plan(&planned.plan, layout)
        });
    };
    if let Some(layout) = args.format.layout() {
        out.text(&report::repartition_plan(&plan, layout))?;
    }
    let interrupt = out.interrupt();
    let bar = out.progress(Some(plan.rows), "rows");
    let written =
        table.repartition(&plan, into, args.memory, &interrupt, &|rows| bar.set_position(rows)).await;
    bar.finish_and_clear();
    let mut written = written?;
    // The new table has all rows of the old one; the next compaction drops expired rows.
    let now = Some(i64::MIN);
    let options = CompactionOptions { memory: args.memory, interrupt, now, ..CompactionOptions::default() };
    let compaction = match compact(&mut written, &options, out).await {
        Ok(report) => Some(report),
        Err(error) => {
            out.note(&format!("the new table is complete, but not compacted: {error}"));
            None
        }
    };
    let done =
        Repartitioned { plan, version: Some(written.snapshot().version()), table: Some(to), compaction };
    out.result(args.format, &done, |done, _| {
        let place = done.table.as_ref().map(|place| place.display().to_string()).unwrap_or_default();
        let version = done.version.unwrap_or_default();
        let portions = written.snapshot().portion_count() as u64;
        format!(
            "\n{place}: version {version}, {} in {}; {} is unchanged\n",
            report::counted(done.plan.rows, "row"),
            report::counted(portions, "portion"),
            args.dir.display(),
        )
    })
}
