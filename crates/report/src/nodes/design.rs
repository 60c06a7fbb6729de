//! Columns that identify a design, the first ones of each table.

use crate::grid::{Heading, count};
use evenkeel_capacity::DesignReport;

const HEADINGS: [Heading; 3] =
    [Heading::text("partition key"), Heading::number("nodes"), Heading::number("partitions")];

/// Returns the headings of a table of designs that has further columns.
pub(super) fn headings(further: impl IntoIterator<Item = Heading>) -> Vec<Heading> {
    HEADINGS.into_iter().chain(further).collect()
}

/// Returns the cells that identify a design.
pub(super) fn cells(design: &DesignReport) -> Vec<String> {
    vec![design.partition_key.join(", "), count(design.nodes as u64), count(design.partitions as u64)]
}
