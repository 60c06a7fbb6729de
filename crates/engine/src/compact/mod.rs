//! Merging portions, so that queries read few files and each key once.
//!
//! ```text
//! snapshot -> per partition CompactionPolicy.decide: portions to drop, sets to merge
//!          -> each set: check the files, merge by key (newest wins), drop expired rows, cut near the target size, store
//!          -> one commit: removes and adds, for all partitions        } again until there is nothing to do
//! ```
//! No row changes its age: a merged run is as old as the newest portion in it, and only sets are merged between which no other
//! portion lies in key and age. So compactions of different portions never disturb each other, and ingests never wait. A compaction
//! whose portions another one took gives those up and looks again.

mod encode;
mod memory;
mod policy;
mod run;
mod worker;

use std::sync::Arc;

use serde::Serialize;
use thiserror::Error;
use tokio::sync::Notify;

pub use crate::compact::memory::LEAST_MEMORY;
pub use crate::compact::policy::{CompactionPolicy, Decision, Expiry, Merge, Scope};
pub use crate::compact::run::compact;

use crate::query::QueryError;
use evenkeel_model::units::{ByteSize, PartitionId, Version};
use evenkeel_store::log::{LogError, PortionDamage};
use evenkeel_store::portion::PortionError;

/// How a compaction works.
#[derive(Debug, Clone)]
pub struct CompactionOptions {
    /// When portions are merged, and into what.
    pub policy: CompactionPolicy,
    /// Whether only what the policy finds worth it is merged.
    pub scope: Scope,
    /// Memory of the whole process; at least [`LEAST_MEMORY`].
    pub memory: ByteSize,
    /// The time by which rows expire, in microseconds since 1970; none for the clock.
    pub now: Option<i64>,
    /// Ends the compaction when it is notified; what was committed stays.
    pub interrupt: Arc<Notify>,
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self {
            policy: CompactionPolicy::default(),
            scope: Scope::Policy,
            memory: ByteSize::mib(1024),
            now: None,
            interrupt: Arc::default(),
        }
    }
}

/// How far a compaction is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionProgress {
    /// Sets of portions that are merged.
    pub merged: usize,
    /// Sets of this round.
    pub merges: usize,
    /// Rows read so far.
    pub rows: u64,
}

/// What a compaction did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CompactionReport {
    /// The versions that it made.
    pub versions: Vec<Version>,
    /// Portions of the table before.
    pub portions_before: usize,
    /// Portions of the table after.
    pub portions_after: usize,
    /// Most portions that covered one key before.
    pub max_depth_before: u64,
    /// Most portions that cover one key after.
    pub max_depth_after: u64,
    /// Portions that were merged.
    pub portions_merged: u64,
    /// Portions that were dropped unread, because all of their rows had expired.
    pub portions_expired: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Rows written.
    pub rows_written: u64,
    /// Rows left out because a newer row has their key.
    pub rows_superseded: u64,
    /// Rows left out because they had expired, those of dropped portions with them.
    pub rows_expired: u64,
    /// Bytes of the portions that were merged.
    pub bytes_read: u64,
    /// Bytes of the portions that they became.
    pub bytes_written: u64,
    /// Partitions whose work was thrown away, because another compaction took their portions first.
    pub partitions_lost: u64,
    /// Seconds in all.
    pub seconds: f64,
    /// What else is worth knowing, one sentence each.
    pub notes: Vec<String>,
}

/// Why a compaction failed. The table is as after its last commit.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum CompactionError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Portion(#[from] PortionError),
    #[error(
        "{table}: {file} {damage}. It was not compacted; restore the file from a copy, and see 'evenkeel check {table}'"
    )]
    Damaged { table: String, file: String, damage: PortionDamage },
    #[error("cannot merge portions of partition {partition}: {reason}")]
    Merge { partition: PartitionId, reason: String },
    #[error("a worker stopped: {reason}")]
    Worker { reason: String },
    #[error("a memory budget of {found} is too small; the least is {LEAST_MEMORY}")]
    Memory { found: ByteSize },
    #[error("interrupted; what was committed stays, and the rest is as before")]
    Interrupted,
}
