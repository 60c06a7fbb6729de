//! Hash defects: whether a placement function spreads the given keys as a perfect one would.
//!
//! Each key counts once, regardless of its rows, so that only the function is judged: by the
//! partitions that it leaves empty (`evenkeel_stats::skew::expected_empty_partitions`), and by the
//! pairs of keys that share a partition, of which chance makes k (k - 1) / (2 N).

mod alternatives;
mod domain;
mod findings;
mod spread;

use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use serde::Serialize;
use thiserror::Error;

use evenkeel_input::source::SourceError;
use evenkeel_model::bounded::{names, quote};
use evenkeel_model::finding::Finding;
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::placement::systems::Status;
use evenkeel_placement::placement::{Function, PlacementError};

pub use crate::lint::alternatives::LintAlternative;
use crate::lint::alternatives::Trial;
pub use crate::lint::domain::{Domain, MAX_KEYS};
use crate::lint::findings::findings;
pub use crate::lint::spread::{HashSpread, Workers};
use evenkeel_model::remark::Remark;

/// Reason why keys cannot be linted.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum LintError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
    #[error("there is no column '{column}'; there are: {}", names(known), column = quote(column))]
    UnknownColumn { column: String, known: Vec<String> },
    #[error("there are no keys")]
    NoKeys,
    #[error("interrupted")]
    Interrupted,
}

/// Options of a lint.
#[derive(Debug, Clone)]
pub struct LintOptions {
    /// Placement function.
    pub function: Function,
    /// Number of partitions to spread the keys over.
    pub partitions: PartitionCount,
    /// Number of workers that partitions are assigned to in turn.
    pub workers: Option<u32>,
    /// Number of threads that each worker spreads its rows over, by the same function.
    pub threads: Option<u32>,
}

/// Report on how a function spreads keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lint {
    /// Name of the function.
    pub function: String,
    /// Degree to which the function is verified.
    pub status: Status,
    /// Source of the keys.
    pub keys_of: String,
    /// Number of distinct keys.
    pub keys: u64,
    /// Types that the columns of the key were hashed as.
    pub types: Vec<String>,
    /// Spread of the keys.
    #[serde(flatten)]
    pub spread: HashSpread,
    /// Load of the workers, if a number of workers is given.
    pub workers: Option<Workers>,
    /// Alternatives, the nearest first; empty if nothing is wrong.
    pub alternatives: Vec<LintAlternative>,
    /// Problems that were found.
    pub findings: Vec<Finding>,
    /// Other remarks, one sentence each.
    pub notes: Vec<Remark>,
}

/// Judges a placement function by keys.
///
/// # Errors
/// [`LintError`] if the function does not accept such keys.
pub fn lint(domain: &Domain, options: &LintOptions, stop: &AtomicBool) -> Result<Lint, LintError> {
    if domain.keys() == 0 {
        return Err(LintError::NoKeys);
    }
    fail_if_stopped(stop)?;
    let trial = Trial::new(domain, options)?;
    fail_if_stopped(stop)?;
    let here = trial.place(options.partitions)?;
    fail_if_stopped(stop)?;
    let spread = HashSpread::from_placed(&here, options.partitions);
    let is_even = options.function.has_even_ranges();
    let (mut alternatives, mut types_tried) = (Vec::new(), Vec::new());
    if spread.is_defective() && is_even {
        alternatives = trial.other_counts(stop)?;
        let (other_types, tried) = trial.other_types(stop)?;
        alternatives.extend(other_types);
        types_tried = tried;
    }
    let workers = options.workers.map(|workers| -> Result<Workers, PlacementError> {
        let threads = options.threads.and_then(|threads| PartitionCount::new(u64::from(threads)).ok());
        let threads =
            threads.map(|count| Ok::<_, PlacementError>((count, trial.place(count)?))).transpose()?;
        Ok(Workers::new(workers.max(1), options.partitions, &here, threads))
    });
    let workers = workers.transpose()?;
    let mut lint = Lint {
        function: options.function.to_string(),
        status: options.function.status(&domain.types),
        keys_of: domain.name.clone(),
        keys: domain.keys() as u64,
        types: domain.types.iter().map(ToString::to_string).collect(),
        spread,
        workers,
        alternatives,
        findings: Vec::new(),
        notes: domain.notes.clone(),
    };
    lint.findings = findings(&lint, is_even, &types_tried);
    Ok(lint)
}

/// Returns [`LintError::Interrupted`] if the caller asked to stop.
fn fail_if_stopped(stop: &AtomicBool) -> Result<(), LintError> {
    if stop.load(Ordering::Relaxed) { Err(LintError::Interrupted) } else { Ok(()) }
}

/// Converts a column to another type, if each of its values has an equivalent.
pub fn as_type(column: &ArrayRef, column_type: ColumnType) -> Option<ArrayRef> {
    let wanted = column_type.arrow_type();
    let converted = cast(column, &wanted).ok()?;
    // Values that do not fit become NULL.
    let lost = converted.null_count() > column.null_count() || column.data_type() == &DataType::Null;
    (!lost).then_some(converted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_model::finding::FindingCode;

    fn lint_range(name: &str, column_type: ColumnType, keys: i64, partitions: u64) -> Lint {
        let options = LintOptions {
            function: name.parse().unwrap(),
            partitions: PartitionCount::new(partitions).unwrap(),
            workers: None,
            threads: None,
        };
        lint(&Domain::range(0..keys, column_type).unwrap(), &options, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn the_defect_of_issue_66231_is_found_and_its_cure() {
        let report = lint_range("doris", ColumnType::Int64, 512, 512);
        assert_eq!((report.spread.filled, report.spread.fullest), (128, 4));
        // 512 (1 - 1/e), by a perfect hash.
        assert!((report.spread.expected_filled - 323.8).abs() < 0.5, "{}", report.spread.expected_filled);
        assert_eq!(report.findings[0].code, FindingCode::HashDefect);
        assert!(report.findings[0].message.contains("CRC is linear"), "{:?}", report.findings);
        assert!(report.alternatives.iter().all(|other| !other.spread.is_defective()));
        assert!(report.alternatives.iter().any(|other| other.words.ends_with("partitions")));
        assert!(
            report.alternatives.iter().any(|other| other.column_type == Some(ColumnType::Utf8)),
            "{:?}",
            report.alternatives
        );
    }

    #[test]
    fn other_types_of_a_decimal_are_tried_and_those_that_help_are_named() {
        let decimal = ColumnType::Decimal { precision: 22, scale: 2 };
        let prices = arrow::array::Decimal128Array::from_iter_values((0..5000).map(|price| price * 7))
            .with_precision_and_scale(22, 2)
            .unwrap();
        let other: ArrayRef = std::sync::Arc::new(arrow::array::Int64Array::from(vec![1; 5000]));
        let prices: ArrayRef = std::sync::Arc::new(prices);
        let options = LintOptions {
            function: "ydb".parse().unwrap(),
            partitions: PartitionCount::new(16).unwrap(),
            workers: None,
            threads: None,
        };
        let lint_of = |types: Vec<ColumnType>, columns: Vec<ArrayRef>| {
            let domain = Domain { name: "prices".to_owned(), types, columns, notes: Vec::new() };
            lint(&domain, &options, &AtomicBool::new(false)).unwrap()
        };
        // A constant column does not help.
        for (types, columns, of_column) in [
            (vec![decimal], vec![prices.clone()], ""),
            (vec![ColumnType::Int64, decimal], vec![other, prices], " for column 2 of the key"),
        ] {
            let report = lint_of(types, columns);
            assert_eq!((report.spread.filled, report.findings[0].code), (1, FindingCode::HashDefect));
            let words: Vec<&str> = report.alternatives.iter().map(|other| other.words.as_str()).collect();
            for expected in ["type Utf8", "type Int64, in units of 1e-2"] {
                assert!(words.contains(&format!("{expected}{of_column}").as_str()), "{words:?}");
            }
            // An integer would lose the hundredths.
            assert!(!words.contains(&format!("type Int64{of_column}").as_str()), "{words:?}");
            assert!(report.findings[0].advice.contains("type Utf8"), "{}", report.findings[0].advice);
        }
    }

    #[test]
    fn good_functions_are_not_blamed() {
        for name in
            ["ydb", "iceberg", "citus", "cassandra", "clickhouse-cityhash64", "spanner-shard", "neutral"]
        {
            for (keys, partitions) in [(512, 512), (50_000, 16), (100, 7), (3, 64)] {
                let report = lint_range(name, ColumnType::Int64, keys, partitions);
                assert!(!report.spread.is_defective(), "{name} {keys} {partitions}: {:?}", report.spread);
                assert!(report.alternatives.is_empty() && report.findings.is_empty());
            }
        }
        // The integers themselves are more even than chance.
        assert!(lint_range("hive-v1", ColumnType::Int64, 51_200, 512).spread.deviations < -10.0);
    }

    #[test]
    fn chance_is_never_blamed_whatever_the_numbers() {
        // A thousand ranges each, including few keys on many partitions, and many on few.
        for (keys, partitions) in
            [(2, 32), (6, 1000), (20, 10_000), (2, 64), (1000, 2), (1000, 4), (300, 16), (50, 50)]
        {
            for number in 0..1000i64 {
                let domain = Domain::range(number * keys..(number + 1) * keys, ColumnType::Int64).unwrap();
                let partitions = PartitionCount::new(partitions).unwrap();
                let options = LintOptions {
                    function: "neutral".parse().unwrap(),
                    partitions,
                    workers: None,
                    threads: None,
                };
                let report = lint(&domain, &options, &AtomicBool::new(false)).unwrap();
                assert!(report.findings.is_empty(), "{keys} {partitions} {number}: {:?}", report.spread);
            }
        }
    }

    #[test]
    fn workers_that_share_what_is_full_are_told_and_the_advice_is_no_circle() {
        // Multiples of 8: only one worker of 8 gets any.
        let numbers: ArrayRef =
            std::sync::Arc::new(arrow::array::Int64Array::from_iter_values((0..3000).map(|id| id * 8)));
        let domain = Domain {
            name: "multiples of 8".to_owned(),
            types: vec![ColumnType::Int64],
            columns: vec![numbers],
            notes: Vec::new(),
        };
        let with = |partitions| {
            let options = LintOptions {
                function: "hive-v1".parse().unwrap(),
                partitions: PartitionCount::new(partitions).unwrap(),
                workers: Some(8),
                threads: None,
            };
            lint(&domain, &options, &AtomicBool::new(false)).unwrap()
        };
        let report = with(16);
        assert_eq!(report.findings[0].code, FindingCode::HashDefect);
        for other in &report.alternatives {
            if let Some(partitions) = other.words.strip_suffix(" partitions") {
                assert!(with(partitions.parse().unwrap()).findings.is_empty(), "{}", other.words);
            }
        }
        // This few keys use few threads by chance.
        let few = LintOptions {
            function: "neutral".parse().unwrap(),
            partitions: PartitionCount::new(64).unwrap(),
            workers: Some(8),
            threads: Some(7),
        };
        let report =
            lint(&Domain::range(0..20, ColumnType::Int64).unwrap(), &few, &AtomicBool::new(false)).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }

    #[test]
    fn a_function_that_is_used_twice_leaves_threads_idle() {
        let options = LintOptions {
            function: "kafka".parse().unwrap(),
            partitions: PartitionCount::new(64).unwrap(),
            workers: Some(8),
            threads: Some(8),
        };
        let domain = Domain::range(0..10_000, ColumnType::Int64).unwrap();
        let report = lint(&domain, &options, &AtomicBool::new(false)).unwrap();
        let workers = report.workers.unwrap();
        // The worker and the thread are both hash % 8.
        assert_eq!((workers.fewest_threads, workers.threads), (Some(1), Some(8)));
        assert_eq!(report.findings[0].code, FindingCode::SameHashTwice);
        let odd = LintOptions { threads: Some(5), workers: Some(7), ..options };
        let report = lint(&domain, &odd, &AtomicBool::new(false)).unwrap();
        assert_eq!(report.workers.as_ref().unwrap().fewest_threads, Some(5));
        assert_eq!(report.findings[0].code, FindingCode::PartitionsDoNotDivide);
    }
}
