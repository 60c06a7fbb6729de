//! Metadata in the footer of a portion's file.

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use thiserror::Error;

use crate::portion::properties::DELETES;
use evenkeel_model::bounded::quote;
use evenkeel_model::table::FORMAT_VERSION;
use evenkeel_model::units::PartitionId;

/// Metadata in the footer of a portion's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortionFooter {
    /// Version of the format.
    pub format: u32,
    /// Partition that the rows belong to.
    pub partition: PartitionId,
    /// Names of the primary-key columns, in key order.
    pub primary_key: Vec<String>,
    /// Rows in the file.
    pub rows: u64,
    /// Whether the rows are deletes.
    pub deletes: bool,
}

/// Error while reading the footer of a portion.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum FooterError {
    #[error("the last {needed} bytes are needed")]
    NeedsMore { needed: usize },
    #[error("it is not a Parquet file: {0}")]
    Parquet(#[source] ParquetError),
    #[error("it is not a portion of a table: its metadata has no {key}")]
    Missing { key: &'static str },
    #[error("its metadata says '{value}' for {key}", value = quote(value))]
    Invalid { key: &'static str, value: String },
    #[error("it has format version {found}, this build reads up to {FORMAT_VERSION}")]
    Newer { found: u32 },
}

/// Parses the metadata in the last bytes of a file of `file_bytes`.
pub(super) fn parse(tail: &Bytes, file_bytes: u64) -> Result<ParquetMetaData, FooterError> {
    let mut reader = ParquetMetaDataReader::new();
    match reader.try_parse_sized(tail, file_bytes) {
        Ok(()) => reader.finish().map_err(FooterError::Parquet),
        Err(ParquetError::NeedMoreData(needed)) if (needed as u64) <= file_bytes && needed > tail.len() => {
            Err(FooterError::NeedsMore { needed })
        }
        Err(error) => Err(FooterError::Parquet(error)),
    }
}

impl PortionFooter {
    /// Reads the footer from the last bytes of a file of `file_bytes`.
    ///
    /// # Errors
    /// [`FooterError::NeedsMore`] if `tail` is too short, and other variants if it is not the
    /// footer of a portion.
    pub fn read(tail: &Bytes, file_bytes: u64) -> Result<Self, FooterError> {
        let metadata = parse(tail, file_bytes)?;
        let file = metadata.file_metadata();
        let entries = file.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
        let text = |key: &'static str| {
            let entry = entries.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.clone());
            entry.ok_or(FooterError::Missing { key })
        };
        let number = |key: &'static str| {
            let value = text(key)?;
            value.parse::<u32>().map_err(|_| FooterError::Invalid { key, value })
        };
        let format = number("evenkeel.format")?;
        if format > FORMAT_VERSION {
            return Err(FooterError::Newer { found: format });
        }
        let key = "evenkeel.primary_key";
        let value = text(key)?;
        let primary_key =
            serde_json::from_str(&value).map_err(|_| FooterError::Invalid { key, value: value.clone() })?;
        let rows = u64::try_from(file.num_rows())
            .map_err(|_| FooterError::Invalid { key: "num_rows", value: file.num_rows().to_string() })?;
        let deletes = entries.iter().any(|entry| entry.key == DELETES);
        Ok(Self { format, partition: PartitionId(number("evenkeel.partition")?), primary_key, rows, deletes })
    }
}
