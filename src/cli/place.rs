//! `evenkeel place`.

use clap::Args as ClapArgs;
use evenkeel::placement::{Placement, parse_key};
use evenkeel::table::{ColumnType, PlacementFunction};
use evenkeel::units::PartitionCount;
use serde::Serialize;

use crate::cli::output::Format;
use crate::cli::{Failure, Output};

/// Show the hash and the partition of one key, exactly as YDB places it.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel place --types uint64 --partitions 64 42
  evenkeel place --types utf8,timestamp --partitions 16 u1 2026-01-31T10:00:00Z")]
pub(crate) struct Args {
    /// Types of the key's columns, in hash order; types are those of YQL.
    #[arg(long, value_name = "TYPES")]
    types: String,

    /// Number of partitions.
    #[arg(long)]
    partitions: u64,

    /// Placement function: ydb, ydb-modulo, ydb-cloud-logs or ydb-cloud-logs:ACTIVE:SECONDS.
    #[arg(long, default_value = "ydb", value_name = "FUNCTION")]
    placement: PlacementFunction,

    /// How the result is printed.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    /// The key, one value per type; NULL stands for NULL.
    #[arg(required = true, allow_negative_numbers = true)]
    values: Vec<String>,
}

/// Where a key lands.
#[derive(Debug, Serialize)]
struct Placed {
    /// The hash as a decimal string, since JSON readers lose digits of large numbers.
    hash: String,
    /// The same in hexadecimal.
    hash_hex: String,
    partition: u32,
    partitions: u32,
    placement: String,
}

pub(crate) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let partitions = PartitionCount::new(args.partitions).map_err(Failure::usage)?;
    let types = types(&args.types)?;
    let key = parse_key(&types, &args.values).map_err(Failure::usage)?;
    let placement = Placement::new(args.placement, partitions, types);
    let hash = placement.hash(&key).map_err(Failure::usage)?.first().copied();
    let partition = placement.assign(&key).map_err(Failure::usage)?.first().copied();
    let (Some(hash), Some(partition)) = (hash, partition) else {
        return Err(Failure::wrong_usage("the key has no columns"));
    };
    let placed = Placed {
        hash: hash.to_string(),
        hash_hex: format!("{hash:016x}"),
        partition: partition.0,
        partitions: partitions.get(),
        placement: args.placement.to_string(),
    };
    out.result(args.format, &placed, |placed, _| {
        format!(
            "hash       {} (0x{})\npartition  {} of {} ({})\n",
            placed.hash, placed.hash_hex, placed.partition, placed.partitions, placed.placement
        )
    })
}

/// Reads types separated by commas; a comma in parentheses belongs to its type.
fn types(text: &str) -> Result<Vec<ColumnType>, Failure> {
    let mut depth = 0i32;
    let parts = text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    parts.map(|part| part.parse().map_err(Failure::usage)).collect()
}
