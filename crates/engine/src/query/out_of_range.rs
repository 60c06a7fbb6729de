//! Error of a function whose result its type cannot hold.

use arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use thiserror::Error;

use crate::query::limits::carried;

/// A result that its type cannot hold.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum OutOfRange {
    #[error(
        "the sum is beyond the range of {0}; use sum(CAST(... AS DECIMAL(38, 0))) or sum(CAST(... AS DOUBLE))"
    )]
    Sum(DataType),
    #[error("{function} of a time outside the years 1678 to 2261")]
    Time { function: String },
    #[error("a time is too far from 1970")]
    Bucket,
}

impl OutOfRange {
    /// Returns the error of this kind that an error of DataFusion carries, if any.
    #[must_use]
    pub fn from_error(error: &DataFusionError) -> Option<&Self> {
        carried(error)
    }
}

impl From<OutOfRange> for DataFusionError {
    fn from(error: OutOfRange) -> Self {
        Self::External(Box::new(error))
    }
}
