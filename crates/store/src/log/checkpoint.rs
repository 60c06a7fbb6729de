//! A snapshot in one file, so that opening does not read every commit.
//!
//! `_log/<version, 20 digits>.checkpoint.json` holds lines like a commit: `checkpoint`, `table`, an
//! `add` for each visible portion, a `history` for each commit up to the version (after a cleaning,
//! only for newer ones), and `end`. It contains nothing that the commits do not contain; a damaged
//! checkpoint is skipped as long as the commits exist.

use std::sync::Arc;

use crate::log::entry::{CheckpointInfo, LogEntry, check_lines, write_entries};
use crate::log::error::LogError;
use crate::log::snapshot::Snapshot;
use evenkeel_model::table::{FORMAT_VERSION, FORMAT_WITHOUT_DELETES};
use evenkeel_model::units::Version;

/// Path of the file that holds the checkpoint of a version.
pub(super) fn checkpoint_path(version: Version) -> String {
    format!("_log/{:020}.checkpoint.json", version.0)
}

/// Parses the version from the name of a checkpoint file in `_log`; `None` for other files.
pub(super) fn checkpoint_version(file_name: &str) -> Option<Version> {
    crate::log::entry::numbered(file_name.strip_suffix(".checkpoint.json")?)
}

/// Serializes the checkpoint of `snapshot`.
///
/// # Errors
/// None that a caller can cause.
pub fn write_checkpoint(snapshot: &Snapshot) -> Result<Vec<u8>, serde_json::Error> {
    // Builds of format 2 assume that a history is complete.
    let is_old = !snapshot.knows_deletes() && snapshot.lists(Version::FIRST);
    let format = if is_old { FORMAT_WITHOUT_DELETES } else { FORMAT_VERSION };
    let swept = snapshot.swept_before_history();
    let info = CheckpointInfo { format, version: snapshot.version(), swept };
    let mut entries = vec![LogEntry::Checkpoint(info), LogEntry::Table(snapshot.spec().definition().clone())];
    entries.extend(snapshot.portions().iter().map(|portion| LogEntry::Add(portion.as_ref().clone())));
    entries.extend(snapshot.commits().iter().map(|commit| LogEntry::History(commit.as_ref().clone())));
    write_entries(&entries)
}

/// Reads a checkpoint; `table` names the table in messages.
///
/// # Errors
/// [`LogError`] if the bytes are not a checkpoint of this version.
pub fn read_checkpoint(table: &str, version: Version, bytes: &[u8]) -> Result<Snapshot, LogError> {
    let file = checkpoint_path(version);
    let entries = check_lines(table, &file, bytes)?;
    let damaged = |line: usize, reason: &str| LogError::Damaged {
        table: table.to_owned(),
        file: file.clone(),
        line,
        reason: reason.to_owned(),
    };
    let (mut definition, mut portions, mut commits) = (None, Vec::new(), Vec::new());
    let mut swept = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        match entry {
            LogEntry::Checkpoint(info) if index == 0 && info.version == version => swept = info.swept,
            LogEntry::Table(table) => definition = Some(table),
            LogEntry::Add(portion) if index > 0 => portions.push(Arc::new(portion)),
            LogEntry::History(commit) if index > 0 => commits.push(Arc::new(commit)),
            _ => return Err(damaged(index + 1, "this line does not belong in a checkpoint")),
        }
    }
    let definition = definition.ok_or_else(|| damaged(2, "it declares no table"))?;
    Snapshot::restore(table, &file, version, definition, portions, commits, swept)
}
