//! Findings on statements under two keys, of which the longer one has the columns of the other.

use super::*;
use crate::evaluate::verdict::findings::testing::sound;

const SHORT: &[&str] = &["user"];
const LONG: &[&str] = &["user", "day"];

fn words(key: &[&str]) -> Vec<String> {
    key.iter().map(|column| (*column).to_owned()).collect()
}

/// An evaluation of both keys, and their ranking.
fn both() -> (Evaluation, Vec<RankedKey>) {
    let mut evaluation = sound();
    evaluation.candidates.push(evaluation.candidates[0].clone());
    for (report, key) in evaluation.candidates.iter_mut().zip([SHORT, LONG]) {
        report.partition_key = words(key);
    }
    let ranked = |key: &[&str]| RankedKey {
        partition_key: words(key),
        qualifies: true,
        cost: 0.0,
        verdict: Verdict::Even,
        sustained_rate: 1.0,
        rate_if_even: 1.0,
        mean_partitions_read: None,
        statements_on_all: 0,
        mean_key_bytes: 8.0,
        null_rows: 0,
        obstacle: None,
    };
    (evaluation, vec![ranked(SHORT), ranked(LONG)])
}

fn under(key: &[&str], reach: Reach, partitions: usize) -> FanOut {
    FanOut { partition_key: words(key), partitions_read: partitions, partitions, reach }
}

fn statement(name: &str, fan_out: Vec<FanOut>) -> StatementReport {
    StatementReport {
        statement: name.to_owned(),
        runs: 1.0,
        fixed_columns: Vec::new(),
        problem: None,
        fan_out,
    }
}

fn unplanned(name: &str) -> StatementReport {
    StatementReport { problem: Some("there is no table".to_owned()), ..statement(name, Vec::new()) }
}

fn found(statements: &[StatementReport], change: impl Fn(&mut [RankedKey])) -> Vec<Finding> {
    let (evaluation, mut ranking) = both();
    change(&mut ranking);
    let mut findings = Vec::new();
    reach(statements, &evaluation, &ranking, &mut findings);
    findings
}

#[test]
fn a_key_is_worse_than_one_that_answers_a_statement_from_one_partition() {
    let worse = |name| statement(name, vec![under(SHORT, Reach::One, 8), under(LONG, Reach::All, 8)]);
    let [finding] = <[Finding; 1]>::try_from(found(&[worse("q1"), worse("q2")], |_| ())).unwrap();
    assert_eq!((finding.code, finding.severity), (FindingCode::FanOut, Severity::Warning));
    assert_eq!((finding.subject.to_string().as_str(), finding.measured), ("HASH(user, day)", 2.0));
    let (one, two) = ("q1 (HASH(user) answers it from one)", "q2 (HASH(user) answers it from one)");
    assert_eq!(finding.message, format!("all partitions are read by {one}, {two}"));
}

#[test]
fn fan_out_is_no_argument_without_a_sound_key_that_is_better() {
    let of = |short: Reach, long: Reach, partitions: usize| {
        statement("q", vec![under(SHORT, short, partitions), under(LONG, long, partitions)])
    };
    for statement in [
        of(Reach::One, Reach::Some, 8),
        of(Reach::One, Reach::One, 8),
        of(Reach::Some, Reach::All, 8),
        of(Reach::All, Reach::All, 8),
        // One partition is all of them.
        of(Reach::One, Reach::All, 1),
    ] {
        assert_eq!(found(std::slice::from_ref(&statement), |_| ()), [], "{statement:?}");
    }
    let worse = [of(Reach::One, Reach::All, 8)];
    for key in 0..2 {
        assert_eq!(found(&worse, |ranking| ranking[key].verdict = Verdict::HeavyKeys), [], "{key}");
        assert_eq!(found(&worse, |ranking| ranking[key].obstacle = Some("a list".to_owned())), [], "{key}");
    }
}

#[test]
fn statements_that_cannot_be_planned_are_noted_and_a_warning_if_none_can() {
    let codes = |statements: &[StatementReport]| -> Vec<(FindingCode, Severity)> {
        found(statements, |_| ()).iter().map(|finding| (finding.code, finding.severity)).collect()
    };
    let planned = statement("q", vec![under(SHORT, Reach::One, 8)]);
    let note = (FindingCode::StatementNotPlanned, Severity::Note);
    assert_eq!(codes(&[]), []);
    assert_eq!(codes(std::slice::from_ref(&planned)), []);
    assert_eq!(codes(&[planned, unplanned("q2")]), [note]);
    let none = found(&[unplanned("q1"), unplanned("q2")], |_| ());
    assert_eq!((none[0].code, none[0].severity), (FindingCode::NoStatementPlanned, Severity::Warning));
    let noted: Vec<(String, &str)> =
        none[1..].iter().map(|finding| (finding.subject.to_string(), finding.message.as_str())).collect();
    let reason = "there is no table";
    assert_eq!(noted, [("q1".to_owned(), reason), ("q2".to_owned(), reason)]);
}
