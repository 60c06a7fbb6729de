//! Figures of primary keys, examples of repeated ones, and the files that conditions leave unread.

use crate::grid::{count, percent};
use crate::html::page::table;
use crate::values::key_text;
use evenkeel_advisor::evaluate::{AdvisorReport, PrimaryKeyReport};

/// Writes the figures of the primary keys, if any were evaluated.
pub(super) fn primary_keys(page: &mut String, assessment: &AdvisorReport) {
    let keys = &assessment.evaluation.primary_keys;
    if keys.is_empty() {
        return;
    }
    page.push_str("<h2>Primary keys</h2>\n");
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
    table(page, &headings, keys.iter().map(figures));
    let examples: Vec<_> = keys.iter().flat_map(examples).collect();
    if !examples.is_empty() {
        page.push_str("<h3>Rows that share a primary key</h3>\n");
        table(page, &["primary key", "value", "first row", "next row", "differs in"], examples.into_iter());
    }
    let pruning: Vec<_> = keys.iter().flat_map(pruning).collect();
    if !pruning.is_empty() {
        page.push_str("<h3>Pruning by condition</h3>\n");
        let headings = ["primary key", "condition", "#portions", "#row groups once merged"];
        table(page, &headings, pruning.into_iter());
    }
}

fn figures(key: &PrimaryKeyReport) -> Vec<String> {
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
}

/// Returns a row of cells for each example of a repeated key.
fn examples(key: &PrimaryKeyReport) -> impl Iterator<Item = Vec<String>> {
    key.examples.iter().map(|example| {
        let differs = match example.differs_in.as_slice() {
            [] => "nothing".to_owned(),
            columns => columns.join(", "),
        };
        let (first, second) = (example.first.clone(), example.second.clone());
        vec![key.columns.join(", "), key_text(&example.key), first, second, differs]
    })
}

/// Returns a row of cells for each condition.
fn pruning(key: &PrimaryKeyReport) -> impl Iterator<Item = Vec<String>> {
    key.pruning.iter().map(|pruning| {
        let (portions, groups) = (pruning.portions_pruned, pruning.merged_row_groups_pruned);
        vec![key.columns.join(", "), pruning.condition.clone(), percent(portions), percent(groups)]
    })
}
