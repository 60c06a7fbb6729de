//! Threads that read sources, which may call Python, and the end of the interpreter.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// A thread that may call Python, which must have ended before the interpreter does.
pub(crate) struct Producer;

/// Number of such threads.
static PRODUCERS: AtomicU64 = AtomicU64::new(0);

/// Whether the interpreter ends.
static IS_EXITING: AtomicBool = AtomicBool::new(false);

/// Longest time that the end of the interpreter waits for a source.
const TIME_TO_END: Duration = Duration::from_secs(5);

impl Producer {
    /// Notes a new thread.
    pub(crate) fn start() -> Self {
        PRODUCERS.fetch_add(1, Ordering::SeqCst);
        Self
    }

    /// Whether such threads must end, because the interpreter does.
    pub(crate) fn must_end() -> bool {
        IS_EXITING.load(Ordering::Relaxed)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        PRODUCERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Stops the ingests whose sources may call Python; to be called before the interpreter ends.
#[pyfunction]
pub(crate) fn stop_sources(py: Python<'_>) {
    IS_EXITING.store(true, Ordering::Relaxed);
    let started = Instant::now();
    py.detach(|| {
        while PRODUCERS.load(Ordering::SeqCst) > 0 && started.elapsed() < TIME_TO_END {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}
