//! Problems of how a partition key spreads rows, and of its values.

use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::partition_key::{PartitionKeyReport, PlacementReport};
use crate::evaluate::figures::pattern::Pattern;
use crate::evaluate::nulls::can_be_filled_in;
use crate::evaluate::verdict::findings::words::{hash, percent};
use evenkeel_model::finding::{Finding, FindingCode, Severity, Subject};
use evenkeel_placement::placement::Function;
use evenkeel_stats::skew::{EVEN_MAX_OVER_MEAN, MIN_KEYS_PER_PARTITION, Verdict};

/// Max/mean above which an uneven key is a problem: the fullest partition has half as much again as
/// its share.
const PROBLEM_MAX_OVER_MEAN: f64 = 1.5;

/// Adds the problems of how a key spreads rows. They follow the verdict: an even key has notes at
/// most, and any other key has a reason.
pub(super) fn balance(key: &PartitionKeyReport, placement: &PlacementReport, findings: &mut Vec<Finding>) {
    // Too few rows are reported once, for all keys.
    if matches!(placement.verdict, Verdict::Empty | Verdict::FewRows) {
        return;
    }
    let before = findings.len();
    hotspot(key, placement, findings);
    few_keys(key, placement, findings);
    heavy_key(key, placement, findings);
    beyond_chance(key, placement, findings);
    let explained = findings.iter().skip(before).any(|finding| finding.severity != Severity::Note)
        || is_defect_of_system(placement);
    if placement.verdict != Verdict::Even && !explained {
        findings.push(uneven(key, placement));
    }
}

/// Severity of an uneven key, by its unevenness.
fn severity(placement: &PlacementReport) -> Severity {
    if placement.skew.max_over_mean > PROBLEM_MAX_OVER_MEAN { Severity::Problem } else { Severity::Warning }
}

fn hotspot(key: &PartitionKeyReport, placement: &PlacementReport, findings: &mut Vec<Finding>) {
    let Some(time) = &placement.over_time else { return };
    let (code, how, advice) = match time.pattern {
        Pattern::Even => return,
        Pattern::Sequential => (
            FindingCode::MovingHotspot,
            ", others each time",
            "Either the key follows time, or only a few of its values have rows at one time, such as sessions. If it follows \
             time, hash a column with many values at any moment instead, or add one to the key; otherwise this matters \
             only if a partition cannot handle the load.",
        ),
        Pattern::Periodic => (
            FindingCode::PeriodicHotspot,
            ", and they return",
            "The key follows the clock. Hash a column with many values at any moment instead, or add one to the key.",
        ),
        Pattern::Concentrated => (
            FindingCode::ConstantHotspot,
            ", always the same",
            "A few values have most rows. Add a column to the key that splits them.",
        ),
    };
    let partitions = placement.skew.partitions;
    findings.push(Finding {
        code,
        severity: Severity::Problem,
        subject: hash(key),
        message: format!(
            "at any moment ({}) {:.1} of {partitions} partitions are active, and the fullest gets {} of the rows{how}",
            time.examined_words(),
            time.lasting_effective_partitions.median,
            percent(time.lasting_share_of_fullest.median),
        ),
        measured: time.lasting_effective_partitions.median,
        threshold: 1.0 + (partitions as f64 - 1.0) / 2.0,
        advice: advice.to_owned(),
    });
}

fn few_keys(key: &PartitionKeyReport, placement: &PlacementReport, findings: &mut Vec<Finding>) {
    let per_partition = placement.noise_floor.keys_per_partition;
    // If each row brings a new key, there are as few keys as rows.
    let follow_rows = placement.noise_floor.keys_follow_rows(placement.skew.rows);
    if per_partition >= MIN_KEYS_PER_PARTITION as f64 || follow_rows {
        return;
    }
    findings.push(Finding {
        code: FindingCode::FewDistinctKeys,
        severity: match placement.verdict {
            Verdict::Even => Severity::Note,
            _ if per_partition < 1.0 => Severity::Problem,
            _ => Severity::Warning,
        },
        subject: hash(key),
        message: format!(
            "{} distinct values for {} partitions, {per_partition:.1} for each",
            key.distinct.estimate, placement.skew.partitions
        ),
        measured: per_partition,
        threshold: MIN_KEYS_PER_PARTITION as f64,
        advice: match is_ydb(placement) {
            true => {
                "YDB advises 100 to 1000 distinct values for each partition. Choose fewer partitions; or add a column, if reads of one value may visit all of them."
            }
            false => "This few values fill partitions unevenly by chance alone. Choose fewer partitions; or add a column, if reads of one value may visit all of them.",
        }
        .to_owned(),
    });
}

fn heavy_key(key: &PartitionKeyReport, placement: &PlacementReport, findings: &mut Vec<Finding>) {
    let due = 1.0 / placement.skew.partitions as f64;
    let heaviest = placement.noise_floor.heaviest_key_share;
    if heaviest <= due || key.distinct.estimate < 2 {
        return;
    }
    findings.push(Finding {
        code: FindingCode::HeavyKey,
        severity: match placement.verdict {
            Verdict::Even => Severity::Note,
            _ if heaviest > 2.0 * due => Severity::Problem,
            _ => Severity::Warning,
        },
        subject: hash(key),
        message: format!(
            "one value has {} of the rows; its partition gets {} instead of its share of {}",
            percent(heaviest),
            percent(placement.share_of_heaviest_partition),
            percent(due)
        ),
        measured: heaviest,
        threshold: due,
        advice: "No number of partitions splits one value. Add a column to the key that does.".to_owned(),
    });
}

/// Whether [`defects`] reports the placement.
fn is_defect_of_system(placement: &PlacementReport) -> bool {
    !is_ydb(placement) && placement.leaves_empty()
}

fn beyond_chance(key: &PartitionKeyReport, placement: &PlacementReport, findings: &mut Vec<Finding>) {
    let leaves_empty = placement.leaves_empty();
    let is_even = placement.verdict == Verdict::Even;
    if is_even || is_defect_of_system(placement) || (placement.causes.hash_function <= 0.0 && !leaves_empty) {
        return;
    }
    let even_ranges = placement.has_even_ranges();
    findings.push(Finding {
        code: if even_ranges { FindingCode::HashDefect } else { FindingCode::UnevenRanges },
        severity: match (even_ranges, severity(placement)) {
            (true, _) => Severity::Problem,
            (false, Severity::Problem) => Severity::Warning,
            (false, _) => Severity::Note,
        },
        subject: hash(key),
        message: match leaves_empty {
            true => format!(
                "{} of {} partitions have no key; chance leaves {:.0} empty",
                placement.skew.empty_partitions, placement.skew.partitions, placement.empty_by_chance
            ),
            false => format!(
                "the CV is {}; {} is expected for these keys",
                percent(placement.skew.cv),
                percent(placement.noise_floor.expected_cv_weighted)
            ),
        },
        measured: placement.skew.cv,
        threshold: placement.noise_floor.expected_cv_weighted,
        advice: if !even_ranges {
            "Its ranges are unequal, whatever the keys: use more tokens for each node, or let the system choose them."
        } else if placement.has_active_partitions() {
            "This function has few active partitions at any moment, and spreads rows over all of them only over time."
        } else {
            "The hash function itself sends these keys to few partitions. Decimal columns add nothing to the hash of YDB, and \
             text columns are joined without a separator; choose another column or another number of partitions."
        }
        .to_owned(),
    });
}

/// Returns the finding for an uneven key that nothing else explains.
fn uneven(key: &PartitionKeyReport, placement: &PlacementReport) -> Finding {
    Finding {
        code: FindingCode::UnevenPartitions,
        severity: severity(placement),
        subject: hash(key),
        message: format!(
            "the fullest partition has {:.2} times its share: {}",
            placement.skew.max_over_mean, placement.causes.words
        ),
        measured: placement.skew.max_over_mean,
        threshold: EVEN_MAX_OVER_MEAN,
        advice: match placement.verdict {
            Verdict::HeavyKeys => "Keys differ in rows. Add a column to the key that splits the heavy ones, or choose fewer partitions.",
            Verdict::FewKeys => "This many partitions need more keys. Choose fewer partitions; or add a column, if reads of one value may visit all of them.",
            _ => "Choose another column, or another number of partitions.",
        }
        .to_owned(),
    }
}

pub(super) fn values(key: &PartitionKeyReport, rows: u64, findings: &mut Vec<Finding>) {
    if !key.candidate.is_plain() {
        findings.push(Finding {
            code: FindingCode::DerivedKey,
            severity: Severity::Note,
            subject: hash(key),
            message: "a part of it is derived, but YDB hashes only stored columns".to_owned(),
            measured: 1.0,
            threshold: 0.0,
            advice:
                "To use it, store the derived value in a separate column, and name that column in statements."
                    .to_owned(),
        });
    }
    if key.null_rows > 0 {
        findings.push(Finding {
            code: FindingCode::NullKeys,
            severity: match can_be_filled_in(key.null_rows, rows) {
                true => Severity::Warning,
                false => Severity::Problem,
            },
            subject: hash(key),
            message: format!("{} of {rows} rows have NULL in the key", key.null_rows),
            measured: key.null_rows as f64,
            threshold: 0.0,
            advice: match key.placements.first().is_none_or(is_ydb) {
                true => "Key columns are NOT NULL: give these rows values of their own (a common one puts them all into one partition), or leave the column out of the key.",
                false => "Many systems accept no NULL in such a key: give these rows values of their own, or leave the column out of it.",
            }
            .to_owned(),
        });
    }
    if let Some(obstacle) = &key.type_obstacle {
        findings.push(Finding {
            code: FindingCode::KeyType,
            severity: Severity::Problem,
            subject: hash(key),
            message: obstacle.clone(),
            measured: 1.0,
            threshold: 0.0,
            advice: "Choose another column, or store it as a type that YDB accepts in keys.".to_owned(),
        });
    }
}

/// Adds a finding for each function of another system that leaves partitions empty that chance
/// would fill.
pub(super) fn defects(key: &PartitionKeyReport, findings: &mut Vec<Finding>) {
    let of_systems = key.placements.iter().filter(|placement| !is_ydb(placement));
    for placement in of_systems.filter(|placement| placement.leaves_empty()) {
        let (empty, partitions) = (placement.skew.empty_partitions, placement.skew.partitions);
        findings.push(Finding {
            code: FindingCode::HashDefect,
            severity: Severity::Problem,
            subject: Subject::Placement {
                key: key.partition_key.clone(),
                function: placement.function.to_string(),
                partitions,
            },
            message: format!(
                "{empty} of {partitions} partitions have no key; chance leaves {:.0} empty",
                placement.empty_by_chance
            ),
            measured: empty as f64,
            threshold: placement.empty_by_chance,
            advice: match key.candidate.is_plain() {
                true => format!(
                    "'evenkeel lint FILE --key {} --placement {} --partitions {partitions}', with the same --type, finds a number of partitions or a type without \
                     this defect.",
                    key.partition_key.join(","),
                    placement.function
                ),
                false => "Choose another number of partitions, or another key.".to_owned(),
            },
        });
    }
}

/// Adds a finding if the weights do not divide the partitions.
pub(super) fn node_counts(evaluation: &Evaluation, findings: &mut Vec<Finding>) {
    let mut seen = Vec::new();
    for placement in evaluation.candidates.iter().flat_map(|key| &key.placements) {
        let Some(nodes) = placement.nodes.as_ref() else { continue };
        let partitions = placement.skew.partitions;
        let sum: f64 = nodes.weights.iter().sum();
        let off = nodes.weights.iter().zip(&nodes.partitions).map(|(weight, held)| {
            let due = partitions as f64 * weight / sum;
            (*held as f64 / due - 1.0).abs()
        });
        let off = off.fold(0.0, f64::max);
        if off < 1e-9 || seen.contains(&partitions) {
            continue;
        }
        seen.push(partitions);
        findings.push(Finding {
            code: FindingCode::WeightsDoNotDivide,
            severity: Severity::Warning,
            subject: format!("{partitions} partitions").into(),
            message: format!("a node's number of partitions differs from its weight by {}", percent(off)),
            measured: off,
            threshold: 0.0,
            advice: "Choose a number of partitions that is a multiple of the sum of the weights.".to_owned(),
        });
    }
}

fn is_ydb(placement: &PlacementReport) -> bool {
    matches!(placement.function, Function::Ydb(_))
}

#[cfg(test)]
#[path = "partition_key_tests.rs"]
mod tests;
