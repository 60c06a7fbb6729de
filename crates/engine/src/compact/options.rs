//! Options of a compaction.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::compact::policy::CompactionPolicy;
use crate::compact::portions::Scope;
use evenkeel_model::units::ByteSize;

/// Smallest memory budget of a compaction.
pub const MIN_MEMORY: ByteSize = ByteSize::mib(128);

/// Options of a compaction.
#[derive(Debug, Clone)]
pub struct CompactionOptions {
    /// Rules for merging portions.
    pub policy: CompactionPolicy,
    /// Whether to merge everything, or only portions that the policy finds worth merging.
    pub scope: Scope,
    /// Memory budget of the whole process; at least [`MIN_MEMORY`].
    pub memory: ByteSize,
    /// Time at which expiry is judged, in microseconds since 1970; `None` for the current time.
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
