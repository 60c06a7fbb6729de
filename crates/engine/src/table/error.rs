//! Error of an operation on a table.

use thiserror::Error;

use crate::compact::CompactionError;
use crate::query::QueryError;
use crate::repartition::RepartitionError;
use evenkeel_model::table::SpecError;
use evenkeel_storage::StorageError;
use evenkeel_store::delta::DeltaError;
use evenkeel_store::ingest::IngestError;
use evenkeel_store::log::LogError;
use evenkeel_store::maintenance::CleanError;

/// Error of an operation on a table.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the variants say what failed")]
pub enum TableError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Ingest(#[from] IngestError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Compaction(#[from] CompactionError),
    #[error(transparent)]
    Repartition(#[from] RepartitionError),
    #[error(transparent)]
    Clean(#[from] CleanError),
    #[error(transparent)]
    Delta(#[from] DeltaError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error("the stream of batches failed: {0}")]
    Stream(Box<dyn std::error::Error + Send + Sync>),
}
