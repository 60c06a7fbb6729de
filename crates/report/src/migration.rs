//! Renders a migration of keys as text.

use std::fmt::Write as _;

use crate::grid::heading;
use crate::grid::{Layout, count};
use evenkeel_spanner::simulate::{KeyKind, Migration};

/// Renders the steps of a migration, and the proof that it is safe.
#[must_use]
pub fn migration(migration: &Migration, ddl: &str, layout: Layout) -> String {
    let mut text = heading(layout, &format!("Moving {} to Spanner", migration.column));
    let kind = match migration.kind {
        KeyKind::Uuid => "UUIDs",
        KeyKind::Sequential => "numbers that count up",
        KeyKind::BitReversed => "numbers that count up, with their bits reversed",
    };
    let _ = writeln!(text, "{} rows; the key holds {kind}", count(migration.rows));
    if let Some((least, most)) = migration.range {
        let _ = writeln!(text, "values from {least} to {most}");
    }
    if let Some((least, most)) = migration.counters {
        let _ = writeln!(text, "reversed back, they are {least} to {most}");
    }
    for (version, rows) in &migration.versions {
        let _ = writeln!(text, "{} of version {version}", count(*rows));
    }
    if migration.to_normalize > 0 {
        let _ = writeln!(
            text,
            "{} must be rewritten in lower case with hyphens, as by GENERATE_UUID()",
            count(migration.to_normalize)
        );
    }
    if let Some((least, most)) = migration.skip_range {
        let _ = writeln!(text, "the sequence skips {least} to {most}");
    }
    if let Some(start) = migration.start_counter {
        let _ = writeln!(text, "the counter of the sequence starts at {start}");
    }
    let _ = writeln!(text, "safe: {}", migration.proof);
    if migration.tried > 0 {
        let _ = writeln!(
            text,
            "tried: the first {} values of the sequence; {} of them exist already",
            count(migration.tried),
            count(migration.collisions)
        );
    }
    text.push('\n');
    text.push_str(ddl);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_lists_only_the_steps_that_it_has() {
        let mut steps = Migration {
            inputs: Vec::new(),
            column: "id".to_owned(),
            kind: KeyKind::Uuid,
            rows: 1000,
            range: None,
            counters: None,
            to_normalize: 0,
            versions: vec![(4, 1000)],
            skip_range: None,
            start_counter: None,
            free_values: None,
            tried: 0,
            collisions: 0,
            proof: "a proof".to_owned(),
        };
        let text = migration(&steps, "CREATE;\n", Layout::Plain);
        let expected = "MOVING ID TO SPANNER\n1,000 rows; the key holds UUIDs\n1,000 of version 4\n\
                        safe: a proof\n\nCREATE;\n";
        assert_eq!(text, expected);
        steps.kind = KeyKind::Sequential;
        steps.versions.clear();
        (steps.range, steps.skip_range, steps.tried) = (Some((1, 900)), Some((1, 1024)), 5000);
        let text = migration(&steps, "", Layout::Plain);
        for line in ["values from 1 to 900", "the sequence skips 1 to 1024", "tried: the first 5,000 values"]
        {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
