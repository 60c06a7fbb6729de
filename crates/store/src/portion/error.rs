//! Errors of encoding a portion.

use parquet::errors::ParquetError;
use thiserror::Error;

use evenkeel_model::bounded::quote;
use evenkeel_model::units::PartitionId;

/// Error while encoding a portion.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum PortionError {
    #[error("cannot encode a portion of partition {partition}: {source}")]
    Encode { partition: PartitionId, source: ParquetError },
    #[error("a portion of partition {partition} has no rows")]
    Empty { partition: PartitionId },
    #[error("key column '{column}' of a portion of partition {partition} holds {found}", column = quote(column), found = quote(found))]
    Key { partition: PartitionId, column: String, found: String },
}
