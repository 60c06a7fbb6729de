//! Renders joins between tables.

use crate::grid::heading;
use crate::grid::{Heading, Layout, grid, percent};
use crate::values::rate;
use evenkeel_advisor::joins::{JoinReport, JoinSide, TablesReport};

/// Renders the joins and their problems; a single line if there are no joins.
#[must_use]
pub fn joins(report: &TablesReport, layout: Layout) -> String {
    let mut text = heading(layout, "Joins");
    if report.joins.is_empty() {
        text.push_str("none: no two columns have names and values that suggest one; name it with --join\n\n");
        return text;
    }
    let rows = report.joins.iter().map(|join| {
        vec![
            join.to_string(),
            percent(join.left.values_found),
            percent(join.right.values_found),
            if join.local { "yes" } else { "no" }.to_owned(),
        ]
    });
    let headings = [
        Heading::text("join"),
        Heading::number("left in right"),
        Heading::number("right in left"),
        Heading::text("local"),
    ];
    text.push_str(&grid(layout, &headings, rows.collect()));
    text.push_str("\nleft in right: values of the first column that the second has; local: with the recommended keys, joined\nrows are in one partition, and no row is sent\n\n");
    for join in &report.joins {
        text.push_str(&format!("- {join} ({}): {}\n", origin(join), join.explain()));
        for side in [&join.left, &join.right] {
            text.push_str(&price(side));
        }
    }
    for finding in &report.join_findings {
        text.push_str(&format!(
            "- {} [{}] {}: {}. {}\n",
            finding.severity.word(),
            finding.code,
            finding.subject,
            finding.message,
            finding.advice
        ));
    }
    text.push('\n');
    text
}

/// Renders the heading of a table among several.
#[must_use]
pub fn table_heading(table: &str, layout: Layout) -> String {
    match layout {
        Layout::Plain => format!("{}\nTABLE {table}\n{}\n", "=".repeat(98), "=".repeat(98)),
        Layout::Markdown => format!("# {table}\n\n"),
    }
}

fn origin(join: &JoinReport) -> &'static str {
    if join.inferred { "found from names and values" } else { "named" }
}

/// Describes what partitioning by the joined column costs in evenness.
fn price(side: &JoinSide) -> String {
    let joined = format!("HASH({}) of {}", side.column, side.table);
    let Some(figures) = side.joined_figures else {
        return format!(
            "  {joined} cannot be evaluated: its type is not allowed in keys, or its values are NULL\n"
        );
    };
    let rest = format!(
        "max/mean {:.2}, sustains {}, {}",
        figures.max_over_mean,
        rate(figures.sustained_rate),
        figures.verdict.word()
    );
    match side.recommended_figures.filter(|_| side.recommended != [side.column.as_str()]) {
        None => format!("  {joined}: {rest}\n"),
        Some(recommended) => format!(
            "  {joined}: {rest}; instead of {:.2} and {} of HASH({})\n",
            recommended.max_over_mean,
            rate(recommended.sustained_rate),
            side.recommended.join(", ")
        ),
    }
}
