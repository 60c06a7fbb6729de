//! `evenkeel bench`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use clap::{Args as ClapArgs, Subcommand};
use evenkeel::Table;
use evenkeel::bench::{
    BenchOptions, IngestBench, Limits, bench_ingest, bench_query, ingest_table, query_table,
};
use evenkeel::evaluate::Candidate;
use evenkeel::generate::AdEvents;
use evenkeel::query::{Params, QueryLimits};
use evenkeel::sink::OutputFormat;
use evenkeel::source::{Export, InputOptions, InputPath};
use evenkeel::units::{ByteSize, PartitionCount};
use serde::Serialize;

use crate::cli::input::{ReadingArgs, open_export};
use crate::cli::limits::{LimitArgs, within};
use crate::cli::local_path::LocalPath;
use crate::cli::output::Format;
use crate::cli::query::{no_file, params_of, sql_of_file, uses};
use crate::cli::scenario::{Answer, KEYS, QUERIES, answer, answered, busiest_user};
use crate::cli::tables::TablesArgs;
use crate::cli::workplace::Workplace;
use crate::cli::{Failure, Output};

/// Measure how evenly a real ingest spreads rows under each partition key, or how long queries
/// take.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ingest(IngestArgs),
    AdEvents(AdEventsArgs),
    Queries(QueriesArgs),
}

/// Ingest an export batch by batch, into one table for each partition key in turn, and measure.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  evenkeel bench ingest data/nycflights13-flights.parquet \\
      --primary-key time_hour,carrier,flight --partition-key carrier \\
      --partition-key flight --partition-key 'date(time_hour)' \\
      --nodes 4 --batch 20000")]
pub(crate) struct IngestArgs {
    /// Files, folders, glob patterns, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<String>,

    /// Partition key to measure: columns, date(column), hour(column) or trunc(column, 5m);
    /// repeatable.
    #[arg(long = "partition-key", value_name = "COLUMNS", required = true)]
    partition_keys: Vec<Candidate>,

    /// Primary key of the tables; a partition key that it lacks is appended.
    #[arg(long, value_name = "COLUMNS")]
    primary_key: Candidate,

    #[command(flatten)]
    load: LoadArgs,

    #[command(flatten)]
    input: ReadingArgs,
}

/// Generate ad events, measure their ingest under the keys compared in the YDB documentation, and
/// run the queries of the scenario.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  evenkeel bench ad-events --rows 2000000 --nodes 4")]
pub(crate) struct AdEventsArgs {
    /// Number of events.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,

    /// Random seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    load: LoadArgs,
}

/// Run queries several times each and time them, not counting the time to open the table.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel bench queries events 'SELECT user_id, count(*) FROM t GROUP BY user_id'
  evenkeel bench queries events -f queries/clicks_of_campaign.sql \\
      -f queries/clicks_per_campaign.sql --param campaign=1

$now is by default the newest event in the tables.")]
pub(crate) struct QueriesArgs {
    #[command(flatten)]
    tables: TablesArgs,

    /// Queries, in addition to those of -f.
    #[arg(value_name = "SQL")]
    queries: Vec<String>,

    /// Query to run; repeatable.
    #[arg(short = 'c', long = "command", value_name = "SQL", allow_hyphen_values = true)]
    commands: Vec<String>,

    /// File with a query; repeatable.
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    files: Vec<LocalPath>,

    /// Value for $NAME in the queries that use it.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,

    /// Number of timed runs of each query, after a first run that is not counted.
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    #[command(flatten)]
    limits: LimitArgs,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Offered load, and the capacities to compare it with.
#[derive(Debug, Clone, ClapArgs)]
struct LoadArgs {
    /// Number of partitions [default: 4 for each node].
    #[arg(long)]
    partitions: Option<u64>,

    /// Number of nodes; the partitions of a node share its capacity [default: 16 partitions, each
    /// with its own capacity].
    #[arg(long)]
    nodes: Option<u64>,

    /// Rows per batch; each batch is one commit.
    #[arg(long, value_name = "ROWS", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,

    /// Rows offered per second, or max.
    #[arg(long, value_name = "max|ROWS", default_value = "max", value_parser = rate)]
    rate: Rate,

    /// Insert capacity of one partition, in bytes of values per second.
    #[arg(long, value_name = "BYTES", default_value = "1MB")]
    partition_rate: ByteSize,

    /// Memory budget of an ingest.
    #[arg(long, default_value = "1GiB")]
    memory: ByteSize,

    /// Directory for the tables, which are kept; it must be empty or new [default: a temporary
    /// directory, removed at the end].
    #[arg(long, value_name = "DIR")]
    dir: Option<LocalPath>,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Offered rate, in rows per second.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rate {
    Max,
    RowsPerSecond(f64),
}

fn rate(text: &str) -> Result<Rate, String> {
    if text.eq_ignore_ascii_case("max") {
        return Ok(Rate::Max);
    }
    let rows = text.replace('_', "").parse::<f64>().ok().filter(|rows| *rows > 0.0 && rows.is_finite());
    rows.map(Rate::RowsPerSecond).ok_or_else(|| "write max, or a number of rows per second".to_owned())
}

/// Result of the scenario: its ingest, and its queries on each table.
#[derive(Debug, Serialize)]
struct Scenario {
    ingest: IngestBench,
    queries: Vec<QueriesOfKey>,
}

/// Queries on one table.
#[derive(Debug, Serialize)]
struct QueriesOfKey {
    partition_key: Vec<String>,
    answers: Vec<Answer>,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    match args.command {
        Command::Ingest(args) => run_ingest(args, out).await,
        Command::AdEvents(args) => run_ad_events(args, out).await,
        Command::Queries(args) => run_queries(args, out).await,
    }
}

async fn run_ingest(args: IngestArgs, out: &mut Output) -> Result<(), Failure> {
    let (inputs, options) = args.input.find(&args.inputs, out)?;
    let export = open_export(inputs.paths, options, BTreeMap::new()).await?;
    let workplace = Workplace::open(args.load.dir.as_deref())?;
    let bench =
        measure(&args.load, args.partition_keys, args.primary_key, export, workplace.path(), out).await?;
    out.result(args.load.format, &bench, ingest_table)
}

async fn run_ad_events(args: AdEventsArgs, out: &mut Output) -> Result<(), Failure> {
    let workplace = Workplace::open(args.load.dir.as_deref())?;
    let exports = workplace.path().join("exports");
    let events = AdEvents { rows: args.rows, seed: args.seed, ..AdEvents::default() };
    let files = events.write_files(&exports, OutputFormat::Parquet, args.rows, &|_| {})?;
    let export = open_export(
        files.into_iter().map(InputPath::File).collect(),
        InputOptions::default(),
        BTreeMap::new(),
    )
    .await?;
    let keys = KEYS.iter().map(|key| key.parse()).collect::<Result<Vec<Candidate>, _>>()?;
    let primary_key = "event_timestamp, user_id, campaign_id".parse()?;
    let ingest = measure(&args.load, keys, primary_key, export, workplace.path(), out).await?;
    let mut queries = Vec::new();
    for (number, key) in ingest.keys.iter().enumerate() {
        let table = Table::open(workplace.path().join(format!("table-{number}"))).await?;
        let session = table.session()?;
        let user = busiest_user(&session).await?;
        let mut answers = Vec::new();
        for (title, sql) in QUERIES {
            answers.push(answer(&session, title, sql, &user).await?);
        }
        queries.push(QueriesOfKey { partition_key: key.partition_key.clone(), answers });
    }
    let scenario = Scenario { ingest, queries };
    out.result(args.load.format, &scenario, |scenario, layout| {
        let mut text = ingest_table(&scenario.ingest, layout);
        for key in &scenario.queries {
            text.push_str(&format!(
                "\nqueries on HASH({}), before compaction\n",
                key.partition_key.join(", ")
            ));
            key.answers.iter().for_each(|answer| text.push_str(&answered(answer)));
        }
        text
    })
}

async fn run_queries(args: QueriesArgs, out: &mut Output) -> Result<(), Failure> {
    let limits = args.limits.limits()?;
    // The timeout applies to each run of a query, not to the process.
    let of_process = QueryLimits { timeout: None, ..limits.clone() };
    within(&of_process, time_queries(args, &limits, out)).await
}

async fn time_queries(mut args: QueriesArgs, limits: &QueryLimits, out: &mut Output) -> Result<(), Failure> {
    if let Some(sql) = args.tables.take_query() {
        args.queries.insert(0, sql);
    }
    Params::parse(&args.params).map_err(Failure::usage)?;
    let mut queries = Vec::new();
    for path in &args.files {
        queries.push((path.display().to_string(), sql_of_file(path)?));
    }
    for sql in args.queries.into_iter().chain(args.commands) {
        no_file(&sql)?;
        queries.push((sql.clone(), sql));
    }
    if queries.is_empty() {
        return Err(Failure::wrong_usage("no queries given; pass them after the table, or with -f FILE"));
    }
    let is_used = |param: &&String| queries.iter().any(|(_, sql)| uses(sql, param));
    if let Some(unused) = args.params.iter().find(|param| !is_used(param)) {
        return Err(Failure::wrong_usage(format!("no query uses the parameter of --param {unused}")));
    }
    let tables = args.tables.open(&[], out).await?;
    let session = tables.session_with(limits)?;
    let mut planned = Vec::new();
    let several = queries.len() > 1;
    for (name, sql) in &queries {
        let own: Vec<String> = params_of(sql, &args.params).cloned().collect();
        let params = Params::parse(&own).map_err(Failure::usage)?;
        // Report queries that cannot be planned before timing any.
        session.explain(sql, &params).await.map_err(|error| match several {
            true => anyhow::anyhow!("{name}: {error}"),
            false => error.into(),
        })?;
        planned.push((name, sql, params));
    }
    let mut benches = Vec::new();
    for (name, sql, params) in planned {
        let bench = bench_query(&session, name, sql, &params, args.runs).await;
        benches.push(bench.map_err(|error| anyhow::anyhow!("{name}: {error}"))?);
    }
    out.result(args.format, &benches, |benches, layout| query_table(benches, layout))
}

async fn measure(
    load: &LoadArgs,
    partition_keys: Vec<Candidate>,
    primary_key: Candidate,
    export: Arc<Export>,
    folder: &Path,
    out: &Output,
) -> Result<IngestBench, Failure> {
    let partitions = match (load.partitions, load.nodes) {
        (Some(partitions), _) => PartitionCount::new(partitions),
        (None, nodes) => PartitionCount::for_nodes(nodes.unwrap_or(4)),
    };
    let options = BenchOptions {
        partition_keys,
        primary_key,
        partitions: partitions.map_err(Failure::usage)?,
        batch_rows: load.batch,
        rows_per_second: match load.rate {
            Rate::Max => None,
            Rate::RowsPerSecond(rows) => Some(rows),
        },
        limits: Limits {
            partition_rate: load.partition_rate.0 as f64,
            nodes: load.nodes.map(usize::try_from).transpose()?,
        },
        memory: load.memory,
    };
    let bar = out.progress_of(export.reading());
    let bench = bench_ingest(export, &options, folder, &|rows| bar.set_position(rows)).await;
    bar.finish_and_clear();
    Ok(bench?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_max_or_a_number_above_0() {
        assert_eq!(rate("MAX"), Ok(Rate::Max));
        assert_eq!(rate("50_000"), Ok(Rate::RowsPerSecond(50_000.0)));
        for wrong in ["0", "-1", "inf", "NaN", "", "fast"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_query_has_the_parameters_that_it_names() {
        let params = ["campaign=1".to_owned(), "now=2026-01-01T00:00:00Z".to_owned()];
        let names = |sql: &str| params_of(sql, &params).cloned().collect::<Vec<_>>();
        assert_eq!(names("SELECT $campaign"), params[..1]);
        assert!(names("SELECT $campaign_id, $nowadays").is_empty());
        assert_eq!(names("SELECT $campaign, $now"), params);
        assert!(names("SELECT campaign").is_empty());
    }
}
