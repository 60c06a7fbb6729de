//! Pages on the evaluation of a small export, some of whose texts are changed.

use evenkeel_advisor::evaluate::{FanOut, Reach, StatementReport};
use evenkeel_model::finding::{FindingCode, Subject};

use super::*;
use crate::testing::evaluated;

const HOSTILE: &str = "<script>alert('&')</script>";
const ESCAPED: &str = "&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;";

fn finding(severity: Severity, code: FindingCode) -> Finding {
    Finding {
        code,
        severity,
        subject: Subject::from(HOSTILE),
        message: HOSTILE.to_owned(),
        measured: 1.0,
        threshold: 0.5,
        advice: HOSTILE.to_owned(),
    }
}

/// A report with text that is markup wherever text is free.
fn hostile() -> AdvisorReport {
    let mut report = evaluated();
    report.inputs = vec![HOSTILE.to_owned()];
    report.recommendation.reasons = vec![HOSTILE.to_owned()];
    report.recommendation.ddl = Some(HOSTILE.to_owned());
    report.recommendation.commands = vec!["evenkeel create".to_owned(), HOSTILE.to_owned()];
    report.findings =
        vec![finding(Severity::Problem, FindingCode::HeavyKey), finding(Severity::Note, FindingCode::NoTime)];
    report
}

/// Checks that every element that a page opens is closed, and that nothing is loaded or run.
fn check(page: &str) {
    for tag in ["table", "thead", "tbody", "section", "figure", "ul", "div", "svg", "main", "style"] {
        let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
        let (opened, closed) = (page.matches(&open), page.matches(&close));
        assert_eq!(opened.count(), closed.count(), "{tag}");
    }
    for forbidden in ["<script", "<link", "http://", "https://", "NaN"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn a_page_shows_every_text_as_text_and_loads_nothing() {
    let page = html(&hostile());
    check(&page);
    assert!(page.starts_with("<!doctype html>") && page.ends_with(END));
    // The title twice, a reason, the statement, a command, and three texts of two findings.
    assert!(page.matches(ESCAPED).count() >= 2 + 1 + 1 + 1 + 2 * 3, "{}", page.matches(ESCAPED).count());
    assert!(page.contains(&format!("<title>Keys for {ESCAPED}</title>")));
    assert!(page.contains("&lt;b&gt;"), "the heaviest value");
    assert_eq!(page.matches("<section class=\"card\">").count(), 2, "a card for each key");
}

#[test]
fn a_fragment_has_the_essentials_for_another_page() {
    let fragment = html_fragment(&hostile());
    check(&fragment);
    assert!(fragment.starts_with("<div class=\"evenkeel\">") && fragment.ends_with(END_OF_FRAGMENT));
    for of_page in ["<html", "<body", "evenkeel create", "no_time"] {
        assert!(!fragment.contains(of_page), "{of_page}");
    }
    assert!(fragment.contains("heavy_key") && fragment.contains("class=\"answer\""));
    assert!(html(&hostile()).contains("no_time"), "notes are on the page alone");
}

#[test]
fn a_page_of_several_tables_has_each_with_its_name_and_the_joins() {
    let report = hostile();
    let page = html_of_tables(&[("users", &report), (HOSTILE, &report)], "a < b\n\n");
    check(&page);
    assert!(page.contains(&format!("<title>Keys for users, {ESCAPED}</title>")));
    assert!(page.contains("<h2>users</h2>") && page.contains(&format!("<h2>{ESCAPED}</h2>")));
    assert!(page.contains("<pre>a &lt; b</pre>"));
    assert_eq!(page.matches("class=\"answer\"").count(), 2);
    check(&html_of_tables(&[], ""));
}

#[test]
fn without_a_recommendation_or_findings_their_parts_are_left_out() {
    let mut report = evaluated();
    report.recommendation.partition_key.clear();
    report.recommendation.ddl = None;
    report.findings.clear();
    report.inputs = vec!["a.csv".to_owned(), "b.csv".to_owned()];
    let page = html(&report);
    check(&page);
    assert!(!page.contains("class=\"answer\"") && !page.contains("<h2>Findings</h2>"));
    assert!(page.contains("1,000 rows, ") && page.contains(" from 2 inputs"));
    assert!(page.contains("<h2>All partition counts</h2>"));
    report.inputs.truncate(1);
    for key in &mut report.evaluation.candidates {
        key.placements.retain(|placement| placement.skew.partitions == 4);
    }
    report.recommendation.partitions = 4;
    let page = html(&report);
    assert!(page.contains(" from 1 input") && !page.contains(" from 1 inputs"));
    assert!(!page.contains("All partition counts"), "there is only one");
    // Nothing was ranked, as if no key could be judged.
    report.ranking.clear();
    check(&html(&report));
    check(&html_fragment(&report));
}

#[test]
fn statements_that_were_planned_have_a_column_each() {
    let mut report = evaluated();
    let fan_out = |name: &str, reach: Reach| FanOut {
        partition_key: vec![name.to_owned()],
        partitions_read: 2,
        partitions: 4,
        reach,
    };
    let statement = |name: &str, problem: Option<&str>| StatementReport {
        statement: name.to_owned(),
        runs: 1.0,
        fixed_columns: Vec::new(),
        problem: problem.map(str::to_owned),
        fan_out: vec![fan_out("user", Reach::Some), fan_out("kind", Reach::All)],
    };
    assert!(!html(&report).contains("Partitions that statements visit"));
    report.statements =
        vec![statement("x < 1", None), statement("forgotten", Some("no table")), statement("y", None)];
    let page = html(&report);
    check(&page);
    assert!(page.contains("<th>x &lt; 1</th><th>y</th></tr>"));
    let all = format!("<td class=\"{}\">", Reach::All.word());
    assert_eq!((page.matches(">2 of 4</td>").count(), page.matches(&all).count()), (2, 2));
    assert!(!page.contains("forgotten"));
}
