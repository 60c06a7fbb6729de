//! Renders the results of compacting, cleaning, checking and repartitioning.

use std::fmt::Write as _;

use crate::grid::{Heading, Layout, count, counted, grid, percent};
use evenkeel_engine::compact::CompactionReport;
use evenkeel_engine::repartition::{Movement, RepartitionPlan};
use evenkeel_model::units::ByteSize;
use evenkeel_store::maintenance::{CleanReport, TableCheck};

/// Renders the result of a compaction.
#[must_use]
pub fn compaction(report: &CompactionReport, _layout: Layout) -> String {
    let mut text = String::new();
    match report.versions.as_slice() {
        [] if report.partitions_lost > 0 => {
            text.push_str("nothing was committed: another compaction merged the same portions first\n");
        }
        [] => {
            let _ = writeln!(
                text,
                "nothing to compact: {}, overlapping at most {} deep",
                counted(report.portions_before as u64, "portion"),
                report.max_depth_before
            );
        }
        [first, rest @ ..] => {
            let versions =
                rest.last().map_or(format!("version {first}"), |last| format!("versions {first} to {last}"));
            let _ = writeln!(
                text,
                "{versions}: {} became {} in {:.2} s; {} merged, read {}, wrote {}",
                counted(report.portions_before as u64, "portion"),
                count(report.portions_after as u64),
                report.seconds,
                count(report.portions_merged),
                ByteSize(report.bytes_read),
                ByteSize(report.bytes_written),
            );
            let _ = writeln!(
                text,
                "overlap at most {} deep, before {}",
                report.max_depth_after, report.max_depth_before
            );
        }
    }
    let or_deleted = if report.deletes_dropped > 0 { " or deleted" } else { "" };
    if report.rows_superseded > 0 {
        let _ = writeln!(
            text,
            "{} removed, superseded by newer rows{or_deleted}",
            counted(report.rows_superseded, "row")
        );
    }
    if report.deletes_dropped > 0 {
        let _ =
            writeln!(text, "{} dropped: nothing older is left", counted(report.deletes_dropped, "delete"));
    }
    if report.rows_expired > 0 {
        let dropped = match report.portions_expired {
            0 => String::new(),
            portions => format!("; {} dropped unread", counted(portions, "portion")),
        };
        let _ = writeln!(text, "{} expired{dropped}", counted(report.rows_expired, "row"));
    }
    for note in &report.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// Renders the result of a cleaning.
#[must_use]
pub fn clean(report: &CleanReport, _layout: Layout) -> String {
    let mut text = String::new();
    let would = if report.dry_run { "would delete" } else { "deleted" };
    let sized =
        |files: u64, noun: &str, bytes: u64| format!("{} ({})", counted(files, noun), ByteSize(bytes));
    let mut parts = Vec::new();
    if report.portions > 0 {
        let portions = sized(report.portions, "portion", report.portion_bytes);
        parts.push(format!("{portions} that only versions before {} use", report.oldest_version));
    }
    if report.log_files > 0 {
        parts.push(format!("{} of the log", counted(report.log_files, "file")));
    }
    if report.unnamed_files > 0 {
        let files = sized(report.unnamed_files, "file", report.unnamed_bytes);
        parts.push(format!("{files} that no commit refers to"));
    }
    if parts.is_empty() {
        text.push_str("nothing to delete\n");
    } else {
        let _ = writeln!(text, "{would} {}", parts.join(", and "));
    }
    if report.forgotten_commits > 0 {
        let commits = counted(report.forgotten_commits, "commit");
        let no_longer = if report.dry_run { "would then no longer list" } else { "no longer lists" };
        let _ = writeln!(text, "the history {no_longer} {commits}, nor their inputs");
    }
    if report.young_files > 0 {
        let _ = writeln!(
            text,
            "kept, as they may still be in use by a writer: {} that no commit refers to (--unnamed sets the age at \
             which they are deleted)",
            counted(report.young_files, "file")
        );
    }
    if report.delta_files > 0 {
        let files = sized(report.delta_files, "file", report.delta_bytes);
        let _ = writeln!(
            text,
            "kept for readers of the Delta log, until its next export: {files} that no kept version needs"
        );
    }
    let can = if report.dry_run { "could then" } else { "can" };
    let _ = match report.oldest_version == report.version {
        true => writeln!(text, "only version {} {can} be read", report.version),
        false => writeln!(text, "versions {} to {} {can} be read", report.oldest_version, report.version),
    };
    text
}

/// Renders the result of a check.
#[must_use]
pub fn check(report: &TableCheck, layout: Layout) -> String {
    let mut text = format!(
        "{}: {}, {} ({}) and {} of the log read, {} damaged\n",
        report.name,
        match report.oldest_version == report.version {
            true => format!("version {}", report.version),
            false => format!("versions {} to {}", report.oldest_version, report.version),
        },
        counted(report.portions as u64, "portion"),
        ByteSize(report.bytes),
        counted(report.log_files, "file"),
        count((report.damaged.len() + report.damaged_log.len()) as u64),
    );
    if !report.damaged.is_empty() {
        let rows = report.damaged.iter().map(|damaged| {
            vec![
                damaged.partition.to_string(),
                count(damaged.rows),
                damaged.file.clone(),
                damaged.damage.to_string(),
            ]
        });
        let headings =
            [Heading::number("partition"), Heading::number("rows"), Heading::text("file"), Heading::text("")];
        text.push('\n');
        text.push_str(&grid(layout, &headings, rows.collect()));
    }
    if !report.damaged_log.is_empty() {
        let rows =
            report.damaged_log.iter().map(|damaged| vec![damaged.file.clone(), damaged.reason.clone()]);
        text.push('\n');
        text.push_str(&grid(layout, &[Heading::text("file"), Heading::text("")], rows.collect()));
    }
    text
}

/// Renders the rows and bytes that a new partitioning moves.
#[must_use]
pub fn repartition_plan(plan: &RepartitionPlan, layout: Layout) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} of {} move ({}), {} of {}",
        counted(plan.rows_moving, "row"),
        count(plan.rows),
        percent(plan.rows_moving as f64 / plan.rows.max(1) as f64),
        ByteSize(plan.bytes_moving),
        ByteSize(plan.bytes),
    );
    text.push_str(match plan.movement {
        Movement::Split => "each partition p is split into 2p, which stays, and 2p + 1, which moves\n",
        Movement::Join => "partitions 2p and 2p + 1 become p; the rows of 2p + 1 move\n",
        Movement::Scatter => "a row stays only if the number of its partition is unchanged\n",
    });
    let row = |name: &str, figures: &evenkeel_stats::skew::SkewFigures| {
        vec![
            name.to_owned(),
            count(figures.partitions as u64),
            format!("{:.3}", figures.max_over_mean),
            percent(figures.cv),
            format!("{:.1}", figures.effective_partitions),
        ]
    };
    let headings = [
        Heading::text(""),
        Heading::number("partitions"),
        Heading::number("max/mean"),
        Heading::number("CV"),
        Heading::number("effective"),
    ];
    text.push('\n');
    let rows = vec![row("now", &plan.skew_before), row("then", &plan.skew_after)];
    text.push_str(&grid(layout, &headings, rows));
    text
}

#[cfg(test)]
mod tests {
    use evenkeel_model::units::Version;

    use super::*;

    #[test]
    fn a_cleaning_lists_what_it_deleted_and_what_it_kept() {
        let mut report = CleanReport {
            version: Version(9),
            oldest_version: Version(7),
            portions: 2,
            portion_bytes: 2048,
            log_files: 1,
            ..CleanReport::default()
        };
        let text = "deleted 2 portions (2.0 KiB) that only versions before 7 use, and 1 file of the log\n";
        assert_eq!(clean(&report, Layout::Plain), format!("{text}versions 7 to 9 can be read\n"));
        report.dry_run = true;
        report.young_files = 3;
        let text = clean(&report, Layout::Plain);
        assert!(
            text.starts_with("would delete 2 portions")
                && text.contains(": 3 files that no commit refers to")
        );
        assert!(text.ends_with("versions 7 to 9 could then be read\n"), "{text}");
    }

    #[test]
    fn a_cleaning_without_work_says_so() {
        let report =
            CleanReport { version: Version(4), oldest_version: Version(4), ..CleanReport::default() };
        assert_eq!(clean(&report, Layout::Plain), "nothing to delete\nonly version 4 can be read\n");
    }

    #[test]
    fn a_compaction_names_its_versions_or_why_there_are_none() {
        let text = |report: CompactionReport| compaction(&report, Layout::Plain);
        let done = CompactionReport {
            versions: vec![Version(3), Version(4), Version(5)],
            rows_superseded: 1,
            rows_expired: 20,
            portions_expired: 2,
            ..CompactionReport::default()
        };
        let done = text(done);
        assert!(done.starts_with("versions 3 to 5: "), "{done}");
        assert!(done.contains("\n1 row removed, superseded by newer rows\n"), "{done}");
        assert!(done.ends_with("\n20 rows expired; 2 portions dropped unread\n"), "{done}");
        let one = text(CompactionReport { versions: vec![Version(3)], ..CompactionReport::default() });
        assert!(one.starts_with("version 3: "), "{one}");
        let idle = text(CompactionReport { portions_before: 1, ..CompactionReport::default() });
        assert_eq!(idle, "nothing to compact: 1 portion, overlapping at most 0 deep\n");
        let lost = text(CompactionReport { partitions_lost: 1, ..CompactionReport::default() });
        assert!(lost.starts_with("nothing was committed: another compaction"), "{lost}");
    }
}
