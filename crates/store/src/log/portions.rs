//! Portions as files: storing them under new names, and checking them against the log.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;

use crate::log::entry::{PortionEntry, Sequence};
use crate::log::error::LogError;
use crate::log::table_log::TableLog;
use crate::portion::{ColumnStatistics, EncodedPortion, FileChecksum, FooterError, PortionFooter};
use evenkeel_model::table::Column;
use evenkeel_model::units::PartitionId;

/// Bytes read from the end of a file, which usually contain its whole footer.
const FOOTER_GUESS: u64 = 1 << 16;

/// Damage to the file of a portion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PortionDamage {
    /// The file does not exist.
    Missing,
    /// The file has a different length.
    Length {
        /// Bytes according to the log.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The content is different.
    Checksum,
    /// The file is that of another portion, or not a portion.
    Misplaced {
        /// Explanation of the mismatch.
        reason: String,
    },
    /// The file cannot be read.
    Unreadable {
        /// Explanation of the failure.
        reason: String,
    },
}

impl fmt::Display for PortionDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is missing"),
            Self::Length { expected, found } => write!(f, "has {found} bytes instead of {expected}"),
            Self::Checksum => {
                f.write_str("does not have the content that was committed: its checksum differs")
            }
            Self::Misplaced { reason } => write!(f, "is not the portion that the log names: {reason}"),
            Self::Unreadable { reason } => write!(f, "cannot be read: {reason}"),
        }
    }
}

/// Checks that a footer is that of the portion.
fn compare(
    footer: &PortionFooter,
    portion: &PortionEntry,
    primary_key: &[String],
) -> Result<(), PortionDamage> {
    let reason = match footer {
        footer if footer.partition != portion.partition => {
            format!("it holds rows of partition {}", footer.partition)
        }
        footer if footer.rows != portion.rows => {
            format!("it holds {} rows instead of {}", footer.rows, portion.rows)
        }
        footer if footer.primary_key != primary_key => {
            format!("it is sorted by ({})", footer.primary_key.join(", "))
        }
        _ => return Ok(()),
    };
    Err(PortionDamage::Misplaced { reason })
}

impl TableLog {
    /// Stores a portion under a new name. It becomes visible only when a commit names it.
    ///
    /// # Errors
    /// [`LogError`] if it cannot be written.
    pub async fn store_portion(
        &self,
        partition: PartitionId,
        sequence: Sequence,
        portion: EncodedPortion,
    ) -> Result<PortionEntry, LogError> {
        let path = format!("partition={:04}/{}.parquet", partition.0, uuid::Uuid::new_v4());
        let bytes = portion.bytes.len() as u64;
        if !self.storage().put_unique(&path, portion.bytes).await? {
            return Err(LogError::Taken { table: self.storage().name().to_owned(), file: path });
        }
        Ok(PortionEntry {
            path,
            partition,
            sequence,
            rows: portion.rows,
            bytes,
            key_range: portion.key_range,
            column_ranges: portion.column_ranges,
            xxh3: portion.xxh3,
        })
    }

    /// Reads the end of a portion's file and compares it with the log and with the primary key;
    /// `None` if they agree.
    pub async fn misplaced(&self, portion: &PortionEntry, primary_key: &[String]) -> Option<PortionDamage> {
        let footer = self.read_footer(portion, PortionFooter::read).await;
        footer.and_then(|footer| compare(&footer, portion, primary_key)).err()
    }

    /// Reads the statistics of each of `columns` from the end of a portion's file, which must agree
    /// with the log and with the primary key.
    ///
    /// # Errors
    /// [`PortionDamage`] if it does not agree, or cannot be read.
    pub async fn column_statistics(
        &self,
        portion: &PortionEntry,
        primary_key: &[String],
        columns: &[Column],
    ) -> Result<Vec<ColumnStatistics>, PortionDamage> {
        let read = |tail: &Bytes, bytes| {
            Ok((PortionFooter::read(tail, bytes)?, ColumnStatistics::read(tail, bytes, columns)?))
        };
        let (footer, statistics) = self.read_footer(portion, read).await?;
        compare(&footer, portion, primary_key)?;
        Ok(statistics)
    }

    /// Reads the end of a portion's file, as much of it as `read` needs.
    async fn read_footer<T>(
        &self,
        portion: &PortionEntry,
        read: impl Fn(&Bytes, u64) -> Result<T, FooterError>,
    ) -> Result<T, PortionDamage> {
        let mut wanted = FOOTER_GUESS;
        loop {
            let tail = self.storage().read_tail(&portion.path, portion.bytes, wanted).await;
            let tail = tail.map_err(|error| PortionDamage::Unreadable { reason: error.to_string() })?;
            match read(&tail, portion.bytes) {
                Err(FooterError::NeedsMore { needed }) => wanted = needed as u64,
                read => return read.map_err(|error| PortionDamage::Misplaced { reason: error.to_string() }),
            }
        }
    }

    /// Reads the file of a portion and compares it with the log; `None` if it is as it was
    /// committed.
    pub async fn damage(&self, portion: &PortionEntry) -> Option<PortionDamage> {
        let mut checksum = FileChecksum::default();
        let mut found = 0;
        let read = self.storage().read_chunks(&portion.path, |chunk| {
            found += chunk.len() as u64;
            checksum.add(chunk);
        });
        match read.await {
            Err(error) if error.is_not_found() => Some(PortionDamage::Missing),
            Err(error) => Some(PortionDamage::Unreadable { reason: error.to_string() }),
            Ok(()) if found != portion.bytes => {
                Some(PortionDamage::Length { expected: portion.bytes, found })
            }
            Ok(()) => (checksum.finish() != portion.xxh3).then_some(PortionDamage::Checksum),
        }
    }
}
