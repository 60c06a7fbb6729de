//! Problems of how a partition key spreads rows, and of its values.

use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::partition_key::{PartitionKeyReport, PlacementReport};
use crate::evaluate::figures::pattern::Pattern;
use crate::evaluate::nulls::can_be_filled_in;
use crate::evaluate::verdict::FEWEST_KEYS_PER_PARTITION;
use crate::evaluate::verdict::findings::{hash, percent};
use evenkeel_model::finding::{Finding, FindingCode, Severity, Subject};
use evenkeel_placement::placement::systems::system;
use evenkeel_stats::skew::Verdict;

/// Max/mean above which an uneven key is a problem: the fullest partition has half as much again as
/// its share.
const PROBLEM_MAX_OVER_MEAN: f64 = 1.5;

/// Largest max/mean of a key that is even, whatever the reason.
const EVEN_MAX_OVER_MEAN: f64 = 1.15;

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
            "at a time ({}) {:.1} of {partitions} partitions are at work, and the fullest gets {} of the rows{how}",
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
    if per_partition >= FEWEST_KEYS_PER_PARTITION as f64 || follow_rows {
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
        threshold: FEWEST_KEYS_PER_PARTITION as f64,
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
            "This function has few active partitions at a time, and spreads rows over all of them only over time."
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
    let of_systems = key.placements.iter().filter(|placement| system(&placement.function).is_some());
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
pub(super) fn dealing(evaluation: &Evaluation, findings: &mut Vec<Finding>) {
    let mut seen = Vec::new();
    for placement in evaluation.candidates.iter().flat_map(|key| &key.placements) {
        let Some(nodes) = placement.nodes.as_ref() else { continue };
        let partitions = placement.skew.partitions;
        let sum: f64 = nodes.weights.iter().sum();
        let off = nodes.weights.iter().zip(&nodes.partitions).map(|(weight, dealt)| {
            let due = partitions as f64 * weight / sum;
            (*dealt as f64 / due - 1.0).abs()
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
            message: format!("a node has {} more or fewer of them than its weight implies", percent(off)),
            measured: off,
            threshold: 0.0,
            advice: "Choose a number of partitions that is a multiple of the sum of the weights.".to_owned(),
        });
    }
}

fn is_ydb(placement: &PlacementReport) -> bool {
    system(&placement.function).is_none()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
    use evenkeel_model::table::{Candidate, Column, ColumnType};
    use evenkeel_model::units::PartitionCount;

    use super::*;
    use crate::evaluate::options::EvaluateOptions;
    use crate::evaluate::pass::evaluator::Evaluator;

    const ROWS: u64 = 10_000;
    const CLICKHOUSE: &str = "clickhouse-cityhash64";

    /// The figures of a key with a different value in each row, over 16 partitions.
    fn evaluated(function: &str, weights: &[f64]) -> Evaluation {
        let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..ROWS));
        let options = EvaluateOptions {
            partition_keys: vec![Candidate::from_columns(&["id"])],
            placements: vec![function.parse().unwrap()],
            partitions: vec![PartitionCount::new(16).unwrap()],
            weights: weights.to_vec(),
            ..EvaluateOptions::default()
        };
        let mut evaluator = Evaluator::new(&[Column::nullable("id", ColumnType::Uint64)], options).unwrap();
        evaluator.add(&RecordBatch::try_from_iter([("id", ids)]).unwrap()).unwrap();
        evaluator.finish().unwrap()
    }

    fn even_key(function: &str) -> PartitionKeyReport {
        let mut key = evaluated(function, &[]).candidates.remove(0);
        key.placements[0].causes.hash_function = 0.0;
        key
    }

    /// The findings on how `key` spreads rows, after `change` of its only placement.
    fn found(
        key: &PartitionKeyReport,
        change: impl Fn(&mut PlacementReport),
    ) -> Vec<(FindingCode, Severity)> {
        let mut placement = key.placements[0].clone();
        change(&mut placement);
        let mut findings = Vec::new();
        balance(key, &placement, &mut findings);
        findings.into_iter().map(|finding| (finding.code, finding.severity)).collect()
    }

    #[test]
    fn an_even_key_of_many_values_has_no_findings() {
        for function in ["ydb", CLICKHOUSE] {
            let key = even_key(function);
            assert_eq!(key.placements[0].verdict, Verdict::Even, "{function}");
            assert_eq!(found(&key, |_| ()), [], "{function}");
            let mut findings = Vec::new();
            values(&key, ROWS, &mut findings);
            defects(&key, &mut findings);
            assert_eq!(findings, []);
        }
    }

    #[test]
    fn findings_of_any_figures_give_the_verdict_a_reason_and_do_not_contradict_it() {
        let verdicts = [
            Verdict::Empty,
            Verdict::FewRows,
            Verdict::Even,
            Verdict::Moving,
            Verdict::HeavyKeys,
            Verdict::FewKeys,
            Verdict::Uneven,
        ];
        for function in ["ydb", CLICKHOUSE, "cassandra-vnodes"] {
            let even = even_key(function);
            // Values for each partition, the share of the heaviest, the CV that the function adds,
            // the empty partitions, and the max/mean.
            for combination in 0..48 {
                for verdict in verdicts {
                    let mut key = even.clone();
                    let placement = &mut key.placements[0];
                    placement.verdict = verdict;
                    placement.noise_floor.distinct_keys = 400;
                    placement.noise_floor.keys_per_partition = [0.5, 5.0, 1000.0][combination % 3];
                    placement.noise_floor.heaviest_key_share = [0.0, 0.9][combination / 3 % 2];
                    placement.causes.hash_function = [0.0, 0.2][combination / 6 % 2];
                    placement.skew.empty_partitions = [0, 9][combination / 12 % 2];
                    placement.skew.max_over_mean = [1.2, 4.0][combination / 24];
                    let mut findings = Vec::new();
                    balance(&key, &key.placements[0], &mut findings);
                    let is_judged = !matches!(verdict, Verdict::Empty | Verdict::FewRows);
                    assert!(is_judged || findings.is_empty(), "{findings:?}");
                    let has_reason = |findings: &[Finding]| {
                        findings.iter().any(|finding| finding.severity != Severity::Note)
                    };
                    let is_even = verdict == Verdict::Even;
                    assert!(!is_even || !has_reason(&findings), "{combination}: {findings:?}");
                    defects(&key, &mut findings);
                    let is_bad = is_judged && !is_even;
                    assert!(!is_bad || has_reason(&findings), "{verdict:?} {combination}: {findings:?}");
                }
            }
        }
    }

    #[test]
    fn few_values_are_as_severe_as_the_verdict_and_their_number() {
        let key = even_key("ydb");
        let of = |verdict: Verdict, per_partition: f64, distinct: u64| {
            found(&key, |placement| {
                placement.verdict = verdict;
                placement.noise_floor.keys_per_partition = per_partition;
                placement.noise_floor.distinct_keys = distinct;
            })
        };
        let few = |severity| [(FindingCode::FewDistinctKeys, severity)];
        assert_eq!(of(Verdict::FewKeys, 0.9, 400), few(Severity::Problem));
        assert_eq!(of(Verdict::FewKeys, 1.0, 400), few(Severity::Warning));
        assert_eq!(of(Verdict::Even, 0.9, 400), few(Severity::Note));
        assert_eq!(of(Verdict::Even, 100.0, 400), []);
        // If each row may bring another value, more rows do.
        assert_eq!(of(Verdict::Even, 50.0, ROWS / 2), few(Severity::Note));
        assert_eq!(of(Verdict::Even, 50.0, ROWS / 2 + 1), []);
    }

    #[test]
    fn a_value_is_heavy_from_the_share_of_a_partition_on() {
        let mut key = even_key("ydb");
        let of = |key: &PartitionKeyReport, verdict: Verdict, share: f64| {
            found(key, |placement| {
                placement.verdict = verdict;
                placement.noise_floor.heaviest_key_share = share;
            })
        };
        let due = 1.0 / 16.0;
        let heavy = |severity| [(FindingCode::HeavyKey, severity)];
        assert_eq!(of(&key, Verdict::Even, due), []);
        assert_eq!(of(&key, Verdict::Even, 3.0 * due), heavy(Severity::Note));
        assert_eq!(of(&key, Verdict::HeavyKeys, 2.0 * due), heavy(Severity::Warning));
        assert_eq!(of(&key, Verdict::HeavyKeys, 2.1 * due), heavy(Severity::Problem));
        // A constant has no value that is heavier than others.
        key.distinct.estimate = 1;
        assert_eq!(of(&key, Verdict::Even, 1.0), []);
    }

    #[test]
    fn unevenness_without_another_reason_is_a_problem_if_it_is_great() {
        let key = even_key("ydb");
        for (max_over_mean, severity) in [(1.5, Severity::Warning), (1.51, Severity::Problem)] {
            let uneven = found(&key, |placement| {
                placement.verdict = Verdict::Uneven;
                placement.skew.max_over_mean = max_over_mean;
            });
            assert_eq!(uneven, [(FindingCode::UnevenPartitions, severity)]);
        }
    }

    #[test]
    fn values_that_no_table_takes_are_found_whatever_the_balance() {
        let of = |function: &str, change: &dyn Fn(&mut PartitionKeyReport)| {
            let mut key = even_key(function);
            change(&mut key);
            let mut findings = Vec::new();
            values(&key, ROWS, &mut findings);
            findings
        };
        let codes = |findings: &[Finding]| -> Vec<(FindingCode, Severity)> {
            findings.iter().map(|finding| (finding.code, finding.severity)).collect()
        };
        // Up to a twentieth of the rows can be filled in.
        let few = of("ydb", &|key| key.null_rows = ROWS / 20);
        assert_eq!(codes(&few), [(FindingCode::NullKeys, Severity::Warning)]);
        let many = of("ydb", &|key| key.null_rows = ROWS / 20 + 1);
        assert_eq!(codes(&many), [(FindingCode::NullKeys, Severity::Problem)]);
        assert_ne!(of(CLICKHOUSE, &|key| key.null_rows = 1)[0].advice, few[0].advice);
        let all = of("ydb", &|key| {
            key.candidate = "hour(at)".parse().unwrap();
            key.null_rows = 1;
            key.type_obstacle = Some("no such type".to_owned());
        });
        let expected = [
            (FindingCode::DerivedKey, Severity::Note),
            (FindingCode::NullKeys, Severity::Warning),
            (FindingCode::KeyType, Severity::Problem),
        ];
        assert_eq!(codes(&all), expected);
        assert_eq!(all[2].message, "no such type");
    }

    #[test]
    fn partitions_that_another_system_leaves_empty_are_its_defect() {
        let defects_of = |function: &str, empty: usize, candidate: &str| {
            let mut key = even_key(function);
            key.candidate = candidate.parse().unwrap();
            key.placements[0].skew.empty_partitions = empty;
            let mut findings = Vec::new();
            defects(&key, &mut findings);
            findings
        };
        for (function, empty) in [("ydb", 9), (CLICKHOUSE, 1), ("cassandra-vnodes", 9)] {
            assert_eq!(defects_of(function, empty, "id"), [], "{function} {empty}");
        }
        let [defect] = <[Finding; 1]>::try_from(defects_of(CLICKHOUSE, 9, "id")).unwrap();
        assert_eq!((defect.code, defect.severity), (FindingCode::HashDefect, Severity::Problem));
        assert_eq!(defect.subject.to_string(), format!("HASH(id) by {CLICKHOUSE} over 16"));
        assert!(defect.advice.contains("lint FILE --key id"), "{}", defect.advice);
        // Lint takes columns only.
        let [derived] = <[Finding; 1]>::try_from(defects_of(CLICKHOUSE, 9, "hour(at)")).unwrap();
        assert!(!derived.advice.contains("lint"), "{}", derived.advice);
    }

    #[test]
    fn weights_that_do_not_divide_the_partitions_are_named_once() {
        let dealt = |weights: &[f64]| {
            let mut evaluation = evaluated("ydb", weights);
            evaluation.candidates.push(evaluation.candidates[0].clone());
            let mut findings = Vec::new();
            dealing(&evaluation, &mut findings);
            findings
        };
        for weights in [&[] as &[f64], &[1.0; 16], &[2.0, 1.0, 1.0], &[0.5, 1.5]] {
            assert_eq!(dealt(weights), [], "{weights:?}");
        }
        // 5, 6 and 5 partitions instead of 5.33 for each.
        let [finding] = <[Finding; 1]>::try_from(dealt(&[1.0; 3])).unwrap();
        assert!((finding.measured - (6.0 / (16.0 / 3.0) - 1.0)).abs() < 1e-9, "{finding:?}");
        assert_eq!(finding.subject.to_string(), "16 partitions");
    }
}
