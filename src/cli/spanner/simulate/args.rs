//! Arguments of `evenkeel spanner simulate`.

use clap::Args as ClapArgs;
use evenkeel::spanner::schema::Dialect;
use evenkeel::spanner::simulate::{IndexSpec, KeyOrder, Strategy, parse_key_order};
use evenkeel::units::{ByteSize, Micros};

use crate::cli::input::InputArgs;
use crate::cli::local_path::LocalPath;
use crate::cli::numbers::{positive, share};
use crate::cli::output::Format;

/// Replay an export against a model of Spanner's range splits, once for each key strategy, and
/// compare where writes land, how the table splits, and what reads cost.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel spanner simulate exports \\
      --primary-key event_timestamp,user_id
  evenkeel spanner simulate exports --rate 50000 --servers 8 \\
      --primary-key 'user_id,event_timestamp desc' \\
      --strategies declared,desc,shard-16,uuid4,uuid7
  evenkeel spanner simulate exports --primary-key user_id,event_timestamp \\
      --index 'by_time(event_timestamp)' --strategies declared
  evenkeel spanner simulate users.csv --primary-key user_id \\
      --interleave exports --child-key user_id,event_timestamp
  evenkeel spanner simulate exports --ddl schema.sql --table Events --print-ddl spanner

Strategies: declared, swapped, desc, shard-N, generated-N, sequence, bit-reversed, uuid4, uuid4-int64, uuid4-bytes, uuid1, \
uuid1-int64, uuid1-bytes, uuid7, uuid7-int64, uuid7-bytes, hash-N. All figures come from a model, whose assumptions \
are printed with them.")]
pub(crate) struct Args {
    /// Files, folders, glob patterns, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(super) inputs: Vec<String>,

    /// Primary key as declared: columns separated by commas, each followed by desc if it descends
    /// [default: the key of a Spanner export, with its indexes].
    #[arg(long, value_name = "COLUMNS", value_parser = key_order)]
    pub(super) primary_key: Option<KeyOrders>,

    /// File with statements that declare the table and its indexes, in GoogleSQL or the PostgreSQL
    /// dialect of Spanner, instead of --primary-key and --index.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["primary_key", "indexes"])]
    pub(super) ddl: Option<LocalPath>,

    /// Print the statements that declare the recommended schema, with its indexes, for spanner
    /// (GoogleSQL) or spanner-postgres.
    #[arg(long, value_name = "TARGET")]
    pub(super) print_ddl: Option<Dialect>,

    /// Columns that hash-N hashes to choose a partition [default: the primary key].
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    pub(super) partition_key: Vec<String>,

    /// Secondary index: NAME(COLUMNS), optionally followed by storing(COLUMNS), null_filtered,
    /// interleaved and shard-N; repeatable.
    #[arg(long = "index", value_name = "INDEX")]
    pub(super) indexes: Vec<IndexSpec>,

    /// Export of the child table, whose key is given by --child-key, --ddl or the export: instead
    /// of comparing strategies, compare interleaved children with children in a separate table.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["indexes", "rate", "presplit"])]
    pub(super) interleave: Vec<String>,

    /// Primary key of the children, which begins with the parent's.
    #[arg(long, value_name = "COLUMNS", value_parser = key_order, requires = "interleave", conflicts_with = "ddl")]
    pub(super) child_key: Option<KeyOrders>,

    /// Child table of --ddl or of an export of Spanner to use [default: the only one interleaved in
    /// the parent].
    #[arg(long, value_name = "NAME", requires = "interleave")]
    pub(super) child_table: Option<String>,

    /// Name of the parent in results [default: its name in --ddl, or parent].
    #[arg(long = "in", value_name = "NAME", requires = "interleave")]
    pub(super) parent: Option<String>,

    /// Strategies to compare, by name [default: the guide's strategies that suit the key, and
    /// hash-16].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(super) strategies: Vec<Strategy>,

    /// Number of rows of the real table that each row of the export represents, in size and rate;
    /// auto makes the export fill 16 splits, and keeps the rate as measured or as given by --rate.
    #[arg(long, value_name = "auto|NUMBER", default_value = "auto", value_parser = scale)]
    pub(super) scale: Scale,

    /// Rows per second of the real table; rows arrive evenly spaced [default: the rate measured
    /// from the times of the export].
    #[arg(long, value_name = "ROWS", value_parser = positive)]
    pub(super) rate: Option<f64>,

    /// Time column that gives the arrival of rows; an export in another order is replayed in the
    /// order of its times [default: the only column of points in time, else the only date column,
    /// else the key's].
    #[arg(long, value_name = "COLUMN")]
    pub(super) time: Option<String>,

    /// Column that identifies the owner whose history is read [default: the first column of the key
    /// that is not a time].
    #[arg(long, value_name = "COLUMN")]
    pub(super) owner: Option<String>,

    /// Number of initial split boundaries, taken from the keys of the first rows.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub(super) presplit: u64,

    /// Number of servers over which splits are spread.
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(super) servers: u64,

    /// Rows per transaction.
    #[arg(long, value_name = "ROWS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) transaction: u64,

    /// Skip and count rows that cannot be read, instead of failing at the first.
    #[arg(long)]
    pub(super) skip_unreadable: bool,

    /// Write an HTML report with pictures to this file; it needs no network.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<LocalPath>,

    #[command(flatten)]
    pub(super) model: ModelArgs,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: Format,

    #[command(flatten)]
    pub(super) input: InputArgs,
}

/// Assumptions of the model.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "The model")]
pub(super) struct ModelArgs {
    /// Size at which a split divides.
    #[arg(long, value_name = "BYTES", default_value = "8GiB")]
    pub(super) split_size: ByteSize,

    /// Rows per second at which a split is hot. No figure is published for Spanner; the default is
    /// the rate at which CockroachDB divides a range.
    #[arg(long, value_name = "ROWS", default_value_t = 2500.0, value_parser = positive)]
    pub(super) split_rate: f64,

    /// Score at which a split is watched.
    #[arg(long, value_name = "SCORE", default_value_t = 50.0, value_parser = positive)]
    pub(super) warm: f64,

    /// Score at which a split is divided by load.
    #[arg(long, value_name = "SCORE", default_value_t = 100.0, value_parser = positive)]
    pub(super) hot: f64,

    /// If one row has this share of a hot split's load, dividing the split does not help.
    #[arg(long, value_name = "SHARE", default_value_t = 0.99, value_parser = share)]
    pub(super) single_row_share: f64,

    /// If this share of a hot split's load is beyond all keys of the previous window, dividing the
    /// split does not help.
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, value_parser = share)]
    pub(super) moving_share: f64,

    /// Length of the windows over which load is measured.
    #[arg(long, value_name = "LENGTH", default_value = "1m")]
    pub(super) window: Micros,

    /// Number of windows from the decision to divide a split until it is divided.
    #[arg(long, value_name = "WINDOWS", default_value_t = 2)]
    pub(super) split_delay: u32,

    /// Number of quiet windows after which parts divided by load are joined again.
    #[arg(long, value_name = "WINDOWS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub(super) merge_after: u32,

    /// Maximum number of keys sampled per split to choose a size boundary.
    #[arg(long, value_name = "COUNT", default_value_t = 512, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub(super) size_keys: u32,

    /// Maximum number of keys sampled per warm split and window to choose a load boundary.
    #[arg(long, value_name = "COUNT", default_value_t = 128, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub(super) load_keys: u32,

    /// Minimum number of sampled keys needed to divide a split by load.
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub(super) fewest_load_keys: u32,

    /// Smallest share of the rows that a boundary between roots must leave on each side; if none
    /// does, divide the rows of one root.
    #[arg(long, value_name = "SHARE", default_value_t = 0.2, value_parser = share)]
    pub(super) root_share: f64,

    /// Random seed of generated values and samples.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
}

/// Key as written on the command line.
#[derive(Debug, Clone)]
pub(super) struct KeyOrders(pub(super) Vec<KeyOrder>);

/// Rows of the real table for each row of the export.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scale {
    Auto,
    Fixed(f64),
}

fn key_order(text: &str) -> Result<KeyOrders, String> {
    let columns = parse_key_order(text).map(KeyOrders);
    columns.ok_or_else(|| "write columns separated by commas, such as user_id,at desc".to_owned())
}

fn scale(text: &str) -> Result<Scale, String> {
    if text.eq_ignore_ascii_case("auto") { Ok(Scale::Auto) } else { positive(text).map(Scale::Fixed) }
}
