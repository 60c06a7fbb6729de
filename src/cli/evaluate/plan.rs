//! Options of an evaluation from the command line.

use evenkeel::evaluate::{AdvisorOptions, AlsoCounted, EvaluateOptions, Role};
use evenkeel::placement::Function;
use evenkeel::source::{DeclaredTable, OnUnreadable};
use evenkeel::table::Candidate;
use evenkeel::targets::Target;
use evenkeel::time_reading::TimeReading;
use evenkeel::units::{ByteSize, PartitionCount};

use crate::cli::Failure;
use crate::cli::declaring::table_name;
use crate::cli::evaluate::args::{Args, OnError, Placements};

/// Node counts to try if neither nodes nor partitions are given.
const DEFAULT_NODES: [u64; 3] = [4, 16, 32];

/// Returns the options for the inputs as one table, without statements.
pub(super) fn options(args: &Args) -> Result<AdvisorOptions, Failure> {
    for (name, rate) in [("--ingest-rate", args.ingest_rate), ("--partition-rate", Some(args.partition_rate))]
    {
        if rate == Some(ByteSize(0)) {
            return Err(Failure::wrong_usage(format!("{name} 0: a rate must be above 0")));
        }
    }
    if args.name.as_deref() == Some("") {
        return Err(Failure::wrong_usage("--name: the name must not be empty"));
    }
    if let Some(share) = args.sample.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
        return Err(Failure::wrong_usage(format!("--sample {share}: a share must be above 0 and at most 1")));
    }
    Ok(AdvisorOptions {
        evaluate: EvaluateOptions {
            partition_keys: each_once(&args.partition_keys),
            primary_keys: each_once(&args.primary_keys),
            also_counted: Vec::new(),
            partitioned_by: Vec::new(),
            placements: functions(&args.placements, args.target),
            weights: args.weights.clone(),
            partitions: partitions(args)?,
            time: args.time.clone(),
            time_reading: TimeReading::default(),
            window: args.window,
            batch_rows: args.batch,
            partition_rate: args.partition_rate.0 as f64,
            equality_columns: Vec::new(),
            memory: args.memory,
            sample: args.sample,
        },
        find_primary_keys: !args.no_primary_keys,
        also_counted: AlsoCounted::default(),
        roles: args
            .roles
            .iter()
            .cloned()
            .chain(args.not_key.iter().map(|column| (column.clone(), Role::Measure)))
            .collect(),
        current_partition_key: args.current.clone(),
        current_primary_key: None,
        ttl: None,
        has_file_per_partition: false,
        partition_rows: Vec::new(),
        joined: Vec::new(),
        statements: Vec::new(),
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
        has_statement: args.input.has_statement(),
        left_out: Vec::new(),
        table: args.name.clone().unwrap_or_else(|| table_name(&args.inputs)),
        target: args.target.unwrap_or_default(),
        ydb_version: args.ydb_version,
    })
}

/// Returns the keys without repeats.
fn each_once(keys: &[Candidate]) -> Vec<Candidate> {
    let mut kept: Vec<Candidate> = Vec::new();
    keys.iter().for_each(|key| {
        if !kept.contains(key) {
            kept.push(key.clone());
        }
    });
    kept
}

/// Adds the keys and the number of partitions of a declared table, unless the arguments override
/// them.
pub(super) fn judge_declared(options: &mut AdvisorOptions, args: &Args, declared: &DeclaredTable) {
    let key = |columns: &[String]| (!columns.is_empty()).then(|| Candidate::from_columns(columns));
    options.current_partition_key = options.current_partition_key.take().or(key(&declared.partition_key));
    options.current_primary_key = key(&declared.primary_key);
    options.ttl.clone_from(&declared.ttl);
    options.has_file_per_partition = declared.has_file_per_partition;
    let count = declared.partitions.and_then(|count| PartitionCount::new(count).ok());
    if let Some(count) = count.filter(|_| args.partitions.is_empty() && args.nodes.is_empty()) {
        let partitions = &mut options.evaluate.partitions;
        partitions.retain(|other| *other != count);
        partitions.insert(0, count);
    }
    let name = declared.name.rsplit(['.', '/']).next().unwrap_or_default();
    if args.name.is_none() && !name.is_empty() {
        options.table = table_name(&[name.to_owned()]);
    }
}

fn partitions(args: &Args) -> Result<Vec<PartitionCount>, Failure> {
    let nodes: &[u64] = if args.nodes.is_empty() { &DEFAULT_NODES } else { &args.nodes };
    let sum: f64 = args.weights.iter().sum();
    let is_given = !args.partitions.is_empty() || !args.nodes.is_empty();
    let counts =
        if (1.0..=1e6).contains(&sum) && args.weights.iter().all(|weight| weight.fract() == 0.0) && !is_given
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

/// Returns the named functions, each once; one of the target first.
fn functions(named: &[Placements], target: Option<Target>) -> Vec<Function> {
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
    let of_target =
        |function: &Function| target.is_none_or(|target| Target::from_function(*function) == Some(target));
    if !functions.first().is_some_and(of_target) {
        let first = target.unwrap_or_default().function();
        functions.retain(|function| *function != first);
        functions.insert(0, first);
    }
    functions
}
