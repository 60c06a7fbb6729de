//! Hash defects: whether a placement function spreads the keys that there really are as a perfect one would.
//!
//! Keys count once each, whatever rows they have, so that only the function is judged: by the partitions it leaves empty
//! ([`expected_empty_partitions`]), and by the chi-square sum, which for a perfect hash has the mean N - 1 and the variance
//! 2 (N - 1) (k - 1) / k (the moments of a multinomial count with equal probabilities).

mod domain;

use std::collections::BTreeSet;

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use serde::Serialize;
use thiserror::Error;

use crate::finding::{Finding, Severity};
use crate::placement::systems::Status;
use crate::placement::{Function, Placement, PlacementError};
use crate::skew::expected_empty_partitions;
use crate::source::SourceError;
use crate::table::ColumnType;
use crate::units::{PartitionCount, PartitionId};

pub use crate::lint::domain::{Domain, MOST_KEYS};

/// Standard deviations beyond which chance is no explanation.
const BEYOND_CHANCE: f64 = 5.0;
/// Numbers of partitions on either side that are tried in the place of one that aliases.
const NEAR: u32 = 64;
/// As many of those are shown.
const SHOWN: usize = 3;

/// Why there is no lint.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum LintError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
    #[error("there is no column '{column}'; there are: {}", known.join(", "))]
    UnknownColumn { column: String, known: Vec<String> },
    #[error("there are no keys")]
    NoKeys,
    #[error("interrupted")]
    Interrupted,
}

/// What is looked at.
#[derive(Debug, Clone)]
pub struct LintOptions {
    /// The placement function.
    pub function: Function,
    /// The number of partitions.
    pub partitions: PartitionCount,
    /// Workers that partitions are dealt to in turn.
    pub workers: Option<u32>,
    /// Threads that each worker spreads its rows over, by the same function.
    pub threads: Option<u32>,
}

/// How some keys are spread over partitions, beside what a perfect hash does with as many.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Partitions.
    pub partitions: u32,
    /// Those with a key.
    pub filled: u32,
    /// Those with a key under a perfect hash, on average.
    pub expected_filled: f64,
    /// Keys of the fullest partition.
    pub fullest: u64,
    /// Standard deviations by which the partitions with a key fall short of that.
    pub short_of_filled: f64,
    /// Standard deviations by which the chi-square sum exceeds its mean; below 0 keys are more even than by chance.
    pub deviations: f64,
}

impl Spread {
    /// Of keys by partition.
    fn of(counts: &[u64]) -> Self {
        let keys: u64 = counts.iter().sum();
        let (n, k) = (counts.len().max(1) as f64, keys.max(1) as f64);
        let mean = k / n;
        let chi_square: f64 = counts.iter().map(|count| (*count as f64 - mean).powi(2) / mean).sum();
        let deviation = (2.0 * (n - 1.0) * (k - 1.0) / k).sqrt();
        let filled = counts.iter().filter(|count| **count > 0).count() as u32;
        let (empty, scatter) = expected_empty_partitions(counts.len(), keys);
        let missing = (n - empty) - f64::from(filled);
        Self {
            // One partition more or less is none of the function's.
            short_of_filled: (missing - 1.0) / scatter.max(0.5),
            partitions: counts.len() as u32,
            filled,
            expected_filled: n - empty,
            fullest: counts.iter().copied().max().unwrap_or(0),
            deviations: if deviation > 0.0 { (chi_square - (n - 1.0)) / deviation } else { 0.0 },
        }
    }

    /// Whether it is more uneven than chance explains.
    #[must_use]
    pub fn is_defective(&self) -> bool {
        self.deviations.max(self.short_of_filled) > BEYOND_CHANCE
    }
}

/// How workers share the keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workers {
    /// Workers; worker w has the partitions p with p % workers = w.
    pub workers: u32,
    /// Keys of the fullest, over the mean.
    pub max_over_mean: f64,
    /// The same of a perfect share of the partitions: those of the worker with most of them.
    pub by_partitions: f64,
    /// Threads of each worker.
    pub threads: Option<u32>,
    /// The fewest threads that a worker with keys uses.
    pub fewest_threads: Option<u32>,
}

/// Another number of partitions, or another type, with which the function spreads the keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// In words: `511 partitions`, `Utf8`.
    pub words: String,
    /// What it does.
    #[serde(flatten)]
    pub spread: Spread,
}

/// What a function does with keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lint {
    /// The function.
    pub function: String,
    /// How far it is checked.
    pub status: Status,
    /// Where the keys are from.
    pub keys_of: String,
    /// Distinct keys.
    pub keys: u64,
    /// Types of the key.
    pub types: Vec<String>,
    /// What became of them.
    #[serde(flatten)]
    pub spread: Spread,
    /// Workers, where there are some.
    pub workers: Option<Workers>,
    /// What to take instead, the nearest first; none where nothing is wrong.
    pub alternatives: Vec<Alternative>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
}

/// Judges a placement function by keys.
///
/// # Errors
/// [`LintError`] where the function takes no such keys.
pub fn lint(domain: &Domain, options: &LintOptions) -> Result<Lint, LintError> {
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
    let spread = |hashes: &[u64], count: PartitionCount| -> Result<Spread, PlacementError> {
        let mut counts = vec![0u64; count.len()];
        for partition in placed(hashes, count)? {
            if let Some(count) = counts.get_mut(partition.index()) {
                *count += 1;
            }
        }
        Ok(Spread::of(&counts))
    };
    let found = spread(&hashes, options.partitions)?;
    let mut alternatives = Vec::new();
    let is_even = options.function.has_even_ranges();
    if found.is_defective() && is_even {
        let here = options.partitions.get();
        let near = (1..=NEAR).flat_map(|step| [here.checked_add(step), here.checked_sub(step)]).flatten();
        let near = near.filter(|count| *count > 1 && *count >= here / 2);
        for count in near {
            if alternatives.len() == SHOWN {
                break;
            }
            let Ok(count) = PartitionCount::new(u64::from(count)) else { continue };
            let other = spread(&hashes, count)?;
            if !other.is_defective() {
                alternatives
                    .push(Alternative { words: format!("{} partitions", count.get()), spread: other });
            }
        }
        for (column_type, types, columns) in domain.other_types() {
            // A type that the function does not take is no alternative.
            let Ok(hashes) = of(&types, &columns) else { continue };
            let other = spread(&hashes, options.partitions)?;
            if !other.is_defective() {
                alternatives.push(Alternative { words: format!("type {column_type}"), spread: other });
            }
        }
    }
    let workers = options.workers.map(|workers| -> Result<Workers, PlacementError> {
        let partitions = placed(&hashes, options.partitions)?;
        let threads = options.threads.and_then(|threads| PartitionCount::new(u64::from(threads)).ok());
        let threads =
            threads.map(|count| Ok::<_, PlacementError>((count, placed(&hashes, count)?))).transpose()?;
        Ok(Workers::of(workers.max(1), options.partitions, &partitions, threads))
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
    lint.findings = findings(&lint, is_even);
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
        let over_mean = |most: f64, all: f64| most / (all / f64::from(workers)).max(f64::MIN_POSITIVE);
        let fewest = used.iter().zip(&keys).filter(|(_, keys)| **keys > 0).map(|(used, _)| used.len() as u32);
        Self {
            workers,
            max_over_mean: over_mean(keys.iter().copied().max().unwrap_or(0) as f64, placed.len() as f64),
            by_partitions: over_mean(
                f64::from(partitions.get().div_ceil(workers)),
                f64::from(partitions.get()),
            ),
            fewest_threads: threads.is_some().then(|| fewest.min().unwrap_or(0)),
            threads: threads.map(|(count, _)| count.get()),
        }
    }
}

fn findings(lint: &Lint, is_even: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Spread { partitions, filled, expected_filled, deviations, short_of_filled, .. } = lint.spread;
    if lint.spread.is_defective() && !is_even {
        let over_mean = lint.spread.fullest as f64 * f64::from(partitions) / lint.keys as f64;
        findings.push(Finding {
            code: "uneven_ranges",
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
            code: "hash_defect",
            severity: Severity::Problem,
            subject: format!("{} over {partitions}", lint.function),
            message: format!(
                "{filled} of {partitions} partitions have a key where a perfect hash fills {expected_filled:.0}; that is {worst:.0} \
                 standard deviations from chance{why}"
            ),
            measured: worst,
            threshold: BEYOND_CHANCE,
            advice: match lint.alternatives.as_slice() {
                [] => "No number of partitions nearby and no other type of the key helps: add a column to the key, or hash it yourself."
                    .to_owned(),
                some => format!(
                    "Take {}.{}",
                    some.iter().map(|other| other.words.as_str()).collect::<Vec<_>>().join(", or "),
                    match some.iter().any(|other| ["type Int16", "type Int32"].contains(&other.words.as_str())) {
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
                code: "partitions_do_not_divide",
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
        if let (Some(threads), Some(used)) = (workers.threads, workers.fewest_threads)
            && used * 2 <= threads
        {
            findings.push(Finding {
                code: "same_hash_twice",
                severity: Severity::Problem,
                subject: format!("{threads} threads of {} workers", workers.workers),
                message: format!("a worker uses {used} of its {threads} threads: what the partition fixes of a hash is the same for all of its rows"),
                measured: f64::from(used),
                threshold: f64::from(threads) / 2.0,
                advice: "Spread rows within a worker by another function, or by a number that has no divisor in common with the partitions."
                    .to_owned(),
            });
        }
    }
    findings
}

/// A column as another type, where each of its values has one.
pub(crate) fn as_type(column: &ArrayRef, column_type: ColumnType) -> Option<ArrayRef> {
    let wanted = column_type.arrow_type();
    let found = cast(column, &wanted).ok()?;
    // What does not fit becomes NULL.
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
        lint(&Domain::range(0..keys, column_type).unwrap(), &options).unwrap()
    }

    #[test]
    fn the_defect_of_issue_66231_is_found_and_its_cure() {
        let found = lint_range("doris", ColumnType::Int64, 512, 512);
        assert_eq!((found.spread.filled, found.spread.fullest), (128, 4));
        // 512 (1 - 1/e), by a perfect hash.
        assert!((found.spread.expected_filled - 323.8).abs() < 0.5, "{}", found.spread.expected_filled);
        assert_eq!(found.findings[0].code, "hash_defect");
        assert!(found.findings[0].message.contains("CRC is linear"), "{:?}", found.findings);
        assert!(found.alternatives.iter().all(|other| !other.spread.is_defective()));
        assert!(found.alternatives.iter().any(|other| other.words.ends_with("partitions")));
        assert!(
            found.alternatives.iter().any(|other| other.words == "type Utf8"),
            "{:?}",
            found.alternatives
        );
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
    fn chance_is_within_its_deviations() {
        let counts = [10u64, 12, 8, 11, 9, 10];
        let spread = Spread::of(&counts);
        // (0 + 4 + 4 + 1 + 1 + 0) / 10, of 5 degrees of freedom.
        let expected = (1.0 - 5.0) / (10.0f64 * 59.0 / 60.0).sqrt();
        assert!((spread.deviations - expected).abs() < 1e-12);
        assert_eq!((spread.filled, spread.fullest), (6, 12));
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
        let found = lint(&domain, &options).unwrap();
        let workers = found.workers.unwrap();
        // The worker is hash % 8, and so is the thread.
        assert_eq!((workers.fewest_threads, workers.threads), (Some(1), Some(8)));
        assert_eq!(found.findings[0].code, "same_hash_twice");
        let odd = LintOptions { threads: Some(5), workers: Some(7), ..options };
        let found = lint(&domain, &odd).unwrap();
        assert_eq!(found.workers.as_ref().unwrap().fewest_threads, Some(5));
        assert_eq!(found.findings[0].code, "partitions_do_not_divide");
    }
}
