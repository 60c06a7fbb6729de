//! Rewrites a table with another partition key, number of partitions or placement function.
//!
//! ```text
//! plan   partition keys of all visible rows -> old and new partition of each
//!          -> rows and bytes that move
//! run    visible rows in the order of the primary key -> an ingest into the new table
//!          -> one commit, with the inputs of the old table
//! ```

mod plan;
mod rewrite;

use datafusion::error::DataFusionError;
use thiserror::Error;

pub use plan::{Movement, RepartitionPlan, plan};
pub use rewrite::{Rewritten, rewrite};

use crate::query::QueryError;
use evenkeel_model::table::SpecError;
use evenkeel_model::units::ByteSize;
use evenkeel_placement::placement::PlacementError;
use evenkeel_store::ingest::IngestError;
use evenkeel_store::log::LogError;

/// Smallest memory budget of a repartitioning: that of an ingest, plus the memory for reading.
pub const LEAST_MEMORY: ByteSize = ByteSize::mib(256);

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
