//! Text on the evaluation of a small export, some of whose parts are changed.

use evenkeel_advisor::evaluate::{
    Alternative, AlternativeKind, ConsideredCandidate, Evaluation, SampleReport, TimeRange,
};
use evenkeel_model::finding::{Finding, FindingCode, Severity, Subject};
use evenkeel_model::note::Note;
use serde_json::json;

use super::*;
use crate::testing::evaluated;

const DAY: i64 = 86_400_000_000;

/// Gives an evaluation a time column over one day.
fn add_time(evaluation: &mut Evaluation) {
    evaluation.time = Some("at".to_owned());
    evaluation.time_range = Some(TimeRange {
        earliest_micros: 0,
        latest_micros: DAY,
        null_rows: 0,
        late_rows_by_more_than: [0; 4],
        average_rows_per_second: 1.0,
        busy_rows_per_second: 1.0,
    });
}

#[test]
fn the_header_has_the_first_input_and_the_number_of_the_others() {
    let mut report = evaluated();
    report.seconds = 1.5;
    for (inputs, words) in [(vec!["a"], "a: "), (vec!["a", "b"], "a and 1 more input: "), (vec![], ": ")] {
        report.inputs = inputs.iter().map(|input| (*input).to_owned()).collect();
        let text = header(&report);
        assert!(text.starts_with(&format!("{words}1,000 rows, ")), "{text}");
        assert!(text.lines().next().unwrap().ends_with(" of values, 1.5 s"), "{text}");
    }
    report.inputs = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert!(header(&report).starts_with("a and 2 more inputs: "));
}

#[test]
fn the_header_has_the_sample_the_times_and_the_notes() {
    let mut report = evaluated();
    assert_eq!(header(&report).lines().count(), 1 + report.notes.len());
    report.notes = vec![Note::NoPrimaryKey, Note::TimesMasked];
    report.evaluation.sample = Some(SampleReport { fraction: 0.25, rows_read: 4000, rows_sampled: 1000 });
    add_time(&mut report.evaluation);
    report.roles[0].role = Role::Time;
    let text = header(&report);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("a sample of 1,000 of 4,000 rows (25.0 %); "), "{text}");
    assert_eq!(lines[2], "at runs from 1970-01-01 00:00:00 to 1970-01-02 00:00:00");
    let other = &report.roles[0].column;
    assert_eq!(lines[3], format!("other columns with times: {other}; choose one with --time COLUMN"));
    assert_eq!(lines[4..], report.notes.iter().map(ToString::to_string).collect::<Vec<_>>());
    // The chosen column is no other one.
    report.roles[0].column = "at".to_owned();
    assert!(!header(&report).contains("other columns with times"));
}

#[test]
fn recommended_keys_are_a_statement_of_one_line() {
    let key = |columns: &[&str]| columns.iter().map(|column| (*column).to_owned()).collect();
    let mut recommendation = Recommendation { partitions: 64, ..Recommendation::default() };
    assert_eq!(recommended_keys(&recommendation), "");
    recommendation.partition_key = key(&["a", "b"]);
    assert_eq!(recommended_keys(&recommendation), "PARTITION BY HASH(a, b), 64 partitions\n\n");
    recommendation.primary_key = key(&["b", "a", "c"]);
    let with_primary_key = "PARTITION BY HASH(a, b), PRIMARY KEY (b, a, c), 64 partitions\n\n";
    assert_eq!(recommended_keys(&recommendation), with_primary_key);
}

#[test]
fn reasons_come_before_alternatives() {
    let mut report = evaluated();
    report.recommendation.reasons = vec!["a reason".to_owned()];
    report.recommendation.alternatives.clear();
    let text = recommendation(&report, Layout::Plain);
    assert!(text.starts_with("RECOMMENDATION\n") && text.ends_with("- a reason\n"), "{text}");
    let alternative = Alternative {
        kind: AlternativeKind::MostEven,
        partition_key: vec!["kind".to_owned()],
        when: "if it must be even".to_owned(),
        price: "it costs reads".to_owned(),
    };
    report.recommendation.alternatives = vec![alternative];
    let with_alternative = recommendation(&report, Layout::Plain);
    let end = "\nAlternatives and their cost:\n\n- HASH(kind) if it must be even; it costs reads\n";
    assert_eq!(with_alternative, text + end);
}

#[test]
fn a_finding_has_its_severity_its_code_its_subject_and_the_advice() {
    let mut report = evaluated();
    report.findings.clear();
    assert_eq!(findings(&report, Layout::Plain), "");
    report.findings = vec![Finding {
        code: FindingCode::HeavyKey,
        severity: Severity::Warning,
        subject: Subject::PartitionKey(vec!["user".to_owned()]),
        message: "it is heavy".to_owned(),
        measured: 1.0,
        threshold: 0.5,
        advice: "Split it.".to_owned(),
    }];
    let lines = "- warning [heavy_key] HASH(user): it is heavy\n  Split it.\n";
    assert_eq!(findings(&report, Layout::Plain), format!("FINDINGS\n{lines}"));
    assert_eq!(findings(&report, Layout::Markdown), format!("## Findings\n\n{lines}"));
}

#[test]
fn of_many_columns_only_the_first_have_their_roles_shown() {
    let mut report = evaluated();
    let mut role = report.roles[0].clone();
    role.evidence = ["one", "two", "three"].map(str::to_owned).to_vec();
    role.times = None;
    role.copy_of = Some("other".to_owned());
    report.roles = vec![role; MAX_COLUMNS];
    let text = roles(&report, Layout::Plain);
    assert_eq!(text.matches("one; two; one-to-one with other").count(), MAX_COLUMNS, "{text}");
    assert!(text.ends_with("\ncorrect a role with --role COLUMN=ROLE\n"), "{text}");
    report.roles.push(report.roles[0].clone());
    let text = roles(&report, Layout::Plain);
    assert_eq!(text.matches("one; two;").count(), MAX_COLUMNS);
    assert!(text.contains("\n1 more columns: --format json has them; correct a role with "), "{text}");
    report.roles.clear();
    assert_eq!(roles(&report, Layout::Plain), "");
}

#[test]
fn candidates_that_were_dropped_have_a_reason() {
    let considered = |report: &AdvisorReport| -> Vec<ConsideredCandidate> {
        report.considered.iter().filter(|candidate| !candidate.kept).cloned().collect()
    };
    let mut report = evaluated();
    let reasons: Vec<String> = considered(&report).iter().map(|candidate| candidate.reason.clone()).collect();
    let text = dropped(&report, Layout::Plain);
    assert!(reasons.iter().all(|reason| text.contains(reason.as_str())), "{text}");
    report.considered.iter_mut().for_each(|candidate| candidate.kept = true);
    assert_eq!(dropped(&report, Layout::Plain), "");
}

#[test]
fn statements_and_commands_are_fenced_in_markdown() {
    let mut report = evaluated();
    report.recommendation.ddl = None;
    assert_eq!(table(&report, Layout::Markdown), "");
    report.recommendation.ddl = Some("CREATE TABLE t;\n\n".to_owned());
    report.recommendation.language = "sql";
    report.recommendation.commands = vec![" ".to_owned()];
    let statement = "```sql\nCREATE TABLE t;\n```\n";
    assert_eq!(table(&report, Layout::Markdown), format!("## The table\n\n{statement}"));
    report.recommendation.commands = vec!["one".to_owned(), "two".to_owned()];
    let commands = "```sh\none\ntwo\n```\n";
    assert_eq!(table(&report, Layout::Markdown), format!("## The table\n\n{statement}{commands}"));
    assert_eq!(table(&report, Layout::Plain), "THE TABLE\nCREATE TABLE t;\n\none\ntwo\n\n");
}

#[test]
fn notable_changes_come_first_and_values_are_for_people() {
    let drift = |subject: &str, notable: bool, before: Value, now: Value| Drift {
        subject: subject.to_owned(),
        figure: "figure".to_owned(),
        before,
        now,
        notable,
    };
    assert_eq!(drifts(&[], Layout::Plain), "");
    let changes = [
        drift("minor", false, json!(1234), json!(0.5)),
        drift("major", true, json!("even"), json!(null)),
        drift("list", true, json!(["a", 1]), json!(true)),
    ];
    let text = drifts(&changes, Layout::Plain);
    let rows: Vec<Vec<&str>> = text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["!", "major", "figure", "even", "-"]);
    assert_eq!(rows[1], ["!", "list", "figure", "a,", "1", "true"]);
    assert_eq!(rows[2], ["minor", "figure", "1,234", "0.5000"]);
}

#[test]
fn an_assessment_begins_with_the_answer_and_leaves_out_what_is_empty() {
    let mut report = evaluated();
    report.recommendation.ddl = None;
    report.findings.clear();
    let text = assessment(&report, Layout::Plain);
    assert!(text.starts_with(&header(&report)), "{text}");
    let at = |title: &str| text.find(title);
    assert!(at("RECOMMENDATION").is_some() && at("RECOMMENDATION") < at("COLUMN ROLES"), "{text}");
    assert!(at("FINDINGS").is_none() && at("THE TABLE").is_none(), "{text}");
}
