//! Lines of a commit.

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::log::error::LogError;
use evenkeel_model::table::{FORMAT_VERSION, KeyRange, KeyValue, TableDefinition};
use evenkeel_model::units::{PartitionId, Version};

/// One line of a commit file, tagged by its kind: `{"add": {...}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogEntry {
    /// The first line of every commit.
    Commit(CommitInfo),
    /// The first line of every checkpoint.
    Checkpoint(CheckpointInfo),
    /// The declaration of the table: in version 0, and in every commit that alters it.
    Table(TableDefinition),
    /// A portion becomes visible.
    Add(PortionEntry),
    /// A portion is no longer visible.
    Remove {
        /// Path of the portion, relative to the table.
        path: String,
    },
    /// A file that no commit names, and that later commits must not name.
    Sweep {
        /// Path relative to the table.
        path: String,
    },
    /// An input whose rows are in this commit.
    Source(SourceEntry),
    /// Summary of a commit up to the checkpoint; in checkpoints only.
    History(CommitSummary),
    /// The last line of every commit: the number of lines above it, and XXH64 of their bytes in
    /// hexadecimal.
    End {
        /// Number of lines above this one.
        lines: usize,
        /// XXH64, seed 0, of the bytes above this line.
        xxh64: String,
    },
}

/// Operation that made a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// The declaration of the table.
    Create,
    /// Rows were added; the newest row of a key wins.
    Upsert,
    /// Rows with new keys were added.
    Insert,
    /// Rows were removed.
    Delete,
    /// Portions were merged, and expired rows dropped; no other row changed.
    Compact,
    /// The declaration was changed.
    Alter,
    /// Files that no commit names were given up for deletion.
    Clean,
}

impl Operation {
    /// Returns the operation as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Upsert => "upsert",
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Compact => "compact",
            Self::Alter => "alter",
            Self::Clean => "clean",
        }
    }

    /// Whether the commit added or removed rows, rather than moving existing ones.
    #[must_use]
    pub fn changes_rows(self) -> bool {
        matches!(self, Self::Upsert | Self::Insert | Self::Delete)
    }
}

/// Metadata of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointInfo {
    /// Version of the format.
    pub format: u32,
    /// Version of the table that the checkpoint holds.
    pub version: Version,
    /// Files that were given up by commits before the history begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub swept: Vec<String>,
}

/// Metadata of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitInfo {
    /// Version of the format.
    pub format: u32,
    /// Version of the table that the commit makes.
    pub version: Version,
    /// Unique id that lets a writer recognize its own commit.
    pub id: String,
    /// Operation that made the commit.
    pub operation: Operation,
    /// Time of the commit, in microseconds since 1970 by the writer's clock. It only decides which
    /// versions are old enough to be cleaned.
    pub at_micros: i64,
}

/// Age of a portion's rows: of two rows with the same primary key, the one with the greater
/// sequence is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Sequence {
    /// Commit that added the rows.
    pub version: Version,
    /// Order of the portions within the commit.
    pub ordinal: u32,
}

/// A visible portion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortionEntry {
    /// Path relative to the table: `partition=0007/<id>.parquet`.
    pub path: String,
    /// Partition that the rows belong to.
    pub partition: PartitionId,
    /// Age of the rows.
    pub sequence: Sequence,
    /// Rows in the file.
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// First and last primary key.
    pub key_range: KeyRange,
    /// Smallest and largest value of each individual primary-key column, in key order.
    pub column_ranges: Vec<KeyRange>,
    /// XXH3 checksum of the whole file: 128 bits, seed 0, in hexadecimal.
    pub xxh3: String,
    /// Whether its rows are deletes: they hide older rows with their keys, and are not visible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deletes: bool,
}

impl PortionEntry {
    /// Rows that may be visible.
    #[must_use]
    pub fn data_rows(&self) -> u64 {
        if self.deletes { 0 } else { self.rows }
    }

    /// Number of keys that it deletes.
    #[must_use]
    pub fn deleted_keys(&self) -> u64 {
        if self.deletes { self.rows } else { 0 }
    }

    /// Whether every row has expired: judged by the primary-key column at position `column` in the
    /// key, whose smallest kept value is `oldest_kept`.
    #[must_use]
    pub fn has_expired(&self, column: usize, oldest_kept: &KeyValue) -> bool {
        let newest = self.column_ranges.get(column).and_then(|range| range.max.first());
        newest.is_some_and(|newest| newest < oldest_kept)
    }
}

/// An input that was ingested, identified by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceEntry {
    /// Name of the input.
    pub name: String,
    /// Bytes as read; compressed if the input is compressed.
    pub bytes: u64,
    /// XXH3 checksum of those bytes: 128 bits, seed 0, in hexadecimal.
    pub xxh3: String,
    /// Rows taken from it.
    pub rows: u64,
    /// Rows that could not be taken.
    #[serde(default)]
    pub rejected: u64,
}

/// Path of the file that holds a commit.
pub(super) fn commit_path(version: Version) -> String {
    format!("_log/{:020}.json", version.0)
}

/// Parses the version from the name of a commit file in `_log`; `None` for other files.
pub(super) fn commit_version(file_name: &str) -> Option<Version> {
    numbered(file_name.strip_suffix(".json")?)
}

/// Parses a version of twenty digits.
pub(super) fn numbered(digits: &str) -> Option<Version> {
    let number = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    number.then(|| digits.parse().ok().map(Version)).flatten()
}

/// Number of lines above which they are parsed on all cores.
const PARALLEL_LINES: usize = 256;

fn checksum(bytes: &[u8]) -> String {
    format!("{:016x}", XxHash64::oneshot(0, bytes))
}

/// Serializes the lines of a commit, including the end line.
///
/// # Errors
/// None that a caller can cause.
pub fn write_entries(entries: &[LogEntry]) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut bytes, entry)?;
        bytes.push(b'\n');
    }
    let end = LogEntry::End { lines: entries.len(), xxh64: checksum(&bytes) };
    serde_json::to_writer(&mut bytes, &end)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads the lines of a commit and checks the end line, which is not returned; `table` names the
/// table in messages.
///
/// # Errors
/// [`LogError`] if the bytes are not a commit of this version.
pub fn read_entries(table: &str, version: Version, bytes: &[u8]) -> Result<Vec<LogEntry>, LogError> {
    let file = commit_path(version);
    let entries = check_lines(table, &file, bytes)?;
    match entries.first() {
        Some(LogEntry::Commit(info)) if info.version == version => Ok(entries),
        _ => Err(LogError::Damaged {
            table: table.to_owned(),
            file,
            line: 1,
            reason: format!("it does not begin with commit {version}"),
        }),
    }
}

/// Parses lines, each of which is returned with its length in bytes.
fn parse_lines<'a, L: AsRef<[u8]> + Sync + ?Sized + 'a>(
    lines: impl Iterator<Item = &'a L>,
    parse: impl Fn(&'a L) -> serde_json::Result<LogEntry> + Sync,
) -> Vec<(usize, serde_json::Result<LogEntry>)> {
    let lines: Vec<&L> = lines.collect();
    let parse = |line: &&'a L| (line.as_ref().len(), parse(line));
    // A checkpoint has thousands of lines, and opening a table waits for it.
    match lines.len() {
        ..PARALLEL_LINES => lines.iter().map(parse).collect(),
        _ => lines.par_iter().map(parse).collect(),
    }
}

/// Reads the lines of a log file up to its end line, which is checked.
pub(super) fn check_lines(table: &str, file: &str, bytes: &[u8]) -> Result<Vec<LogEntry>, LogError> {
    let damaged = |line: usize, reason: String| LogError::Damaged {
        table: table.to_owned(),
        file: file.to_owned(),
        line,
        reason,
    };
    let parsed = match std::str::from_utf8(bytes) {
        // In text, line breaks are searched for many bytes at a time, and strings are not checked
        // again.
        Ok(text) => parse_lines(text.split_inclusive('\n'), serde_json::from_str),
        Err(_) => parse_lines(bytes.split_inclusive(|byte| *byte == b'\n'), serde_json::from_slice),
    };
    let mut entries = Vec::with_capacity(parsed.len());
    let mut above = 0;
    for (index, (length, parsed)) in parsed.into_iter().enumerate() {
        let entry = parsed.map_err(|error| {
            // A newer format may have lines or operations that this build does not know.
            let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            newer_format(table, file, first).unwrap_or_else(|| damaged(index + 1, error.to_string()))
        })?;
        if let LogEntry::End { lines, xxh64 } = entry {
            let read = bytes.get(..above).unwrap_or_default();
            if lines != entries.len() || xxh64 != checksum(read) {
                return Err(damaged(index + 1, "the checksum does not match the lines above it".to_owned()));
            }
            if above + length != bytes.len() {
                return Err(damaged(index + 2, "there is text after the last line".to_owned()));
            }
            let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            return newer_format(table, file, first).map_or(Ok(entries), Err);
        }
        above += length;
        entries.push(entry);
    }
    Err(damaged(entries.len() + 1, "the file ends before its end line".to_owned()))
}

/// Returns the error for a file whose first line names a format that this build does not know.
fn newer_format(table: &str, file: &str, first_line: &[u8]) -> Option<LogError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let line: std::collections::HashMap<String, Format> = serde_json::from_slice(first_line).ok()?;
    let format = line.into_values().next()?.format;
    let newer = || LogError::Newer { table: table.to_owned(), file: file.to_owned(), found: format };
    (format > FORMAT_VERSION).then(newer)
}

/// Summary of what one commit added, kept even after its portions are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitSummary {
    /// Metadata of the commit.
    pub info: CommitInfo,
    /// Rows added per partition, with one entry per partition of the table.
    pub rows_per_partition: Vec<u64>,
    /// Bytes of the portions added.
    pub bytes: u64,
    /// Number of portions added.
    pub portions: u64,
    /// Number of portions removed.
    #[serde(default)]
    pub removed: u64,
    /// Inputs whose rows are in the commit.
    pub sources: Vec<SourceEntry>,
    /// Keys that the commit deleted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deletes: u64,
    /// Files that the commit gave up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub swept: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl CommitSummary {
    /// Number of rows added.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows_per_partition.iter().sum()
    }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
