//! Requests to object stores run on threads of their own, so that work on the cores does not keep answers waiting, and so that code that
//! reads files can read objects too.

use std::future::Future;
use std::io;
use std::sync::LazyLock;

use tokio::runtime::{Builder, Handle, Runtime};

/// Threads of requests.
const THREADS: usize = 2;

static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread().worker_threads(THREADS).thread_name("object-store").enable_all().build()
});

/// Where requests run.
///
/// # Errors
/// Where no thread can be made.
pub fn handle() -> io::Result<&'static Handle> {
    RUNTIME.as_ref().map(Runtime::handle).map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// Runs a future there and blocks this thread until it is done.
///
/// # Errors
/// Where no thread can be made, or the future panics.
pub fn wait_for<F>(future: F) -> io::Result<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    futures::executor::block_on(handle()?.spawn(future)).map_err(io::Error::other)
}
