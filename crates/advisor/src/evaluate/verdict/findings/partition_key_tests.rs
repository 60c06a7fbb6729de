//! Findings about partition keys: when each is reported, and how severe it is.

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
fn found(key: &PartitionKeyReport, change: impl Fn(&mut PlacementReport)) -> Vec<(FindingCode, Severity)> {
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
                let has_reason =
                    |findings: &[Finding]| findings.iter().any(|finding| finding.severity != Severity::Note);
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
    let uneven = |weights: &[f64]| {
        let mut evaluation = evaluated("ydb", weights);
        evaluation.candidates.push(evaluation.candidates[0].clone());
        let mut findings = Vec::new();
        node_counts(&evaluation, &mut findings);
        findings
    };
    for weights in [&[] as &[f64], &[1.0; 16], &[2.0, 1.0, 1.0], &[0.5, 1.5]] {
        assert_eq!(uneven(weights), [], "{weights:?}");
    }
    // 5, 6 and 5 partitions instead of 5.33 for each.
    let [finding] = <[Finding; 1]>::try_from(uneven(&[1.0; 3])).unwrap();
    assert!((finding.measured - (6.0 / (16.0 / 3.0) - 1.0)).abs() < 1e-9, "{finding:?}");
    assert_eq!(finding.subject.to_string(), "16 partitions");
}
