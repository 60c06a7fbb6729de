//! Findings on changed figures of a sound primary key.

use super::*;
use crate::evaluate::verdict::findings::testing::{recommended, sound};

fn sound_key() -> PrimaryKeyReport {
    sound().primary_keys.remove(0)
}

fn codes(findings: &[Finding]) -> Vec<(FindingCode, Severity)> {
    findings.iter().map(|finding| (finding.code, finding.severity)).collect()
}

/// The findings of `rows_lost` after `change` of a sound key.
fn lost(change: impl Fn(&mut PrimaryKeyReport)) -> Vec<Finding> {
    let mut key = sound_key();
    change(&mut key);
    let mut findings = Vec::new();
    rows_lost(&key, &mut findings);
    findings
}

#[test]
fn rows_that_an_upsert_replaces_are_a_problem_and_copies_a_note() {
    assert_eq!(lost(|_| ()), []);
    let conflicting = lost(|key| key.conflicting_rows = 1);
    assert_eq!(codes(&conflicting), [(FindingCode::ConflictingRows, Severity::Problem)]);
    assert_eq!(conflicting[0].subject.to_string(), "PRIMARY KEY (id)");
    let identical = lost(|key| key.identical_rows = 1);
    assert_eq!(codes(&identical), [(FindingCode::IdenticalRows, Severity::Note)]);
    let impossible = lost(|key| key.obstacles = vec!["one".to_owned(), "two".to_owned()]);
    assert_eq!(codes(&impossible), [(FindingCode::PrimaryKeyImpossible, Severity::Problem); 2]);
    assert_eq!((impossible[0].message.as_str(), impossible[1].message.as_str()), ("one", "two"));
}

#[test]
fn rows_with_one_key_are_named_with_up_to_four_columns_in_which_they_differ() {
    let example = |first: &str, differs_in: &[&str]| DuplicateExample {
        key: Vec::new(),
        first: first.to_owned(),
        second: "b.csv row 2".to_owned(),
        differs_in: differs_in.iter().map(|column| (*column).to_owned()).collect(),
    };
    let message = |examples: &[DuplicateExample]| {
        let findings = lost(|key| {
            key.conflicting_rows = 1;
            key.examples = examples.to_vec();
        });
        findings[0].message.clone()
    };
    let without = message(&[]);
    assert_eq!(message(&[example("a.csv row 1", &[])]), without, "copies are no example");
    let four = message(&[example("a.csv row 1", &[]), example("a.csv row 3", &["c", "d", "e", "f"])]);
    assert_eq!(four, format!("{without}; a.csv row 3 and b.csv row 2 differ in c, d, e, f"));
    let five = message(&[example("a.csv row 1", &["c", "d", "e", "f", "g"])]);
    assert_eq!(five, format!("{without}; a.csv row 1 and b.csv row 2 differ in c, d, e, f and others"));
}

#[test]
fn null_in_a_key_is_reported_once_for_both_keys() {
    let of = |of_key: u64, of_partition_key: u64, obstacles: &[&str]| {
        let mut evaluation = sound();
        let mut key = evaluation.primary_keys.remove(0);
        key.placed_by = evaluation.candidates[0].candidate.clone();
        key.null_rows = of_key;
        key.obstacles = obstacles.iter().map(|obstacle| (*obstacle).to_owned()).collect();
        evaluation.candidates[0].null_rows = of_partition_key;
        let mut findings = Vec::new();
        nulls(&key, &evaluation, &mut findings);
        findings
    };
    assert_eq!(of(0, 3, &[]), []);
    let found = of(5, 3, &[]);
    assert_eq!(codes(&found), [(FindingCode::NullKeys, Severity::Warning)]);
    assert_eq!(found[0].message, "5 of 10000 rows have NULL in the key");
    assert_eq!(of(3, 3, &[]), [], "its partition key has the finding");
    assert_eq!(of(5, 3, &["too many rows have NULL"]), [], "a table cannot have it");
}

#[test]
fn a_key_that_is_unique_by_chance_is_a_warning_if_it_is_recommended() {
    let of = |by: UniqueBy, recommendation: &Recommendation| {
        let mut key = sound_key();
        key.uniqueness = Some(Uniqueness { by, repeats_by_chance: 2.0 });
        let mut findings = Vec::new();
        unique_by_chance(&key, recommendation, &mut findings);
        findings
    };
    let other = Recommendation { primary_key: vec!["at".to_owned()], ..recommended() };
    let chance = |severity| [(FindingCode::UniqueByChance, severity)];
    assert_eq!(codes(&of(UniqueBy::Chance, &recommended())), chance(Severity::Warning));
    assert_eq!(codes(&of(UniqueBy::Chance, &other)), chance(Severity::Note));
    for by in [UniqueBy::Nature, UniqueBy::ManyValues] {
        assert_eq!(of(by, &recommended()), [], "{by:?}");
    }
    let mut findings = Vec::new();
    unique_by_chance(&sound_key(), &recommended(), &mut findings);
    assert_eq!(findings, []);
}

#[test]
fn merging_is_a_cost_if_it_writes_rows_more_than_twice() {
    let of = |amplification: f64| {
        let mut key = sound_key();
        key.layout.write_amplification = amplification;
        let mut findings = Vec::new();
        append(&key, &mut findings);
        codes(&findings)
    };
    assert_eq!(of(2.0), []);
    assert_eq!(of(2.1), [(FindingCode::Rewrites, Severity::Warning)]);
}

#[test]
fn a_rank_correlation_that_contradicts_the_order_of_rows_is_noted() {
    let of = |correlation: Option<f64>, in_order: f64| {
        let mut key = sound_key();
        (key.rank_correlation, key.in_order_fraction) = (correlation, in_order);
        let mut findings = Vec::new();
        append(&key, &mut findings);
        findings
    };
    for (correlation, in_order) in [(Some(0.7), 0.9), (Some(0.69), 0.89), (None, 0.0), (None, 1.0)] {
        assert_eq!(of(correlation, in_order), [], "{correlation:?} {in_order}");
    }
    for (correlation, in_order, says) in
        [(0.7, 0.89, "says monotonic, while"), (0.69, 0.9, "says not monotonic, while")]
    {
        let found = of(Some(correlation), in_order);
        assert_eq!(codes(&found), [(FindingCode::RankCorrelationMisleads, Severity::Note)]);
        assert!(found[0].message.contains(says), "{found:?}");
    }
}
