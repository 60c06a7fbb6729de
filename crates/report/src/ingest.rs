//! Renders the report of an ingest.

use std::fmt::Write as _;

use crate::grid::{Heading, Layout, bar, count, counted, grid, percent};
use evenkeel_model::units::ByteSize;
use evenkeel_store::ingest::{IngestMode, IngestReport};

/// Renders the result of an ingest.
#[must_use]
pub fn ingest(report: &IngestReport, layout: Layout) -> String {
    let mut text = String::new();
    for source in &report.sources {
        if let Some(version) = source.skipped_since {
            let _ = writeln!(
                text,
                "{}: already ingested as version {version}{}; nothing to do (--again ingests it again)",
                source.name,
                if source.rejected > 0 {
                    format!(", less {} rejected", counted(source.rejected, "row"))
                } else {
                    String::new()
                }
            );
        }
    }
    if let Some(version) = report.version {
        text.push_str(&committed(report, &version.to_string(), layout));
    }
    if report.rejected > 0 {
        let file = report.rejects_file.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let _ = writeln!(
            text,
            "{} rejected, with reasons in {file} (jq -c .record FILE extracts the rows)",
            counted(report.rejected, "row")
        );
    }
    for note in &report.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn committed(report: &IngestReport, version: &str, layout: Layout) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "version {version}: {} in {:.2} s ({} rows/s), read {}, wrote {} in {}",
        counted(report.rows, "row"),
        report.seconds,
        count(report.rows_per_second as u64),
        ByteSize(report.bytes_read),
        ByteSize(report.bytes_written),
        counted(report.portions, "portion"),
    );
    if report.replaced > 0 && report.mode == IngestMode::Upsert {
        let _ = writeln!(
            text,
            "{} of them were superseded by later rows of this ingest with the same primary key",
            count(report.replaced)
        );
    }
    if report.deletes > 0 {
        let _ = writeln!(text, "{} deleted, whether or not they had rows", counted(report.deletes, "key"));
    }
    if report.skew.rows == 0 {
        return text;
    }
    let _ = writeln!(text);
    let most = report.skew.max as f64;
    let rows = report
        .rows_per_partition
        .iter()
        .enumerate()
        .map(|(partition, rows)| vec![partition.to_string(), count(*rows), bar(*rows as f64, most, 40)]);
    let headings = [Heading::number("partition"), Heading::number("rows"), Heading::text("")];
    text.push_str(&grid(layout, &headings, rows.collect()));
    let _ = writeln!(
        text,
        "\nskew of this ingest: fullest partition {:.2} x the mean, idle {}, effective partitions {:.1} of {}",
        report.skew.max_over_mean,
        percent(report.skew.idle_fraction),
        report.skew.effective_partitions,
        report.skew.partitions,
    );
    text
}
