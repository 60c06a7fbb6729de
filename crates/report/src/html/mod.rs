//! Renders an evaluation as one HTML file that includes its pictures: no script, no network.

mod candidate;
mod heat_map;
mod page;
mod primary_keys;
mod simulation;
mod svg;

use std::fmt::Write as _;

use crate::evaluation::partition_keys::{checked, other_systems, ranked};
use crate::evaluation::primary_keys::visited;
use crate::grid::{count, percent};
use crate::html::candidate::{candidate, course, distinct};
use crate::html::page::{END, END_OF_FRAGMENT, begin, begin_fragment, escape, list, table};
use crate::html::primary_keys::primary_keys;
use crate::html::svg::keys_per_partition;
use crate::values::{instant, rate};
use evenkeel_advisor::evaluate::AdvisorReport;
use evenkeel_model::finding::{Finding, Severity};
use evenkeel_model::units::ByteSize;

pub use crate::html::simulation::simulation_html;

/// Renders the whole report.
#[must_use]
pub fn html(assessment: &AdvisorReport) -> String {
    let mut page = String::new();
    let title =
        escape(&format!("Keys for {}", assessment.inputs.first().map_or("an export", String::as_str)));
    begin(&mut page, &title);
    header(&mut page, assessment);
    recommendation(&mut page, assessment, true);
    overview(&mut page, assessment);
    every_number(&mut page, assessment);
    for (ranked, key, placement) in ranked(assessment) {
        candidate(&mut page, assessment, ranked, key, placement);
    }
    statements(&mut page, assessment);
    primary_keys(&mut page, assessment);
    findings(&mut page, assessment.findings.iter());
    considered(&mut page, assessment);
    page.push_str(END);
    page
}

/// Renders the recommendation, the keys and the best key over time, to be shown within another
/// page, such as a notebook.
#[must_use]
pub fn html_fragment(assessment: &AdvisorReport) -> String {
    let mut page = String::new();
    begin_fragment(&mut page);
    essentials(&mut page, assessment);
    page.push_str(END_OF_FRAGMENT);
    page
}

/// Renders the keys of several tables and the joins between them, which `joins` describes.
#[must_use]
pub fn html_of_tables(tables: &[(&str, &AdvisorReport)], joins: &str) -> String {
    let mut page = String::new();
    let names: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
    begin(&mut page, &escape(&format!("Keys for {}", names.join(", "))));
    let _ = writeln!(page, "<pre>{}</pre>", escape(joins.trim_end()));
    for (name, assessment) in tables {
        let _ = writeln!(page, "<h2>{}</h2>", escape(name));
        essentials(&mut page, assessment);
    }
    page.push_str(END);
    page
}

/// Writes the recommendation, the keys, the best key over time, and the problems.
fn essentials(page: &mut String, assessment: &AdvisorReport) {
    header(page, assessment);
    recommendation(page, assessment, false);
    key_figures(page, assessment);
    let best = ranked(assessment).next();
    if let Some((key, placement, time)) =
        best.and_then(|(_, key, placement)| Some((key, placement, placement.over_time.as_ref()?)))
    {
        let _ = writeln!(page, "<h3>HASH({}) over time</h3>", escape(&key.partition_key.join(", ")));
        course(page, placement, time);
    }
    let is_serious = |finding: &&Finding| finding.severity != Severity::Note;
    findings(page, assessment.findings.iter().filter(is_serious));
}

fn header(page: &mut String, assessment: &AdvisorReport) {
    let evaluation = &assessment.evaluation;
    let _ = write!(
        page,
        "<p class=\"lead\">{} rows, {} of values from {} {}",
        count(evaluation.rows),
        ByteSize(evaluation.bytes),
        assessment.inputs.len(),
        if assessment.inputs.len() == 1 { "input" } else { "inputs" },
    );
    if let (Some(time), Some(range)) = (&evaluation.time, &evaluation.time_range) {
        let _ = write!(
            page,
            "; {} runs from {} to {}",
            escape(time),
            instant(range.earliest_micros),
            instant(range.latest_micros)
        );
    }
    page.push_str("</p>\n");
    if let Some(sample) = &evaluation.sample {
        let _ = writeln!(
            page,
            "<p>Figures describe a sample of {} of {} rows; intervals contain the figures of the export with 95 % \
             confidence.</p>",
            count(sample.rows_sampled),
            count(sample.rows_read)
        );
    }
    if !assessment.notes.is_empty() {
        let notes: Vec<String> = assessment.notes.iter().map(ToString::to_string).collect();
        list(page, &notes);
    }
}

fn recommendation(page: &mut String, assessment: &AdvisorReport, with_commands: bool) {
    let chosen = &assessment.recommendation;
    page.push_str("<section class=\"card long\">\n<h2>Recommendation</h2>\n");
    if !chosen.partition_key.is_empty() {
        let primary_key = match chosen.primary_key.as_slice() {
            [] => String::new(),
            key => format!("PRIMARY KEY ({})<br>", escape(&key.join(", "))),
        };
        let _ = writeln!(
            page,
            "<p class=\"answer\">PARTITION BY HASH({})<br>{primary_key}{} partitions</p>",
            escape(&chosen.partition_key.join(", ")),
            chosen.partitions
        );
    }
    list(page, &chosen.reasons);
    if !chosen.alternatives.is_empty() {
        page.push_str("<p>Alternatives and their cost:</p>\n");
        list(page, &chosen.alternatives.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    if let Some(ddl) = &chosen.ddl {
        let _ = writeln!(page, "<pre>{}</pre>", escape(ddl.trim_end()));
    }
    if with_commands && !chosen.commands.is_empty() {
        let _ = writeln!(page, "<pre>{}</pre>", escape(&chosen.commands.join("\n")));
    }
    page.push_str("</section>\n");
}

fn overview(page: &mut String, assessment: &AdvisorReport) {
    key_figures(page, assessment);
    cardinality(page, assessment);
}

/// Writes the table of partition keys.
fn key_figures(page: &mut String, assessment: &AdvisorReport) {
    let _ = writeln!(
        page,
        "<h2>Partition keys over {} partitions, the best first</h2>",
        assessment.recommendation.partitions
    );
    let headings = [
        "partition key",
        "#distinct values",
        "#heaviest value",
        "#max / mean",
        "#effective partitions",
        "#at any moment",
        "pattern",
        "#sustained inserts",
        "#partitions read",
        "verdict",
    ];
    let rows = ranked(assessment).map(|(ranked, key, placement)| {
        let time = placement.over_time.as_ref();
        vec![
            key.partition_key.join(", "),
            distinct(key),
            key.heavy_hitters.first().map_or("-".to_owned(), |heaviest| percent(heaviest.share)),
            format!("{:.2}", placement.skew.max_over_mean),
            format!("{:.1}", placement.skew.effective_partitions),
            time.map_or("-".to_owned(), |time| format!("{:.1}", time.lasting_effective_partitions.median)),
            time.map_or("-".to_owned(), |time| time.pattern.word().to_owned()),
            rate(placement.capacity.sustained),
            ranked.mean_partitions_read.map_or("-".to_owned(), |read| format!("{read:.1}")),
            placement.verdict.word().to_owned(),
        ]
    });
    table(page, &headings, rows);
}

/// Draws the number of distinct values per partition of each key.
fn cardinality(page: &mut String, assessment: &AdvisorReport) {
    let keys = ranked(assessment)
        .map(|(_, key, placement)| (key.partition_key.join(", "), placement.noise_floor.keys_per_partition));
    page.push_str("<figure class=\"cardinality\">\n");
    page.push_str(&keys_per_partition(&keys.collect::<Vec<_>>()));
    page.push_str(
        "<figcaption>Distinct values per partition, on a logarithmic scale. The band is the range that YDB advises, 100 to \
         1000; more is even better.</figcaption>\n</figure>\n",
    );
}

/// Writes the figures for every number of partitions and every function, if there are several.
fn every_number(page: &mut String, assessment: &AdvisorReport) {
    let several = assessment.evaluation.candidates.first().is_some_and(|key| key.placements.len() > 1);
    other_systems(assessment).lines().for_each(|line| {
        let _ = writeln!(page, "<p class=\"lead\">{}</p>", escape(line));
    });
    if !several {
        return;
    }
    page.push_str("<h2>All partition counts</h2>\n");
    let headings = [
        "partition key",
        "placement",
        "#partitions",
        "#values each",
        "#max / mean",
        "#effective",
        "#empty",
        "#sustained inserts",
        "verdict",
    ];
    let rows = ranked(assessment).flat_map(|(_, key, _)| {
        key.placements.iter().map(|placement| {
            vec![
                key.partition_key.join(", "),
                checked(placement),
                placement.skew.partitions.to_string(),
                format!("{:.1}", placement.noise_floor.keys_per_partition),
                format!("{:.2}", placement.skew.max_over_mean),
                format!("{:.1}", placement.skew.effective_partitions),
                count(placement.skew.empty_partitions as u64),
                rate(placement.capacity.sustained),
                placement.verdict.word().to_owned(),
            ]
        })
    });
    table(page, &headings, rows);
}

fn statements(page: &mut String, assessment: &AdvisorReport) {
    let planned: Vec<_> =
        assessment.statements.iter().filter(|statement| statement.problem.is_none()).collect();
    let Some(first) = planned.first() else { return };
    page.push_str("<h2>Partitions that statements visit</h2>\n<div class=\"wide\"><table class=\"fan-out\">\n<thead><tr><th>partition key</th>");
    for statement in &planned {
        let _ = write!(page, "<th>{}</th>", escape(&statement.statement));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (position, fan_out) in first.fan_out.iter().enumerate() {
        let _ = write!(page, "<tr><td>{}</td>", escape(&fan_out.partition_key.join(", ")));
        for visit in planned.iter().filter_map(|statement| statement.fan_out.get(position)) {
            let _ = write!(page, "<td class=\"{}\">{}</td>", visit.reach.word(), visited(visit));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn findings<'a>(page: &mut String, findings: impl Iterator<Item = &'a Finding>) {
    let mut findings = findings.peekable();
    if findings.peek().is_none() {
        return;
    }
    page.push_str("<h2>Findings</h2>\n");
    for finding in findings {
        let word = finding.severity.word();
        let _ = writeln!(
            page,
            "<div class=\"finding {word}\"><p><span class=\"badge {word}\">{word}</span> <b>{}</b> {}: {}</p><p>{}</p></div>",
            escape(finding.code.name()),
            escape(&finding.subject.to_string()),
            escape(&finding.message),
            escape(&finding.advice)
        );
    }
}

fn considered(page: &mut String, assessment: &AdvisorReport) {
    if assessment.considered.is_empty() {
        return;
    }
    page.push_str("<h2>Keys considered</h2>\n");
    let rows = assessment.considered.iter().map(|considered| {
        let kept = if considered.kept { "evaluated" } else { "dropped" };
        vec![considered.key.join(", "), kept.to_owned(), considered.reason.clone()]
    });
    table(page, &["key", "", "why"], rows);
}

#[cfg(test)]
mod tests;
