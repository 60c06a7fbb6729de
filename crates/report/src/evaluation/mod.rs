//! Renders an evaluation as text.

mod measured;
pub(crate) mod partition_keys;
pub(crate) mod primary_keys;

use std::fmt::Write as _;

use serde_json::Value;

pub(super) use crate::evaluation::measured::measured;
use crate::evaluation::partition_keys::{candidates, counts, heaviest, nodes, over_time, partitions};
use crate::evaluation::primary_keys::{primary_keys, statements};
use crate::grid::{Heading, Layout, count, heading, percent, section};
use crate::values::{instant, key_text};
use evenkeel_advisor::evaluate::{AdvisorReport, Drift, Recommendation, Role, RoleReport};
use evenkeel_model::units::{ByteSize, PartitionCount, counted};

/// Number of columns whose roles are shown.
const MAX_COLUMNS: usize = 24;

/// Renders an evaluation: first the answer, then the figures behind it.
#[must_use]
pub fn assessment(assessment: &AdvisorReport, layout: Layout) -> String {
    let sections = [
        header(assessment),
        recommendation(assessment, layout),
        candidates(assessment, layout),
        partitions(assessment, layout),
        over_time(assessment, layout),
        counts(assessment, layout),
        measured(assessment, layout),
        nodes(assessment, layout),
        heaviest(assessment, layout),
        primary_keys(assessment, layout),
        statements(assessment, layout),
        findings(assessment, layout),
        roles(assessment, layout),
        dropped(assessment, layout),
        table(assessment, layout),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn chosen_partitions(assessment: &AdvisorReport) -> PartitionCount {
    PartitionCount::new(u64::from(assessment.recommendation.partitions)).unwrap_or(PartitionCount::ONE)
}

pub(super) fn header(assessment: &AdvisorReport) -> String {
    let evaluation = &assessment.evaluation;
    let inputs = match assessment.inputs.as_slice() {
        [only] => only.clone(),
        [first, ..] => format!("{first} and {}", counted(assessment.inputs.len() as u64 - 1, "more input")),
        [] => String::new(),
    };
    let mut text = format!(
        "{inputs}: {} rows, {} of values, {:.1} s\n",
        count(evaluation.rows),
        ByteSize(evaluation.bytes),
        assessment.seconds
    );
    if let Some(sample) = &evaluation.sample {
        let _ = writeln!(
            text,
            "a sample of {} of {} rows ({}); figures describe the sample, intervals the export with 95 % confidence",
            count(sample.rows_sampled),
            count(sample.rows_read),
            percent(sample.fraction),
        );
    }
    if let (Some(time), Some(range)) = (&evaluation.time, &evaluation.time_range) {
        let windows = evaluation.candidates.iter().find_map(|key| key.over_time.as_ref());
        let windows = windows
            .map(|time| format!(", {} of {}", counted(time.windows as u64, "window"), time.window_micros));
        let carried = assessment.roles.iter().find(|role| role.column == *time).and_then(|role| role.times);
        let read = carried.map(|times| format!(" ({})", times.reading)).unwrap_or_default();
        let _ = writeln!(
            text,
            "{time}{read} runs from {} to {}{}",
            instant(range.earliest_micros),
            instant(range.latest_micros),
            windows.unwrap_or_default()
        );
    }
    let others = assessment.roles.iter().filter(|role| {
        role.role == Role::Time && evaluation.time.as_ref().is_some_and(|time| role.column != *time)
    });
    let others: Vec<&str> = others.map(|role| role.column.as_str()).collect();
    if !others.is_empty() {
        let _ =
            writeln!(text, "other columns with times: {}; choose one with --time COLUMN", others.join(", "));
    }
    for note in &assessment.notes {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// Renders the recommended keys and number of partitions in one line, and a blank one; nothing if
/// there is no key.
pub(super) fn recommended_keys(recommendation: &Recommendation) -> String {
    if recommendation.partition_key.is_empty() {
        return String::new();
    }
    let primary_key = match recommendation.primary_key.as_slice() {
        [] => String::new(),
        key => format!(", PRIMARY KEY ({})", key.join(", ")),
    };
    let partition_key = recommendation.partition_key.join(", ");
    format!("PARTITION BY HASH({partition_key}){primary_key}, {} partitions\n\n", recommendation.partitions)
}

fn recommendation(assessment: &AdvisorReport, layout: Layout) -> String {
    let recommendation = &assessment.recommendation;
    let mut text = heading(layout, "Recommendation");
    let list = |text: &mut String, lines: &[String]| {
        for line in lines {
            let _ = writeln!(text, "- {line}");
        }
    };
    text.push_str(&recommended_keys(recommendation));
    list(&mut text, &recommendation.reasons);
    if !recommendation.alternatives.is_empty() {
        let _ = writeln!(text, "\nAlternatives and their cost:\n");
        list(&mut text, &recommendation.alternatives.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    text
}

fn findings(assessment: &AdvisorReport, layout: Layout) -> String {
    if assessment.findings.is_empty() {
        return String::new();
    }
    let mut text = heading(layout, "Findings");
    for finding in &assessment.findings {
        let _ = writeln!(
            text,
            "- {} [{}] {}: {}",
            finding.severity.word(),
            finding.code,
            finding.subject,
            finding.message
        );
        let _ = writeln!(text, "  {}", finding.advice);
    }
    text
}

/// Renders the role of each column, and why.
fn roles(assessment: &AdvisorReport, layout: Layout) -> String {
    let row = |report: &RoleReport| {
        let mut evidence = report.evidence.iter().take(2).cloned().collect::<Vec<_>>();
        evidence.extend(report.times.map(|times| {
            let read = times.reading.to_string();
            let range = format!("{} to {}", instant(times.earliest_micros), instant(times.latest_micros));
            if evidence.first() == Some(&read) { range } else { format!("{read}: {range}") }
        }));
        evidence.extend(report.copy_of.as_ref().map(|original| format!("one-to-one with {original}")));
        vec![report.column.clone(), report.role.words().to_owned(), evidence.join("; ")]
    };
    let rows: Vec<Vec<String>> = assessment.roles.iter().take(MAX_COLUMNS).map(row).collect();
    let headings = [Heading::text("column"), Heading::text("role"), Heading::text("evidence")];
    let text = section(layout, "Column roles", &headings, rows);
    let more = assessment.roles.len().saturating_sub(MAX_COLUMNS);
    let more =
        if more > 0 { format!("{more} more columns: --format json has them; ") } else { String::new() };
    if text.is_empty() { text } else { text + &format!("\n{more}correct a role with --role COLUMN=ROLE\n") }
}

fn dropped(assessment: &AdvisorReport, layout: Layout) -> String {
    let dropped = assessment.considered.iter().filter(|considered| !considered.kept);
    let rows = dropped.map(|considered| vec![considered.key.join(", "), considered.reason.clone()]);
    section(layout, "Not evaluated", &[Heading::text("column"), Heading::text("why")], rows.collect())
}

pub(super) fn table(assessment: &AdvisorReport, layout: Layout) -> String {
    let Some(ddl) = &assessment.recommendation.ddl else { return String::new() };
    let fence = |language: &str, text: &str| match layout {
        Layout::Plain => format!("{}\n\n", text.trim_end()),
        Layout::Markdown => format!("```{language}\n{}\n```\n", text.trim_end()),
    };
    let commands = assessment.recommendation.commands.join("\n");
    format!(
        "{}{}{}",
        heading(layout, "The table"),
        fence(assessment.recommendation.language, ddl),
        if commands.trim().is_empty() { String::new() } else { fence("sh", &commands) }
    )
}

/// Renders the changes since a baseline, notable ones first.
#[must_use]
pub fn drifts(drifts: &[Drift], layout: Layout) -> String {
    let text = |value: &Value| match value {
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => count(whole),
            (None, Some(number)) => format!("{number:.4}"),
            _ => number.to_string(),
        },
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Array(values) => key_text(values),
        other => other.to_string(),
    };
    let mut sorted: Vec<&Drift> = drifts.iter().collect();
    sorted.sort_by_key(|drift| !drift.notable);
    let rows = sorted.into_iter().map(|drift| {
        vec![
            if drift.notable { "!".to_owned() } else { String::new() },
            drift.subject.clone(),
            drift.figure.clone(),
            text(&drift.before),
            text(&drift.now),
        ]
    });
    let headings = [
        Heading::text(""),
        Heading::text("subject"),
        Heading::text("figure"),
        Heading::number("before"),
        Heading::number("now"),
    ];
    section(layout, "Since the baseline", &headings, rows.collect())
}

#[cfg(test)]
mod tests;
