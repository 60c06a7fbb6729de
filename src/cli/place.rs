//! `evenkeel place`.

use arrow::array::Array;
use clap::Args as ClapArgs;
use evenkeel::placement::systems::Status;
use evenkeel::placement::{Function, Placement, parse_key};
use evenkeel::report;
use evenkeel::table::{ColumnType, PlacementFunction};
use evenkeel::units::PartitionCount;
use serde::Serialize;

use crate::cli::output::Format;
use crate::cli::{Failure, Output};

/// Show how one key is placed: the hashed bytes, the hash and the partition, in YDB or in another
/// system.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel place --types uint64 --partitions 64 42
  evenkeel place --types utf8,timestamp --partitions 16 u1 2026-01-31T10:00:00Z
  evenkeel place --placement iceberg --types int64 --partitions 16 34
  evenkeel place --list")]
pub(crate) struct Args {
    /// List the placement functions and how well each is verified.
    #[arg(long)]
    list: bool,

    /// YQL types of the key's columns, in hash order.
    #[arg(
        long,
        value_name = "TYPES",
        required_unless_present = "list",
        default_value_if("list", "true", "")
    )]
    types: Option<String>,

    /// Number of partitions.
    #[arg(long, required_unless_present = "list")]
    partitions: Option<u64>,

    /// Placement function: ydb, ydb-modulo, ydb-cloud-logs or ydb-cloud-logs:ACTIVE:SECONDS, or
    /// another system's function.
    #[arg(long, default_value = "ydb", value_name = "FUNCTION")]
    placement: Function,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    /// Values of the key, one per type; write NULL for NULL.
    #[arg(required_unless_present = "list", allow_negative_numbers = true)]
    values: Vec<String>,
}

/// Placement of a key.
#[derive(Debug, Serialize)]
struct KeyPlacement {
    /// Hashed bytes, in hexadecimal.
    bytes: String,
    /// Hash as a decimal string, as the system writes it, since JSON readers lose digits of large
    /// numbers.
    hash: String,
    /// Hash in hexadecimal.
    hash_hex: String,
    partition: u32,
    partitions: u32,
    placement: String,
    status: Status,
    /// Formula that maps the hash to a partition.
    formula: String,
    /// Source that the placement is checked against.
    source: String,
}

/// A placement function.
#[derive(Debug, Serialize)]
struct ListedFunction {
    placement: String,
    status: Status,
    title: String,
    hash: String,
    formula: String,
    bytes: String,
    /// Treatment of NULL, if the system does not hash it.
    nulls: String,
    /// Types that cannot be keys, each with the reason.
    refuses: Vec<String>,
    /// Types whose placement is computed, if the placement of other types is verified.
    computed: Vec<String>,
    source: String,
}

pub(crate) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    if args.list {
        return list(args, out);
    }
    let partitions = PartitionCount::new(args.partitions.unwrap_or(0)).map_err(Failure::usage)?;
    let types = types(args.types.as_deref().unwrap_or_default())?;
    let key = parse_key(&types, &args.values).map_err(Failure::usage)?;
    let nulls = args.placement.nulls();
    if !nulls.is_empty() && key.iter().any(|column| column.null_count() > 0) {
        return Err(Failure::wrong_usage(format!("{} {nulls}", args.placement)));
    }
    let placement = Placement::new(args.placement, partitions, types.clone());
    let hash = placement.hash(&key).map_err(Failure::usage)?.first().copied();
    let partition = placement.assign(&key).map_err(Failure::usage)?.first().copied();
    let (Some(hash), Some(partition)) = (hash, partition) else {
        return Err(Failure::wrong_usage("the key has no columns"));
    };
    let known = FunctionFacts::from_function(args.placement);
    let bytes = args.placement.bytes(&types, &key, 0).map_err(Failure::usage)?;
    let placed = KeyPlacement {
        bytes: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        hash: args.placement.hash_text(hash),
        hash_hex: format!("{hash:016x}"),
        partition: partition.0,
        partitions: partitions.get(),
        placement: args.placement.to_string(),
        status: args.placement.status(&types),
        formula: known.formula.to_owned(),
        source: known.source.to_owned(),
    };
    out.result(args.format, &placed, |placed, _| {
        format!(
            "bytes      {}\nhash       {} (0x{})\npartition  {} of {} ({}: {})\n{}   {}\n",
            if placed.bytes.is_empty() { "none" } else { &placed.bytes },
            placed.hash,
            placed.hash_hex,
            placed.partition,
            placed.partitions,
            placed.placement,
            placed.formula,
            placed.status.word(),
            placed.source
        )
    })
}

/// Known facts about a function.
struct FunctionFacts {
    title: &'static str,
    bytes: &'static str,
    hash: &'static str,
    formula: &'static str,
    source: &'static str,
}

impl FunctionFacts {
    fn from_function(function: Function) -> Self {
        match function {
            Function::System(system) => {
                let about = system.about();
                let (title, bytes, hash) = (about.title, about.bytes, about.hash);
                Self { title, bytes, hash, formula: about.formula, source: about.source }
            }
            Function::Ydb(function) => {
                let (title, formula) = match function {
                    PlacementFunction::Ydb => {
                        ("YDB, column table, CONSISTENCY_64", "min(hash / ((2^64 - 1) / N), N - 1)")
                    }
                    PlacementFunction::YdbModulo => ("YDB, column table, MODULO_N", "hash % N"),
                    PlacementFunction::YdbCloudLogs { .. } => (
                        "YDB, column table, CLOUD_LOGS: a group of A partitions for a time",
                        "((hash % A) + (time / period % groups) x A) % N",
                    ),
                };
                Self {
                    title,
                    bytes: "the columns little-endian in the widths of YDB, text as it is, NULL nothing",
                    hash: "XXH64, seed 0",
                    formula,
                    source: "ydb-platform/ydb: ydb/core/formats/arrow/hash, ydb/core/tx/sharding; published vectors",
                }
            }
        }
    }
}

fn list(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let of_ydb = [PlacementFunction::YdbModulo, PlacementFunction::CLOUD_LOGS_DEFAULT].map(Function::Ydb);
    let mut functions: Vec<Function> = Function::all().collect();
    functions.splice(1..1, of_ydb);
    let listed: Vec<ListedFunction> = functions
        .into_iter()
        .map(|function| {
            let known = FunctionFacts::from_function(function);
            ListedFunction {
                placement: function.to_string(),
                status: function.status(&[]),
                title: known.title.to_owned(),
                hash: known.hash.to_owned(),
                formula: known.formula.to_owned(),
                bytes: known.bytes.to_owned(),
                nulls: function.nulls().to_owned(),
                refuses: refused(function),
                computed: computed(function),
                source: known.source.to_owned(),
            }
        })
        .collect();
    out.result(args.format, &listed, |listed, layout| {
        let row = |function: &ListedFunction| {
            vec![function.placement.clone(), function.status.word().to_owned(), function.title.clone()]
        };
        report::placements(layout, listed.iter().map(row).collect())
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

/// Returns the types that a system may support. Decimal is not modelled, and one type of interval
/// is enough.
fn types_of_systems() -> impl Iterator<Item = ColumnType> {
    let is_requested =
        |column_type: &ColumnType| !matches!(column_type, ColumnType::Decimal { .. } | ColumnType::Interval);
    ColumnType::ALL.into_iter().filter(is_requested)
}

fn refused(function: Function) -> Vec<String> {
    let Function::System(system) = function else { return Vec::new() };
    let reason = |column_type: ColumnType| Some(format!("{column_type}: {}", system.refuses(column_type)?));
    types_of_systems().filter_map(reason).collect()
}

fn computed(function: Function) -> Vec<String> {
    let Function::System(system) = function else { return Vec::new() };
    let is_computed = |column_type: &ColumnType| {
        system.refuses(*column_type).is_none()
            && function.status(&[]) == Status::Verified
            && function.status(&[*column_type]) == Status::Computed
    };
    types_of_systems().filter(is_computed).map(|column_type| column_type.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_parentheses_belongs_to_its_type() {
        let decimal = ColumnType::Decimal { precision: 22, scale: 9 };
        assert_eq!(
            types("uint64,Decimal(22,9),utf8").unwrap(),
            [ColumnType::Uint64, decimal, ColumnType::Utf8]
        );
        for wrong in ["", "uint64,", "Decimal(22", "number"] {
            assert!(matches!(types(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn a_type_of_a_system_is_either_refused_or_supported() {
        for function in Function::all() {
            let refused = refused(function);
            let is_refused =
                |name: &String| refused.iter().any(|text| text.starts_with(&format!("{name}: ")));
            assert!(!computed(function).iter().any(is_refused), "{function}");
        }
    }
}
