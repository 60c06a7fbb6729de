//! Findings on changed figures of a sound evaluation.

use super::testing::{ROWS, recommended, sound};
use super::*;
use crate::evaluate::figures::evaluation::SampleReport;

/// The findings on the figures of `sound` after `change`.
fn found(change: impl Fn(&mut Evaluation)) -> Vec<Finding> {
    let mut evaluation = sound();
    change(&mut evaluation);
    find_findings(&evaluation, &[], &[], &recommended(), true, None)
}

fn codes(findings: &[Finding]) -> Vec<(FindingCode, Severity)> {
    findings.iter().map(|finding| (finding.code, finding.severity)).collect()
}

/// A sample of `sampled` of twice as many rows.
fn sample_of(sampled: u64) -> Option<SampleReport> {
    Some(SampleReport { fraction: 0.5, rows_read: 2 * ROWS, rows_sampled: sampled })
}

#[test]
fn sound_figures_have_no_findings() {
    assert_eq!(found(|_| ()), []);
}

#[test]
fn an_export_without_a_usable_key_is_a_problem() {
    let mut evaluation = sound();
    let of = |evaluation: &Evaluation, recommendation: &Recommendation, wants_primary_key: bool| {
        find_findings(evaluation, &[], &[], recommendation, wants_primary_key, None)
    };
    let none = Recommendation { partition_key: Vec::new(), ..recommended() };
    let findings = of(&evaluation, &none, true);
    assert_eq!(codes(&findings), [(FindingCode::NoUsablePartitionKey, Severity::Problem)]);
    assert_eq!(findings[0].message, "none of 1 candidates can be a partition key");
    evaluation.candidates.clear();
    let findings = of(&evaluation, &none, true);
    assert_eq!(codes(&findings), [(FindingCode::NoUsablePartitionKey, Severity::Problem)]);
    assert_eq!(findings[0].message, "no column can be in a partition key");

    let mut evaluation = sound();
    evaluation.primary_keys[0].candidate = "hour(at)".parse().unwrap();
    let findings = of(&evaluation, &recommended(), true);
    assert_eq!(codes(&findings), [(FindingCode::NoUsablePrimaryKey, Severity::Problem)]);
    assert_eq!(of(&evaluation, &recommended(), false), []);
    evaluation.primary_keys[0] = sound().primary_keys.remove(0);
    evaluation.primary_keys[0].obstacles = vec!["it is a list".to_owned()];
    let codes_of = codes(&of(&evaluation, &recommended(), true));
    let expected = [
        (FindingCode::NoUsablePrimaryKey, Severity::Problem),
        (FindingCode::PrimaryKeyImpossible, Severity::Problem),
    ];
    assert_eq!(codes_of, expected);
}

#[test]
fn too_few_rows_are_a_problem_if_no_key_can_be_judged() {
    let with_verdicts = |verdicts: [Verdict; 2]| {
        found(|evaluation| {
            evaluation.candidates.push(evaluation.candidates[0].clone());
            for (key, verdict) in evaluation.candidates.iter_mut().zip(verdicts) {
                key.placements[0].verdict = verdict;
            }
        })
    };
    assert_eq!(with_verdicts([Verdict::Even; 2]), []);
    let some = with_verdicts([Verdict::Even, Verdict::FewRows]);
    assert_eq!(codes(&some), [(FindingCode::FewRows, Severity::Warning)]);
    assert!(some[0].message.contains("judge 1 of 2 partition keys over 8 partitions"), "{some:?}");
    let all = with_verdicts([Verdict::FewRows; 2]);
    assert_eq!(codes(&all), [(FindingCode::FewRows, Severity::Problem)]);
}

#[test]
fn a_peak_above_the_capacity_of_a_partition_is_a_warning() {
    // Rows of 10 bytes.
    let with_peak = |rows_per_second: f64, change: &dyn Fn(&mut Evaluation)| {
        found(|evaluation| {
            evaluation.bytes = 10 * ROWS;
            let placement = &mut evaluation.candidates[0].placements[0];
            placement.capacity.per_partition = 100.0;
            placement.over_time.as_mut().unwrap().peak.rows_per_second_of_fullest = rows_per_second;
            change(evaluation);
        })
    };
    assert_eq!(with_peak(10.0, &|_| ()), []);
    let above = with_peak(11.0, &|_| ());
    assert_eq!(codes(&above), [(FindingCode::PeakRate, Severity::Warning)]);
    assert_eq!((above[0].measured, above[0].threshold), (110.0, 100.0));
    // The rows of a sample stand for all rows.
    let sampled = with_peak(10.0, &|evaluation| evaluation.sample = sample_of(ROWS));
    assert_eq!(codes(&sampled), [(FindingCode::PeakRate, Severity::Warning)]);
    assert_eq!(sampled[0].measured, 200.0);
    let at_once = with_peak(11.0, &|evaluation| {
        evaluation.time_range.as_mut().unwrap().latest_micros = 0;
    });
    assert_eq!(at_once, []);
}

#[test]
fn a_sample_of_less_than_ten_thousand_rows_is_a_problem() {
    assert_eq!(found(|evaluation| evaluation.sample = sample_of(MIN_SAMPLED)), []);
    let small = found(|evaluation| evaluation.sample = sample_of(MIN_SAMPLED - 1));
    assert_eq!(codes(&small), [(FindingCode::SmallSample, Severity::Problem)]);
}

#[test]
fn what_is_not_known_of_the_time_is_noted() {
    let note = |code| [(code, Severity::Note)];
    let without_time = found(|evaluation| (evaluation.time, evaluation.time_range) = (None, None));
    assert_eq!(codes(&without_time), note(FindingCode::NoTime));
    let missing = found(|evaluation| evaluation.time_range.as_mut().unwrap().null_rows = 7);
    assert_eq!(codes(&missing), note(FindingCode::TimeMissing));
    assert!(missing[0].message.starts_with("7 of 10000 rows have no time"), "{missing:?}");
    assert_eq!(missing[0].subject.to_string(), "at");
    let not_judged = found(|evaluation| evaluation.candidates[0].over_time = None);
    assert_eq!(codes(&not_judged), note(FindingCode::WindowsTooSmall));
}

#[test]
fn rows_are_unordered_if_more_than_one_in_a_hundred_is_late_by_a_window() {
    let with_late = |late: [u64; 4], sorted_by: Option<&str>| {
        let mut evaluation = sound();
        evaluation.time_range.as_mut().unwrap().late_rows_by_more_than = late;
        find_findings(&evaluation, &[], &[], &recommended(), true, sorted_by)
    };
    // Windows are of an hour.
    assert_eq!(with_late([ROWS, ROWS, ROWS / 100, 0], None), []);
    let unordered = with_late([ROWS, ROWS, ROWS / 100 + 1, 0], None);
    assert_eq!(codes(&unordered), [(FindingCode::TimeUnordered, Severity::Note)]);
    assert!(!unordered[0].message.contains("sorted by"), "{unordered:?}");
    let sorted = with_late([ROWS; 4], Some("user"));
    assert!(sorted[0].message.ends_with("; the export is sorted by user"), "{sorted:?}");
}

#[test]
fn the_most_severe_findings_come_first() {
    let findings = found(|evaluation| {
        (evaluation.time, evaluation.time_range) = (None, None);
        evaluation.primary_keys[0].conflicting_rows = 1;
        evaluation.primary_keys[0].layout.write_amplification = 3.0;
    });
    let expected = [
        (FindingCode::ConflictingRows, Severity::Problem),
        (FindingCode::Rewrites, Severity::Warning),
        (FindingCode::NoTime, Severity::Note),
    ];
    assert_eq!(codes(&findings), expected);
}
