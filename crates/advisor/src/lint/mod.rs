//! Hash defects: whether a placement function spreads the given keys as a perfect one would.
//!
//! Keys count once each, whatever rows they have, so that only the function is judged: by the
//! partitions that it leaves empty ([`expected_empty_partitions`]), and by the pairs of keys that
//! share a partition, of which chance makes k (k - 1) / (2 N).

mod domain;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use serde::Serialize;
use thiserror::Error;

use evenkeel_input::source::SourceError;
use evenkeel_model::bounded::{names, quote};
use evenkeel_model::finding::{Finding, FindingCode, Severity};
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::{PartitionCount, PartitionId};
use evenkeel_placement::placement::systems::Status;
use evenkeel_placement::placement::{Function, Placement, PlacementError};
use evenkeel_stats::skew::{BEYOND_CHANCE, deviations_of_pairs, expected_empty_partitions};

use crate::lint::domain::OtherType;
pub use crate::lint::domain::{Domain, MOST_KEYS};

/// Numbers of partitions on either side that are tried in place of one that aliases.
const NEAR: u32 = 64;
/// Number of those that are shown.
const SHOWN: usize = 3;

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
    /// Number of partitions.
    pub partitions: PartitionCount,
    /// Number of workers that partitions are assigned to in turn.
    pub workers: Option<u32>,
    /// Number of threads that each worker spreads its rows over, by the same function.
    pub threads: Option<u32>,
}

/// Spread of keys over partitions, compared with a perfect hash of as many keys.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Number of partitions.
    pub partitions: u32,
    /// Number of partitions with a key.
    pub filled: u32,
    /// Average number of partitions with a key under a perfect hash.
    pub expected_filled: f64,
    /// Keys of the fullest partition.
    pub fullest: u64,
    /// Standard deviations by which the partitions with a key fall short of that.
    pub short_of_filled: f64,
    /// Standard deviations by which the chi-square sum exceeds its mean; below 0, keys are more
    /// even than by chance.
    pub deviations: f64,
}

impl Spread {
    /// Computes the spread from the number of keys per partition.
    fn of(counts: &[u64]) -> Self {
        let keys: u64 = counts.iter().sum();
        let (n, k) = (counts.len().max(1) as f64, keys.max(1) as f64);
        let pairs: f64 = counts.iter().map(|count| (*count as f64) * (*count as f64 - 1.0) / 2.0).sum();
        let filled = counts.iter().filter(|count| **count > 0).count() as u32;
        let (empty, scatter) = expected_empty_partitions(counts.len(), keys);
        let missing = (n - empty) - f64::from(filled);
        Self {
            // One partition more or less is not the function's fault.
            short_of_filled: (missing - 1.0) / scatter.max(0.5),
            partitions: counts.len() as u32,
            filled,
            expected_filled: n - empty,
            fullest: counts.iter().copied().max().unwrap_or(0),
            deviations: deviations_of_pairs(k, counts.len(), pairs),
        }
    }

    /// Whether the spread is more uneven than chance explains.
    #[must_use]
    pub fn is_defective(&self) -> bool {
        self.deviations.max(self.short_of_filled) > BEYOND_CHANCE
    }
}

/// Distribution of the keys over workers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workers {
    /// Number of workers; worker w has the partitions p with p % workers = w.
    pub workers: u32,
    /// Spread of the keys over workers.
    #[serde(skip)]
    pub spread: Spread,
    /// Keys of the fullest worker, over the mean.
    pub max_over_mean: f64,
    /// Partitions of the worker with the most of them, over the mean, if they are shared perfectly.
    pub by_partitions: f64,
    /// Number of threads of each worker.
    pub threads: Option<u32>,
    /// Threads used by the worker that falls furthest short of its expectation by chance.
    pub fewest_threads: Option<u32>,
    /// Threads that this worker is expected to use by chance.
    pub expected_threads: Option<f64>,
}

/// Another number of partitions, or another type, with which the function spreads the keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// Description: `511 partitions`, `type Utf8`.
    pub words: String,
    /// Type; `None` for another number of partitions.
    #[serde(skip)]
    pub column_type: Option<ColumnType>,
    /// Spread of the keys under the alternative.
    #[serde(flatten)]
    pub spread: Spread,
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
    /// Types of the key.
    pub types: Vec<String>,
    /// Spread of the keys.
    #[serde(flatten)]
    pub spread: Spread,
    /// Workers, if there are any.
    pub workers: Option<Workers>,
    /// Alternatives, the nearest first; empty if nothing is wrong.
    pub alternatives: Vec<Alternative>,
    /// Problems that were found.
    pub findings: Vec<Finding>,
    /// Further notes.
    pub notes: Vec<String>,
}

/// Judges a placement function by keys.
///
/// # Errors
/// [`LintError`] if the function does not accept such keys.
pub fn lint(domain: &Domain, options: &LintOptions, stop: &AtomicBool) -> Result<Lint, LintError> {
    if domain.keys() == 0 {
        return Err(LintError::NoKeys);
    }
    let of = |types: &[ColumnType], columns: &[ArrayRef]| options.function.hash(types, columns);
    let hashes = of(&domain.types, &domain.columns)?;
    let placed = |hashes: &[u64], count: PartitionCount| -> Result<Vec<PartitionId>, PlacementError> {
        let placement = Placement::new(options.function, count, domain.types.clone());
        let mut partitions = Vec::with_capacity(hashes.len());
        placement.assign_hashes(hashes, &domain.columns, &mut partitions)?;
        Ok(partitions)
    };
    let spread = |placed: &[PartitionId], count: PartitionCount| {
        let mut counts = vec![0u64; count.len()];
        for partition in placed {
            if let Some(count) = counts.get_mut(partition.index()) {
                *count += 1;
            }
        }
        Spread::of(&counts)
    };
    let here = placed(&hashes, options.partitions)?;
    let found = spread(&here, options.partitions);
    let (mut alternatives, mut types_tried) = (Vec::new(), Vec::new());
    let is_even = options.function.has_even_ranges();
    if found.is_defective() && is_even {
        let asked = options.partitions.get();
        let near = (1..=NEAR).flat_map(|step| [asked.checked_add(step), asked.checked_sub(step)]).flatten();
        // With workers, only multiples of their number are tried.
        let unit = options.workers.unwrap_or(1).max(1);
        let near = near.map(|count| count.div_ceil(unit) * unit);
        let near = near.filter(|count| *count > 1 && *count >= asked / 2 && *count != asked);
        let mut tried = BTreeSet::new();
        for count in near {
            if alternatives.len() == SHOWN {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                return Err(LintError::Interrupted);
            }
            if !tried.insert(count) {
                continue;
            }
            let Ok(count) = PartitionCount::new(u64::from(count)) else { continue };
            let there = placed(&hashes, count)?;
            let other = spread(&there, count);
            let of_workers = Workers::of(unit, count, &there, None);
            if !other.is_defective() && !of_workers.spread.is_defective() {
                let words = format!("{} partitions", count.get());
                alternatives.push(Alternative { words, column_type: None, spread: other });
            }
        }
        for OtherType { words, column_type, types, columns } in domain.other_types() {
            // A type that the function does not accept is no alternative.
            let placement = Placement::new(options.function, options.partitions, types.clone());
            let mut there = Vec::with_capacity(domain.keys());
            let Ok(hashes) = of(&types, &columns) else { continue };
            if placement.assign_hashes(&hashes, &columns, &mut there).is_err() {
                continue;
            }
            let other = spread(&there, options.partitions);
            if !other.is_defective() {
                let (words, column_type) = (words.clone(), Some(column_type));
                alternatives.push(Alternative { words, column_type, spread: other });
            }
            types_tried.push(words);
        }
    }
    let workers = options.workers.map(|workers| -> Result<Workers, PlacementError> {
        let threads = options.threads.and_then(|threads| PartitionCount::new(u64::from(threads)).ok());
        let threads =
            threads.map(|count| Ok::<_, PlacementError>((count, placed(&hashes, count)?))).transpose()?;
        Ok(Workers::of(workers.max(1), options.partitions, &here, threads))
    });
    let workers = workers.transpose()?;
    let mut lint = Lint {
        function: options.function.to_string(),
        status: options.function.status(&domain.types),
        keys_of: domain.name.clone(),
        keys: domain.keys() as u64,
        types: domain.types.iter().map(ToString::to_string).collect(),
        spread: found,
        workers,
        alternatives,
        findings: Vec::new(),
        notes: domain.notes.clone(),
    };
    lint.findings = findings(&lint, is_even, &types_tried);
    Ok(lint)
}

impl Workers {
    fn of(
        workers: u32,
        partitions: PartitionCount,
        placed: &[PartitionId],
        threads: Option<(PartitionCount, Vec<PartitionId>)>,
    ) -> Self {
        let mut keys = vec![0u64; workers as usize];
        let mut used: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); workers as usize];
        for (row, partition) in placed.iter().enumerate() {
            let worker = (partition.0 % workers) as usize;
            if let Some(keys) = keys.get_mut(worker) {
                *keys += 1;
            }
            let thread = threads.as_ref().and_then(|(_, threads)| threads.get(row));
            if let (Some(used), Some(thread)) = (used.get_mut(worker), thread) {
                used.insert(thread.0);
            }
        }
        let spread = Spread::of(&keys);
        let expected_threads =
            |keys: u64, threads: f64| threads * (1.0 - (1.0 - 1.0 / threads).powf(keys as f64));
        let over_mean = |most: f64, all: f64| most / (all / f64::from(workers)).max(f64::MIN_POSITIVE);
        // For the worker that falls furthest short: threads used, and threads expected by chance.
        let short = threads.as_ref().and_then(|(count, _)| {
            let of_worker = used.iter().zip(&keys).filter(|(_, keys)| **keys > 0);
            let pairs = of_worker
                .map(|(used, keys)| (used.len() as u32, expected_threads(*keys, f64::from(count.get()))));
            pairs.min_by(|a, b| (f64::from(a.0) / a.1).total_cmp(&(f64::from(b.0) / b.1)))
        });
        Self {
            spread,
            workers,
            max_over_mean: over_mean(keys.iter().copied().max().unwrap_or(0) as f64, placed.len() as f64),
            by_partitions: over_mean(
                f64::from(partitions.get().div_ceil(workers)),
                f64::from(partitions.get()),
            ),
            fewest_threads: short.map(|(used, _)| used),
            expected_threads: short.map(|(_, expected)| expected),
            threads: threads.map(|(count, _)| count.get()),
        }
    }
}

fn findings(lint: &Lint, is_even: bool, types_tried: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Spread { partitions, filled, expected_filled, deviations, short_of_filled, .. } = lint.spread;
    if lint.spread.is_defective() && !is_even {
        let over_mean = lint.spread.fullest as f64 * f64::from(partitions) / lint.keys as f64;
        findings.push(Finding {
            code: FindingCode::UnevenRanges,
            severity: Severity::Note,
            subject: format!("{} over {partitions}", lint.function),
            message: format!("the fullest has {over_mean:.2} times the mean of the keys: its ranges are longer, whatever the keys"),
            measured: over_mean,
            threshold: 1.0,
            advice: "Take more tokens for each node, or let the system choose them (allocate_tokens_for_local_replication_factor).".to_owned(),
        });
    } else if lint.spread.is_defective() {
        let worst = deviations.max(short_of_filled);
        let linear = partitions.is_power_of_two() && filled.is_power_of_two() && filled < partitions;
        let why = match (linear, lint.function.as_str()) {
            (true, "doris" | "starrocks" | "librdkafka") => {
                ": CRC is linear, so that keys which differ in few bits reach a part of a power of two alone"
            }
            _ => "",
        };
        findings.push(Finding {
            code: FindingCode::HashDefect,
            severity: Severity::Problem,
            subject: format!("{} over {partitions}", lint.function),
            message: format!(
                "{filled} of {partitions} partitions have a key where a perfect hash fills {expected_filled:.0}; that is {worst:.0} \
                 standard deviations from chance{why}"
            ),
            measured: worst,
            threshold: BEYOND_CHANCE,
            advice: match lint.alternatives.as_slice() {
                [] => format!(
                    "No number of partitions nearby helps, and {}: add a column to the key, or hash it yourself.",
                    match types_tried {
                        [] => "no other type that the function takes holds these keys".to_owned(),
                        tried => format!("of other types of the key neither {} does", tried.join(" nor ")),
                    }
                ),
                some => format!(
                    "Take {}.{}",
                    some.iter().map(|other| other.words.as_str()).collect::<Vec<_>>().join(", or "),
                    match some.iter().any(|other| {
                        matches!(other.column_type, Some(ColumnType::Int16 | ColumnType::Int32))
                    }) {
                        true => " A narrower type also says how large an id may become.",
                        false => "",
                    }
                ),
            },
        });
    }
    if let Some(workers) = &lint.workers {
        if workers.by_partitions > 1.05 {
            findings.push(Finding {
                code: FindingCode::PartitionsDoNotDivide,
                severity: Severity::Warning,
                subject: format!("{partitions} partitions on {} workers", workers.workers),
                message: format!(
                    "one worker has {:.0} % more partitions than the mean, however evenly they are filled",
                    (workers.by_partitions - 1.0) * 100.0
                ),
                measured: workers.by_partitions,
                threshold: 1.05,
                advice: format!(
                    "Take a multiple of {} partitions, such as {}.",
                    workers.workers,
                    u64::from(partitions).next_multiple_of(u64::from(workers.workers))
                ),
            });
        }
        // Workers with more partitions have proportionally more keys, give or take the effect of
        // chance on a worker.
        let scatter = BEYOND_CHANCE * (f64::from(workers.workers) / lint.keys as f64).sqrt();
        let beyond_partitions = workers.max_over_mean > workers.by_partitions * (1.0 + scatter);
        let divides = workers.by_partitions <= 1.0;
        let aliases = workers.spread.is_defective() && (divides || beyond_partitions);
        if aliases && !lint.spread.is_defective() {
            findings.push(Finding {
                code: FindingCode::WorkersAlias,
                severity: Severity::Problem,
                subject: format!("{partitions} partitions on {} workers", workers.workers),
                message: format!(
                    "the fullest worker has {:.2} times the mean of the keys, {:.0} standard deviations from chance: partitions that are full are dealt \
                     to the same ones",
                    workers.max_over_mean,
                    workers.spread.deviations.max(workers.spread.short_of_filled)
                ),
                measured: workers.max_over_mean,
                threshold: 1.0,
                advice: "Take a number of workers that has no divisor in common with the distances of the keys, or another function.".to_owned(),
            });
        }
        if let (Some(threads), Some(used), Some(expected)) =
            (workers.threads, workers.fewest_threads, workers.expected_threads)
            && f64::from(used) * 2.0 <= expected
            && expected > 3.0
        {
            findings.push(Finding {
                code: FindingCode::SameHashTwice,
                severity: Severity::Problem,
                subject: format!("{threads} threads of {} workers", workers.workers),
                message: format!("a worker uses {used} of its {threads} threads where chance uses {expected:.1}: what the partition fixes of a hash is the same for all of its rows"),
                measured: f64::from(used),
                threshold: expected / 2.0,
                advice: "Spread rows within a worker by another function, or by a number that has no divisor in common with the partitions."
                    .to_owned(),
            });
        }
    }
    findings
}

/// Converts a column to another type, if each of its values has an equivalent.
pub fn as_type(column: &ArrayRef, column_type: ColumnType) -> Option<ArrayRef> {
    let wanted = column_type.arrow_type();
    let found = cast(column, &wanted).ok()?;
    // Values that do not fit become NULL.
    let lost = found.null_count() > column.null_count() || column.data_type() == &DataType::Null;
    (!lost).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let found = lint_range("doris", ColumnType::Int64, 512, 512);
        assert_eq!((found.spread.filled, found.spread.fullest), (128, 4));
        // 512 (1 - 1/e), by a perfect hash.
        assert!((found.spread.expected_filled - 323.8).abs() < 0.5, "{}", found.spread.expected_filled);
        assert_eq!(found.findings[0].code, FindingCode::HashDefect);
        assert!(found.findings[0].message.contains("CRC is linear"), "{:?}", found.findings);
        assert!(found.alternatives.iter().all(|other| !other.spread.is_defective()));
        assert!(found.alternatives.iter().any(|other| other.words.ends_with("partitions")));
        assert!(
            found.alternatives.iter().any(|other| other.column_type == Some(ColumnType::Utf8)),
            "{:?}",
            found.alternatives
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
            let found = lint_of(types, columns);
            assert_eq!((found.spread.filled, found.findings[0].code), (1, FindingCode::HashDefect));
            let words: Vec<&str> = found.alternatives.iter().map(|other| other.words.as_str()).collect();
            for expected in ["type Utf8", "type Int64, in units of 1e-2"] {
                assert!(words.contains(&format!("{expected}{of_column}").as_str()), "{words:?}");
            }
            // An integer would lose the hundredths.
            assert!(!words.contains(&format!("type Int64{of_column}").as_str()), "{words:?}");
            assert!(found.findings[0].advice.contains("type Utf8"), "{}", found.findings[0].advice);
        }
    }

    #[test]
    fn good_functions_are_not_blamed() {
        for name in
            ["ydb", "iceberg", "citus", "cassandra", "clickhouse-cityhash64", "spanner-shard", "neutral"]
        {
            for (keys, partitions) in [(512, 512), (50_000, 16), (100, 7), (3, 64)] {
                let found = lint_range(name, ColumnType::Int64, keys, partitions);
                assert!(!found.spread.is_defective(), "{name} {keys} {partitions}: {:?}", found.spread);
                assert!(found.alternatives.is_empty() && found.findings.is_empty());
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
                let found = lint(&domain, &options, &AtomicBool::new(false)).unwrap();
                assert!(found.findings.is_empty(), "{keys} {partitions} {number}: {:?}", found.spread);
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
        let found = with(16);
        assert_eq!(found.findings[0].code, FindingCode::HashDefect);
        for other in &found.alternatives {
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
        let found =
            lint(&Domain::range(0..20, ColumnType::Int64).unwrap(), &few, &AtomicBool::new(false)).unwrap();
        assert!(found.findings.is_empty(), "{:?}", found.findings);
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
        let found = lint(&domain, &options, &AtomicBool::new(false)).unwrap();
        let workers = found.workers.unwrap();
        // The worker and the thread are both hash % 8.
        assert_eq!((workers.fewest_threads, workers.threads), (Some(1), Some(8)));
        assert_eq!(found.findings[0].code, FindingCode::SameHashTwice);
        let odd = LintOptions { threads: Some(5), workers: Some(7), ..options };
        let found = lint(&domain, &odd, &AtomicBool::new(false)).unwrap();
        assert_eq!(found.workers.as_ref().unwrap().fewest_threads, Some(5));
        assert_eq!(found.findings[0].code, FindingCode::PartitionsDoNotDivide);
    }
}
