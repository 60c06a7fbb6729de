//! Errors of reading and writing a log.

use thiserror::Error;

use evenkeel_model::table::{FORMAT_VERSION, SpecError};
use evenkeel_model::units::Version;
use evenkeel_storage::StorageError;

/// Error while reading or writing a log.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum LogError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(
        "{table} is not a table: it has no _log/00000000000000000000.json. Declare one with 'evenkeel create'"
    )]
    NotATable { table: String },
    #[error("{table} has no version {version}; its versions are {oldest} to {newest}")]
    NoVersion { table: String, version: Version, oldest: Version, newest: Version },
    #[error("{table}: {file}, which the log begins with, is missing; restore it from a copy")]
    NoCheckpoint { table: String, file: String },
    #[error("{table}: version {version} was cleaned away; the oldest that is kept is {oldest}")]
    Cleaned { table: String, version: Version, oldest: Version },
    #[error(
        "{table}: {file} was cleaned away before it was committed, and nothing was committed. Run it again, and let \
         'evenkeel clean --unnamed' keep files for longer than it takes"
    )]
    Swept { table: String, file: String },
    #[error(
        "{table}: {file} exists and is not part of the log; nothing was committed. 'evenkeel check' lists damaged files"
    )]
    Stuck { table: String, file: String },
    #[error("{table}: {file} exists already, and its name was made up just now")]
    Taken { table: String, file: String },
    #[error(
        "{table}: the store overwrites files that it should leave alone (If-None-Match is ignored), so that commits could be lost; \
         use one that supports conditional writes, or a newer version of it"
    )]
    NoPutIfAbsent { table: String },
    #[error("{table} is a table already; ingest into it, or choose another place")]
    Exists { table: String },
    #[error("{table} is not empty and is not a table; choose an empty or new directory")]
    NotEmpty { table: String },
    #[error(
        "{table}: commit {missing} is missing while commit {last} exists; restore _log/{missing:0>20}.json"
    )]
    Gap { table: String, missing: Version, last: Version },
    #[error("{table}: {file} is damaged at line {line}: {reason}; restore the file from a copy")]
    Damaged { table: String, file: String, line: usize, reason: String },
    #[error(
        "{table}: whether version {version} is the commit of this process is unknown: it took longer than the history of the table goes back; its files are kept"
    )]
    Forgotten { table: String, version: Version },
    #[error(
        "{table}: {file} has format version {found}, this build reads up to {FORMAT_VERSION}; use a newer evenkeel"
    )]
    Newer { table: String, file: String, found: u32 },
    #[error("{table}: {file} declares a table that is refused: {source}")]
    Spec { table: String, file: String, source: SpecError },
    #[error(
        "{table}: it is not known whether version {version} was committed: {source}. 'evenkeel inspect --history' tells; inputs \
         that were committed are skipped when they are ingested again"
    )]
    Unknown { table: String, version: Version, source: StorageError },
}

impl LogError {
    /// Whether a cleaning removed more than the reader of the log knew about; reading again may
    /// help.
    #[must_use]
    pub(crate) fn is_overtaken(&self) -> bool {
        matches!(self, Self::Cleaned { .. }) || self.is_vanished_file()
    }

    /// Whether a file of the log that existed a moment ago is gone.
    pub(super) fn is_vanished_file(&self) -> bool {
        matches!(self, Self::Storage(error) if error.is_not_found())
    }
}
