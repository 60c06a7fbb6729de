//! What a table is and holds.

use std::fmt::Write as _;

use crate::overview::TableOverview;
use crate::report::grid::{Heading, Layout, count, grid};
use crate::units::ByteSize;

/// A table and its partitions.
#[must_use]
pub fn overview(overview: &TableOverview, layout: Layout) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}: version {}, {} rows, {} in {} portions",
        overview.name,
        overview.version,
        count(overview.rows),
        ByteSize(overview.bytes),
        count(overview.portions),
    );
    if overview.stored_rows > overview.rows {
        let replaced = count(overview.stored_rows - overview.rows);
        let _ = writeln!(
            text,
            "{replaced} more rows are stored that newer rows with the same primary key replace"
        );
    }
    if overview.unnamed_files > 0 {
        let _ = writeln!(
            text,
            "{} files ({}) belong to no commit: left over from ingests that died, or still being written",
            count(overview.unnamed_files),
            ByteSize(overview.unnamed_bytes)
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
    let columns = overview.columns.iter().map(|column| {
        let null = if column.nullable { "" } else { "NOT NULL" };
        vec![column.name.clone(), column.column_type.to_string(), null.to_owned()]
    });
    text.push_str(&grid(
        layout,
        &[Heading("column", false), Heading("type", false), Heading("", false)],
        columns.collect(),
    ));
    text.push('\n');
    let partitions = overview.partitions.iter().map(|partition| {
        vec![
            partition.partition.to_string(),
            count(partition.rows),
            ByteSize(partition.bytes).to_string(),
            count(partition.portions),
        ]
    });
    let headings = [
        Heading("partition", true),
        Heading("rows", true),
        Heading("bytes", true),
        Heading("portions", true),
    ];
    text.push_str(&grid(layout, &headings, partitions.collect()));
    text
}
