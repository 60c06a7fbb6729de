//! Waits for work in other threads while Python's other threads go on, Ctrl-C is noticed and
//! progress is shown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::ThreadId;
use std::time::Duration;

use evenkeel::cli::{Capture, ErrorPlace, Progress, STACK};
use pyo3::prelude::*;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::errors::{exception, failed};

/// Interval at which signals are noticed and progress is shown.
const TICK: Duration = Duration::from_millis(50);

/// The threads of the package, and the process that has them.
static RUNTIME: OnceLock<(u32, Runtime)> = OnceLock::new();

/// The thread that gets signals, if the package was imported there.
static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Notes the main thread of Python.
pub(crate) fn know_main_thread(py: Python<'_>) -> PyResult<()> {
    let threading = py.import("threading")?;
    if threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?) {
        let _ = MAIN_THREAD.set(std::thread::current().id());
    }
    Ok(())
}

/// Whether signals can be noticed in this thread.
pub(crate) fn is_main_thread() -> bool {
    MAIN_THREAD.get() == Some(&std::thread::current().id())
}

/// Returns the threads of the package, which are started when they are first needed. A process that
/// was forked after that has none, and locks may be held in it that nobody will release.
pub(crate) fn runtime(py: Python<'_>) -> PyResult<&'static Runtime> {
    if RUNTIME.get().is_none() {
        let created = evenkeel::cli::runtime().map_err(|error| failed(py, error.into()))?;
        let _ = RUNTIME.set((std::process::id(), created));
    }
    match RUNTIME.get() {
        Some((process, runtime)) if *process == std::process::id() => Ok(runtime),
        _ => Err(exception(
            py,
            "ForkError",
            "this process was forked from one that had used evenkeel, whose threads it lacks; start it with \
             multiprocessing's 'spawn' or 'forkserver' method, or use evenkeel only after the fork",
            &ErrorPlace::default(),
        )),
    }
}

/// Returns a thread that can evaluate expressions of any depth that limits allow.
pub(crate) fn thread(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned()).stack_size(STACK)
}

/// Work that can be stopped and may report its progress.
pub(crate) trait Work {
    /// Asks the work to stop. Returns whether it ends by itself; otherwise it is dropped.
    fn stop(&self) -> bool;

    /// Returns the progress of the work, if it is known.
    fn progress(&self) -> Option<Progress> {
        None
    }
}

/// Work that is dropped to stop it.
pub(crate) struct Droppable;

impl Work for Droppable {
    fn stop(&self) -> bool {
        false
    }
}

impl Work for Arc<Capture> {
    fn stop(&self) -> bool {
        self.interrupt()
    }

    fn progress(&self) -> Option<Progress> {
        Capture::progress(self)
    }
}

/// Work that looks at a flag.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flagged(pub(crate) Arc<AtomicBool>);

impl Flagged {
    /// Whether the work is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Work for Flagged {
    fn stop(&self) -> bool {
        self.0.store(true, Ordering::Relaxed);
        true
    }
}

/// Runs work in a thread of its own and waits for it; Python's other threads go on meanwhile.
/// `report` is called with the progress as `(done, unit, share, message)`.
///
/// # Errors
/// The exception of a signal handler or of `report`, once the work has ended.
pub(crate) fn wait<T, F>(
    py: Python<'_>,
    work: &(impl Work + Sync),
    report: Option<&Bound<'_, PyAny>>,
    run: impl FnOnce() -> F + Send + 'static,
) -> PyResult<T>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let handle = runtime(py)?.handle().clone();
    let drop_it = Arc::new(Notify::new());
    let dropped = Arc::clone(&drop_it);
    let (sender, receiver) = mpsc::channel();
    let started = thread("evenkeel").spawn(move || {
        let ended = handle.block_on(async {
            tokio::select! {
                ended = run() => Some(ended),
                () = dropped.notified() => None,
            }
        });
        // Nobody waits if the interpreter ends.
        let _ = sender.send(ended);
    });
    started.map_err(|error| failed(py, error.into()))?;
    let receiver = std::sync::Mutex::new(receiver);
    let next = || match receiver.lock() {
        Ok(receiver) => receiver.recv_timeout(TICK),
        Err(_) => Err(RecvTimeoutError::Disconnected),
    };
    let mut pending: Option<PyErr> = None;
    loop {
        match py.detach(next) {
            Ok(ended) => {
                return match (pending, ended) {
                    (Some(error), _) => Err(error),
                    (None, Some(ended)) => Ok(ended),
                    (None, None) => Err(stopped(py)),
                };
            }
            Err(RecvTimeoutError::Disconnected) => return Err(pending.unwrap_or_else(|| stopped(py))),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let noticed = py.check_signals().and_then(|()| match (report, work.progress()) {
            (Some(report), Some(Progress { done, unit, share, message })) if pending.is_none() => {
                report.call1((done, unit, share, message)).map(|_| ())
            }
            _ => Ok(()),
        });
        if let Err(error) = noticed {
            // A second signal does not wait for the work to clean up.
            if pending.is_some() || !work.stop() {
                drop_it.notify_one();
            }
            pending.get_or_insert(error);
        }
    }
}

/// Exception for work whose thread ended without a result.
fn stopped(py: Python<'_>) -> PyErr {
    failed(py, anyhow::anyhow!("a thread stopped in the middle of its work"))
}
