//! `evenkeel evaluate`.

mod assessing;
mod inputs;
mod plan;
mod profiles;
mod tables;
mod thresholds;
mod workload;

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::time::Instant;

use clap::{Args as ClapArgs, ValueEnum};
use evenkeel::bounded::{BASELINE, quote, read_text};
use evenkeel::evaluate::{
    AdvisorOptions, AdvisorReport, Candidate, DEFAULT_PROFILE_BYTES, Drift, Profile, Role, RoleError,
    Threshold, compare, read_partition_stats,
};
use evenkeel::report::{self, Layout};
use evenkeel::source::{Export, InputOptions};
use evenkeel::table::{ColumnType, YdbVersion};
use evenkeel::targets::Target;
use evenkeel::units::{ByteSize, Micros};
use serde::Serialize;
use serde_json::Value;

pub(crate) use crate::cli::evaluate::assessing::failure;
use crate::cli::evaluate::assessing::{Assessing, Work, assess_in_background};
use crate::cli::evaluate::inputs::open_inputs;
use crate::cli::evaluate::plan::Placements;
use crate::cli::evaluate::workload::statements;
use crate::cli::html_file;
use crate::cli::input::ReadingArgs;
use crate::cli::local_path::LocalPath;
use crate::cli::output::Format;
use crate::cli::workers::WorkerArgs;
use crate::cli::{Failure, Output};

/// Handling of rows that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum OnError {
    /// Fail at the first one.
    #[default]
    Fail,
    /// Skip and count them.
    Skip,
}

/// Find the partition key, primary key and number of partitions that suit an export, before any
/// table exists.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel evaluate data/nycflights13-flights.parquet
  evenkeel evaluate exports --partition-key user_id \\
      --partition-key 'date(event_timestamp)' \\
      --primary-key event_timestamp,user_id,campaign_id \\
      --nodes 4,16 --queries queries --html report.html
  evenkeel evaluate exports --partition-key user_id --partitions 64 \\
      --fail-on 'max_over_mean>1.2'
  evenkeel evaluate orders.csv --target clickhouse
  evenkeel evaluate orders.parquet lines.parquet --join orders.id=lines.order_id
  evenkeel evaluate exports/monday --save monday.ek
  evenkeel evaluate --merge monday.ek tuesday.ek

A column whose name has brackets or commas stands in quotes: '\"price (EUR)\",day'.")]
pub(crate) struct Args {
    /// Files, folders, glob patterns, or - for standard input.
    #[arg(required_unless_present = "merge", value_name = "FILE")]
    inputs: Vec<String>,

    /// Candidate for the partition key: columns, date(column), hour(column) or trunc(column, 5m),
    /// separated by commas; repeatable [default: found from the data].
    #[arg(long = "partition-key", value_name = "COLUMNS")]
    partition_keys: Vec<Candidate>,

    /// Candidate for the primary key, in the same form; repeatable [default: found from the data].
    #[arg(long = "primary-key", value_name = "COLUMNS")]
    primary_keys: Vec<Candidate>,

    /// Judge only partition keys, without looking for a primary key: faster, but reports nothing
    /// about duplicates and order.
    #[arg(long, conflicts_with = "primary_keys")]
    no_primary_keys: bool,

    /// Columns by which two of the tables are joined, such as orders.id=lines.order_id; repeatable.
    /// Each input is then a table of its own [default: if the columns of the inputs differ, joins
    /// are found from names and values].
    #[arg(long = "join", value_name = "TABLE.COLUMN=TABLE.COLUMN")]
    joins: Vec<String>,

    /// Partition counts to try.
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", conflicts_with = "nodes")]
    partitions: Vec<u64>,

    /// Node counts to try; a table gets 4 partitions per node [default: 4,16,32].
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    nodes: Vec<u64>,

    /// Placement functions, separated by commas; repeatable: ydb, ydb-modulo, ydb-cloud-logs or
    /// ydb-cloud-logs:ACTIVE:SECONDS, that of another system (see 'evenkeel place --list'), or all.
    /// The first one decides [default: that of the target].
    #[arg(long = "placement", value_delimiter = ',', value_name = "FUNCTIONS")]
    placements: Vec<Placements>,

    /// Weights of unequal nodes, such as 1,1,2: partitions are assigned to the nodes in turn, and
    /// each node is compared with its share. Choose a number of partitions that is a multiple of
    /// the sum of the weights.
    #[arg(long, value_delimiter = ',', value_name = "WEIGHTS", value_parser = weight)]
    weights: Vec<f64>,

    /// Date or time column along which to look for hotspots [default: the only column of points in
    /// time, else the only date column].
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,

    /// Length of a window of time, such as 30s, 5m or 1h [default: one that gives 200 to 500
    /// windows, fewer if there are few rows].
    #[arg(long, value_name = "LENGTH")]
    window: Option<Micros>,

    /// Folder of .sql files, or a single one, with the statements that the table is to serve,
    /// whatever they call it. Or a query log with the number of runs, as CSV, NDJSON or Parquet:
    /// YDB query_metrics_one_minute, pg_stat_statements, ClickHouse query_log, Spanner QUERY_STATS.
    #[arg(long, value_name = "PATH")]
    queries: Option<LocalPath>,

    /// Value of a parameter of the statements, as name=value; the others get a placeholder that
    /// stands for any value.
    #[arg(long = "param", value_name = "NAME=VALUE", requires = "queries")]
    params: Vec<String>,

    /// Partition key that the table has now: it is judged beside the others.
    #[arg(long, value_name = "COLUMNS")]
    current: Option<Candidate>,

    /// Role of a column as name=role, if the inferred one is wrong: entity, row-id, time,
    /// dimension, measure, text, line-number or constant; repeatable.
    #[arg(long = "role", value_name = "COLUMN=ROLE", value_parser = role)]
    roles: Vec<(String, Role)>,

    /// Columns that must not be in a key, such as comments and amounts, separated by commas;
    /// repeatable. The same as the role measure.
    #[arg(long = "not-key", value_name = "COLUMNS", value_delimiter = ',')]
    not_key: Vec<String>,

    /// Type of a column as name:type, if the detected type is not that of the table; repeatable.
    /// The width of a type changes the hash.
    #[arg(long = "type", value_name = "COLUMN:TYPE")]
    types: Vec<String>,

    /// Insert rate that the table must sustain, in bytes per second, such as 20MB [default: the
    /// rate of the export over the time it spans].
    #[arg(long, value_name = "BYTES")]
    ingest_rate: Option<ByteSize>,

    /// Insert capacity of one partition, in bytes per second.
    #[arg(long, value_name = "BYTES", default_value = "1MB")]
    partition_rate: ByteSize,

    /// Rows per batch of the simulated ingest.
    #[arg(long, value_name = "ROWS", default_value_t = evenkeel::evaluate::DEFAULT_BATCH_ROWS, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,

    /// Statistics of the partitions of the table as it is now, to compare with the computed ones:
    /// YDB's .sys/partition_stats or .sys/primary_index_stats as CSV, NDJSON or Parquet. Needs the
    /// current partition key, from --current, --ddl or a dump.
    #[arg(long, value_name = "FILE", conflicts_with = "sample")]
    partition_stats: Option<LocalPath>,

    /// Save the counts of all keys to this file, a profile, to merge with others later. It contains
    /// key values.
    #[arg(long, value_name = "FILE", conflicts_with = "sample")]
    save: Option<LocalPath>,

    /// Size of the distinct values in a profile. If those of all keys take more, those of the
    /// largest keys are kept as estimates.
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(DEFAULT_PROFILE_BYTES), requires = "save")]
    profile_size: ByteSize,

    /// Count the keys of this profile in the same way, so that what is saved can be merged with it.
    #[arg(long, value_name = "PROFILE", requires = "inputs", conflicts_with_all = [
        "partition_keys", "primary_keys", "no_primary_keys", "joins", "partitions", "nodes", "placements", "weights",
        "time", "window", "types", "batch", "partition_rate", "sample", "merge",
    ])]
    like: Option<LocalPath>,

    /// Profiles to answer for as a whole, without their rows; together with those of the inputs, if
    /// any, which are counted in the same way.
    #[arg(long, value_name = "PROFILES", num_args = 1.., conflicts_with_all = [
        "partition_keys", "primary_keys", "no_primary_keys", "joins", "partitions", "nodes", "placements", "weights",
        "time", "window", "roles", "not_key", "types", "current", "batch", "partition_rate", "partition_stats", "sample",
    ])]
    merge: Vec<LocalPath>,

    /// Read only this share of the rows, such as 0.01, chosen at random, and report intervals.
    #[arg(long, value_name = "SHARE")]
    sample: Option<f64>,

    /// Memory budget of the process. Beyond it, keys go to temporary files; if the file of one key
    /// exceeds 8 GiB, its distinct values are estimated.
    #[arg(long, default_value_t = evenkeel::evaluate::DEFAULT_MEMORY)]
    memory: ByteSize,

    /// Handling of rows that cannot be read.
    #[arg(long, value_enum, default_value = "fail")]
    on_error: OnError,

    /// System to write the statements for, and whose placement the figures are for: ydb,
    /// clickhouse, citus, postgres, greenplum, doris, starrocks, spanner, cassandra, mongodb,
    /// kafka, iceberg or paimon [default: that of --placement, else ydb].
    #[arg(long, value_name = "SYSTEM")]
    target: Option<Target>,

    /// Name of the table in the proposed statements [default: that of the first input].
    #[arg(long)]
    name: Option<String>,

    /// YDB version that the proposed YQL is for; types that its column tables do not support are
    /// replaced by the nearest (docs/YDB_TYPES.md).
    #[arg(long, value_name = "VERSION", default_value_t)]
    ydb_version: YdbVersion,

    /// Print all keys, figures, findings and roles, instead of the answer alone.
    #[arg(long)]
    verbose: bool,

    /// Write an HTML report with pictures to this file; it needs no network.
    #[arg(long, value_name = "FILE")]
    html: Option<LocalPath>,

    /// Replace key values by numbers, and times by the time since the first one, in all results and
    /// errors.
    #[arg(long)]
    mask_values: bool,

    /// Exit with code 3 if a figure meets a threshold, such as 'max_over_mean>1.2' or 'problems>0';
    /// repeatable. Figures are those of the given keys, else of the recommended ones.
    #[arg(long = "fail-on", value_name = "CONDITION")]
    fail_on: Vec<Threshold>,

    /// JSON of an earlier evaluation to compare with.
    #[arg(long, value_name = "FILE")]
    baseline: Option<LocalPath>,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    #[command(flatten)]
    input: ReadingArgs,

    #[command(flatten)]
    workers: WorkerArgs,
}

/// Result as JSON.
#[derive(Debug, Serialize)]
struct Evaluated<'a> {
    #[serde(flatten)]
    assessment: &'a AdvisorReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<&'a [Drift]>,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    // Fail now rather than after a long read.
    args.html.as_deref().map_or(Ok(()), html_file::check)?;
    profiles::check(&args)?;
    let merged = profiles::read(&args.merge)?;
    let like = profiles::read(args.like.as_slice())?.pop();
    let types = args.types.iter().map(|text| column_type(text)).collect::<Result<BTreeMap<_, _>, _>>()?;
    let mut plan_of_args = plan::options(&args)?;
    let started = Instant::now();
    let assessing = Assessing { counter: args.workers.counter(out).await? };
    let base = like.as_ref().or(merged.first()).cloned();
    if let Some(base) = &base {
        plan_of_args = profiles::count_as(plan_of_args, &args, base)?;
    } else if let Some(exports) = tables::open(&args, &args.input.options()?).await? {
        return tables::run(&args, exports, &types, assessing, out).await;
    }
    let export = match args.inputs.is_empty() {
        true => None,
        false => Some(open_inputs(&args, types, &mut plan_of_args, base.clone(), out).await?),
    };
    if let Some(path) = &args.partition_stats {
        let is_named = args.input.table().is_some();
        let table = args.input.table().unwrap_or(&plan_of_args.table).to_owned();
        let path = path.to_path_buf();
        let rows = tokio::task::spawn_blocking(move || read_partition_stats(&path, &table, is_named)).await?;
        plan_of_args.partition_rows = rows?;
    }
    let columns = || base.as_ref().map(Profile::columns).unwrap_or_default().to_vec();
    let of_profiles = || Export::with_columns(Vec::new(), InputOptions::default(), columns());
    let schema =
        export.as_ref().map_or_else(|| of_profiles().schema().clone(), |export| export.schema().clone());
    let statements = statements(&args, &plan_of_args.table, &schema, out).await?;
    let plan = AdvisorOptions { statements, ..plan_of_args };
    let save = args.save.as_ref().map(|_| args.profile_size.0);
    let work = Work { export, plan, profiles: merged, save };
    let (mut assessment, profile) = assess_in_background(work, assessing, args.mask_values, out).await?;
    if let (Some(profile), Some(path)) = (profile, &args.save) {
        profiles::write(&profile, path, out)?;
    }
    assessment.seconds = started.elapsed().as_secs_f64();
    if args.mask_values {
        assessment.mask_values();
    }
    let now = serde_json::to_value(&assessment)?;
    let drift = baseline.map(|baseline| compare(&baseline, &now)).transpose().map_err(Failure::usage)?;
    if let Some(path) = &args.html {
        html_file::write(path, &report::html(&assessment), out)?;
    }
    out.page(|| (Some(report::html(&assessment)), Some(report::html_fragment(&assessment))));
    let verbose = args.verbose;
    let evaluated = Evaluated { assessment: &assessment, drift: drift.as_deref() };
    out.result(args.format, &evaluated, |evaluated, layout| {
        let mut text = match layout {
            Layout::Plain if !verbose => report::answer(evaluated.assessment),
            _ => report::assessment(evaluated.assessment, layout),
        };
        if let Some(drift) = evaluated.drift {
            text.push('\n');
            text.push_str(&report::drifts(drift, layout));
        }
        text
    })?;
    thresholds::check(&thresholds::crossed(&args, &assessment, drift.as_deref().unwrap_or_default(), None)?)
}

/// Parses a column and its role.
fn role(text: &str) -> Result<(String, Role), String> {
    let (column, role) = text.rsplit_once('=').ok_or("write COLUMN=ROLE, such as user_id=entity")?;
    Ok((column.to_owned(), role.parse().map_err(|error: RoleError| error.to_string())?))
}

/// Reads `column:type`.
pub(crate) fn column_type(text: &str) -> Result<(String, ColumnType), Failure> {
    let (name, column_type) = text.split_once(':').ok_or_else(|| {
        Failure::wrong_usage(format!("--type '{}': write COLUMN:TYPE, such as user_id:uint64", quote(text)))
    })?;
    let column_type = column_type
        .parse()
        .map_err(|error| Failure::wrong_usage(format!("--type '{}': {error}", quote(text))))?;
    Ok((name.trim().to_owned(), column_type))
}

fn read_baseline(path: &Path) -> Result<Value, Failure> {
    let text = read_text(path, BASELINE)?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::wrong_usage(format!("{}: is not JSON: {error}", path.display())))
}

/// Derives a table name from the first input: without its endings, and with other characters
/// replaced.
pub(crate) fn table_name(inputs: &[String]) -> String {
    let first = inputs.first().filter(|input| *input != "-").map_or("table", String::as_str);
    // A pattern of file names says less than the folder that they are in.
    let is_pattern = |name: &str| name.contains(['*', '?', '[']);
    let named = Path::new(first).components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    let mut named = named.skip_while(|name| is_pattern(name));
    let stem = named.next().unwrap_or_else(|| "table".to_owned());
    let stem = stem.split('.').next().unwrap_or_default();
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => name,
        _ => format!("t_{name}"),
    }
}

fn weight(text: &str) -> Result<f64, String> {
    let weight = text.trim().parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight > 0.0);
    weight.ok_or_else(|| "write weights above 0, such as 1,1,2".to_owned())
}
