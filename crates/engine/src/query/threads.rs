//! Threads for the parts of a query that do not run in tasks.
//!
//! A thread is kept for a second after its work: starting one takes as long as a tenth of a small
//! query, as its stack and its share of the allocator are new.

use std::any::Any;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Time for which a thread waits for more work. Until then, it keeps the used part of its stack.
const KEPT: Duration = Duration::from_secs(1);

/// Maximum number of threads of a kind, which is more than there can be queries: work beyond it
/// would wait.
const MOST_THREADS: usize = 1 << 20;

/// Stack of a thread that plans, in bytes. Only the used part of it takes memory.
const PLANNING_STACK: usize = 64 << 20;

/// Stack of a thread that watches, in bytes.
const WATCHING_STACK: usize = 256 << 10;

/// Threads with a stack for the deepest SQL: planning is recursive and does not yield.
static PLANNING: LazyLock<io::Result<Runtime>> = LazyLock::new(|| threads("query-plan", PLANNING_STACK));

/// Threads that watch queries.
static WATCHING: LazyLock<io::Result<Runtime>> = LazyLock::new(|| threads("query-watch", WATCHING_STACK));

/// Has a thread do `work`, with a stack for planning.
///
/// # Errors
/// If no thread can be started.
pub(in crate::query) fn plan(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    start(&PLANNING, work)
}

/// Has a thread do `work`, which watches a query.
///
/// # Errors
/// If no thread can be started.
pub(in crate::query) fn watch(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    start(&WATCHING, work)
}

/// Returns a runtime without tasks, of which only the threads for blocking work are used.
fn threads(name: &str, stack: usize) -> io::Result<Runtime> {
    Builder::new_current_thread()
        .thread_name(name)
        .thread_stack_size(stack)
        .thread_keep_alive(KEPT)
        .max_blocking_threads(MOST_THREADS)
        .build()
}

fn start(threads: &io::Result<Runtime>, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let threads = threads.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    // The runtime panics if the system has no more threads.
    let started = std::panic::catch_unwind(AssertUnwindSafe(|| drop(threads.spawn_blocking(work))));
    started.map_err(|panic| io::Error::other(text_of_panic(panic.as_ref())))
}

/// Returns the message of a panic.
pub(in crate::query) fn text_of_panic(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_does_more_than_one_piece_of_work() {
        let (sender, receiver) = mpsc::channel();
        let threads: HashSet<_> = (0..20)
            .map(|_| {
                let sender = sender.clone();
                plan(move || sender.send(std::thread::current().id()).unwrap()).unwrap();
                // Leaves the thread the time to wait for more.
                std::thread::sleep(Duration::from_millis(5));
                receiver.recv().unwrap()
            })
            .collect();
        assert!(threads.len() < 20, "{} threads", threads.len());
    }

    #[test]
    fn work_that_waits_does_not_delay_other_work() {
        let (go, wait) = mpsc::channel::<()>();
        let (sender, receiver) = mpsc::channel();
        let done = sender.clone();
        watch(move || {
            let _ = wait.recv();
            let _ = done.send("first");
        })
        .unwrap();
        watch(move || sender.send("second").unwrap()).unwrap();
        assert_eq!(receiver.recv(), Ok("second"));
        drop(go);
        assert_eq!(receiver.recv(), Ok("first"));
    }
}
