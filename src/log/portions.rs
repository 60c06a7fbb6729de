//! Portions as files: stored under new names, and checked against what the log says of them.

use std::fmt;

use serde::Serialize;

use crate::log::{LogError, PortionEntry, Sequence, TableLog};
use crate::portion::{EncodedPortion, FileChecksum, FooterError, PortionFooter};
use crate::units::PartitionId;

/// Bytes of a file's end that mostly hold its whole footer.
const FOOTER_GUESS: u64 = 1 << 16;

/// What is wrong with the file of a portion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PortionDamage {
    /// There is no such file.
    Missing,
    /// The file has another length.
    Length {
        /// Bytes that the log says.
        expected: u64,
        /// Bytes that the file has.
        found: u64,
    },
    /// The content is another.
    Checksum,
    /// The file is that of another portion, or of none.
    Misplaced {
        /// Why.
        reason: String,
    },
    /// The file cannot be read.
    Unreadable {
        /// Why.
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

impl TableLog {
    /// Stores a portion under a new name. It is visible only once a commit names it.
    ///
    /// # Errors
    /// [`LogError`] where it cannot be written.
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

    /// Reads the end of a portion's file and compares it with what the log says and with the primary key; `None` where they agree.
    pub async fn misplaced(&self, portion: &PortionEntry, primary_key: &[String]) -> Option<PortionDamage> {
        let mut wanted = FOOTER_GUESS;
        loop {
            let tail = match self.storage().read_tail(&portion.path, portion.bytes, wanted).await {
                Ok(tail) => tail,
                Err(error) => return Some(PortionDamage::Unreadable { reason: error.to_string() }),
            };
            let reason = match PortionFooter::read(&tail, portion.bytes) {
                Err(FooterError::NeedsMore { needed }) => {
                    wanted = needed as u64;
                    continue;
                }
                Err(error) => error.to_string(),
                Ok(footer) if footer.partition != portion.partition => {
                    format!("it holds rows of partition {}", footer.partition)
                }
                Ok(footer) if footer.rows != portion.rows => {
                    format!("it holds {} rows instead of {}", footer.rows, portion.rows)
                }
                Ok(footer) if footer.primary_key != primary_key => {
                    format!("it is sorted by ({})", footer.primary_key.join(", "))
                }
                Ok(_) => return None,
            };
            return Some(PortionDamage::Misplaced { reason });
        }
    }

    /// Reads the file of a portion and compares it with what the log says; `None` where it is as it was committed.
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
