//! Renders the effect of a placement function on keys as text.

use std::fmt::Write as _;

use crate::evaluation::heading;
use crate::grid::{Heading, Layout, count, grid};
use evenkeel_advisor::lint::{Lint, Spread};

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
    let row = |words: String, spread: &Spread| {
        vec![
            words,
            format!("{} of {}", count(u64::from(spread.filled)), count(u64::from(spread.partitions))),
            format!("{:.0}", spread.expected_filled),
            count(spread.fullest),
            format!("{:+.1}", spread.deviations),
        ]
    };
    let mut rows = vec![row("as requested".to_owned(), &lint.spread)];
    rows.extend(lint.alternatives.iter().map(|other| row(other.words.clone(), &other.spread)));
    let headings = [
        Heading::text(""),
        Heading::number("partitions with a key"),
        Heading::number("by a perfect hash"),
        Heading::number("fullest"),
        Heading::number("deviations"),
    ];
    text.push_str(&grid(layout, &headings, rows));
    text.push_str(match layout {
        Layout::Markdown => "\n",
        Layout::Plain => "",
    });
    text.push_str("deviations: of the chi-square sum from chance; above 5 the function is at fault, as it is if far fewer \
                   partitions have a key; below -5 keys are more even than by chance\n");
    if let Some(workers) = &lint.workers {
        let _ = write!(
            text,
            "\n{} workers: the fullest has {:.2} times the mean of the keys, {:.2} by its partitions",
            workers.workers, workers.max_over_mean, workers.by_partitions
        );
        if let (Some(threads), Some(used)) = (workers.threads, workers.fewest_threads) {
            let _ = write!(text, "; one of them uses {used} of {threads} threads");
        }
        text.push('\n');
    }
    for finding in &lint.findings {
        let _ = writeln!(
            text,
            "\n{} [{}] {}: {}\n  {}",
            finding.severity.word(),
            finding.code,
            finding.subject,
            finding.message,
            finding.advice
        );
    }
    if lint.findings.is_empty() && lint.keys < 20 {
        text.push_str("\ntoo few keys to tell the effect of the function from chance\n");
    } else if lint.findings.is_empty() {
        text.push_str("\nthis function shows no problem on these keys\n");
    }
    text
}

/// Renders the placement functions: name, how far each is verified, and what it places.
#[must_use]
pub fn placements(layout: Layout, rows: Vec<Vec<String>>) -> String {
    let headings = [Heading::text("placement"), Heading::text("status"), Heading::text("places")];
    grid(layout, &headings, rows)
}
