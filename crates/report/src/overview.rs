//! Renders the definition and contents of a table.

use std::fmt::Write as _;

use crate::grid::{Heading, Layout, count, counted, grid};
use crate::values::instant;
use evenkeel_engine::inspect::{TableFiles, TableHistory, TableOverview};
use evenkeel_model::units::ByteSize;
use evenkeel_stats::overlap::{DepthBucket, OverlapDepth};

/// Renders a table and its partitions.
#[must_use]
pub fn overview(overview: &TableOverview, layout: Layout) -> String {
    let columns = overview.columns.iter().map(|column| {
        let null = if column.nullable { "" } else { "NOT NULL" };
        vec![column.name.clone(), column.column_type.to_string(), null.to_owned()]
    });
    let headings = [Heading::text("column"), Heading::text("type"), Heading::text("")];
    format!(
        "{}{}{}\n{}\ndepth: average number of portions that cover the first key of a portion; 1 means no \
         overlap\n",
        contents(overview),
        keys(overview),
        grid(layout, &headings, columns.collect()),
        partitions(overview, layout)
    )
}

/// Describes version, rows and files of a table.
fn contents(overview: &TableOverview) -> String {
    let mut text = format!(
        "{}: version {}, {}, {} in {}\n",
        overview.name,
        overview.version,
        counted(overview.rows, "row"),
        ByteSize(overview.bytes),
        counted(overview.portions, "portion"),
    );
    if overview.stored_rows > overview.rows {
        let superseded = count(overview.stored_rows - overview.rows);
        let has_deletes = overview.partitions.iter().any(|partition| partition.deletes > 0);
        let or_deleted = if has_deletes { ", or deleted" } else { "" };
        let _ = writeln!(
            text,
            "{superseded} more rows are stored, but superseded by newer rows with the same primary key{or_deleted}"
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
            "{} more ({}) of other versions, or left over; 'evenkeel clean' deletes those that no kept version \
             needs",
            counted(overview.other_files, "file"),
            ByteSize(overview.other_bytes)
        );
    }
    text
}

/// Describes keys, placement and time to live of a table.
fn keys(overview: &TableOverview) -> String {
    let mut text = format!(
        "primary key    ({})\npartition key  ({}), {} partitions, placement {}\n\n",
        overview.primary_key.join(", "),
        overview.partition_key.join(", "),
        overview.partitions.len(),
        overview.placement
    );
    if let Some(ttl) = &overview.ttl {
        let _ = writeln!(text, "time to live   {ttl}\n");
    }
    text
}

fn partitions(overview: &TableOverview, layout: Layout) -> String {
    let rows = overview.partitions.iter().map(|partition| {
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
    grid(layout, &headings, rows.collect())
}

/// Renders the files of a table.
#[must_use]
pub fn files(files: &TableFiles, layout: Layout) -> String {
    let mut text =
        format!("{}: version {}, {}\n", files.name, files.version, counted(files.files.len() as u64, "file"));
    text.push_str(&match files.max_depth {
        0 | 1 => "each row is in exactly one of them\n\n".to_owned(),
        depth => format!(
            "up to {depth} of them share keys, so they may contain superseded{} rows; 'evenkeel compact \
             --max-depth 1' removes these\n\n",
            if files.has_deletes { " and deleted" } else { "" }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_exact_up_to_2_and_ranges_beyond() {
        let bucket = |depth, portions| DepthBucket { depth, portions };
        let depth_histogram = vec![bucket(1, 3), bucket(2, 5), bucket(4, 7), bucket(8, 9)];
        let overlap = OverlapDepth { depth_histogram, ..OverlapDepth::default() };
        assert_eq!(super::depth_histogram(&overlap), "3 of 1, 5 of 2, 7 of 3-4, 9 of 5-8");
        assert_eq!(super::depth_histogram(&OverlapDepth::default()), "");
    }
}
