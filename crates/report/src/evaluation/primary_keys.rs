//! Figures of the candidates for the primary key, and of statements.

use std::fmt::Write as _;

use crate::grid::{Heading, Layout, count, draw, heading, percent, section};
use crate::values::key_text;
use evenkeel_advisor::evaluate::{AdvisorReport, FanOut, PrimaryKeyReport, Reach, StatementReport, UniqueBy};
use evenkeel_model::units::elapsed;

pub(super) fn primary_keys(assessment: &AdvisorReport, layout: Layout) -> String {
    let row = |key: &PrimaryKeyReport| {
        vec![
            key.columns.join(", "),
            match &key.duplicate_rows_interval {
                Some(rows) => format!("{} to {} repeat", count(rows.lower as u64), count(rows.upper as u64)),
                None if key.uniqueness.is_some_and(|unique| unique.by == UniqueBy::Chance) => {
                    "by chance".to_owned()
                }
                None if key.unique => "yes".to_owned(),
                None => "no".to_owned(),
            },
            count(key.identical_rows),
            count(key.conflicting_rows),
            percent(key.in_order_fraction),
            key.late.reach.as_ref().map_or("-".to_owned(), |reach| elapsed(reach.max_micros)),
            key.rank_correlation.map_or("-".to_owned(), |correlation| format!("{correlation:.2}")),
            format!("{:.1}", key.layout.depth.average_depth),
            key.layout.known_amplification().map_or("-".to_owned(), |writes| format!("{writes:.1}")),
            if key.obstacles.is_empty() { String::new() } else { key.obstacles.join("; ") },
        ]
    };
    let keys = &assessment.evaluation.primary_keys;
    let headings = [
        Heading::text("primary key"),
        Heading::text("unique"),
        Heading::number("copies"),
        Heading::number("conflicts"),
        Heading::number("in order"),
        Heading::number("late by up to"),
        Heading::number("correlation"),
        Heading::number("depth"),
        Heading::number("writes"),
        Heading::text(""),
    ];
    let mut text = section(layout, "Primary keys", &headings, keys.iter().map(row).collect());
    if let Some(first) = keys.first() {
        let _ = writeln!(
            text,
            "\ncopies and conflicts: rows whose key an earlier row has, with the same or other values; in order: within a partition of \
             HASH({}) and the like; depth: portions from batches of {} rows that overlap; writes: how often merging them writes a row \
             (model)",
            first.partitioned_by.join(", "),
            count(first.layout.batch_rows)
        );
    }
    [text, examples(keys, layout), pruning(keys, layout)]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Formats rows that share a key.
fn examples(keys: &[PrimaryKeyReport], layout: Layout) -> String {
    let examples = keys.iter().flat_map(|key| {
        key.examples.iter().take(2).map(|example| {
            vec![
                key.columns.join(", "),
                key_text(&example.key),
                example.first.clone(),
                example.second.clone(),
                if example.differs_in.is_empty() {
                    "nothing".to_owned()
                } else {
                    example.differs_in.join(", ")
                },
            ]
        })
    });
    let headings = [
        Heading::text("primary key"),
        Heading::text("value"),
        Heading::text("first row"),
        Heading::text("next row"),
        Heading::text("differs in"),
    ];
    section(layout, "Rows that share a primary key", &headings, examples.collect())
}

/// Formats the shares of the data that conditions prune.
fn pruning(keys: &[PrimaryKeyReport], layout: Layout) -> String {
    let pruning = keys.iter().flat_map(|key| {
        key.pruning.iter().map(|pruning| {
            vec![
                key.columns.join(", "),
                pruning.condition.clone(),
                percent(pruning.portions_pruned),
                percent(pruning.merged_row_groups_pruned),
            ]
        })
    });
    let headings = [
        Heading::text("primary key"),
        Heading::text("condition"),
        Heading::number("portions pruned"),
        Heading::number("row groups pruned after merging"),
    ];
    section(layout, "Pruning by condition", &headings, pruning.collect())
}

/// Formats the partitions that a statement visits: one, all, or their number.
pub(crate) fn visited(visit: &FanOut) -> String {
    match visit.reach {
        Reach::Some => format!("{} of {}", visit.partitions_read, visit.partitions),
        other => other.word().to_owned(),
    }
}

/// Maximum number of statements in a table; statements of a log are sorted by their runs.
const MAX_STATEMENTS: usize = 20;

pub(super) fn statements(assessment: &AdvisorReport, layout: Layout) -> String {
    let planned: Vec<&StatementReport> = assessment
        .statements
        .iter()
        .filter(|statement| statement.problem.is_none())
        .take(MAX_STATEMENTS)
        .collect();
    let Some(first) = planned.first() else { return String::new() };
    let mut headings = vec![("partition key".to_owned(), false)];
    headings.extend(planned.iter().map(|statement| (statement.statement.clone(), true)));
    let rows = first.fan_out.iter().enumerate().map(|(position, fan_out)| {
        let visits = planned.iter().filter_map(|statement| statement.fan_out.get(position));
        let visits = visits.map(visited);
        std::iter::once(fan_out.partition_key.join(", ")).chain(visits).collect()
    });
    let derived = assessment.evaluation.candidates.iter().any(|key| !key.candidate.is_plain());
    let note = if derived {
        "\nfor a derived part, statements are assumed to name the derived column too\n"
    } else {
        ""
    };
    heading(layout, "Partitions that statements visit") + &draw(layout, &headings, rows.collect()) + note
}

#[cfg(test)]
#[path = "primary_keys_tests.rs"]
mod tests;
