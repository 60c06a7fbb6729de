//! Merging portions, so that queries read few files and each key once.
//!
//! ```text
//! snapshot -> per partition, CompactionPolicy.decide: portions to drop, sets to merge
//!          -> each set: check the files, merge by key (newest wins), drop expired rows,
//!                       cut near the target size, store
//!          -> one commit: removes and adds, for all partitions   } repeat until nothing is left
//! ```
//! No row changes its age: a merged run is as old as its newest portion, and a set is merged only
//! if no other portion lies between its portions in key and age. So compactions of different
//! portions never disturb each other, and ingests never wait. If another compaction has removed the
//! portions of this one, this one discards its work on them and plans again.

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

/// Options of a compaction.
#[derive(Debug, Clone)]
pub struct CompactionOptions {
    /// Rules for when portions are merged, and into what.
    pub policy: CompactionPolicy,
    /// Whether to merge everything, or only what the policy finds worthwhile.
    pub scope: Scope,
    /// Memory budget of the whole process; at least [`LEAST_MEMORY`].
    pub memory: ByteSize,
    /// Time by which rows expire, in microseconds since 1970; `None` for the current time.
    pub now: Option<i64>,
    /// Ends the compaction when notified; commits made until then stay.
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

/// Progress of a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionProgress {
    /// Sets of portions merged so far in this round.
    pub merged: usize,
    /// Sets of portions to merge in this round.
    pub merges: usize,
    /// Rows read so far.
    pub rows: u64,
}

/// Result of a compaction.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CompactionReport {
    /// Versions that it created.
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
    /// Rows left out because they had expired, including those of dropped portions.
    pub rows_expired: u64,
    /// Bytes of the portions that were merged.
    pub bytes_read: u64,
    /// Bytes of the portions that were written.
    pub bytes_written: u64,
    /// Partitions whose work was discarded because another compaction removed their portions first.
    pub partitions_lost: u64,
    /// Total time in seconds.
    pub seconds: f64,
    /// Further notes, one sentence each.
    pub notes: Vec<String>,
}

/// Error of a compaction. The table is as after its last commit.
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
    #[error("interrupted; commits made so far stay, and the rest is unchanged")]
    Interrupted,
}
