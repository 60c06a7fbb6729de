//! `evenkeel lint`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use clap::Args as ClapArgs;
use evenkeel::finding::Severity;
use evenkeel::lint::{Domain, Lint, LintError, LintOptions, lint};
use evenkeel::placement::Function;
use evenkeel::report;
use evenkeel::source::{Export, Reading};
use evenkeel::table::ColumnType;
use evenkeel::units::PartitionCount;
use indicatif::ProgressBar;

use crate::cli::declaring::column_type;
use crate::cli::input::ReadingArgs;
use crate::cli::output::Format;
use crate::cli::{Failure, Output};

/// Check whether a placement function spreads your keys as evenly as a perfect hash.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel lint --placement doris --types int64 --range 0..511 --partitions 512
  evenkeel lint exports --key user_id --placement citus --partitions 128
  evenkeel lint exports --key user_id --placement kafka --partitions 64 --workers 8 --threads 8

Each key counts once, regardless of its rows. 'evenkeel place --list' lists the placement functions. \
Exit code 3 if a problem is found; warnings and notes do not count.")]
pub(crate) struct Args {
    /// Files, folders, glob patterns, or - for standard input; their distinct keys are checked.
    #[arg(value_name = "FILE", required_unless_present = "range", conflicts_with = "range")]
    inputs: Vec<String>,

    /// Columns of the key, in hash order.
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS", requires = "inputs")]
    key: Vec<String>,

    /// Whole numbers to use as keys, including both ends, such as 0..511.
    #[arg(long, value_name = "FROM..TO", value_parser = range, requires = "types", allow_hyphen_values = true)]
    range: Option<Numbers>,

    /// Type of the numbers of --range, such as int64 or int32.
    #[arg(long, value_name = "TYPE", requires = "range")]
    types: Option<ColumnType>,

    /// Type of a column of the files as COLUMN:TYPE, if the detected type differs from the table's;
    /// repeatable. The width of a type changes the hash.
    #[arg(long = "type", value_name = "COLUMN:TYPE", requires = "inputs")]
    column_types: Vec<String>,

    /// Placement function.
    #[arg(long, default_value = "ydb", value_name = "FUNCTION")]
    placement: Function,

    /// Number of partitions.
    #[arg(long, value_name = "COUNT")]
    partitions: u64,

    /// Number of workers to which partitions are assigned in turn.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    workers: Option<u32>,

    /// Number of threads over which each worker spreads its rows, by the same function.
    #[arg(long, value_name = "COUNT", requires = "workers", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    #[command(flatten)]
    input: ReadingArgs,
}

/// Range of whole numbers, including the first and excluding the second.
#[derive(Debug, Clone)]
struct Numbers(Range<i64>);

fn range(text: &str) -> Result<Numbers, String> {
    const MOST: i64 = 100_000_000;
    let wrong = || "write the first and the last number, such as 0..511, from -2^63 to 2^63 - 1".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let (from, to): (i64, i64) =
        (from.trim().parse().map_err(|_| wrong())?, to.trim().parse().map_err(|_| wrong())?);
    if to < from {
        return Err(format!("the range is reversed; write {to}..{from}"));
    }
    let after = to.checked_add(1).ok_or_else(wrong)?;
    match after.checked_sub(from) {
        Some(count) if count <= MOST => Ok(Numbers(from..after)),
        _ => Err(format!("at most {MOST} numbers")),
    }
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let options = LintOptions {
        function: args.placement,
        partitions: PartitionCount::new(args.partitions).map_err(Failure::usage)?,
        workers: args.workers,
        threads: args.threads,
    };
    let lint_report = match (args.range, args.types) {
        (Some(range), Some(column_type)) => {
            let work = move |_: &ProgressBar, stop: &AtomicBool| {
                lint(&Domain::range(range.0, column_type)?, &options, stop)
            };
            out.in_background(None, work).await?
        }
        _ => {
            if args.types.is_some() {
                return Err(Failure::wrong_usage(
                    "--types applies to the numbers of --range; for columns of files use --type COLUMN:TYPE",
                ));
            }
            if args.key.is_empty() {
                return Err(Failure::wrong_usage("no key given; name its columns with --key"));
            }
            let (inputs, reading) = args.input.find(&args.inputs, out)?;
            let key: Vec<String> = args.key.iter().map(|name| name.trim().to_owned()).collect();
            let types = args
                .column_types
                .iter()
                .map(|text| column_type(text))
                .collect::<Result<BTreeMap<_, _>, _>>()?;
            let part = Reading::start(&inputs.paths, &reading.meter);
            let work = move |_: &ProgressBar, stop: &AtomicBool| -> Result<Lint, LintError> {
                let export = Export::open(&inputs.paths, reading, &types)?;
                lint(&Domain::from_export(&export, &key, stop)?, &options, stop)
            };
            out.in_background(part, work).await?
        }
    };
    let lint_report = lint_report.map_err(|error| match error {
        error @ (LintError::UnknownColumn { .. } | LintError::Placement(_) | LintError::Arrow(_)) => {
            Failure::usage(error)
        }
        other => other.into(),
    })?;
    out.result(args.format, &lint_report, report::lint)?;
    let problems = lint_report.findings.iter().filter(|finding| finding.severity == Severity::Problem);
    let lines: Vec<String> =
        problems.map(|problem| format!("problem {} found: {}", problem.code, problem.subject)).collect();
    if lines.is_empty() { Ok(()) } else { Err(Failure::Threshold(lines.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_includes_both_ends() {
        assert_eq!(range("0..511").unwrap().0, 0..512);
        assert_eq!(range(" -3 .. -3 ").unwrap().0, -3..-2);
        assert_eq!(range("1..100000000").unwrap().0, 1..100_000_001);
    }

    #[test]
    fn ranges_that_are_reversed_too_long_or_no_numbers_are_refused() {
        assert_eq!(range("5..1").unwrap_err(), "the range is reversed; write 1..5");
        assert_eq!(range("0..100000000").unwrap_err(), "at most 100000000 numbers");
        let all = format!("{}..{}", i64::MIN, i64::MAX - 1);
        assert_eq!(range(&all).unwrap_err(), "at most 100000000 numbers");
        let highest = format!("0..{}", i64::MAX);
        for wrong in ["", "5", "a..b", "1..", "..1", "1...2", highest.as_str()] {
            assert!(range(wrong).unwrap_err().starts_with("write the first and the last"), "{wrong}");
        }
    }
}
