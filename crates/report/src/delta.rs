//! Renders an export to a Delta log.

use std::fmt::Write as _;

use crate::grid::{Layout, count, counted};
use evenkeel_model::units::ByteSize;
use evenkeel_store::delta::DeltaExport;

/// Renders the result of an export.
#[must_use]
pub fn delta_export(report: &DeltaExport, _layout: Layout) -> String {
    let mut text = String::new();
    let holds = format!(
        "{}, {} ({})",
        counted(report.files, "file"),
        counted(report.rows, "row"),
        ByteSize(report.bytes)
    );
    let _ = match report.written {
        true => writeln!(
            text,
            "{}: version {} is version {} of the Delta log: {holds}; {} added, {} removed, nothing copied",
            report.name,
            report.version,
            report.delta_version,
            count(report.added),
            count(report.removed),
        ),
        false => writeln!(
            text,
            "{}: nothing to write, version {} of the Delta log has the files and columns of version {}: {holds}",
            report.name, report.delta_version, report.version,
        ),
    };
    if !report.left_out.is_empty() {
        let _ = writeln!(text, "left out: {}", report.left_out.join(", "));
    }
    if !report.converted.is_empty() {
        let _ = writeln!(
            text,
            "written as signed 64-bit integers in Delta: {}; Polars reads them with use_pyarrow=True",
            report.converted.join(", ")
        );
    }
    if report.expired_rows > 0 {
        let _ = writeln!(
            text,
            "at least {} of them have expired, but stay visible, as in queries, until a compaction drops them",
            counted(report.expired_rows, "row")
        );
    }
    text
}
