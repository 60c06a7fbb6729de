//! `evenkeel spanner simulate`.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args as ClapArgs;
use evenkeel::bounded::{SQL, read_text};
use evenkeel::evaluate::EvaluateError;
use evenkeel::report;
use evenkeel::source::{Export, InputPath, OnUnreadable, SourceError, find_inputs};
use evenkeel::spanner::schema::{Dialect, parse_schema};
use evenkeel::spanner::simulate::splits::{ModelParameters, Sampling};
use evenkeel::spanner::simulate::{
    Declared, IndexSpec, KeyOrder, RecommendedSchema, SimulateError, SimulateOptions, Simulation, Strategy,
    declared_pair, declared_table, parse_key_order,
};
use evenkeel::table::Column;
use evenkeel::units::{ByteSize, Micros};
use serde::Serialize;

use crate::cli::evaluate::{table_name, write_report};
use crate::cli::input::InputArgs;
use crate::cli::local_path::LocalPath;
use crate::cli::output::Format;
use crate::cli::spanner::{GUIDE, Tree, in_background, positive, share};
use crate::cli::{Failure, Output};

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

Strategies: declared, swapped, desc, shard-N, generated-N, sequence, bit-reversed, uuid4, uuid4-int64, uuid4-bytes, uuid1,
uuid1-int64, uuid1-bytes, uuid7, uuid7-int64, uuid7-bytes, hash-N. All figures are those of a model; what it assumes is printed with them.")]
pub(crate) struct Args {
    /// Files, folders, glob patterns, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<String>,

    /// Primary key as declared: columns separated by commas, each followed by desc if it descends.
    #[arg(long, value_name = "COLUMNS", value_parser = key_order)]
    primary_key: Option<KeyOrders>,

    /// File with statements that declare the table and its indexes, in GoogleSQL or the PostgreSQL
    /// dialect of Spanner, instead of --primary-key and --index.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["primary_key", "indexes"])]
    ddl: Option<LocalPath>,

    /// Table of --ddl to use; with --interleave, the parent.
    #[arg(long, value_name = "NAME", requires = "ddl")]
    table: Option<String>,

    /// Print the statements that declare the recommended schema, with its indexes, for spanner
    /// (GoogleSQL) or spanner-postgres.
    #[arg(long, value_name = "TARGET")]
    print_ddl: Option<Dialect>,

    /// Columns that hash-N hashes to choose a partition [default: the primary key].
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    partition_key: Vec<String>,

    /// Secondary index: NAME(COLUMNS), optionally followed by storing(COLUMNS), null_filtered,
    /// interleaved and shard-N; repeatable.
    #[arg(long = "index", value_name = "INDEX")]
    indexes: Vec<IndexSpec>,

    /// Export of the table's children, whose key is given by --child-key or --ddl: instead of the
    /// strategies, compare the children interleaved in their parents with the children in a table
    /// of their own.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["indexes", "rate", "presplit"])]
    interleave: Vec<String>,

    /// Primary key of the children, which begins with that of the parent.
    #[arg(long, value_name = "COLUMNS", value_parser = key_order, requires = "interleave", conflicts_with = "ddl")]
    child_key: Option<KeyOrders>,

    /// Child table of --ddl to use [default: the only one interleaved in the parent].
    #[arg(long, value_name = "NAME", requires_all = ["interleave", "ddl"])]
    child_table: Option<String>,

    /// Name of the parent in results [default: its name in --ddl, or parent].
    #[arg(long = "in", value_name = "NAME", requires = "interleave")]
    parent: Option<String>,

    /// Strategies to compare, by name [default: those of the guide that suit the key, and hash-16].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    strategies: Vec<Strategy>,

    /// Number of rows of the real table that each row of the export represents, in size and rate;
    /// auto makes the export fill 16 splits, and keeps the rate as measured or as given by --rate.
    #[arg(long, value_name = "auto|NUMBER", default_value = "auto", value_parser = scale)]
    scale: Scale,

    /// Rows per second of the real table, one after the other [default: the rate measured from the
    /// times of the export].
    #[arg(long, value_name = "ROWS", value_parser = positive)]
    rate: Option<f64>,

    /// Time column by which rows arrive; an export in another order is replayed in the order of its
    /// times [default: the only column of points in time, else the only date column, else that of
    /// the key].
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,

    /// Column that identifies the owner whose history is read [default: the first column of the key
    /// that is not a time].
    #[arg(long, value_name = "COLUMN")]
    owner: Option<String>,

    /// Number of initial split boundaries, taken from the keys of the first rows.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000))]
    presplit: u64,

    /// Number of servers over which splits are spread.
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    servers: u64,

    /// Rows per transaction.
    #[arg(long, value_name = "ROWS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    transaction: u64,

    /// Skip and count rows that cannot be read, instead of failing at the first.
    #[arg(long)]
    skip_unreadable: bool,

    /// Write an HTML report with pictures to this file; it needs no network.
    #[arg(long, value_name = "FILE")]
    html: Option<LocalPath>,

    #[command(flatten)]
    model: ModelArgs,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    #[command(flatten)]
    input: InputArgs,
}

/// Assumptions of the model.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "The model")]
struct ModelArgs {
    /// Size at which a split divides.
    #[arg(long, value_name = "BYTES", default_value = "8GiB")]
    split_size: ByteSize,

    /// Rows per second at which a split is hot. No figure is published for Spanner; the default is
    /// the rate at which CockroachDB divides a range.
    #[arg(long, value_name = "ROWS", default_value_t = 2500.0, value_parser = positive)]
    split_rate: f64,

    /// Score from which a split is watched.
    #[arg(long, value_name = "SCORE", default_value_t = 50.0, value_parser = positive)]
    warm: f64,

    /// Score from which a split is divided by load.
    #[arg(long, value_name = "SCORE", default_value_t = 100.0, value_parser = positive)]
    hot: f64,

    /// If one row has this share of a hot split's keys, dividing the split does not help.
    #[arg(long, value_name = "SHARE", default_value_t = 0.99, value_parser = share)]
    single_row_share: f64,

    /// If this share of a hot split's keys lies beyond all keys of the window before, dividing the
    /// split does not help.
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, value_parser = share)]
    moving_share: f64,

    /// Length of the windows over which load is measured.
    #[arg(long, value_name = "LENGTH", default_value = "1m")]
    window: Micros,

    /// Number of windows from the decision to divide a split until it is divided.
    #[arg(long, value_name = "WINDOWS", default_value_t = 2)]
    split_delay: u32,

    /// Number of quiet windows after which parts divided by load are joined again.
    #[arg(long, value_name = "WINDOWS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(..=100_000))]
    merge_after: u32,

    /// Largest number of sampled keys of a split, by which to divide it by size.
    #[arg(long, value_name = "COUNT", default_value_t = 512, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    size_keys: u32,

    /// Largest number of sampled keys of a warm split in a window, by which to divide it by load.
    #[arg(long, value_name = "COUNT", default_value_t = 128, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    load_keys: u32,

    /// Fewest sampled keys needed to divide a split by load.
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    fewest_load_keys: u32,

    /// Least share that a boundary at the root of interleaved rows leaves on either side; otherwise
    /// the rows of one root are divided.
    #[arg(long, value_name = "SHARE", default_value_t = 0.2, value_parser = share)]
    root_share: f64,

    /// Random seed of generated values and samples.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Key as written on the command line.
#[derive(Debug, Clone)]
struct KeyOrders(Vec<KeyOrder>);

#[derive(Debug, Clone, Copy)]
enum Scale {
    Auto,
    Of(f64),
}

fn key_order(text: &str) -> Result<KeyOrders, String> {
    let columns = parse_key_order(text).map(KeyOrders);
    columns.ok_or_else(|| "write columns separated by commas, such as user_id,at desc".to_owned())
}

fn scale(text: &str) -> Result<Scale, String> {
    if text.eq_ignore_ascii_case("auto") { Ok(Scale::Auto) } else { positive(text).map(Scale::Of) }
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let inputs = find_inputs(&args.inputs)?;
    inputs.notes.iter().for_each(|note| out.note(note));
    let reading = args.input.options()?;
    if args.model.split_size.0 == 0 {
        return Err(Failure::wrong_usage("--split-size 0: a split has room for a row"));
    }
    let (declared, child) = declared(&args)?;
    declared.notes.iter().for_each(|note| out.note(note));
    let children = match args.interleave.as_slice() {
        [] => None,
        files => Some(find_inputs(files)?),
    };
    children.iter().flat_map(|inputs| &inputs.notes).for_each(|note| out.note(note));
    let exports = tokio::task::spawn_blocking(move || {
        let open = |paths: &[InputPath]| Export::open(paths, reading.clone(), &BTreeMap::new());
        let children = children.map(|inputs| open(&inputs.paths)).transpose()?;
        Ok::<_, SourceError>((open(&inputs.paths)?, children))
    });
    let (export, children) = exports.await??;
    let columns = export.columns().to_vec();
    let child_columns = children.as_ref().map(|export| export.columns().to_vec()).unwrap_or_default();
    let parent_name =
        args.parent.clone().or_else(|| declared.table.clone()).unwrap_or_else(|| "parent".to_owned());
    let tree = children.zip(child.as_ref()).map(|(export, child)| Tree {
        export,
        key: child.primary_key.clone(),
        parent: parent_name.clone(),
    });
    let options = options(&args, &declared, &columns, out)?;
    let simulation = in_background(export, tree, options, out).await.map_err(|failure| match &args.ddl {
        Some(path) => with_schema_hint(failure, path, &declared),
        None => failure,
    })?;
    if let Some(path) = &args.html {
        write_report(path, &report::simulation_html(&simulation), out)?;
    }
    let ddl = args.print_ddl.map(|dialect| {
        let name = declared.table.clone().unwrap_or_else(|| table_name(&args.inputs));
        let recommended = RecommendedSchema { simulation: &simulation, dialect };
        let mut text = String::new();
        if args.ddl.is_some() {
            let same = declared.written.as_ref().is_some_and(|written| written.dialect == dialect);
            text.push_str(match same {
                true => "-- constraints between columns and tables of --ddl are left out\n",
                false => "-- types are those of the export; constraints, defaults and policies of --ddl are left out\n",
            });
        }
        text.push_str(&match &child {
            None => recommended.table(&name, &columns, &declared),
            Some(child) => {
                // If no statements name the parent, its name is that of --in, else that of its
                // file.
                let parent = if declared.table.is_some() { &name } else { args.parent.as_ref().unwrap_or(&name) };
                let child_name = child.table.clone().unwrap_or_else(|| table_name(&args.interleave));
                recommended.tree((parent, &columns, &declared), (&child_name, &child_columns, child))
            }
        });
        text
    });
    let simulated = Simulated { simulation: &simulation, ddl };
    out.result(args.format, &simulated, |simulated, layout| {
        let mut text = report::simulation(simulated.simulation, layout);
        if let Some(ddl) = &simulated.ddl {
            text.push('\n');
            text.push_str(ddl);
        }
        text
    })
}

/// Result as JSON.
#[derive(Debug, Serialize)]
struct Simulated<'a> {
    #[serde(flatten)]
    simulation: &'a Simulation,
    #[serde(skip_serializing_if = "Option::is_none")]
    ddl: Option<String>,
}

/// Adds a hint if the unknown column came from the schema in `path`.
fn with_schema_hint(failure: Failure, path: &Path, declared: &Declared) -> Failure {
    failure.with_hint(|error| {
        let column = unknown_column(error)?;
        let (path, table) = (path.display(), declared.table.as_deref().unwrap_or_default());
        Some(if declared.unmodelled.iter().any(|name| name == column) {
            format!(
                "{path} generates '{column}' by an expression that is not modelled; add its values to the export, or name \
                 another key with --primary-key"
            )
        } else {
            format!("the column is that of table {table} in {path}")
        })
    })
}

/// Returns the unknown column of an error.
fn unknown_column(error: &anyhow::Error) -> Option<&str> {
    match error.downcast_ref::<SimulateError>()? {
        SimulateError::UnknownColumn { column, .. } => Some(column),
        SimulateError::Evaluate(error) => match error.as_ref() {
            EvaluateError::UnknownColumn { column, .. } => Some(column),
            _ => None,
        },
        _ => None,
    }
}

fn options(
    args: &Args,
    declared: &Declared,
    columns: &[Column],
    out: &Output,
) -> Result<SimulateOptions, Failure> {
    if args.model.fewest_load_keys > args.model.load_keys {
        return Err(Failure::wrong_usage(
            "--fewest-load-keys: so many are never sampled; raise --load-keys too",
        ));
    }
    let mut asked = args.strategies.clone();
    if asked.is_empty() {
        asked = GUIDE.split(',').filter_map(|name| name.parse().ok()).collect();
        let is_time = |part: &KeyOrder| {
            let alike = |column: &&Column| column.name.eq_ignore_ascii_case(&part.column);
            columns.iter().find(alike).is_some_and(|column| column.column_type.is_time())
        };
        // The default strategies include some that need another key; leave these out.
        asked.retain(|strategy| match strategy {
            Strategy::Swapped => declared.primary_key.len() > 1,
            Strategy::Descending => declared.primary_key.iter().any(is_time),
            _ => true,
        });
        if asked.len() < GUIDE.split(',').count() && args.interleave.is_empty() {
            out.note("left out: swapped where the key has one column, desc where it has no time");
        }
    }
    let mut strategies = Vec::new();
    // The strategy that represents the declared key is judged in its place.
    let replaced = |strategy: &Strategy| declared.strategy.is_some() && *strategy == Strategy::Declared;
    for strategy in declared.strategy.iter().chain(&asked) {
        if !strategies.contains(strategy) && !replaced(strategy) {
            strategies.push(*strategy);
        }
    }
    Ok(SimulateOptions {
        primary_key: declared.primary_key.clone(),
        partition_key: args.partition_key.clone(),
        indexes: declared.indexes.clone(),
        strategies,
        judged: declared.strategy,
        shard_columns: declared.shard_columns.clone(),
        parameters: ModelParameters {
            split_size: args.model.split_size,
            split_rate: args.model.split_rate,
            window: args.model.window,
            scale: if let Scale::Of(scale) = args.scale { scale } else { 1.0 },
            load_scale: 1.0,
            delay_windows: args.model.split_delay,
            quiet_windows: args.model.merge_after,
            servers: usize::try_from(args.servers).unwrap_or(usize::MAX),
            warm: args.model.warm,
            hot: args.model.hot,
            single_row_share: args.model.single_row_share,
            moving_share: args.model.moving_share,
            sampling: Sampling {
                size_keys: args.model.size_keys as usize,
                load_keys: args.model.load_keys as usize,
                fewest_load_keys: args.model.fewest_load_keys as usize,
                root_share: args.model.root_share,
            },
            seed: args.model.seed,
        },
        find_scale: matches!(args.scale, Scale::Auto),
        rate: args.rate,
        time: args.time.clone(),
        owner: args.owner.clone(),
        presplits: usize::try_from(args.presplit).unwrap_or(usize::MAX),
        transaction_rows: args.transaction,
        on_unreadable: if args.skip_unreadable { OnUnreadable::Skip } else { OnUnreadable::Fail },
    })
}

/// Returns the declarations of the table, and of its children if they are replayed too.
fn declared(args: &Args) -> Result<(Declared, Option<Declared>), Failure> {
    let children = !args.interleave.is_empty();
    if let Some(path) = &args.ddl {
        return declared_by(path, args, children);
    }
    let of_key = |key: &Option<KeyOrders>, indexes: &[IndexSpec]| Declared {
        primary_key: key.as_ref().map(|key| key.0.clone()).unwrap_or_default(),
        indexes: indexes.to_vec(),
        ..Declared::default()
    };
    if children && args.child_key.is_none() {
        return Err(Failure::wrong_usage(
            "what is the key of the children? Give --child-key, or --ddl with both tables",
        ));
    }
    if args.primary_key.is_none() {
        return Err(Failure::wrong_usage(
            "what is the primary key? Give --primary-key, or --ddl with the table",
        ));
    }
    let child = children.then(|| of_key(&args.child_key, &[]));
    Ok((of_key(&args.primary_key, &args.indexes), child))
}

/// Returns the declarations in a file of statements.
fn declared_by(path: &Path, args: &Args, children: bool) -> Result<(Declared, Option<Declared>), Failure> {
    let text = read_text(path, SQL)?;
    let wrong = |message: String| Failure::wrong_usage(format!("{}: {message}", path.display()));
    let schema = parse_schema(&text).map_err(|error| wrong(error.to_string()))?;
    let parent = args.table.as_deref();
    let declared = match children {
        false => declared_table(&schema, parent).map(|table| (table, None)),
        true => declared_pair(&schema, parent, args.child_table.as_deref())
            .map(|(parent, child)| (parent, Some(child))),
    };
    declared.map_err(|error| wrong(error.to_string()))
}
