//! Threads for queries.
//!
//! Few queries compute concurrently, and the others wait for a permit; sending rows needs none.
//! Each query has its own threads, so that one whose operators do not yield delays no other: the
//! system divides the cores among them. Threads of a finished query serve the next one; threads of
//! an abandoned query are left to it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_model::units::ByteSize;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Memory of a query beyond the reservations of its operators: buffers of files, and batches in
/// transit. Measured on tables of 8 partitions.
const BESIDES: u64 = 32 << 20;

/// Longest time that a query keeps others from starting: longer queries share the cores with all
/// others.
pub(crate) const TURN: Duration = Duration::from_secs(1);

/// Number of queries that compute concurrently, unless they take longer than a [`TURN`].
pub(crate) fn turns(memory: ByteSize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let fitting = usize::try_from(memory.0 / BESIDES).unwrap_or(usize::MAX);
    (2 * cores).max(4).min(fitting.max(1))
}

/// Stack of a thread, in bytes: expressions are evaluated recursively, as deep as the limits on SQL
/// allow.
const STACK: usize = 16 << 20;

/// Idle threads, which wait for a query.
#[derive(Debug, Default)]
pub(crate) struct Threads(Mutex<Vec<Runtime>>);

/// Threads of one query.
#[derive(Debug)]
pub(crate) struct QueryThreads {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    waiting: Arc<Threads>,
    /// Whether the query finished, without leaving anything running.
    is_done: bool,
}

impl Threads {
    /// Takes idle threads for a query, or starts new ones.
    pub(crate) fn take(self: &Arc<Self>) -> io::Result<QueryThreads> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let runtime = match waiting {
            Some(runtime) => runtime,
            None => Builder::new_multi_thread()
                .thread_name("query")
                .thread_stack_size(STACK)
                .enable_all()
                .build()?,
        };
        Ok(QueryThreads { runtime: Some(runtime), waiting: Arc::clone(self), is_done: false })
    }

    /// Ends all idle threads.
    pub(crate) fn end(&self) {
        let waiting = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Runtime::shutdown_background);
    }
}

impl QueryThreads {
    /// Runs work on these threads.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<JoinHandle<T>> {
        Some(self.runtime.as_ref()?.spawn(work))
    }

    /// Marks the query as finished.
    pub(crate) fn done(&mut self) {
        self.is_done = true;
    }
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if self.is_done {
            self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner).push(runtime);
        } else {
            // Without waiting for tasks that do not yield.
            runtime.shutdown_background();
        }
    }
}
