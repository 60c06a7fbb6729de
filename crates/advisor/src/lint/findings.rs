//! Findings about the spread of keys.

use evenkeel_model::finding::{Finding, FindingCode, Severity, Subject};
use evenkeel_model::table::ColumnType;
use evenkeel_stats::skew::BEYOND_CHANCE;

use crate::lint::Lint;
use crate::lint::alternatives::LintAlternative;
use crate::lint::spread::{HashSpread, Workers};

/// Largest ratio of a worker's partitions to the mean that is not a problem.
const MORE_PARTITIONS: f64 = 1.05;

/// Findings about the keys of `lint`. `is_even` says whether its function has ranges of equal
/// length; `types_tried` that are not alternatives do not help.
pub(super) fn findings(lint: &Lint, is_even: bool, types_tried: &[String]) -> Vec<Finding> {
    let of_keys = lint.spread.is_defective().then(|| match is_even {
        true => hash_defect(lint, types_tried),
        false => uneven_ranges(lint),
    });
    let of_workers = lint.workers.iter().flat_map(|workers| {
        [does_not_divide(lint, workers), aliases(lint, workers), same_hash_twice(workers)]
    });
    of_keys.into_iter().chain(of_workers.flatten()).collect()
}

fn uneven_ranges(lint: &Lint) -> Finding {
    let partitions = lint.spread.partitions;
    let over_mean = lint.spread.fullest as f64 * f64::from(partitions) / lint.keys as f64;
    Finding {
        code: FindingCode::UnevenRanges,
        severity: Severity::Note,
        subject: Subject::from(format!("{} over {partitions}", lint.function)),
        message: format!(
            "the fullest has {over_mean:.2} times the mean of the keys: its ranges are longer, regardless of the keys"
        ),
        measured: over_mean,
        threshold: 1.0,
        advice: "Use more tokens for each node, or let the system choose them (allocate_tokens_for_local_replication_factor).".to_owned(),
    }
}

fn hash_defect(lint: &Lint, types_tried: &[String]) -> Finding {
    let HashSpread { partitions, filled, expected_filled, deviations, short_of_filled, .. } = lint.spread;
    let worst = deviations.max(short_of_filled);
    let is_linear = partitions.is_power_of_two() && filled.is_power_of_two() && filled < partitions;
    let why = match (is_linear, lint.function.as_str()) {
        (true, "doris" | "starrocks" | "librdkafka") => {
            ": CRC is linear, so keys that differ in few bits reach only part of a power of two"
        }
        _ => "",
    };
    Finding {
        code: FindingCode::HashDefect,
        severity: Severity::Problem,
        subject: Subject::from(format!("{} over {partitions}", lint.function)),
        message: format!(
            "{filled} of {partitions} partitions have a key; a perfect hash fills {expected_filled:.0}; that is \
             {worst:.0} standard deviations from chance{why}"
        ),
        measured: worst,
        threshold: BEYOND_CHANCE,
        advice: advice(&lint.alternatives, types_tried),
    }
}

/// Advice about a defect: one of the alternatives, or another key.
fn advice(alternatives: &[LintAlternative], types_tried: &[String]) -> String {
    if alternatives.is_empty() {
        let types = match types_tried {
            [] => "no other type that the function accepts holds these keys".to_owned(),
            tried => format!("of other types of the key neither {} does", tried.join(" nor ")),
        };
        return format!(
            "No number of partitions nearby helps, and {types}: add a column to the key, or hash it yourself."
        );
    }
    let is_narrower =
        |other: &LintAlternative| matches!(other.column_type, Some(ColumnType::Int16 | ColumnType::Int32));
    let words: Vec<&str> = alternatives.iter().map(|other| other.words.as_str()).collect();
    let narrower = match alternatives.iter().any(is_narrower) {
        true => " A narrower type also says how large an id may become.",
        false => "",
    };
    format!("Use {}.{narrower}", words.join(", or "))
}

fn does_not_divide(lint: &Lint, workers: &Workers) -> Option<Finding> {
    let partitions = lint.spread.partitions;
    (workers.by_partitions > MORE_PARTITIONS).then(|| Finding {
        code: FindingCode::PartitionsDoNotDivide,
        severity: Severity::Warning,
        subject: Subject::from(format!("{partitions} partitions on {} workers", workers.workers)),
        message: format!(
            "one worker has {:.0} % more partitions than the mean, however evenly they are filled",
            (workers.by_partitions - 1.0) * 100.0
        ),
        measured: workers.by_partitions,
        threshold: MORE_PARTITIONS,
        advice: format!(
            "Choose a multiple of {} partitions, such as {}.",
            workers.workers,
            u64::from(partitions).next_multiple_of(u64::from(workers.workers))
        ),
    })
}

fn aliases(lint: &Lint, workers: &Workers) -> Option<Finding> {
    // Workers with more partitions have proportionally more keys, give or take the effect of
    // chance on a worker.
    let scatter = BEYOND_CHANCE * (f64::from(workers.workers) / lint.keys as f64).sqrt();
    let beyond_partitions = workers.max_over_mean > workers.by_partitions * (1.0 + scatter);
    let divides = workers.by_partitions <= 1.0;
    let aliases = workers.spread.is_defective() && (divides || beyond_partitions);
    (aliases && !lint.spread.is_defective()).then(|| Finding {
        code: FindingCode::WorkersAlias,
        severity: Severity::Problem,
        subject: Subject::from(format!("{} partitions on {} workers", lint.spread.partitions, workers.workers)),
        message: format!(
            "the fullest worker has {:.2} times the mean of the keys, {:.0} standard deviations from chance: \
             full partitions are assigned to the same workers",
            workers.max_over_mean,
            workers.spread.deviations.max(workers.spread.short_of_filled)
        ),
        measured: workers.max_over_mean,
        threshold: 1.0,
        advice: "Choose a number of workers that has no divisor in common with the distances of the keys, or another function.".to_owned(),
    })
}

fn same_hash_twice(workers: &Workers) -> Option<Finding> {
    let (threads, used) = (workers.threads?, f64::from(workers.fewest_threads?));
    let expected = workers.expected_threads?;
    (used * 2.0 <= expected && expected > 3.0).then(|| Finding {
        code: FindingCode::SameHashTwice,
        severity: Severity::Problem,
        subject: Subject::from(format!("{threads} threads of {} workers", workers.workers)),
        message: format!(
            "a worker uses {used} of its {threads} threads; chance uses {expected:.1}: what the partition fixes \
             of a hash is the same for all of its rows"
        ),
        measured: used,
        threshold: expected / 2.0,
        advice: "Spread rows within a worker by another function, or by a number that has no divisor in common with the partitions."
            .to_owned(),
    })
}
