//! Renders the definition and contents of a table.

use std::fmt::Write as _;

use crate::evaluation::instant;
use crate::grid::{Heading, Layout, count, counted, grid};
use evenkeel_engine::overview::{TableFiles, TableHistory, TableOverview};
use evenkeel_model::units::ByteSize;
use evenkeel_stats::overlap::{DepthBucket, OverlapDepth};

/// Renders a table and its partitions.
#[must_use]
pub fn overview(overview: &TableOverview, layout: Layout) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: version {}, {}, {} in {}",
        overview.name,
        overview.version,
        counted(overview.rows, "row"),
        ByteSize(overview.bytes),
        counted(overview.portions, "portion"),
    );
    if overview.stored_rows > overview.rows {
        let replaced = count(overview.stored_rows - overview.rows);
        let _ = writeln!(
            text,
            "{replaced} more rows are stored, but superseded by newer rows with the same primary key"
        );
    }
    if overview.write_amplification > 0.0 {
        let _ = writeln!(
            text,
            "compaction rewrote {:.2} bytes for each ingested byte",
            overview.write_amplification
        );
    }
    if overview.other_files > 0 {
        let _ = writeln!(
            text,
            "{} more ({}) of other versions, or left over; 'evenkeel clean' deletes those that no kept version needs",
            counted(overview.other_files, "file"),
            ByteSize(overview.other_bytes)
        );
    }
    let _ = writeln!(text, "primary key    ({})", overview.primary_key.join(", "));
    let _ = writeln!(
        text,
        "partition key  ({}), {} partitions, placement {}\n",
        overview.partition_key.join(", "),
        overview.partitions.len(),
        overview.placement
    );
    if let Some(ttl) = &overview.ttl {
        let _ = writeln!(text, "time to live   {ttl}\n");
    }
    let columns = overview.columns.iter().map(|column| {
        let null = if column.nullable { "" } else { "NOT NULL" };
        vec![column.name.clone(), column.column_type.to_string(), null.to_owned()]
    });
    text.push_str(&grid(
        layout,
        &[Heading::text("column"), Heading::text("type"), Heading::text("")],
        columns.collect(),
    ));
    text.push('\n');
    let partitions = overview.partitions.iter().map(|partition| {
        vec![
            partition.partition.to_string(),
            count(partition.rows),
            ByteSize(partition.bytes).to_string(),
            count(partition.portions),
            format!("{:.1}", partition.overlap.average_depth),
            depth_histogram(&partition.overlap),
        ]
    });
    let headings = [
        Heading::number("partition"),
        Heading::number("rows"),
        Heading::number("bytes"),
        Heading::number("portions"),
        Heading::number("depth"),
        Heading::text("portions by depth"),
    ];
    text.push_str(&grid(layout, &headings, partitions.collect()));
    text.push_str(
        "\ndepth: average number of portions that cover the first key of a portion; 1 means no overlap\n",
    );
    text
}

/// Renders the files of a table.
#[must_use]
pub fn files(files: &TableFiles, layout: Layout) -> String {
    let mut text =
        format!("{}: version {}, {}\n", files.name, files.version, counted(files.files.len() as u64, "file"));
    text.push_str(&match files.max_depth {
        0 | 1 => "each row is in exactly one of them\n\n".to_owned(),
        depth => format!(
            "up to {depth} of them share keys, so they may contain superseded rows; 'evenkeel compact --max-depth 1' removes these\n\n"
        ),
    });
    let rows = files.files.iter().map(|file| {
        vec![
            file.partition.to_string(),
            count(file.rows),
            ByteSize(file.bytes).to_string(),
            file.path.clone(),
            file.keys.clone(),
        ]
    });
    let headings = [
        Heading::number("partition"),
        Heading::number("rows"),
        Heading::number("bytes"),
        Heading::text("file"),
        Heading::text("first .. last key"),
    ];
    text.push_str(&grid(layout, &headings, rows.collect()));
    text
}

/// Formats the numbers of portions by depth: `3 of 1, 2 of 3-4`.
fn depth_histogram(overlap: &OverlapDepth) -> String {
    let bucket = |bucket: &DepthBucket| match bucket.depth {
        exact @ (1 | 2) => format!("{} of {exact}", bucket.portions),
        most => format!("{} of {}-{most}", bucket.portions, most / 2 + 1),
    };
    overlap.depth_histogram.iter().map(bucket).collect::<Vec<_>>().join(", ")
}

/// Renders the commits of a table.
#[must_use]
pub fn history(history: &TableHistory, layout: Layout) -> String {
    let rows = history.commits.iter().map(|commit| {
        let sources = match commit.sources.as_slice() {
            [first, _, ..] => format!("{first} and {} more", commit.sources.len() - 1),
            sources => sources.concat(),
        };
        vec![
            commit.version.to_string(),
            instant(commit.at_micros),
            commit.operation.word().to_owned(),
            count(commit.rows),
            ByteSize(commit.bytes).to_string(),
            count(commit.portions),
            if commit.removed > 0 { count(commit.removed) } else { String::new() },
            sources,
        ]
    });
    let headings = [
        Heading::number("version"),
        Heading::text("at (UTC)"),
        Heading::text("operation"),
        Heading::number("rows"),
        Heading::number("bytes"),
        Heading::number("portions"),
        Heading::number("removed"),
        Heading::text("inputs"),
    ];
    grid(layout, &headings, rows.collect())
}
