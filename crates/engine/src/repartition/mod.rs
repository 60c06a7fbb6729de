//! Rewrites a table with another partition key, number of partitions or placement function.
//!
//! ```text
//! plan   partition keys of all visible rows -> old and new partition of each
//!          -> rows and bytes that move
//! run    visible rows in the order of the primary key -> an ingest into the new table
//!          -> one commit, with the inputs of the old table
//! ```

mod error;
mod plan;
mod rewrite;

pub use crate::repartition::error::RepartitionError;
pub(crate) use crate::repartition::plan::plan;
pub use crate::repartition::plan::{Movement, RepartitionPlan};
pub(crate) use crate::repartition::rewrite::rewrite;

use evenkeel_model::units::ByteSize;

/// Smallest memory budget of a repartitioning: the minimum of an ingest, plus the memory for
/// reading.
pub const MIN_MEMORY: ByteSize = ByteSize::mib(256);
