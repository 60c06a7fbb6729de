//! Renders an evaluation as one HTML file that includes its pictures: no script, no network.

mod heat_map;
mod simulation;
mod svg;

use std::fmt::Write as _;

use crate::evaluation::{checked, instant, key_text, of_systems, ranked, rate, rows_per_second, visited};
use crate::grid::{count, percent};
use crate::html::heat_map::heat_map;
use crate::html::svg::{heavy_values, keys_per_partition, partition_bars};
use evenkeel_advisor::evaluate::{
    AdvisorReport, Interval, PartitionKeyReport, PlacementReport, PrimaryKeyReport, RankedKey,
};
use evenkeel_model::units::ByteSize;

pub use crate::html::simulation::simulation_html;

const STYLE: &str = include_str!("style.css");

/// Escapes text for HTML.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            character if character.is_control() && character != '\n' => {
                escaped.extend(character.escape_default())
            }
            character => escaped.push(character),
        }
    }
    escaped
}

/// Renders the whole report.
#[must_use]
pub fn html(assessment: &AdvisorReport) -> String {
    let mut page = String::new();
    let title =
        escape(&format!("Keys for {}", assessment.inputs.first().map_or("an export", String::as_str)));
    begin(&mut page, &title);
    header(&mut page, assessment);
    recommendation(&mut page, assessment);
    overview(&mut page, assessment);
    every_number(&mut page, assessment);
    for (ranked, key, placement) in ranked(assessment) {
        candidate(&mut page, assessment, ranked, key, placement);
    }
    statements(&mut page, assessment);
    primary_keys(&mut page, assessment);
    findings(&mut page, assessment);
    considered(&mut page, assessment);
    page.push_str(END);
    page
}

const END: &str = "</main>\n</body>\n</html>\n";

/// Writes the head of a page and its title, which is HTML already.
fn begin(page: &mut String, title: &str) {
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
}

/// Writes a table; numbers are aligned to the right if the heading begins with `#`.
fn table(page: &mut String, headings: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    page.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    let class = |heading: &str| if heading.starts_with('#') { " class=\"n\"" } else { "" };
    for heading in headings {
        let _ = write!(page, "<th{}>{}</th>", class(heading), escape(heading.trim_start_matches('#')));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for (cell, heading) in row.iter().zip(headings) {
            let _ = write!(page, "<td{}>{}</td>", class(heading), escape(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn list(page: &mut String, lines: &[String]) {
    page.push_str("<ul>\n");
    for line in lines {
        let _ = writeln!(page, "<li>{}</li>", escape(line));
    }
    page.push_str("</ul>\n");
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
            "<p>Figures are those of a sample of {} of {} rows; intervals hold those of the export with 95 % confidence.</p>",
            count(sample.rows_sampled),
            count(sample.rows_read)
        );
    }
    if !assessment.notes.is_empty() {
        let notes: Vec<String> = assessment.notes.iter().map(ToString::to_string).collect();
        list(page, &notes);
    }
}

fn recommendation(page: &mut String, assessment: &AdvisorReport) {
    let found = &assessment.recommendation;
    page.push_str("<section class=\"card long\">\n<h2>Recommendation</h2>\n");
    if !found.partition_key.is_empty() {
        let primary_key = match found.primary_key.as_slice() {
            [] => String::new(),
            key => format!("PRIMARY KEY ({})<br>", escape(&key.join(", "))),
        };
        let _ = writeln!(
            page,
            "<p class=\"answer\">PARTITION BY HASH({})<br>{primary_key}{} partitions</p>",
            escape(&found.partition_key.join(", ")),
            found.partitions
        );
    }
    list(page, &found.reasons);
    if !found.trade_offs.is_empty() {
        page.push_str("<p>What another choice gives and costs:</p>\n");
        list(page, &found.trade_offs);
    }
    if let Some(ddl) = &found.ddl {
        let commands = found.commands.join("\n");
        let _ = writeln!(page, "<pre>{}</pre>\n<pre>{}</pre>", escape(ddl.trim_end()), escape(&commands));
    }
    page.push_str("</section>\n");
}

fn overview(page: &mut String, assessment: &AdvisorReport) {
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
        "#at a time",
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
    let keys = ranked(assessment)
        .map(|(_, key, placement)| (key.partition_key.join(", "), placement.noise_floor.keys_per_partition));
    page.push_str("<figure class=\"cardinality\">\n");
    page.push_str(&keys_per_partition(&keys.collect::<Vec<_>>()));
    page.push_str(
        "<figcaption>Distinct values for each partition, each step ten times the one before. The band is what YDB advises, 100 to \
         1000; more is better still.</figcaption>\n</figure>\n",
    );
}

/// Writes the figures for every number of partitions and every function, if there are several.
fn every_number(page: &mut String, assessment: &AdvisorReport) {
    let several = assessment.evaluation.candidates.first().is_some_and(|key| key.placements.len() > 1);
    of_systems(assessment).lines().for_each(|line| {
        let _ = writeln!(page, "<p class=\"lead\">{}</p>", escape(line));
    });
    if !several {
        return;
    }
    page.push_str("<h2>Every number of partitions</h2>\n");
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

fn distinct(key: &PartitionKeyReport) -> String {
    let found = &key.distinct;
    if found.exact {
        count(found.estimate)
    } else {
        format!("{} ({} to {})", count(found.estimate), count(found.lower), count(found.upper))
    }
}

fn candidate(
    page: &mut String,
    assessment: &AdvisorReport,
    ranked: &RankedKey,
    key: &PartitionKeyReport,
    placement: &PlacementReport,
) {
    let name = escape(&format!("HASH({})", key.partition_key.join(", ")));
    let _ = writeln!(
        page,
        "<section class=\"card\">\n<h2>{name} <span class=\"badge {}\">{}</span></h2>",
        if placement.verdict == evenkeel_stats::skew::Verdict::Even { "good" } else { "bad" },
        placement.verdict.word()
    );
    let _ = writeln!(page, "<p>{}</p>", escape(placement.verdict.sentence()));
    if let Some(obstacle) = &ranked.obstacle {
        let _ = writeln!(page, "<p>Cannot be chosen: {}.</p>", escape(obstacle));
    }
    figures(page, key, placement);
    page.push_str("<div class=\"charts\">\n<figure>\n");
    page.push_str(&partition_bars(&placement.rows_per_partition, placement.noise_floor.expected_cv_weighted));
    let _ = writeln!(
        page,
        "<figcaption>Rows per partition. The band is what a perfect hash gives to these keys, two standard deviations to each \
         side. {}</figcaption>\n</figure>",
        escape(&sentence(&placement.causes.words))
    );
    page.push_str("<figure>\n");
    page.push_str(&heavy_values(&key.heavy_hitters, 1.0 / placement.skew.partitions.max(1) as f64));
    page.push_str("<figcaption>The heaviest values; the line is the even share of a partition.</figcaption>\n</figure>\n</div>\n");
    if let Some(time) = &placement.over_time {
        page.push_str("<figure>\n");
        page.push_str(&heat_map(&placement.windows, placement.skew.partitions, time.window_micros));
        let evidence = &time.evidence;
        let _ = write!(
            page,
            "<figcaption>Partitions (from the first at the top) over time, from {} to {} in windows of {}: {}. At a time ({}), the \
             fullest partition gets {} of the rows; at worst, at {}, {}. {} partitions were the fullest at some time",
            placement.windows.first().map_or(String::new(), |window| instant(window.start_micros)),
            placement.windows.last().map_or(String::new(), |window| instant(window.start_micros)),
            time.window_micros,
            time.pattern.word(),
            escape(&time.examined_words()),
            percent(time.share_of_fullest.median),
            instant(time.worst_window.start_micros),
            percent(time.worst_window.share_of_fullest),
            evidence.partitions_that_were_fullest,
        );
        if let Some(alike) = evidence.alike_next {
            let _ = write!(
                page,
                "; from one window to the next {} of the rows stay on their partitions",
                percent(alike)
            );
        }
        page.push_str(".</figcaption>\n</figure>\n");
    } else if assessment.evaluation.time.is_some() {
        page.push_str("<p>No window of time has enough rows to be judged.</p>\n");
    }
    page.push_str("</section>\n");
}

fn sentence(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", characters.as_str())
}

fn figures(page: &mut String, key: &PartitionKeyReport, placement: &PlacementReport) {
    let skew = &placement.skew;
    let mut figures = vec![
        ("distinct values", distinct(key)),
        ("for each partition", format!("{:.1}", placement.noise_floor.keys_per_partition)),
        ("idle fraction", percent(skew.idle_fraction)),
        ("max / mean", format!("{:.3}", skew.max_over_mean)),
        ("CV", percent(skew.cv)),
        ("CV by chance", percent(placement.noise_floor.expected_cv_weighted)),
        ("empty partitions", count(skew.empty_partitions as u64)),
        ("sustained inserts", rate(placement.capacity.sustained)),
        ("in the worst window", rate(placement.capacity.worst_window)),
        ("if even", rate(placement.capacity.if_even)),
        ("rows with NULL", count(key.null_rows)),
        ("bytes of a key", format!("{:.1}", key.mean_key_bytes)),
    ];
    if let Some(batch) = &placement.per_batch {
        figures.push(("partitions per batch", format!("{:.0}", batch.partitions_written.median)));
    }
    if let Some(time) = &placement.over_time {
        figures.push(("peak of one partition", rows_per_second(time.peak.rows_per_second_of_fullest)));
    }
    if let Some(intervals) = &placement.intervals {
        let interval = intervals.max_over_mean;
        figures.push(("max / mean of all rows", format!("{:.3} to {:.3}", interval.lower, interval.upper)));
        let between = |interval: Option<Interval>, shown: fn(f64) -> String| {
            let both = |Interval { lower, upper }| format!("{} to {}", shown(lower), shown(upper));
            interval.map_or_else(|| "no interval: the sample has too few rows".to_owned(), both)
        };
        figures.push(("CV of all rows", between(intervals.cv, percent)));
        figures.push((
            "effective partitions of all rows",
            between(intervals.effective_partitions, |x| format!("{x:.1}")),
        ));
    }
    page.push_str("<dl>\n");
    for (name, value) in figures {
        let _ = writeln!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    page.push_str("</dl>\n");
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

fn primary_keys(page: &mut String, assessment: &AdvisorReport) {
    let keys = &assessment.evaluation.primary_keys;
    if keys.is_empty() {
        return;
    }
    page.push_str("<h2>Primary keys</h2>\n");
    let row = |key: &PrimaryKeyReport| {
        vec![
            key.columns.join(", "),
            count(key.identical_rows),
            count(key.conflicting_rows),
            percent(key.in_order_fraction),
            format!("{:.1}", key.layout.depth.average_depth),
            format!("{:.1}", key.layout.write_amplification),
            key.rank_correlation.map_or("-".to_owned(), |correlation| format!("{correlation:.2}")),
            key.obstacles.join("; "),
        ]
    };
    let headings = [
        "primary key",
        "#copies",
        "#conflicts",
        "#in order",
        "#overlap depth",
        "#writes per row",
        "#rank correlation",
        "",
    ];
    table(page, &headings, keys.iter().map(row));
    let examples: Vec<Vec<String>> = keys
        .iter()
        .flat_map(|key| {
            key.examples.iter().map(|example| {
                let differs = if example.differs_in.is_empty() {
                    "nothing".to_owned()
                } else {
                    example.differs_in.join(", ")
                };
                vec![
                    key.columns.join(", "),
                    key_text(&example.key),
                    example.first.clone(),
                    example.second.clone(),
                    differs,
                ]
            })
        })
        .collect();
    if !examples.is_empty() {
        page.push_str("<h3>Rows that share a primary key</h3>\n");
        table(page, &["primary key", "value", "first row", "next row", "differs in"], examples.into_iter());
    }
    let pruning: Vec<Vec<String>> = keys
        .iter()
        .flat_map(|key| {
            key.pruning.iter().map(|pruning| {
                let (portions, groups) = (pruning.portions_pruned, pruning.merged_row_groups_pruned);
                vec![key.columns.join(", "), pruning.condition.clone(), percent(portions), percent(groups)]
            })
        })
        .collect();
    if !pruning.is_empty() {
        page.push_str("<h3>What a condition leaves unread</h3>\n");
        table(
            page,
            &["primary key", "condition", "#portions", "#row groups once merged"],
            pruning.into_iter(),
        );
    }
}

fn findings(page: &mut String, assessment: &AdvisorReport) {
    if assessment.findings.is_empty() {
        return;
    }
    page.push_str("<h2>Findings</h2>\n");
    for finding in &assessment.findings {
        let word = finding.severity.word();
        let _ = writeln!(
            page,
            "<div class=\"finding {word}\"><p><span class=\"badge {word}\">{word}</span> <b>{}</b> {}: {}</p><p>{}</p></div>",
            escape(finding.code.name()),
            escape(&finding.subject),
            escape(&finding.message),
            escape(&finding.advice)
        );
    }
}

fn considered(page: &mut String, assessment: &AdvisorReport) {
    if assessment.considered.is_empty() {
        return;
    }
    page.push_str("<h2>What was considered</h2>\n");
    let rows = assessment.considered.iter().map(|considered| {
        let kept = if considered.kept { "evaluated" } else { "dropped" };
        vec![considered.key.join(", "), kept.to_owned(), considered.reason.clone()]
    });
    table(page, &["key", "", "why"], rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_data_cannot_become_markup() {
        assert_eq!(
            escape("<script>\"a\" & 'b'\u{0}</script>"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\\u{0}&lt;/script&gt;"
        );
    }
}
