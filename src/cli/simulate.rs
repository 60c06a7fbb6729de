//! `evenkeel simulate`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use evenkeel::generate::AccessLog;
use evenkeel::report;
use evenkeel::simulate::splits::ModelParameters;
use evenkeel::simulate::{
    IndexSpec, KeyKind, KeyOrder, Migration, SimulateError, SimulateOptions, Simulation, Strategy, UuidForm,
    migrate, parse_key_order, simulate, simulate_interleaved,
};
use evenkeel::source::{Export, InputOptions, InputPath, OnUnreadable, SourceError, find_inputs};
use evenkeel::spanner::{Dialect, Made, MadeKey, parse_schema, write_migrated_table};
use evenkeel::table::Column;
use evenkeel::transform::UuidKind;
use evenkeel::units::{ByteSize, Micros};
use indicatif::ProgressBar;
use serde::Serialize;

use crate::cli::evaluate::{table_name, write_report};
use crate::cli::input::InputArgs;
use crate::cli::output::Format;
use crate::cli::workplace::Workplace;
use crate::cli::{Failure, Output};

/// Play an export through a model of Spanner: how its range splits would take it, how its keys would move there.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Splits(Box<SplitsArgs>),
    Migrate(MigrateArgs),
    AccessLog(AccessLogArgs),
}

/// The access log of Spanner's guide under each of its strategies: generated rows, no file needed.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  evenkeel simulate access-log --html access-log.html")]
pub(crate) struct AccessLogArgs {
    /// Number of rows.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,

    /// Number of users, equally busy.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    users: u64,

    /// Rows of the real table that come in a second.
    #[arg(long, value_name = "ROWS", default_value_t = 20_000.0, value_parser = positive)]
    rate: f64,

    /// Write a report with pictures to this file; it needs no network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// How the result is printed.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Plan how a table with generated keys moves to Spanner: values stay as they are, and the statements make new ones that never meet
/// them, proved on the data.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel simulate migrate users.csv --key user_id
  evenkeel simulate migrate users.csv --key user_id --target spanner-postgres --name users")]
pub(crate) struct MigrateArgs {
    /// Files, folders, glob patterns, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<String>,

    /// The key column: UUIDs, or numbers that a sequence or an auto-increment gave.
    #[arg(long, value_name = "COLUMN")]
    key: String,

    /// How its values came to be [default: found from them].
    #[arg(long, value_enum)]
    kind: Option<KindArg>,

    /// Room for values that come before the switch, as a share of those that are there.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share)]
    room: f64,

    /// The dialect of the statements: spanner (GoogleSQL) or spanner-postgres.
    #[arg(long, default_value = "spanner")]
    target: Dialect,

    /// Name of the table in the statements [default: that of the first input].
    #[arg(long)]
    name: Option<String>,

    /// How the result is printed.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    #[command(flatten)]
    input: InputArgs,
}

/// How the values of a key came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindArg {
    Uuid,
    Sequential,
    BitReversed,
}

/// Insert an export into a model of Spanner's range splits, once for each strategy of choosing the key, and compare: where writes
/// land, how the table splits, what reads cost.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel simulate splits exports \\
      --primary-key event_timestamp,user_id
  evenkeel simulate splits exports --rate 50000 --servers 8 \\
      --primary-key 'user_id,event_timestamp desc' \\
      --strategies declared,desc,shard-16,uuid4,uuid7
  evenkeel simulate splits exports --primary-key user_id,event_timestamp \\
      --index 'by_time(event_timestamp)' --strategies declared
  evenkeel simulate splits users.csv --primary-key user_id \\
      --interleave exports --child-key user_id,event_timestamp

Strategies: declared, swapped, desc, shard-N, generated-N, sequence, bit-reversed, uuid4, uuid4-int64, uuid4-bytes, uuid1,
uuid1-int64, uuid1-bytes, uuid7, uuid7-int64, uuid7-bytes, hash-N. All figures are those of a model; what it assumes is printed with them.")]
pub(crate) struct SplitsArgs {
    /// Files, folders, glob patterns, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<String>,

    /// The primary key as it is declared: columns separated by commas, each with desc where it descends.
    #[arg(long, value_name = "COLUMNS", value_parser = key_order, required_unless_present = "ddl")]
    primary_key: Option<KeyOrders>,

    /// Statements that declare the table and its indexes, in GoogleSQL or the PostgreSQL dialect of Spanner, in place of
    /// --primary-key and --index.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["primary_key", "indexes"])]
    ddl: Option<PathBuf>,

    /// The table among those of --ddl.
    #[arg(long, value_name = "NAME", requires = "ddl")]
    table: Option<String>,

    /// Print the statements that declare the recommended strategy, for: spanner (GoogleSQL) or spanner-postgres.
    #[arg(long, value_name = "TARGET", conflicts_with = "interleave")]
    print_ddl: Option<Dialect>,

    /// Columns that the hash partitions of hash-N hash [default: the primary key].
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    partition_key: Vec<String>,

    /// An index that the table has besides: NAME(COLUMNS), and behind it what it has of storing(COLUMNS), null_filtered,
    /// interleaved and shard-N; as often as needed.
    #[arg(long = "index", value_name = "INDEX")]
    indexes: Vec<IndexSpec>,

    /// Children of the table, whose key is in --child-key: they are replayed among the rows of their parents and apart, in place of
    /// the strategies.
    #[arg(long, value_name = "FILE", requires = "child_key", conflicts_with_all = ["indexes", "rate", "presplit"])]
    interleave: Vec<String>,

    /// The primary key of the children, which begins with that of the parent.
    #[arg(long, value_name = "COLUMNS", value_parser = key_order, requires = "interleave")]
    child_key: Option<KeyOrders>,

    /// What the parent is called in results.
    #[arg(long = "in", value_name = "NAME", default_value = "parent", requires = "interleave")]
    parent: String,

    /// Strategies to compare, by name.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAMES",
        default_value = GUIDE
    )]
    strategies: Vec<Strategy>,

    /// So many rows of the real table each row of the export stands for: a number, or auto, so that the export makes 16 full
    /// splits.
    #[arg(long, value_name = "auto|NUMBER", default_value = "auto", value_parser = scale)]
    scale: Scale,

    /// Rows of the real table that come in a second, one after the other [default: as the times of the export say].
    #[arg(long, value_name = "ROWS", value_parser = positive)]
    rate: Option<f64>,

    /// Column of time that rows come along [default: the only point in time, or the only date].
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,

    /// Column whose history is read [default: the first column of the key that is no time].
    #[arg(long, value_name = "COLUMN")]
    owner: Option<String>,

    /// Boundaries from the beginning, from the keys of the first rows.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000))]
    presplit: u64,

    /// Servers that splits are spread over.
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    servers: u64,

    /// Rows of a transaction.
    #[arg(long, value_name = "ROWS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    transaction: u64,

    /// Rows that cannot be read: fail at the first, or skip and count them.
    #[arg(long)]
    skip_unreadable: bool,

    /// Write a report with pictures to this file; it needs no network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    #[command(flatten)]
    model: ModelArgs,

    /// How the result is printed.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    #[command(flatten)]
    input: InputArgs,
}

/// What the model assumes.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "The model")]
struct ModelArgs {
    /// Bytes at which a split divides.
    #[arg(long, value_name = "BYTES", default_value = "8GiB")]
    split_size: ByteSize,

    /// Rows per second at which a split is hot. No public figure exists for Spanner; this is what CockroachDB divides a range at.
    #[arg(long, value_name = "ROWS", default_value_t = 2500.0, value_parser = positive)]
    split_rate: f64,

    /// Score from which a split is watched.
    #[arg(long, value_name = "SCORE", default_value_t = 50.0, value_parser = positive)]
    warm: f64,

    /// Score from which a split is divided by load.
    #[arg(long, value_name = "SCORE", default_value_t = 100.0, value_parser = positive)]
    hot: f64,

    /// Share of a hot split's keys that one row has where dividing does not help.
    #[arg(long, value_name = "SHARE", default_value_t = 0.99, value_parser = share)]
    single_row_share: f64,

    /// Share of a hot split's keys beyond all of the window before, where dividing does not help.
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, value_parser = share)]
    moving_share: f64,

    /// Length of the windows that load is measured over.
    #[arg(long, value_name = "LENGTH", default_value = "1m")]
    window: Micros,

    /// Windows from the decision to divide a split until it is divided.
    #[arg(long, value_name = "WINDOWS", default_value_t = 2)]
    split_delay: u32,

    /// Windows that parts divided by load are quiet for before they are joined again.
    #[arg(long, value_name = "WINDOWS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(..=100_000))]
    merge_after: u32,

    /// Seed of what is made up and sampled.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A key as it is written.
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

fn positive(text: &str) -> Result<f64, String> {
    let number =
        text.replace('_', "").parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| "write a number above 0".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share >= 0.0 && share.is_finite());
    share.ok_or_else(|| "write a share such as 0.1".to_owned())
}

fn scale(text: &str) -> Result<Scale, String> {
    if text.eq_ignore_ascii_case("auto") { Ok(Scale::Auto) } else { positive(text).map(Scale::Of) }
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    match args.what {
        What::Splits(args) => splits(*args, out).await,
        What::Migrate(args) => plan_migration(args, out).await,
        What::AccessLog(args) => access_log(args, out).await,
    }
}

async fn splits(args: SplitsArgs, out: &mut Output) -> Result<(), Failure> {
    let inputs = find_inputs(&args.inputs)?;
    inputs.notes.iter().for_each(|note| out.note(note));
    let reading = args.input.options()?;
    if args.model.split_size.0 == 0 {
        return Err(Failure::wrong_usage("--split-size 0: a split has room for a row"));
    }
    let declared = match &args.ddl {
        Some(path) => Declared::read(path, args.table.as_deref())?,
        None => Declared {
            primary_key: args.primary_key.map(|key| key.0).unwrap_or_default(),
            indexes: args.indexes,
            strategy: None,
            notes: Vec::new(),
            shard_columns: Vec::new(),
            table: None,
        },
    };
    declared.notes.iter().for_each(|note| out.note(note));
    let mut strategies = Vec::new();
    // What stands for the declared key is judged in its place.
    let replaced = |strategy: &Strategy| declared.strategy.is_some() && *strategy == Strategy::Declared;
    for strategy in declared.strategy.into_iter().chain(args.strategies) {
        if !strategies.contains(&strategy) && !replaced(&strategy) {
            strategies.push(strategy);
        }
    }
    let options = SimulateOptions {
        primary_key: declared.primary_key,
        partition_key: args.partition_key,
        indexes: declared.indexes,
        strategies,
        judged: declared.strategy.map(|strategy| strategy.to_string()),
        shard_columns: declared.shard_columns,
        parameters: ModelParameters {
            split_size: args.model.split_size,
            split_rate: args.model.split_rate,
            window: args.model.window,
            scale: if let Scale::Of(scale) = args.scale { scale } else { 1.0 },
            delay_windows: args.model.split_delay,
            quiet_windows: args.model.merge_after,
            servers: usize::try_from(args.servers).unwrap_or(usize::MAX),
            warm: args.model.warm,
            hot: args.model.hot,
            single_row_share: args.model.single_row_share,
            moving_share: args.model.moving_share,
            seed: args.model.seed,
        },
        find_scale: matches!(args.scale, Scale::Auto),
        rate: args.rate,
        time: args.time,
        owner: args.owner,
        presplits: usize::try_from(args.presplit).unwrap_or(usize::MAX),
        transaction_rows: args.transaction,
        on_unreadable: if args.skip_unreadable { OnUnreadable::Skip } else { OnUnreadable::Fail },
    };
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
    let tree =
        children.zip(args.child_key).map(|(export, key)| Tree { export, key: key.0, parent: args.parent });
    let columns = export.columns().to_vec();
    let simulation = in_background(export, tree, options, out).await?;
    if let Some(path) = &args.html {
        write_report(path, &report::simulation_html(&simulation), out)?;
    }
    let name = declared.table.unwrap_or_else(|| table_name(&args.inputs));
    let from_ddl = args.ddl.is_some();
    let schema = args.print_ddl.map(|dialect| {
        let left_out = "-- columns and types are those of the export; constraints, defaults and indexes of --ddl are left out\n";
        let schema = recommended_schema(&simulation, &columns, &name, dialect);
        if from_ddl { format!("{left_out}{schema}") } else { schema }
    });
    let simulated = Simulated { simulation: &simulation, ddl: schema };
    out.result(args.format, &simulated, |simulated, layout| {
        let mut text = report::simulation(simulated.simulation, layout);
        if let Some(ddl) = &simulated.ddl {
            text.push('\n');
            text.push_str(ddl);
        }
        text
    })
}

/// The result as JSON.
#[derive(Debug, Serialize)]
struct Simulated<'a> {
    #[serde(flatten)]
    simulation: &'a Simulation,
    #[serde(skip_serializing_if = "Option::is_none")]
    ddl: Option<String>,
}

/// The statements of the strategy that is recommended, or a comment that says why there are none.
fn recommended_schema(simulation: &Simulation, columns: &[Column], name: &str, dialect: Dialect) -> String {
    let strategy = simulation.recommended.as_ref().and_then(|strategy| strategy.parse::<Strategy>().ok());
    let Some(strategy) = strategy else {
        return "-- no strategy is recommended, so there is no schema\n".to_owned();
    };
    let schema = strategy.schema(name, columns, &simulation.primary_key, dialect);
    schema.unwrap_or_else(|| format!("-- no schema is written for strategy {strategy}\n"))
}

/// A table as it is declared.
struct Declared {
    primary_key: Vec<KeyOrder>,
    indexes: Vec<IndexSpec>,
    /// What the first column of the key stands for, where the database makes it.
    strategy: Option<Strategy>,
    notes: Vec<String>,
    /// What the shard in front is made of, where there is one.
    shard_columns: Vec<String>,
    /// Its name.
    table: Option<String>,
}

impl Declared {
    /// What statements in a file declare of a table.
    fn read(path: &Path, table: Option<&str>) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| anyhow::anyhow!("{}: cannot read: {error}", path.display()))?;
        let at = |error| Failure::wrong_usage(format!("{}: {error}", path.display()));
        let schema = parse_schema(&text).map_err(at)?;
        let table = schema.table(table).map_err(at)?;
        let mut notes = schema.notes.clone();
        let mut key: Vec<KeyOrder> = table.primary_key.iter().map(KeyOrder::from).collect();
        let column_of =
            |name: &str| table.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        let made_of = |name: &str| column_of(name).and_then(|column| column.made.clone());
        let rest: Vec<&str> = key.iter().skip(1).map(|part| part.column.as_str()).collect();
        let mut shard_columns = Vec::new();
        let strategy = match key.first().and_then(|part| made_of(&part.column)).filter(|_| !rest.is_empty()) {
            Some(Made::Shard(shard)) => {
                shard_columns.clone_from(&shard.columns);
                Some(if shard.signed {
                    Strategy::GeneratedShards(shard.shards)
                } else {
                    Strategy::Shards(shard.shards)
                })
            }
            Some(Made::Uuid) => Some(Strategy::Uuid(UuidKind::Random, UuidForm::Text)),
            Some(Made::Sequence) => Some(Strategy::BitReversed),
            Some(Made::Other) | None => None,
        };
        if let Some(strategy) = strategy {
            let front = key.remove(0).column;
            notes.push(format!(
                "{front} is made by the database: strategy {strategy} stands for the key as declared"
            ));
        }
        let inside = |name: &String| {
            table.parent.as_ref().is_some_and(|parent| parent.eq_ignore_ascii_case(name))
                || table.name.eq_ignore_ascii_case(name)
        };
        let mut indexes = Vec::new();
        for index in schema.indexes_of(table) {
            // A shard in front of an index is a shard in front of its entries.
            let front = index.columns.first().and_then(|part| made_of(&part.column));
            let shards = match front {
                Some(Made::Shard(shard)) => Some(shard.shards),
                _ => None,
            };
            let interleaved = index.interleaved_in.as_ref().is_some_and(inside);
            if let Some(parent) = index.interleaved_in.as_ref().filter(|_| !interleaved || shards.is_some()) {
                notes.push(format!(
                    "index {} is modelled as a key space of its own, not within {parent}",
                    index.name
                ));
            }
            indexes.push(IndexSpec {
                name: index.name.clone(),
                columns: index
                    .columns
                    .iter()
                    .skip(usize::from(shards.is_some()))
                    .map(KeyOrder::from)
                    .collect(),
                storing: index.storing.clone(),
                null_filtered: index.null_filtered,
                interleaved: interleaved && shards.is_none(),
                shards,
            });
        }
        Ok(Self {
            primary_key: key,
            indexes,
            strategy,
            notes,
            shard_columns,
            table: Some(table.name.clone()),
        })
    }
}

/// Bytes of a row of the access log, about.
const ROW_BYTES: f64 = 21.0;
/// Strategies of the guide.
const GUIDE: &str = "declared,swapped,desc,shard-16,generated-2048,bit-reversed,uuid4,uuid1,uuid7,hash-16";

async fn access_log(args: AccessLogArgs, out: &mut Output) -> Result<(), Failure> {
    let workplace = Workplace::open(None)?;
    let path = workplace.path().join("access-log.parquet");
    let strategies = GUIDE.split(',').map(str::parse).collect::<Result<Vec<Strategy>, _>>()?;
    let log = AccessLog { rows: args.rows, users: args.users, ..AccessLog::default() };
    let export = tokio::task::spawn_blocking(move || {
        log.write_file(&path)?;
        Ok::<_, anyhow::Error>(Export::open(
            &[InputPath::File(path)],
            InputOptions::default(),
            &BTreeMap::new(),
        )?)
    });
    let export = export.await??;
    let key = |column: &str| KeyOrder { column: column.to_owned(), descending: false };
    let options = SimulateOptions {
        primary_key: vec![key("last_access"), key("user_id")],
        partition_key: vec!["user_id".to_owned()],
        indexes: Vec::new(),
        strategies,
        judged: None,
        shard_columns: Vec::new(),
        // Four full splits: enough to see, and each row stands for few.
        parameters: ModelParameters {
            scale: 4.0 * (8u64 << 30) as f64 / (ROW_BYTES * args.rows as f64),
            ..ModelParameters::default()
        },
        find_scale: false,
        rate: Some(args.rate),
        time: None,
        owner: Some("user_id".to_owned()),
        presplits: 0,
        transaction_rows: 100,
        on_unreadable: OnUnreadable::Fail,
    };
    let mut simulation = in_background(export, None, options, out).await?;
    simulation.inputs = vec!["the access log of Spanner's guide".to_owned()];
    if let Some(path) = &args.html {
        write_report(path, &report::simulation_html(&simulation), out)?;
    }
    out.result(args.format, &simulation, report::simulation)
}

/// What a migration needs, and the statements for it.
#[derive(Debug, Serialize)]
struct Planned<'a> {
    #[serde(flatten)]
    migration: &'a Migration,
    ddl: String,
}

async fn plan_migration(args: MigrateArgs, out: &mut Output) -> Result<(), Failure> {
    let inputs = find_inputs(&args.inputs)?;
    inputs.notes.iter().for_each(|note| out.note(note));
    let reading = args.input.options()?;
    let kind = args.kind.map(|kind| match kind {
        KindArg::Uuid => KeyKind::Uuid,
        KindArg::Sequential => KeyKind::Sequential,
        KindArg::BitReversed => KeyKind::BitReversed,
    });
    let (key, room) = (args.key.clone(), args.room);
    let work = move |_: &ProgressBar, stop: &AtomicBool| {
        let export = Export::open(&inputs.paths, reading, &BTreeMap::new())?;
        let migration = migrate(&export, &key, kind, room, stop)?;
        Ok::<_, SimulateError>((migration, export.columns().to_vec()))
    };
    let (migration, columns) = out.in_background(work).await?.map_err(failure)?;
    let made = match migration.kind {
        KeyKind::Uuid => MadeKey::Uuid,
        KeyKind::Sequential | KeyKind::BitReversed => {
            MadeKey::Sequence { skip: migration.skip_range, start: migration.start_counter }
        }
    };
    let name = args.name.clone().unwrap_or_else(|| table_name(&args.inputs));
    let mut ddl = write_migrated_table(&name, &columns, &args.key, &made, args.target);
    if migration.kind == KeyKind::Uuid && migration.to_normalize > 0 {
        let key = &args.key;
        ddl.push_str(&format!(
            "\n-- in what is loaded: LOWER({key}), with hyphens, for {} of its values\n",
            migration.to_normalize
        ));
    }
    let planned = Planned { migration: &migration, ddl };
    out.result(args.format, &planned, |planned, layout| {
        report::migration(planned.migration, &planned.ddl, layout)
    })
}

/// Children that are interleaved.
struct Tree {
    export: Export,
    key: Vec<KeyOrder>,
    parent: String,
}

/// Simulates in a thread that Ctrl-C stops.
async fn in_background(
    export: Export,
    tree: Option<Tree>,
    options: SimulateOptions,
    out: &Output,
) -> Result<Simulation, Failure> {
    let work = move |bar: &ProgressBar, stop: &AtomicBool| {
        let progress = |rows| bar.set_position(rows);
        match &tree {
            None => simulate(&export, &options, &progress, stop),
            Some(Tree { export: children, key, parent }) => {
                simulate_interleaved((&export, parent), (children, key), &options, &progress, stop)
            }
        }
    };
    out.in_background(work).await?.map_err(failure)
}

/// What was asked for cannot be, or what happened.
fn failure(error: SimulateError) -> Failure {
    match error {
        error @ (SimulateError::UnknownColumn { .. }
        | SimulateError::KeyType { .. }
        | SimulateError::Repeated { .. }
        | SimulateError::RepeatedIndex { .. }
        | SimulateError::ChildKey { .. }
        | SimulateError::Unsuited { .. }
        | SimulateError::NoClock
        | SimulateError::Time { .. }) => Failure::usage(error),
        other => other.into(),
    }
}
