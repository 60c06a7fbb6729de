//! Renders the results of benches as text.

use std::fmt::Write as _;

use crate::bench::{Backlog, IngestBench, KeyBench, QueryBench, Resource};
use evenkeel_model::units::ByteSize;
use evenkeel_report::{Heading, Layout, count, grid, percent, rate, spark, spark_of};

/// Maximum number of values drawn in one line.
const MAX_DRAWN: usize = 120;

/// Renders one row per query.
#[must_use]
pub fn query_table(queries: &[QueryBench], layout: Layout) -> String {
    let rows = queries.iter().map(|query| {
        let first = query.scans.first();
        let share_of = |read: u64, all: u64| format!("{} of {}", count(read), count(all));
        let (least, most) =
            query.millis.iter().fold((f64::INFINITY, 0.0f64), |(low, high), m| (low.min(*m), high.max(*m)));
        vec![
            query.name.clone(),
            count(query.rows),
            format!("{:.1}", query.median_millis),
            format!("{least:.1}"),
            format!("{most:.1}"),
            first
                .map_or("-".to_owned(), |scan| share_of(scan.partitions_read as u64, scan.partitions as u64)),
            first.map_or("-".to_owned(), |scan| share_of(scan.portions_read as u64, scan.portions as u64)),
        ]
    });
    let headings = [
        Heading::text("query"),
        Heading::number("rows"),
        Heading::number("median ms"),
        Heading::number("least"),
        Heading::number("most"),
        Heading::number("partitions read"),
        Heading::number("portions read"),
    ];
    grid(layout, &headings, rows.collect())
}

/// Renders one row per key, then its batches and its backlog.
#[must_use]
pub fn ingest_table(bench: &IngestBench, layout: Layout) -> String {
    let mut text = String::new();
    let rows = bench.keys.iter().map(|key| {
        vec![
            key.partition_key.join(", "),
            count(key.rows_per_second as u64),
            rate(key.bytes_per_second),
            key.utilization.map_or("-".to_owned(), percent),
            percent(key.skew.share_of_fullest),
            percent(key.share_of_fullest.median),
            format!("{:.1}", key.effective_partitions.median),
            count(key.portions),
            ByteSize(key.stored_bytes).to_string(),
            key.layout.known_amplification().map_or("-".to_owned(), |writes| format!("{writes:.1}")),
        ]
    });
    let headings = [
        Heading::text("partition key"),
        Heading::number("rows/s"),
        Heading::number("values"),
        Heading::number("busy"),
        Heading::number("fullest"),
        Heading::number("of a batch"),
        Heading::number("effective of a batch"),
        Heading::number("portions"),
        Heading::number("stored"),
        Heading::number("writes"),
    ];
    let _ = writeln!(
        text,
        "ingested into {} partitions in batches of {} rows, each key in turn\n",
        bench.partitions,
        count(bench.batch_rows)
    );
    text.push_str(&grid(layout, &headings, rows.collect()));
    text.push_str(
        "\nfullest: share of the rows in the fullest partition, in total and in the median batch; writes: \
            number of times that compaction writes a row (model; from 8 batches on)\n\n",
    );
    for key in bench.keys.iter().filter(|key| key.replaced > 0) {
        let _ = writeln!(
            text,
            "({}) is not unique: {} rows of HASH({}) were superseded by later ones of their batch, so its \
                figures are not those of all rows\n",
            key.primary_key.join(", "),
            count(key.replaced),
            key.partition_key.join(", ")
        );
    }
    text.push_str(&backlog(bench, layout));
    text.push('\n');
    text.push_str(&over_time(bench, layout));
    text
}

fn backlog(bench: &IngestBench, layout: Layout) -> String {
    let rows = bench.keys.iter().filter_map(|key| {
        let backlog = key.backlog.as_ref()?;
        Some(vec![
            key.partition_key.join(", "),
            rate(backlog.sustained_rate),
            rate(backlog.rate_without_backlog),
            rate(backlog.rate_in_the_long_run),
            rate(backlog.offered_rate),
            if backlog.is_sustained { "yes" } else { "NO" }.to_owned(),
            ByteSize(backlog.bytes.iter().copied().fold(0.0, f64::max) as u64).to_string(),
            format!("{:.1} s", backlog.longest_wait_seconds),
            line(&backlog.bytes, None),
        ])
    });
    let headings = [
        Heading::text("partition key"),
        Heading::number("sustains"),
        Heading::number("no backlog up to"),
        Heading::number("long run"),
        Heading::number("offered"),
        Heading::text("sustained"),
        Heading::number("most waiting"),
        Heading::number("longest wait"),
        Heading::text("waiting over time"),
    ];
    let resource = bench.keys.iter().find_map(|key| Some(key.backlog.as_ref()?.resource));
    let (each, others) = match resource {
        Some(Resource::Node) => (
            "the partitions of a node share their combined capacity, so uneven keys sustain more than in evaluate, which counts each partition separately",
            "as in capacity",
        ),
        _ => ("each partition separately", "as in evaluate and capacity"),
    };
    let mut text = format!(
        "{}\nmodel: a partition handles {} of values, {each}; sustains: the rate at which the busiest at \
            any moment is at its capacity, {others}; no backlog up to: the highest such rate at which no batch leaves a backlog; long run: the highest rate at which every backlog drains in the end; waiting: at the end of a batch\n",
        grid(layout, &headings, rows.collect()),
        rate(bench.limits.partition_rate)
    );
    for key in &bench.keys {
        let unseen = |backlog: &&Backlog| !backlog.is_sustained && backlog.longest_wait_seconds == 0.0;
        if let Some(backlog) = key.backlog.as_ref().filter(unseen) {
            let _ = writeln!(
                text,
                "HASH({}) sustains {}, not {}: at any moment few partitions get all rows. Others get those of \
                    the next moments, so nothing waits at the end of a batch; a smaller --batch shows more",
                key.partition_key.join(", "),
                rate(backlog.sustained_rate),
                rate(backlog.offered_rate)
            );
        }
    }
    text
}

fn over_time(bench: &IngestBench, layout: Layout) -> String {
    let values = |key: &KeyBench, value_of: fn(&crate::bench::BatchWrite) -> f64, full: Option<f64>| {
        line(&key.batches.iter().map(value_of).collect::<Vec<_>>(), full)
    };
    let all = bench.partitions.len() as f64;
    let rows = bench.keys.iter().map(|key| {
        vec![
            key.partition_key.join(", "),
            values(key, |batch| batch.effective_partitions, Some(all)),
            values(key, |batch| batch.share_of_fullest, Some(1.0)),
            values(key, |batch| batch.seconds, None),
            spark(&key.rows_per_partition.iter().copied().take(MAX_DRAWN).collect::<Vec<_>>()),
        ]
    });
    let headings = [
        Heading::text("partition key"),
        Heading::text("over time: effective partitions"),
        Heading::text("share of the fullest"),
        Heading::text("seconds"),
        Heading::text("rows per partition"),
    ];
    grid(layout, &headings, rows.collect())
}

/// Draws values over time as bars, scaled to `full` or, if it is `None`, to the largest value. If
/// there are many values, neighbours share the bar of the largest of them.
fn line(values: &[f64], full: Option<f64>) -> String {
    let together = values.len().div_ceil(MAX_DRAWN / 2).max(1);
    let full = full.unwrap_or_else(|| values.iter().copied().fold(0.0, f64::max));
    let values = values.chunks(together).map(|chunk| chunk.iter().copied().fold(0.0, f64::max));
    values.map(|value| spark_of(value, full)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_scaled_to_the_given_or_the_largest_value() {
        assert_eq!(line(&[0.0, 1.0, 2.0, 8.0], None), "·▁▂█");
        assert_eq!(line(&[0.0, 1.0, 2.0, 8.0], Some(16.0)), "·▁▁▄");
        assert_eq!(line(&[], None), "");
        assert_eq!(line(&[0.0], None), "·");
    }

    #[test]
    fn neighbours_share_the_bar_of_the_largest() {
        let mut values = vec![0.0; 120];
        values[3] = 1.0;
        assert_eq!(line(&values, None), format!("·█{}", "·".repeat(58)));
    }
}
