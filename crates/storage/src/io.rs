//! Runs requests to object stores on separate threads, so that CPU-bound work does not delay
//! responses, and so that synchronous code that reads files can read objects too.

use std::future::Future;
use std::io;
use std::sync::LazyLock;

use tokio::runtime::{Builder, Handle, Runtime};

/// Number of threads that run requests.
const THREADS: usize = 2;

static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread().worker_threads(THREADS).thread_name("object-store").enable_all().build()
});

/// Returns the runtime that runs requests.
///
/// # Errors
/// Fails if its threads cannot be started.
pub fn handle() -> io::Result<&'static Handle> {
    RUNTIME.as_ref().map(Runtime::handle).map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// Runs a future on those threads and blocks the calling thread until it is done.
///
/// # Errors
/// Fails if the threads cannot be started, or the future panics.
pub fn wait_for<F>(future: F) -> io::Result<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    futures::executor::block_on(handle()?.spawn(future)).map_err(io::Error::other)
}
