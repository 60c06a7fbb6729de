//! Renders the effect of a placement function on keys as text.

use std::fmt::Write as _;

use crate::grid::heading;
use crate::grid::{Heading, Layout, count, grid};
use evenkeel_advisor::lint::{HashSpread, Lint};
use evenkeel_model::finding::Finding;

/// Renders how a function spreads keys, compared with a perfect one.
#[must_use]
pub fn lint(lint: &Lint, layout: Layout) -> String {
    let mut text =
        heading(layout, &format!("{} keys over {} partitions", count(lint.keys), lint.spread.partitions));
    let _ = writeln!(
        text,
        "{} ({}); keys {} as {}",
        lint.function,
        lint.status.word(),
        lint.keys_of,
        lint.types.join(", ")
    );
    lint.notes.iter().for_each(|note| {
        let _ = writeln!(text, "note: {note}");
    });
    text.push('\n');
    text.push_str(&spreads(lint, layout));
    text.push_str(match layout {
        Layout::Markdown => "\n",
        Layout::Plain => "",
    });
    text.push_str(
        "deviations: of the chi-square sum from chance; above 5 the function is at fault, as it is if far fewer \
         partitions have a key; below -5 keys are more even than by chance\n",
    );
    text.push_str(&workers(lint));
    for Finding { severity, code, subject, message, advice, .. } in &lint.findings {
        let _ = writeln!(text, "\n{} [{code}] {subject}: {message}\n  {advice}", severity.word());
    }
    match (lint.findings.is_empty(), lint.keys < 20) {
        (true, true) => text.push_str("\ntoo few keys to tell the effect of the function from chance\n"),
        (true, false) => text.push_str("\nthis function shows no problem on these keys\n"),
        (false, _) => {}
    }
    text
}

/// Draws the spread of the function, and of each alternative.
fn spreads(lint: &Lint, layout: Layout) -> String {
    let row = |words: &str, spread: &HashSpread| {
        vec![
            words.to_owned(),
            format!("{} of {}", count(u64::from(spread.filled)), count(u64::from(spread.partitions))),
            format!("{:.0}", spread.expected_filled),
            count(spread.fullest),
            format!("{:+.1}", spread.deviations),
        ]
    };
    let alternatives = lint.alternatives.iter().map(|other| row(&other.words, &other.spread));
    let headings = [
        Heading::text(""),
        Heading::number("partitions with a key"),
        Heading::number("by a perfect hash"),
        Heading::number("fullest"),
        Heading::number("deviations"),
    ];
    let rows = std::iter::once(row("as requested", &lint.spread)).chain(alternatives);
    grid(layout, &headings, rows.collect())
}

/// Describes the load of workers, if there are any.
fn workers(lint: &Lint) -> String {
    let Some(workers) = &lint.workers else { return String::new() };
    let mut text = format!(
        "\n{} workers: the fullest has {:.2} times the mean of the keys, {:.2} by its partitions",
        workers.workers, workers.max_over_mean, workers.by_partitions
    );
    if let (Some(threads), Some(used)) = (workers.threads, workers.fewest_threads) {
        let _ = write!(text, "; one of them uses {used} of {threads} threads");
    }
    text + "\n"
}

/// Renders the placement functions: name, status, and title.
#[must_use]
pub fn placements(layout: Layout, rows: Vec<Vec<String>>) -> String {
    let headings = [Heading::text("placement"), Heading::text("status"), Heading::text("places")];
    grid(layout, &headings, rows)
}
