//! `evenkeel capacity`.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use clap::Args as ClapArgs;
use evenkeel::capacity::{
    Assignment, Capacities, CapacityError, Lost, NodeOptions, NodeSimulation, Rate, RequestedFault, Shape,
    Slow, simulate_nodes,
};
use evenkeel::placement::{Function, PlacementError};
use evenkeel::report;
use evenkeel::source::{Export, OnUnreadable, Reading, SourceError};
use evenkeel::table::Candidate;
use evenkeel::units::{ByteSize, Micros, PartitionCount};
use indicatif::ProgressBar;

use crate::cli::declaring::column_type;
use crate::cli::evaluate;
use crate::cli::input::ReadingArgs;
use crate::cli::numbers::positive;
use crate::cli::output::Format;
use crate::cli::{Failure, Output};

/// Replay an export against nodes of limited capacity: show which partition keys, node counts and
/// partition counts keep up, where backlog builds and for how long, and what a slow or lost node
/// costs.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel capacity exports --partition-key user_id \\
      --nodes 4 --partitions-per-node 1,2,4,8
  evenkeel capacity exports --partition-key user_id --partition-key campaign_id \\
      --nodes 2,4,8 --node-rows-per-second 20000 --rate 50000 \\
      --lost hottest@busiest --slow 0:0.5

Nodes and partitions are counted from 0. All figures come from a model, whose assumptions are printed with them.")]
pub(crate) struct Args {
    /// Files, folders, glob patterns, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<String>,

    /// Partition key to compare: columns, date(column), hour(column) or trunc(column, 5m),
    /// separated by commas; repeatable.
    #[arg(long = "partition-key", value_name = "COLUMNS", required = true)]
    partition_keys: Vec<Candidate>,

    /// Node counts to compare.
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", default_value = "4", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    nodes: Vec<u64>,

    /// Partition counts to compare, with each node count.
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", conflicts_with = "partitions_per_node")]
    partitions: Vec<u64>,

    /// Partitions per node to compare [default: 4].
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u64).range(1..))]
    partitions_per_node: Vec<u64>,

    /// Placement function: ydb, ydb-modulo, ydb-cloud-logs, or another system's function (see
    /// 'evenkeel place --list').
    #[arg(long, default_value = "ydb", value_name = "FUNCTION")]
    placement: Function,

    /// Assignment of partitions to nodes: round-robin, least-loaded (by total load, heaviest first)
    /// or contiguous.
    #[arg(long, default_value = "round-robin", value_name = "RULE")]
    assign: Assignment,

    /// Average rows per second over the windows that have rows; the load keeps its ups and downs.
    /// Without a time column, rows arrive evenly spaced [default: the rate measured from the times
    /// of the export].
    #[arg(long, value_name = "ROWS", value_parser = positive)]
    rate: Option<f64>,

    /// Date or time column that gives the arrival of rows [default: the only column of points in
    /// time, else the only date column].
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,

    /// Length of a window, within which rows arrive evenly [default: one that gives at most 500
    /// windows, fewer if there are few rows].
    #[arg(long, value_name = "LENGTH")]
    window: Option<Micros>,

    /// Type of a column as COLUMN:TYPE, if the detected type differs from the table's; repeatable.
    /// The width of a type changes the hash.
    #[arg(long = "type", value_name = "COLUMN:TYPE")]
    column_types: Vec<String>,

    /// Skip and count rows that cannot be read, instead of failing at the first.
    #[arg(long)]
    skip_unreadable: bool,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    #[command(flatten)]
    capacity: CapacityArgs,

    #[command(flatten)]
    faults: FaultArgs,

    #[command(flatten)]
    input: ReadingArgs,
}

/// Capacities of nodes and partitions.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Capacity")]
struct CapacityArgs {
    /// Capacity of a node, in rows per second [default: if no capacity is given, all nodes together
    /// handle --headroom times the load of the busiest window].
    #[arg(long, value_name = "ROWS", value_parser = positive)]
    node_rows_per_second: Option<f64>,

    /// Capacity of a node, in bytes of values per second, such as 20MB.
    #[arg(long, value_name = "BYTES")]
    node_bytes_per_second: Option<ByteSize>,

    /// Capacity of the writer of one partition, in rows per second.
    #[arg(long, value_name = "ROWS", value_parser = positive)]
    partition_rows_per_second: Option<f64>,

    /// Capacity of the writer of one partition, in bytes of values per second [default: 1MB, as in
    /// the YDB documentation, unless its rows per second are given].
    #[arg(long, value_name = "BYTES")]
    partition_bytes_per_second: Option<ByteSize>,

    /// If no capacity is given, assume that all nodes together handle this many times the load of
    /// the busiest window.
    #[arg(long, value_name = "TIMES", default_value_t = 1.5, value_parser = positive)]
    headroom: f64,

    /// A design keeps up only if it sustains the load and no row is delayed longer than this
    /// [default: a window, at least 1s].
    #[arg(long, value_name = "LENGTH")]
    longest_delay: Option<Micros>,
}

/// Faults to simulate.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Faults, each in a separate run")]
struct FaultArgs {
    /// Slow node with its remaining share of capacity, such as 2:0.5 or hottest:0.5; repeatable.
    #[arg(long, value_name = "NODE:SHARE")]
    slow: Vec<Slow>,

    /// Node to lose, and when: a time after the first row, or the busiest time, such as 2@6h or
    /// hottest@busiest; or none; repeatable [default: hottest@busiest].
    #[arg(long, value_name = "NODE@WHEN", value_parser = lost)]
    lost: Vec<LostArg>,

    /// Time from the loss of a node until other nodes serve its partitions.
    #[arg(long, value_name = "LENGTH", default_value = "1m")]
    recovery: Micros,
}

#[derive(Debug, Clone, Copy)]
enum LostArg {
    None,
    Node(Lost),
}

fn lost(text: &str) -> Result<LostArg, String> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(LostArg::None);
    }
    text.parse().map(LostArg::Node).map_err(|error: evenkeel::capacity::FaultError| error.to_string())
}

impl CapacityArgs {
    fn capacities(&self) -> Result<Capacities, Failure> {
        let bytes = |name: &str, rate: Option<ByteSize>| match rate {
            Some(ByteSize(0)) => Err(Failure::wrong_usage(format!("{name} 0: a rate must be above 0"))),
            rate => Ok(rate.map(|rate| rate.0 as f64)),
        };
        Ok(Capacities {
            node: Rate {
                rows_per_second: self.node_rows_per_second,
                bytes_per_second: bytes("--node-bytes-per-second", self.node_bytes_per_second)?,
            },
            partition: Rate {
                rows_per_second: self.partition_rows_per_second,
                bytes_per_second: bytes("--partition-bytes-per-second", self.partition_bytes_per_second)?,
            },
        })
    }
}

impl FaultArgs {
    fn faults(&self) -> Result<Vec<RequestedFault>, Failure> {
        let mut faults: Vec<RequestedFault> = self.slow.iter().copied().map(RequestedFault::Slow).collect();
        let of_nodes = self.lost.iter().filter_map(|lost| match lost {
            LostArg::Node(lost) => Some(RequestedFault::Lost(*lost)),
            LostArg::None => None,
        });
        faults.extend(of_nodes);
        let is_none = self.lost.iter().any(|lost| matches!(lost, LostArg::None));
        if is_none && self.lost.len() > 1 {
            return Err(Failure::wrong_usage("--lost none excludes any other --lost"));
        }
        if self.lost.is_empty() {
            faults.push(RequestedFault::Lost("hottest@busiest".parse().map_err(Failure::usage)?));
        }
        Ok(faults)
    }
}

/// Returns pairs of node and partition counts, each once, in the given order.
fn shapes(args: &Args) -> Result<Vec<Shape>, Failure> {
    let per_node = match args.partitions_per_node.as_slice() {
        [] => vec![u64::from(PartitionCount::PER_NODE)],
        given => given.to_vec(),
    };
    let mut shapes = Vec::new();
    for nodes in &args.nodes {
        let partitions: Vec<u64> = match args.partitions.as_slice() {
            [] => per_node.iter().map(|each| each.saturating_mul(*nodes)).collect(),
            given => given.to_vec(),
        };
        for partitions in partitions {
            let partitions = PartitionCount::new(partitions).map_err(Failure::usage)?;
            let shape = Shape { nodes: usize::try_from(*nodes)?, partitions };
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
    }
    Ok(shapes)
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let types =
        args.column_types.iter().map(|text| column_type(text)).collect::<Result<BTreeMap<_, _>, _>>()?;
    let options = NodeOptions {
        partition_keys: args.partition_keys.clone(),
        placement: args.placement,
        shapes: shapes(&args)?,
        assignment: args.assign,
        capacities: args.capacity.capacities()?,
        headroom: args.capacity.headroom,
        rate: args.rate,
        time: args.time.clone(),
        window: args.window,
        faults: args.faults.faults()?,
        recovery: args.faults.recovery,
        longest_delay: args.capacity.longest_delay,
        on_unreadable: if args.skip_unreadable { OnUnreadable::Skip } else { OnUnreadable::Fail },
    };
    let (inputs, reading) = args.input.find(&args.inputs, out)?;
    let part = Reading::start(&inputs.paths, &reading.meter);
    let work = move |bar: &ProgressBar, stop: &AtomicBool| -> Result<NodeSimulation, CapacityError> {
        let export = Export::open(&inputs.paths, reading, &types)?;
        simulate_nodes(&export, &options, &|rows| bar.set_position(rows), stop)
    };
    let simulation = out.in_background(part, work).await?.map_err(failure)?;
    out.result(args.format, &simulation, report::nodes)
}

/// Classifies an error: wrong usage if the request cannot be met, else a failure.
fn failure(error: CapacityError) -> Failure {
    match error {
        CapacityError::Evaluate(error) => evaluate::failure(*error),
        error @ (CapacityError::NoClock
        | CapacityError::UnknownNode { .. }
        | CapacityError::LateFault { .. }
        | CapacityError::Source(SourceError::NoSuchColumn { .. })
        | CapacityError::Placement(PlacementError::System { .. } | PlacementError::CloudLogsKey)) => {
            Failure::usage(error)
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn args(words: &str) -> Args {
        let words = ["capacity", "x.csv", "--partition-key", "a"].into_iter().chain(words.split_whitespace());
        Command::try_parse_from(words).unwrap().args
    }

    #[test]
    fn node_counts_are_combined_with_partition_counts_each_pair_once() {
        let pairs = |words: &str| -> Vec<(usize, u32)> {
            let shapes = shapes(&args(words)).unwrap();
            shapes.iter().map(|shape| (shape.nodes, shape.partitions.get())).collect()
        };
        assert_eq!(pairs(""), [(4, 16)]);
        assert_eq!(pairs("--nodes 2,8,2"), [(2, 8), (8, 32)]);
        assert_eq!(pairs("--nodes 2,3 --partitions 6,64,6"), [(2, 6), (2, 64), (3, 6), (3, 64)]);
        assert_eq!(pairs("--nodes 2 --partitions-per-node 1,3"), [(2, 2), (2, 6)]);
        assert!(shapes(&args("--partitions 0")).is_err());
        assert!(shapes(&args("--nodes 2 --partitions-per-node 18446744073709551615")).is_err());
    }

    #[test]
    fn the_default_fault_gives_way_to_given_ones_and_to_none() {
        let faults = |words: &str| args(words).faults.faults().unwrap();
        let count = |words: &str| {
            faults(words).iter().filter(|fault| matches!(fault, RequestedFault::Lost(_))).count()
        };
        assert_eq!((count(""), faults("").len()), (1, 1));
        assert_eq!((count("--slow 0:0.5"), faults("--slow 0:0.5").len()), (1, 2));
        assert_eq!(count("--lost 1@6h --lost 2@busiest"), 2);
        assert_eq!(faults("--lost none"), []);
        assert!(args("--lost none --lost 1@6h").faults.faults().is_err());
    }
}
