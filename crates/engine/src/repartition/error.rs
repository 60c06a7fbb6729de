//! Error of a repartitioning.

use datafusion::error::DataFusionError;
use thiserror::Error;

use crate::query::QueryError;
use evenkeel_model::table::SpecError;
use evenkeel_placement::placement::PlacementError;
use evenkeel_store::ingest::IngestError;
use evenkeel_store::log::LogError;

/// Error of rewriting a table. The old table is never modified.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum RepartitionError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Ingest(#[from] IngestError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error("{table} already has this partition key, number of partitions and placement")]
    Nothing { table: String },
}

impl From<DataFusionError> for RepartitionError {
    fn from(error: DataFusionError) -> Self {
        Self::Query(error.into())
    }
}
