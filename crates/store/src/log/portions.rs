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
    /// The file belongs to another portion, or is not a portion.
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

/// Checks that a footer belongs to the portion.
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
        footer if footer.deletes != portion.deletes => {
            format!("its rows are {}deletes", if footer.deletes { "" } else { "no " })
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
            deletes: portion.deletes,
        })
    }

    /// Reads the end of a portion's file and compares it with the log and with the primary key;
    /// `None` if they agree.
    pub(crate) async fn misplaced(
        &self,
        portion: &PortionEntry,
        primary_key: &[String],
    ) -> Option<PortionDamage> {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};
    use object_store::memory::InMemory;

    use super::*;
    use crate::portion::PortionEncoder;
    use evenkeel_model::table::{ColumnType, KeyValue, PlacementFunction, TableDefinition, TableSpec};
    use evenkeel_model::units::{PartitionCount, Version};
    use evenkeel_storage::TableStorage;

    fn spec(key: &str) -> TableSpec {
        TableSpec::new(TableDefinition {
            name: "t".into(),
            columns: vec![Column::required(key, ColumnType::Int64)],
            primary_key: vec![key.into()],
            partition_key: vec![],
            partitions: PartitionCount::new(4).unwrap(),
            placement: PlacementFunction::Ydb,
            ttl: None,
        })
        .unwrap()
    }

    /// Stores a portion with these keys, whatever partition they belong to.
    async fn stored(log: &TableLog, spec: &TableSpec, partition: u32, keys: &[i64]) -> PortionEntry {
        let keys = Arc::new(Int64Array::from(keys.to_vec()));
        let mut encoder = PortionEncoder::new(spec, PartitionId(partition));
        encoder.push(&RecordBatch::try_new(Arc::clone(spec.schema()), vec![keys]).unwrap()).unwrap();
        let sequence = Sequence { version: Version(1), ordinal: 0 };
        log.store_portion(PartitionId(partition), sequence, encoder.finish().unwrap()).await.unwrap()
    }

    fn log() -> TableLog {
        TableLog::in_storage(TableStorage::new(Arc::new(InMemory::new()), "t".into()))
    }

    #[tokio::test]
    async fn damage_to_the_content_of_a_file_is_found() {
        let log = log();
        let portion = stored(&log, &spec("k"), 2, &[1, 2, 3]).await;
        assert_eq!(log.damage(&portion).await, None);
        let sound = log.storage().read(&portion.path).await.unwrap().to_vec();
        let replaced = async |bytes: Vec<u8>| {
            log.storage().replace(&portion.path, bytes.into()).await.unwrap();
            log.damage(&portion).await
        };
        let (expected, found) = (portion.bytes, portion.bytes - 1);
        assert_eq!(replaced(sound[1..].to_vec()).await, Some(PortionDamage::Length { expected, found }));
        for at in [0, sound.len() / 2, sound.len() - 1] {
            let mut flipped = sound.clone();
            flipped[at] ^= 1;
            assert_eq!(replaced(flipped).await, Some(PortionDamage::Checksum));
        }
        log.storage().delete(&portion.path).await.unwrap();
        assert_eq!(log.damage(&portion).await, Some(PortionDamage::Missing));
    }

    #[tokio::test]
    async fn a_sound_file_in_the_place_of_another_is_found() {
        let log = log();
        let key = ["k".to_owned()];
        let portion = stored(&log, &spec("k"), 2, &[1, 2, 3]).await;
        assert_eq!(log.misplaced(&portion, &key).await, None);
        for (other, reason) in [
            (stored(&log, &spec("k"), 1, &[1, 2, 3]).await, "it holds rows of partition 1"),
            (stored(&log, &spec("k"), 2, &[1, 2]).await, "it holds 2 rows instead of 3"),
            (stored(&log, &spec("other"), 2, &[1, 2, 3]).await, "it is sorted by (other)"),
        ] {
            let bytes = other.bytes;
            let file = PortionEntry { path: other.path, bytes, ..portion.clone() };
            let reason = reason.to_owned();
            assert_eq!(log.misplaced(&file, &key).await, Some(PortionDamage::Misplaced { reason }));
        }
        log.storage().put_new("text", vec![b'x'; 50].into()).await.unwrap();
        let text = PortionEntry { path: "text".into(), bytes: 50, ..portion.clone() };
        assert!(matches!(log.misplaced(&text, &key).await, Some(PortionDamage::Misplaced { .. })));
        let absent = PortionEntry { path: "absent".into(), ..portion };
        assert!(matches!(log.misplaced(&absent, &key).await, Some(PortionDamage::Unreadable { .. })));
    }

    #[tokio::test]
    async fn statistics_are_read_from_the_end_of_the_file() {
        let log = log();
        let spec = spec("k");
        let portion = stored(&log, &spec, 2, &[-5, 2, 30]).await;
        let key = ["k".to_owned()];
        let read = log.column_statistics(&portion, &key, spec.columns()).await.unwrap();
        let (min, max) = (Some(KeyValue::Int(-5)), Some(KeyValue::Int(30)));
        assert_eq!(read, [ColumnStatistics { nulls: Some(0), min, max }]);
        let wrong = PortionEntry { rows: 4, ..portion };
        let damage = log.column_statistics(&wrong, &key, spec.columns()).await.unwrap_err();
        assert!(matches!(damage, PortionDamage::Misplaced { .. }), "{damage}");
    }
}
