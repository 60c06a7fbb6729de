//! Memory, spill directory and footer cache of sessions.

use std::sync::Arc;

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};

use crate::query::error::QueryError;
use crate::query::limits::{QueryLimits, QueryMemory, default_memory};

/// Bytes of file footers cached in memory, for about 10,000 portions.
const FOOTER_CACHE_BYTES: usize = 256 << 20;

/// Memory, spill directory and cached footers that several sessions share: the limits hold for all
/// of their queries together.
#[derive(Debug, Clone)]
pub struct QueryEnvironment(Arc<RuntimeEnv>);

impl QueryEnvironment {
    /// Creates an environment. The time limit is not part of it: see
    /// [`TableSession::with_timeout`](crate::query::TableSession::with_timeout).
    ///
    /// # Errors
    /// [`QueryError`] if the directory to spill to cannot be used.
    pub fn new(limits: &QueryLimits) -> Result<Self, QueryError> {
        let cache = FOOTER_CACHE_BYTES.min(limits.memory.as_usize() / 8);
        let footers = RuntimeEnvBuilder::new().with_metadata_cache_limit(cache).build_arc()?;
        Ok(Self(runtime_within(&footers, limits)?))
    }

    /// Memory that operators have reserved, in bytes.
    #[must_use]
    pub fn reserved(&self) -> usize {
        self.0.memory_pool.reserved()
    }

    /// Underlying environment of DataFusion.
    #[must_use]
    pub fn runtime(&self) -> Arc<RuntimeEnv> {
        Arc::clone(&self.0)
    }
}

/// Returns an environment for the sessions of a table, which caches the footers of the files that
/// they read. Their queries share the memory of [`default_memory`].
///
/// # Errors
/// None that a caller can cause.
pub(crate) fn shared_runtime() -> Result<Arc<RuntimeEnv>, QueryError> {
    let memory = default_memory();
    // Footers are not reserved: they get a part of the memory that operators leave.
    let cache = FOOTER_CACHE_BYTES.min(memory.as_usize() / 8);
    let runtime = RuntimeEnvBuilder::new().with_metadata_cache_limit(cache);
    Ok(runtime.with_memory_pool(Arc::new(QueryMemory::new(memory))).build_arc()?)
}

/// Derives an environment for one session whose queries have their own limits.
///
/// # Errors
/// [`QueryError`] if the directory to spill to cannot be used.
pub(crate) fn runtime_within(
    shared: &Arc<RuntimeEnv>,
    limits: &QueryLimits,
) -> Result<Arc<RuntimeEnv>, QueryError> {
    let runtime = RuntimeEnvBuilder::from_runtime_env(shared)
        .with_memory_pool(Arc::new(QueryMemory::new(limits.memory)));
    let runtime = match &limits.spill {
        Some(directory) => {
            let mode = DiskManagerMode::Directories(vec![directory.clone()]);
            runtime.with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
        }
        None => runtime,
    };
    Ok(runtime.build_arc()?)
}
