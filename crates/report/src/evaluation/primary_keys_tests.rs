//! Text on primary keys of a small export, some of whose figures are changed.

use evenkeel_advisor::evaluate::{DuplicateExample, Interval, LateReach, MERGE_FAN_IN, Pruning, Uniqueness};
use serde_json::json;

use super::*;
use crate::testing::evaluated_with;

/// The report on a key that each of 250 users repeats.
fn with_user() -> AdvisorReport {
    let report = evaluated_with(&["user"]);
    assert_eq!(report.evaluation.primary_keys[0].duplicate_rows, 750);
    report
}

/// The text after `change` of the key.
fn shown(change: impl Fn(&mut PrimaryKeyReport)) -> String {
    let mut report = with_user();
    change(&mut report.evaluation.primary_keys[0]);
    primary_keys(&report, Layout::Markdown)
}

/// The cells of the row of the key.
fn cells(change: impl Fn(&mut PrimaryKeyReport)) -> Vec<String> {
    let text = shown(change);
    let row = text.lines().find(|line| line.starts_with("| user ")).unwrap();
    row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn a_key_is_unique_by_nature_by_chance_or_not() {
    assert_eq!(cells(|_| ())[..2], ["user", "no"]);
    assert_eq!(cells(|key| key.unique = true)[1], "yes");
    let by = |by: UniqueBy| {
        cells(|key| {
            key.unique = true;
            key.uniqueness = Some(Uniqueness { by, repeats_by_chance: 1.0 });
        })
        .remove(1)
    };
    assert_eq!((by(UniqueBy::Chance).as_str(), by(UniqueBy::Nature).as_str()), ("by chance", "yes"));
    let sampled =
        cells(|key| key.duplicate_rows_interval = Some(Interval { lower: 1.0, upper: 2000.0 })).remove(1);
    assert_eq!(sampled, "1 to 2,000 repeat");
}

#[test]
fn figures_of_a_key_that_are_not_known_are_dashes() {
    let known = cells(|key| {
        (key.identical_rows, key.conflicting_rows, key.in_order_fraction) = (1234, 7, 0.5);
        key.late.reach = Some(LateReach { max_micros: 3_600_000_000, rows_by_more_than: [0; 4] });
        key.rank_correlation = Some(0.25);
        key.layout.depth.average_depth = 3.0;
        (key.layout.batches, key.layout.write_amplification) = (MERGE_FAN_IN as u64, 2.0);
        key.obstacles = vec!["one".to_owned(), "two".to_owned()];
    });
    assert_eq!(known[2..], ["1,234", "7", "50.0 %", "1 h", "0.25", "3.0", "2.0", "one; two"]);
    let unknown = cells(|key| {
        key.late.reach = None;
        key.rank_correlation = None;
        key.layout.batches = MERGE_FAN_IN as u64 - 1;
    });
    assert_eq!((unknown[5].as_str(), unknown[6].as_str(), unknown[8].as_str()), ("-", "-", "-"));
}

#[test]
fn two_examples_of_each_key_are_shown() {
    let example = |value: u64, differs_in: &[&str]| DuplicateExample {
        key: vec![json!("u"), json!(value)],
        first: "a row 1".to_owned(),
        second: "a row 2".to_owned(),
        differs_in: differs_in.iter().map(|column| (*column).to_owned()).collect(),
    };
    let text = shown(|key| key.examples = vec![example(11, &["b", "c"]), example(12, &[]), example(13, &[])]);
    assert!(text.contains("## Rows that share a primary key"), "{text}");
    let line = |value: &str| text.lines().find(|line| line.contains(value));
    assert!(line("u, 11").unwrap().contains("b, c"), "{text}");
    assert!(line("u, 12").unwrap().contains("nothing"), "{text}");
    assert_eq!(line("u, 13"), None, "{text}");
    assert!(!shown(|key| key.examples.clear()).contains("Rows that share"));
}

#[test]
fn pruning_is_shown_for_each_condition() {
    let text = shown(|key| {
        key.pruning = vec![Pruning {
            condition: "user = ?".to_owned(),
            portions_pruned: 0.25,
            merged_row_groups_pruned: 0.75,
        }];
    });
    let line = text.lines().find(|line| line.contains("user = ?")).unwrap();
    assert!(line.contains("25.0 %") && line.contains("75.0 %"), "{text}");
    assert!(!shown(|key| key.pruning.clear()).contains("Pruning by condition"));
}

#[test]
fn without_primary_keys_there_is_no_text() {
    let mut report = with_user();
    report.evaluation.primary_keys.clear();
    assert_eq!(primary_keys(&report, Layout::Plain), "");
}

#[test]
fn partitions_that_are_visited_are_a_word_or_a_number() {
    let visit = |reach| FanOut { partition_key: Vec::new(), partitions_read: 3, partitions: 8, reach };
    let words = [Reach::One, Reach::Some, Reach::All].map(|reach| visited(&visit(reach)));
    assert_eq!(words, ["one", "3 of 8", "all"]);
}

#[test]
fn the_first_statements_that_can_be_planned_are_shown() {
    let mut report = with_user();
    let statement = |name: String, problem: Option<&str>| StatementReport {
        statement: name,
        runs: 1.0,
        fixed_columns: Vec::new(),
        problem: problem.map(str::to_owned),
        fan_out: vec![FanOut {
            partition_key: vec!["user".to_owned()],
            partitions_read: 2,
            partitions: 4,
            reach: Reach::Some,
        }],
    };
    assert_eq!(statements(&report, Layout::Plain), "");
    report.statements = vec![statement("wrong".to_owned(), Some("no table"))];
    assert_eq!(statements(&report, Layout::Plain), "");
    report.statements.extend((0..=MAX_STATEMENTS).map(|number| statement(format!("q{number}"), None)));
    let text = statements(&report, Layout::Markdown);
    let [heads, row] = ["| partition key |", "| user "]
        .map(|start| text.lines().find(|line| line.starts_with(start)).unwrap());
    assert!(!heads.contains("wrong") && heads.contains(" q19 ") && !heads.contains(" q20 "), "{text}");
    assert_eq!(row.matches("2 of 4").count(), MAX_STATEMENTS, "{text}");
    assert!(!text.contains("derived part"));
    report.evaluation.candidates[0].candidate = "hour(at)".parse().unwrap();
    assert!(statements(&report, Layout::Plain).contains("for a derived part, statements are assumed"));
}
