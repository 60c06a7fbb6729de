//! Renders how even a table is.

use std::fmt::Write as _;

use crate::grid::{Heading, Layout, bar, count, grid, percent};
use evenkeel_engine::inspect::TableSkew;
use evenkeel_model::units::ByteSize;
use evenkeel_stats::skew::{NoiseFloor, SYNAPSE_LIMIT, SkewFigures, Verdict};

/// Maximum number of commits shown one by one; beyond it, the middle is left out with a note.
const COMMITS_SHOWN: usize = 24;

/// Renders partitions, figures with their meaning, noise floor, commits and the verdict.
#[must_use]
pub fn skew(skew: &TableSkew, layout: Layout) -> String {
    let mut text = partitions(skew, layout);
    text.push('\n');
    text.push_str(&grid(
        layout,
        &[Heading::text("figure"), Heading::number("value"), Heading::text("meaning")],
        figures(&skew.figures),
    ));
    if let Some(floor) = &skew.noise_floor {
        text.push('\n');
        text.push_str(&grid(
            layout,
            &[Heading::text("noise floor"), Heading::number("value"), Heading::text("meaning")],
            noise_floor(floor),
        ));
    }
    if !skew.over_commits.is_empty() {
        text.push('\n');
        text.push_str(&commits(skew, layout));
    }
    let _ = writeln!(text, "\nverdict: {}. {}", skew.verdict.word(), skew.verdict.sentence());
    if skew.verdict == Verdict::Even && skew.figures.synapse_skew >= SYNAPSE_LIMIT {
        text.push_str(
            "The remaining unevenness comes from too few or too unequal keys; no hash would spread them better.\n",
        );
    }
    text
}

fn partitions(skew: &TableSkew, layout: Layout) -> String {
    let most = skew.figures.max as f64;
    let rows = skew
        .rows_per_partition
        .iter()
        .zip(&skew.bytes_per_partition)
        .zip(&skew.portions_per_partition)
        .enumerate()
        .map(|(partition, ((rows, bytes), portions))| {
            vec![
                partition.to_string(),
                count(*rows),
                ByteSize(*bytes).to_string(),
                count(*portions),
                bar(*rows as f64, most, 30),
            ]
        });
    let headings = [
        Heading::number("partition"),
        Heading::number("rows"),
        Heading::number("bytes"),
        Heading::number("portions"),
        Heading::text(""),
    ];
    grid(layout, &headings, rows.collect())
}

fn row(name: &str, value: String, meaning: impl Into<String>) -> Vec<String> {
    vec![name.to_owned(), value, meaning.into()]
}

fn figures(figures: &SkewFigures) -> Vec<Vec<String>> {
    let synapse = if figures.synapse_skew >= SYNAPSE_LIMIT { "over" } else { "under" };
    vec![
        row(
            "idle fraction",
            percent(figures.idle_fraction),
            "of a parallel scan in which the average partition waits for the fullest",
        ),
        row(
            "effective partitions",
            format!("{:.1}", figures.effective_partitions),
            format!(
                "of {}: number of evenly filled ones that would be equally concentrated",
                figures.partitions
            ),
        ),
        row(
            "max / mean",
            format!("{:.3}", figures.max_over_mean),
            format!("rows of the fullest partition ({}) over the mean", figures.fullest_partition),
        ),
        row("share of fullest", percent(figures.share_of_fullest), "of all rows in the fullest partition"),
        row("CV", percent(figures.cv), "standard deviation of the rows over their mean"),
        row("empty partitions", count(figures.empty_partitions as u64), "partitions without a row"),
        row(
            "Greenplum skccoeff",
            format!("{:.2}", figures.greenplum_skccoeff),
            "100 x sample deviation / mean",
        ),
        row(
            "Synapse skew",
            percent(figures.synapse_skew),
            format!("(max - min) / max, {synapse} the 10 % that Synapse flags"),
        ),
        row("APS skew", percent(figures.aps_skew), "(max - min) / all rows"),
        row(
            "Redshift skew_rows",
            figures.redshift_skew_rows.map_or("-".to_owned(), |value| format!("{value:.3}")),
            "max / min; - if a partition is empty",
        ),
    ]
}

fn noise_floor(floor: &NoiseFloor) -> Vec<Vec<String>> {
    let signed = |fraction: f64| format!("{:+.1} %", fraction * 100.0);
    vec![
        row("distinct partition keys", count(floor.distinct_keys), "values that are hashed"),
        row(
            "keys per partition",
            format!("{:.1}", floor.keys_per_partition),
            "YDB advises 100 to 1000 or more",
        ),
        row("heaviest key", percent(floor.heaviest_key_share), "of all rows have one partition key"),
        row(
            "max / mean of equal keys",
            format!("{:.3}", floor.expected_max_over_mean_equal_keys),
            "expected of a perfect hash with as many equal keys",
        ),
        row(
            "CV of equal keys",
            percent(floor.expected_cv_equal_keys),
            "expected likewise: the cost of too few keys",
        ),
        row("heavy keys add", signed(floor.cv_of_heavy_keys), "to the CV, since keys differ in rows"),
        row(
            "remainder",
            signed(floor.cv_left),
            "of the CV: about 0 is chance; far above is the hash function's fault",
        ),
    ]
}

fn commits(skew: &TableSkew, layout: Layout) -> String {
    let all = &skew.over_commits;
    let hidden = all.len().saturating_sub(COMMITS_SHOWN);
    let head = if hidden > 0 { COMMITS_SHOWN / 2 } else { all.len() };
    let shown = all.iter().take(head).chain(all.iter().skip(head + hidden));
    let rows = shown.map(|commit| {
        vec![
            commit.version.to_string(),
            count(commit.rows),
            percent(commit.share_of_fullest),
            commit.fullest_partition.to_string(),
            format!("{:.1}", commit.effective_partitions),
            bar(commit.effective_partitions, skew.figures.partitions as f64, 20),
        ]
    });
    let headings = [
        Heading::number("commit"),
        Heading::number("rows"),
        Heading::number("share of fullest"),
        Heading::number("which"),
        Heading::number("effective partitions"),
        Heading::text(""),
    ];
    let mut text = grid(layout, &headings, rows.collect());
    if hidden > 0 {
        let _ = writeln!(text, "({hidden} commits in the middle are not shown; --format json has them all)");
    }
    text
}

#[cfg(test)]
#[path = "skew_tests.rs"]
mod tests;
