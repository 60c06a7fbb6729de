//! Arguments of `evenkeel evaluate`.

use clap::{Args as ClapArgs, ValueEnum};
use evenkeel::evaluate::{Candidate, DEFAULT_PROFILE_BYTES, Role, RoleError, Threshold};
use evenkeel::placement::{Function, FunctionError};
use evenkeel::table::YdbVersion;
use evenkeel::targets::Target;
use evenkeel::units::{ByteSize, Micros};

use crate::cli::input::ReadingArgs;
use crate::cli::local_path::LocalPath;
use crate::cli::output::Format;
use crate::cli::workers::WorkerArgs;

/// Handling of rows that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OnError {
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

Quote a column name that contains brackets or commas: '\"price (EUR)\",day'.")]
pub(crate) struct Args {
    /// Files, folders, glob patterns, or - for standard input.
    #[arg(required_unless_present = "merge", value_name = "FILE")]
    pub(super) inputs: Vec<String>,

    /// Candidate for the partition key: columns, date(column), hour(column) or trunc(column, 5m),
    /// separated by commas; repeatable [default: found from the data].
    #[arg(long = "partition-key", value_name = "COLUMNS")]
    pub(super) partition_keys: Vec<Candidate>,

    /// Candidate for the primary key, in the same form; repeatable [default: found from the data].
    #[arg(long = "primary-key", value_name = "COLUMNS")]
    pub(super) primary_keys: Vec<Candidate>,

    /// Judge only partition keys, without looking for a primary key: faster, but reports nothing
    /// about duplicates and order.
    #[arg(long, conflicts_with = "primary_keys")]
    pub(super) no_primary_keys: bool,

    /// Columns by which two of the tables are joined, such as orders.id=lines.order_id; repeatable.
    /// Each input is then a separate table [default: if the columns of the inputs differ, joins are
    /// inferred from names and values].
    #[arg(long = "join", value_name = "TABLE.COLUMN=TABLE.COLUMN")]
    pub(super) joins: Vec<String>,

    /// Partition counts to try.
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", conflicts_with = "nodes")]
    pub(super) partitions: Vec<u64>,

    /// Node counts to try; a table gets 4 partitions per node [default: 4,16,32].
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    pub(super) nodes: Vec<u64>,

    /// Placement functions, separated by commas; repeatable: ydb, ydb-modulo, ydb-cloud-logs or
    /// ydb-cloud-logs:ACTIVE:SECONDS, another system's function (see 'evenkeel place --list'), or
    /// all. The first one determines the recommendation [default: the target's function].
    #[arg(long = "placement", value_delimiter = ',', value_name = "FUNCTIONS")]
    pub(super) placements: Vec<Placements>,

    /// Weights of unequal nodes, such as 1,1,2: partitions are assigned to the nodes in turn, and
    /// each node is compared with its share. Choose a number of partitions that is a multiple of
    /// the sum of the weights.
    #[arg(long, value_delimiter = ',', value_name = "WEIGHTS", value_parser = weight)]
    pub(super) weights: Vec<f64>,

    /// Date or time column along which to look for hotspots [default: detected from types, names,
    /// values and the order of the rows].
    #[arg(long, value_name = "COLUMN")]
    pub(super) time: Option<String>,

    /// Length of a window of time, such as 30s, 5m or 1h [default: one that gives 200 to 500
    /// windows, fewer if there are few rows].
    #[arg(long, value_name = "LENGTH")]
    pub(super) window: Option<Micros>,

    /// SQL statements that the table must serve: a folder of .sql files or a single one, with any
    /// table name; or a query log with run counts, as CSV, NDJSON or Parquet: YDB
    /// query_metrics_one_minute, pg_stat_statements, ClickHouse query_log, Spanner QUERY_STATS.
    #[arg(long, value_name = "PATH")]
    pub(super) queries: Option<LocalPath>,

    /// Value of a parameter of the statements, as name=value; other parameters may have any value.
    #[arg(long = "param", value_name = "NAME=VALUE", requires = "queries")]
    pub(super) params: Vec<String>,

    /// Partition key of the existing table, to be judged along with the others.
    #[arg(long, value_name = "COLUMNS")]
    pub(super) current: Option<Candidate>,

    /// Role of a column as name=role, if the inferred one is wrong: entity, row-id, time,
    /// dimension, measure, text, line-number or constant; repeatable.
    #[arg(long = "role", value_name = "COLUMN=ROLE", value_parser = role)]
    pub(super) roles: Vec<(String, Role)>,

    /// Columns that must not be in a key, such as comments and amounts, separated by commas;
    /// repeatable. Equivalent to the role measure.
    #[arg(long = "not-key", value_name = "COLUMNS", value_delimiter = ',')]
    pub(super) not_key: Vec<String>,

    /// Type of a column as name:type, if the detected type differs from the table's; repeatable.
    /// The width of a type changes the hash.
    #[arg(long = "type", value_name = "COLUMN:TYPE")]
    pub(super) types: Vec<String>,

    /// Insert rate that the table must sustain, in bytes per second, such as 20MB [default: the
    /// rate of the export over the time it spans].
    #[arg(long, value_name = "BYTES")]
    pub(super) ingest_rate: Option<ByteSize>,

    /// Insert capacity of one partition, in bytes per second.
    #[arg(long, value_name = "BYTES", default_value = "1MB")]
    pub(super) partition_rate: ByteSize,

    /// Rows per batch of the simulated ingest.
    #[arg(long, value_name = "ROWS", default_value_t = evenkeel::evaluate::DEFAULT_BATCH_ROWS, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) batch: u64,

    /// Partition statistics of the existing table, to compare with the computed ones: YDB's
    /// .sys/partition_stats or .sys/primary_index_stats as CSV, NDJSON or Parquet. Needs the
    /// current partition key, from --current, --ddl or a dump.
    #[arg(long, value_name = "FILE", conflicts_with = "sample")]
    pub(super) partition_stats: Option<LocalPath>,

    /// Save the counts of all keys to this file, a profile, to merge with others later. It contains
    /// key values.
    #[arg(long, value_name = "FILE", conflicts_with = "sample")]
    pub(super) save: Option<LocalPath>,

    /// Maximum size of the distinct values in a profile. Beyond it, the largest keys are stored as
    /// estimates.
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(DEFAULT_PROFILE_BYTES), requires = "save")]
    pub(super) profile_size: ByteSize,

    /// Count the same keys as this profile, so that the saved profile can be merged with it.
    #[arg(long, value_name = "PROFILE", requires = "inputs", conflicts_with_all = [
        "partition_keys", "primary_keys", "no_primary_keys", "joins", "partitions", "nodes", "placements", "weights",
        "time", "window", "types", "batch", "partition_rate", "sample", "merge",
    ])]
    pub(super) like: Option<LocalPath>,

    /// Profiles to evaluate together instead of their rows. Rows of inputs, if any, are counted in
    /// the same way and added.
    #[arg(long, value_name = "PROFILES", num_args = 1.., conflicts_with_all = [
        "partition_keys", "primary_keys", "no_primary_keys", "joins", "partitions", "nodes", "placements", "weights",
        "time", "window", "roles", "not_key", "types", "current", "batch", "partition_rate", "partition_stats", "sample",
    ])]
    pub(super) merge: Vec<LocalPath>,

    /// Read only this share of the rows, such as 0.01, chosen at random, and report intervals.
    #[arg(long, value_name = "SHARE")]
    pub(super) sample: Option<f64>,

    /// Memory budget of the process. Beyond it, keys go to temporary files; if the file of one key
    /// exceeds 8 GiB, its distinct values are estimated.
    #[arg(long, default_value_t = evenkeel::evaluate::DEFAULT_MEMORY)]
    pub(super) memory: ByteSize,

    /// Handling of rows that cannot be read.
    #[arg(long, value_enum, default_value = "fail")]
    pub(super) on_error: OnError,

    /// System to write the statements for, and to compute the figures by its placement: ydb,
    /// clickhouse, citus, postgres, greenplum, doris, starrocks, spanner, cassandra, mongodb,
    /// kafka, iceberg or paimon [default: the system of --placement, else ydb].
    #[arg(long, value_name = "SYSTEM")]
    pub(super) target: Option<Target>,

    /// Name of the table in the proposed statements [default: the name of the first input].
    #[arg(long)]
    pub(super) name: Option<String>,

    /// YDB version that the proposed YQL is for; types that its column tables do not support are
    /// replaced by the nearest (docs/YDB_TYPES.md).
    #[arg(long, value_name = "VERSION", default_value_t)]
    pub(super) ydb_version: YdbVersion,

    /// Print all keys, figures, findings and roles instead of just the answer.
    #[arg(long)]
    pub(super) verbose: bool,

    /// Write an HTML report with pictures to this file; it needs no network.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<LocalPath>,

    /// Replace key values with numbers, and times with the time since the first one, in all results
    /// and errors.
    #[arg(long)]
    pub(super) mask_values: bool,

    /// Exit with code 3 if a figure meets a threshold, such as 'max_over_mean>1.2' or 'problems>0';
    /// repeatable. The figures are for the given keys, otherwise for the recommended ones.
    #[arg(long = "fail-on", value_name = "CONDITION")]
    pub(super) fail_on: Vec<Threshold>,

    /// JSON of an earlier evaluation to compare with.
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<LocalPath>,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: Format,

    #[command(flatten)]
    pub(super) input: ReadingArgs,

    #[command(flatten)]
    pub(super) workers: WorkerArgs,
}

/// One placement function, or all of them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Placements {
    All,
    One(Function),
}

impl std::str::FromStr for Placements {
    type Err = FunctionError;

    fn from_str(text: &str) -> Result<Self, FunctionError> {
        if text.eq_ignore_ascii_case("all") { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}

/// Parses a column and its role.
fn role(text: &str) -> Result<(String, Role), String> {
    let (column, role) = text.rsplit_once('=').ok_or("write COLUMN=ROLE, such as user_id=entity")?;
    Ok((column.to_owned(), role.parse().map_err(|error: RoleError| error.to_string())?))
}

fn weight(text: &str) -> Result<f64, String> {
    let weight = text.trim().parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight > 0.0);
    weight.ok_or_else(|| "write weights above 0, such as 1,1,2".to_owned())
}
