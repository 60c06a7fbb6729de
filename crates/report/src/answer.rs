//! Renders the answer of an evaluation on one screen: the recommendation, its reasons, the
//! alternatives, and the problems. Everything else is in [`crate::assessment`].

use crate::evaluation::partition_keys::{
    at_a_time, distinct_values, has_statements, heaviest_share, max_over_mean, partitions_read, ranked,
};
use crate::evaluation::{header, measured, recommended_keys, table};
use crate::grid::heading;
use crate::grid::{Heading, Layout, count, grid};
use crate::values::rate;
use evenkeel_advisor::evaluate::{AdvisorReport, AlternativeKind};
use evenkeel_model::finding::{Finding, Severity, Subject};
use evenkeel_stats::skew::Verdict;

/// Width of a line of text.
const WIDTH: usize = 98;
/// Maximum number of reasons.
const MAX_REASONS: usize = 3;
/// Maximum number of keys in the table.
const MAX_KEYS: usize = 8;
/// Maximum number of characters of a key in the table.
const WIDEST_KEY: usize = 36;

/// Renders the answer of an evaluation.
#[must_use]
pub fn answer(assessment: &AdvisorReport) -> String {
    let sections = [
        wrapped_lines(&header(assessment)),
        recommendation(assessment),
        alternatives(assessment),
        keys(assessment),
        wrapped_lines(&measured(assessment, Layout::Plain)),
        problems(assessment),
        proposed_table(assessment),
        "All keys, figures, findings and roles: --verbose, --html FILE or --format json\n".to_owned(),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn recommendation(assessment: &AdvisorReport) -> String {
    let recommendation = &assessment.recommendation;
    let mut text = heading(Layout::Plain, "Recommendation");
    text.push_str(&recommended_keys(recommendation));
    for reason in recommendation.reasons.iter().take(MAX_REASONS) {
        text.push_str(&item(reason));
    }
    text
}

fn alternatives(assessment: &AdvisorReport) -> String {
    let alternatives = &assessment.recommendation.alternatives;
    if alternatives.is_empty() {
        return String::new();
    }
    let items = alternatives.iter().map(|alternative| item(&alternative.to_string()));
    heading(Layout::Plain, "Alternatives and their cost") + &items.collect::<String>()
}

fn keys(assessment: &AdvisorReport) -> String {
    let statements = has_statements(assessment);
    let rows = ranked(assessment).take(MAX_KEYS).map(|(ranked, key, placement)| {
        let mut row = vec![
            cut(&key.partition_key.join(", "), WIDEST_KEY),
            distinct_values(key),
            heaviest_share(key),
            max_over_mean(placement),
            at_a_time(placement),
            rate(placement.capacity.sustained),
        ];
        if statements {
            row.push(partitions_read(ranked));
        }
        row.push(placement.verdict.word().to_owned());
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut headings = vec![
        Heading::text("partition key"),
        Heading::number("values"),
        Heading::number("heaviest"),
        Heading::number("max/mean"),
        Heading::number("busy"),
        Heading::number("sustains"),
    ];
    if statements {
        headings.push(Heading::number("read"));
    }
    headings.push(Heading::text("verdict"));
    let partitions = assessment.recommendation.partitions;
    let mut text =
        heading(Layout::Plain, &format!("Partition keys over {partitions} partitions, the best first"));
    text.push_str(&grid(Layout::Plain, &headings, rows));
    let mut terms = "heaviest: rows with the most frequent value; max/mean: rows of the fullest partition \
                     relative to the average one; busy: partitions that share the work at any moment; \
                     sustains: inserts before a partition is overloaded"
        .to_owned();
    if statements {
        terms.push_str("; read: partitions that a statement visits on average");
    }
    text.push('\n');
    text.push_str(&wrap(&terms, ""));
    let few = ranked(assessment).filter(|(_, _, placement)| placement.verdict == Verdict::FewRows).count();
    if few > 0 {
        text.push_str(&wrap(
            &format!("{} rows are too few to say more than this.", count(assessment.evaluation.rows)),
            "",
        ));
    }
    text
}

/// Problems and warnings of the recommended keys, of the current one, and of keys that were given.
fn problems(assessment: &AdvisorReport) -> String {
    let findings: Vec<&Finding> = assessment
        .findings
        .iter()
        .filter(|finding| finding.severity != Severity::Note && concerns_answer(assessment, &finding.subject))
        .collect();
    if findings.is_empty() {
        return String::new();
    }
    let mut text = heading(Layout::Plain, "Problems");
    for finding in findings {
        text.push_str(&item(&format!(
            "{} [{}] {}: {}. {}",
            finding.severity.word(),
            finding.code,
            finding.subject,
            finding.message,
            finding.advice
        )));
    }
    text
}

fn concerns_answer(assessment: &AdvisorReport, subject: &Subject) -> bool {
    let answer = &assessment.recommendation;
    // If nothing was searched for, all keys were given.
    let all_given = assessment.considered.is_empty();
    let mut current = answer.alternatives.iter().filter(|key| key.kind == AlternativeKind::Current);
    all_given
        || match subject {
            Subject::PartitionKey(key) => {
                *key == answer.partition_key || current.any(|current| current.partition_key == *key)
            }
            Subject::PrimaryKey(key) => *key == answer.primary_key,
            Subject::Placement { .. } => false,
            Subject::Other(_) => true,
        }
}

fn proposed_table(assessment: &AdvisorReport) -> String {
    let text = table(assessment, Layout::Plain);
    if text.is_empty() { text } else { format!("{}\n", text.trim_end()) }
}

fn item(text: &str) -> String {
    let wrapped = wrap(text, "  ");
    format!("- {}", wrapped.trim_start())
}

fn wrapped_lines(text: &str) -> String {
    text.lines().map(|line| wrap(line, "")).collect()
}

/// Breaks a text into lines of at most [`WIDTH`] characters, if its words are not longer, each
/// after an indent.
fn wrap(text: &str, indent: &str) -> String {
    let mut wrapped = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            wrapped.push('\n');
            width = 0;
        }
        let before = if width == 0 { indent } else { " " };
        wrapped.push_str(before);
        wrapped.push_str(word);
        width += before.chars().count() + length;
    }
    wrapped.push('\n');
    wrapped
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(most - 3).collect();
    cut.push_str("...");
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_indented() {
        let words = "word ".repeat(50);
        let wrapped = wrap(&words, "  ");
        assert_eq!(wrapped.split_whitespace().count(), 50);
        assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH && line.starts_with("  ")));
        let long = "x".repeat(150);
        assert_eq!(wrap(&format!("a {long} b"), ""), format!("a\n{long}\nb\n"));
        assert!(item("a b").starts_with("- a b"));
        assert_eq!(cut("abcdefgh", 6), "abc...");
    }
}
