//! Portions as files: stored under new names, and checked against what the log says of them.

use std::fmt;

use serde::Serialize;

use crate::log::{LogError, PortionEntry, Sequence, TableLog};
use crate::portion::{EncodedPortion, FileChecksum};
use crate::units::PartitionId;

/// What is wrong with the file of a portion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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
        if !self.storage().put_new(&path, portion.bytes).await? {
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

    /// Fails where the file of a portion is not there: for writers that took so long that 'evenkeel clean' may have taken their files
    /// for leftovers.
    ///
    /// # Errors
    /// [`LogError::Swept`], and where the store fails.
    pub async fn expect_there(&self, portions: impl Iterator<Item = &PortionEntry>) -> Result<(), LogError> {
        for portion in portions {
            if !self.storage().exists(&portion.path).await? {
                let table = self.storage().name().to_owned();
                return Err(LogError::Swept { table, file: portion.path.clone() });
            }
        }
        Ok(())
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
