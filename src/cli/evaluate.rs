//! `evenkeel evaluate`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::{Args as ClapArgs, ValueEnum};
use evenkeel::bounded::{BASELINE, quote, read_text};
use evenkeel::evaluate::{
    AdvisorOptions, AdvisorReport, Candidate, Drift, EvaluateError, EvaluateOptions, Role, RoleError,
    Threshold, advise, compare, mask_source,
};
use evenkeel::finding::Severity;
use evenkeel::placement::{Function, FunctionError, PlacementError};
use evenkeel::query::Params;
use evenkeel::report::{self, Layout};
use evenkeel::source::{Export, OnUnreadable, find_inputs};
use evenkeel::sql::{plan_statements, read_statements};
use evenkeel::table::{ColumnType, YdbVersion};
use evenkeel::units::{ByteSize, Micros, PartitionCount};
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::Value;

use crate::cli::input::InputArgs;
use crate::cli::local_path::LocalPath;
use crate::cli::output::Format;
use crate::cli::{Failure, Output};

/// Node counts to try if neither nodes nor partitions are given.
const DEFAULT_NODES: [u64; 3] = [4, 16, 32];

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

A column whose name has brackets or commas stands in quotes: '\"price (EUR)\",day'.")]
pub(crate) struct Args {
    /// Files, folders, glob patterns, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
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

    /// Partition counts to try.
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", conflicts_with = "nodes")]
    partitions: Vec<u64>,

    /// Node counts to try; a table gets 4 partitions per node [default: 4,16,32].
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    nodes: Vec<u64>,

    /// Placement functions, separated by commas; repeatable: ydb, ydb-modulo, ydb-cloud-logs or
    /// ydb-cloud-logs:ACTIVE:SECONDS, that of another system (see 'evenkeel place --list'), or all.
    /// The first one decides.
    #[arg(long = "placement", default_value = "ydb", value_delimiter = ',', value_name = "FUNCTIONS")]
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

    /// Folder of .sql files, or a single one, with the statements that the table is to serve. Table
    /// names in them do not matter.
    #[arg(long, value_name = "DIR")]
    queries: Option<LocalPath>,

    /// Value of a parameter of the statements, as name=value; the others get a placeholder that
    /// stands for any value.
    #[arg(long = "param", value_name = "NAME=VALUE", requires = "queries")]
    params: Vec<String>,

    /// Partition key that the table has now: it is judged beside the others.
    #[arg(long, value_name = "COLUMNS")]
    current: Option<Candidate>,

    /// Role of a column as name=role, if the inferred one is wrong: entity, row-id, time, dimension,
    /// measure, text, line-number or constant; repeatable.
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

    /// Read only this share of the rows, such as 0.01, chosen at random, and report intervals.
    #[arg(long, value_name = "SHARE")]
    sample: Option<f64>,

    /// Memory budget of the process. Beyond it, distinct values are estimated, and keys of rows
    /// spill to a temporary file.
    #[arg(long, default_value_t = evenkeel::evaluate::DEFAULT_MEMORY)]
    memory: ByteSize,

    /// Handling of rows that cannot be read.
    #[arg(long, value_enum, default_value = "fail")]
    on_error: OnError,

    /// Name of the table in the proposed YQL [default: that of the first input].
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
    input: InputArgs,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: crate::cli::cluster::ClusterArgs,
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
    if let Some(folder) = args.html.as_deref().and_then(Path::parent)
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        return Err(Failure::wrong_usage(format!("--html: there is no folder {}", folder.display())));
    }
    let types = args.types.iter().map(|text| column_type(text)).collect::<Result<BTreeMap<_, _>, _>>()?;
    let inputs = find_inputs(&args.inputs)?;
    inputs.notes.iter().for_each(|note| out.note(note));
    let options = args.input.options()?;
    let partitions = partitions(&args)?;
    for (name, rate) in [("--ingest-rate", args.ingest_rate), ("--partition-rate", Some(args.partition_rate))]
    {
        if rate == Some(ByteSize(0)) {
            return Err(Failure::wrong_usage(format!("{name} 0: a rate is above 0")));
        }
    }
    if args.name.as_deref() == Some("") {
        return Err(Failure::wrong_usage("--name: a table has a name"));
    }
    if let Some(share) = args.sample.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
        return Err(Failure::wrong_usage(format!("--sample {share}: a share is above 0 and at most 1")));
    }
    let started = Instant::now();
    let export = tokio::task::spawn_blocking(move || Export::open(&inputs.paths, options, &types)).await?;
    let mask = |error| if args.mask_values { mask_source(error) } else { error };
    let export = Arc::new(export.map_err(|error| named_column(mask(error)))?);
    let statements = match &args.queries {
        Some(path) => {
            let params = Params::parse(&args.params).map_err(Failure::usage)?;
            plan_statements(&read_statements(path)?, export.schema(), &params).await
        }
        None => Vec::new(),
    };
    let plan = AdvisorOptions {
        evaluate: EvaluateOptions {
            partition_keys: args.partition_keys.clone(),
            primary_keys: args.primary_keys.clone(),
            placements: functions(&args.placements),
            weights: args.weights.clone(),
            partitions,
            time: args.time.clone(),
            window: args.window,
            batch_rows: args.batch,
            partition_rate: args.partition_rate.0 as f64,
            equality_columns: Vec::new(),
            memory: args.memory,
            sample: args.sample,
        },
        find_primary_keys: !args.no_primary_keys,
        roles: args
            .roles
            .iter()
            .cloned()
            .chain(args.not_key.iter().map(|column| (column.clone(), Role::Measure)))
            .collect(),
        current_partition_key: args.current.clone(),
        statements,
        on_unreadable: match args.on_error {
            OnError::Fail => OnUnreadable::Fail,
            OnError::Skip => OnUnreadable::Skip,
        },
        ingest_rate: args.ingest_rate.map(|rate| rate.0 as f64),
        nodes: if args.nodes.is_empty() && args.partitions.is_empty() {
            DEFAULT_NODES.to_vec()
        } else {
            args.nodes.clone()
        },
        nodes_given: !args.nodes.is_empty(),
        inputs: args.inputs.clone(),
        reading: args.input.words(),
        left_out: Vec::new(),
        table: args.name.clone().unwrap_or_else(|| table_name(&args.inputs)),
        ydb_version: args.ydb_version,
    };
    #[cfg(feature = "cluster")]
    let assessing = match args.cluster.connect(out).await? {
        Some(cluster) => Assessing::OnCluster(Box::new(cluster), tokio::runtime::Handle::current()),
        None => Assessing::Here,
    };
    #[cfg(not(feature = "cluster"))]
    let assessing = Assessing::Here;
    let mut assessment = assess_in_background(export, plan, assessing, args.mask_values, out).await?;
    assessment.seconds = started.elapsed().as_secs_f64();
    if args.mask_values {
        assessment.mask_values();
    }
    let now = serde_json::to_value(&assessment)?;
    let drift = baseline.map(|baseline| compare(&baseline, &now)).transpose().map_err(Failure::usage)?;
    if let Some(path) = &args.html {
        write_report(path, &report::html(&assessment), out)?;
    }
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
    check_thresholds(&args, &assessment, drift.as_deref().unwrap_or_default())
}

/// Machine or cluster that counts the rows.
enum Assessing {
    Here,
    #[cfg(feature = "cluster")]
    OnCluster(Box<evenkeel::cluster::Cluster>, tokio::runtime::Handle),
}

impl Assessing {
    fn advise(
        &self,
        export: &Export,
        plan: AdvisorOptions,
        progress: &(dyn Fn(u64) + Sync),
        stop: &AtomicBool,
    ) -> Result<AdvisorReport, EvaluateError> {
        match self {
            Self::Here => advise(export, plan, progress, stop),
            #[cfg(feature = "cluster")]
            Self::OnCluster(cluster, runtime) => {
                evenkeel::cluster::advise(cluster, runtime, export, plan, stop)
            }
        }
    }
}

/// Evaluates in a thread that Ctrl-C stops.
async fn assess_in_background(
    export: Arc<Export>,
    plan: AdvisorOptions,
    assessing: Assessing,
    masked: bool,
    out: &Output,
) -> Result<AdvisorReport, Failure> {
    let work = move |bar: &ProgressBar, stop: &AtomicBool| {
        let progress = |rows| bar.set_position(rows);
        let mut plan = plan;
        loop {
            let error = match assessing.advise(&export, plan.clone(), &progress, stop) {
                Err(error) => error,
                assessment => return assessment,
            };
            // If a number is too large for some systems, evaluate the others.
            if !error.is_too_large() {
                return Err(error);
            }
            let before = plan.evaluate.placements.len();
            plan.evaluate.placements.retain(|function| match function {
                Function::System(system) => system.about().unsigned,
                Function::Ydb(_) => true,
            });
            if plan.evaluate.placements.is_empty() || plan.evaluate.placements.len() == before {
                return Err(error);
            }
            plan.left_out.push(format!("{error}; likewise all systems without unsigned integers"));
        }
    };
    let assessed = out.in_background(work).await?;
    let assessed = assessed.map_err(|error| if masked { error.masked() } else { error });
    assessed.map_err(|error| match error {
        EvaluateError::UnknownColumn { .. }
        | EvaluateError::NotTime { .. }
        | EvaluateError::UnknownTime { .. }
        | EvaluateError::UnknownRoleColumn { .. }
        | EvaluateError::Memory { .. }
        | EvaluateError::TooManyWindows { .. }
        | EvaluateError::Placement { source: PlacementError::System { .. }, .. } => Failure::usage(error),
        other => Failure::from(other),
    })
}

/// Classifies a wrong column name in `--type` as wrong usage.
fn named_column(error: evenkeel::source::SourceError) -> Failure {
    match error {
        error @ evenkeel::source::SourceError::NoSuchColumn { .. } => Failure::usage(error),
        other => Failure::from(other),
    }
}

/// Parses a column and its role.
fn role(text: &str) -> Result<(String, Role), String> {
    let (column, role) = text.rsplit_once('=').ok_or("write COLUMN=ROLE, such as user_id=entity")?;
    Ok((column.to_owned(), role.parse().map_err(|error: RoleError| error.to_string())?))
}

fn partitions(args: &Args) -> Result<Vec<PartitionCount>, Failure> {
    let nodes: &[u64] = if args.nodes.is_empty() { &DEFAULT_NODES } else { &args.nodes };
    let sum: f64 = args.weights.iter().sum();
    let is_asked = !args.partitions.is_empty() || !args.nodes.is_empty();
    let counts =
        if (1.0..=1e6).contains(&sum) && args.weights.iter().all(|weight| weight.fract() == 0.0) && !is_asked
        {
            // Partition counts that the sum of the weights divides.
            let near = |nodes: &u64| (nodes * 4).next_multiple_of(sum as u64);
            nodes.iter().map(near).map(PartitionCount::new).collect()
        } else if args.partitions.is_empty() {
            nodes.iter().map(|nodes| PartitionCount::for_nodes(*nodes)).collect::<Result<Vec<_>, _>>()
        } else {
            args.partitions.iter().map(|count| PartitionCount::new(*count)).collect()
        };
    let mut counts = counts.map_err(Failure::usage)?;
    let mut seen = Vec::new();
    counts.retain(|count| {
        !seen.contains(count) && {
            seen.push(*count);
            true
        }
    });
    Ok(counts)
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

/// Writes a report with pictures, and prints its path in a note.
pub(crate) fn write_report(path: &Path, html: &str, out: &Output) -> Result<(), Failure> {
    std::fs::write(path, html)
        .map_err(|error| anyhow::anyhow!("{}: cannot write: {error}", path.display()))?;
    out.note(&format!("the report is in {}", path.display()));
    Ok(())
}

/// Derives a table name from the first input: without its endings, and with other characters
/// replaced.
pub(crate) fn table_name(inputs: &[String]) -> String {
    let first = inputs.first().filter(|input| *input != "-").map_or("table", String::as_str);
    let stem =
        Path::new(first).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
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

/// One placement function, or all of them.
#[derive(Debug, Clone, Copy)]
enum Placements {
    All,
    One(Function),
}

impl std::str::FromStr for Placements {
    type Err = FunctionError;

    fn from_str(text: &str) -> Result<Self, FunctionError> {
        if text.eq_ignore_ascii_case("all") { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}

/// Returns the named functions, each once.
fn functions(named: &[Placements]) -> Vec<Function> {
    let mut functions = Vec::new();
    for named in named {
        let more: Vec<Function> = match named {
            Placements::All => Function::all().collect(),
            Placements::One(function) => vec![*function],
        };
        for function in more {
            if !functions.contains(&function) {
                functions.push(function);
            }
        }
    }
    functions
}

/// Returns the subjects of thresholds: the given keys, else the recommended ones, and the export as
/// a whole.
fn subjects(
    args: &Args,
    assessment: &AdvisorReport,
    drift: &[Drift],
) -> Result<Vec<(String, Value)>, Failure> {
    let mut subjects = Vec::new();
    for key in &assessment.evaluation.candidates {
        let recommended = key.partition_key == assessment.recommendation.partition_key;
        if args.partition_keys.is_empty() && !recommended {
            continue;
        }
        let name = format!("HASH({})", key.partition_key.join(", "));
        let mut of_key = serde_json::to_value(key)?;
        if let Some(fields) = of_key.as_object_mut() {
            fields.remove("placements");
        }
        subjects.push((name.clone(), of_key));
        for placement in &key.placements {
            let name =
                format!("{name} over {} partitions by {}", placement.skew.partitions, placement.function);
            subjects.push((name, serde_json::to_value(placement)?));
        }
    }
    for key in &assessment.evaluation.primary_keys {
        let recommended = key.columns == assessment.recommendation.primary_key;
        if !args.primary_keys.is_empty() || recommended {
            subjects.push((format!("PRIMARY KEY ({})", key.columns.join(", ")), serde_json::to_value(key)?));
        }
    }
    let count = |severity: Severity| {
        assessment.findings.iter().filter(|finding| finding.severity == severity).count()
    };
    let whole = serde_json::json!({
        "rows": assessment.evaluation.rows,
        "bytes": assessment.evaluation.bytes,
        "unreadable_rows": assessment.unreadable_rows,
        "problems": count(Severity::Problem),
        "warnings": count(Severity::Warning),
        "drift": drift.iter().filter(|drift| drift.notable).count(),
        "partitions": assessment.recommendation.partitions,
    });
    subjects.push(("the export".to_owned(), whole));
    Ok(subjects)
}

fn check_thresholds(args: &Args, assessment: &AdvisorReport, drift: &[Drift]) -> Result<(), Failure> {
    if args.fail_on.is_empty() {
        return Ok(());
    }
    let subjects = subjects(args, assessment, drift)?;
    let mut lines = Vec::new();
    for threshold in &args.fail_on {
        for crossing in threshold.check(&subjects).map_err(Failure::usage)? {
            let (figure, value, subject) = (crossing.figure, crossing.value, crossing.subject);
            lines.push(format!("threshold {threshold} is met: {figure} is {value} for {subject}"));
        }
    }
    if lines.is_empty() { Ok(()) } else { Err(Failure::Threshold(lines.join("\n"))) }
}
