//! The watch on a query: a thread that ends it once its time, or the memory of the process, is
//! exhausted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use evenkeel_model::units::ByteSize;

use crate::query::limits::{LimitExceeded, process_memory};
use crate::query::threads;

/// Memory that a process may use beyond its query's: library code, caches and stacks do not shrink
/// with the limit.
const PROCESS_SLACK: u64 = 64 << 20;

/// Interval between checks of the process memory. A query that writes memory as fast as it can
/// takes about 50 MiB in that time.
const TICK: Duration = Duration::from_millis(15);

/// Time that a query may take to end by itself once its time or memory is exhausted.
const GRACE: Duration = Duration::from_secs(2);

/// Size of the allocation that failed, in bytes; 0 if none failed.
static FAILED_ALLOCATION: AtomicUsize = AtomicUsize::new(0);

/// Number of watches on the memory of the process.
static MEMORY_WATCHES: AtomicUsize = AtomicUsize::new(0);

/// Number of servers of this process, which outlive their queries.
static SERVERS: AtomicUsize = AtomicUsize::new(0);

/// Number of threads that wait forever because an allocation failed.
static STOPPED_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Next step of a thread whose allocation failed: it cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailedAllocation {
    /// Ends the process: nothing watches its memory.
    EndProcess,
    /// Waits for a watch to end the query and then the process.
    WaitForEnd,
    /// Waits forever, since the process serves other queries, too.
    StopThread,
}

/// Reports a failed allocation to the watches from within the allocator: allocates nothing and
/// takes no lock.
#[must_use]
pub fn report_failed_allocation(bytes: usize) -> AfterFailedAllocation {
    FAILED_ALLOCATION.fetch_max(bytes, Ordering::Relaxed);
    if SERVERS.load(Ordering::Relaxed) > 0 {
        STOPPED_THREADS.fetch_add(1, Ordering::Relaxed);
        AfterFailedAllocation::StopThread
    } else if MEMORY_WATCHES.load(Ordering::Relaxed) > 0 {
        AfterFailedAllocation::WaitForEnd
    } else {
        AfterFailedAllocation::EndProcess
    }
}

/// Number of threads that failed allocations have stopped.
#[must_use]
pub fn stopped_threads() -> usize {
    STOPPED_THREADS.load(Ordering::Relaxed)
}

/// Keeps the process alive when an allocation fails, until the guard is dropped: only the thread
/// stops, and the watch ends its query.
#[must_use]
pub fn outlive_failed_allocations() -> impl Drop {
    struct Server;
    impl Drop for Server {
        fn drop(&mut self) {
            SERVERS.fetch_sub(1, Ordering::Relaxed);
        }
    }
    SERVERS.fetch_add(1, Ordering::Relaxed);
    Server
}

/// Watch by a thread that ends a query whose time or memory is exhausted, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    watches_memory: bool,
}

#[derive(Debug, Default)]
struct Shared {
    ended: Mutex<bool>,
    wake: Condvar,
    exceeded: OnceLock<LimitExceeded>,
    notify: Notify,
}

impl Watch {
    /// Starts watching. With `memory`, the process may grow by that much from now on. If a limit is
    /// exceeded and the watch is not dropped soon after, because its holder does not yield,
    /// `on_stuck` is called.
    #[must_use]
    pub fn start(
        timeout: Option<Duration>,
        memory: Option<ByteSize>,
        on_stuck: Option<fn(&LimitExceeded)>,
    ) -> Self {
        Self::start_with(timeout, memory.zip(process_memory().or(Some(0))), on_stuck)
    }

    /// Starts watching the memory of the process, which may grow by `memory` beyond `before`.
    #[must_use]
    pub fn over(memory: ByteSize, before: Option<u64>) -> Self {
        Self::start_with(None, Some((memory, before.unwrap_or(0))), None)
    }

    fn start_with(
        timeout: Option<Duration>,
        memory: Option<(ByteSize, u64)>,
        on_stuck: Option<fn(&LimitExceeded)>,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let watches_memory = memory.is_some();
        if watches_memory {
            MEMORY_WATCHES.fetch_add(1, Ordering::Relaxed);
        }
        if timeout.is_some() || watches_memory {
            let watched = Arc::clone(&shared);
            let started = Instant::now();
            // If the thread cannot start, the query runs without this guard; its pool still holds.
            let _ = threads::watch(move || {
                let Some(exceeded) = watched.wait(started, timeout, memory) else { return };
                let _ = watched.exceeded.set(exceeded.clone());
                watched.notify.notify_waiters();
                watched.notify.notify_one();
                if let Some(on_stuck) = on_stuck
                    && !watched.ends_within(GRACE)
                {
                    on_stuck(&exceeded);
                }
            });
        }
        Self { shared, watches_memory }
    }

    /// Completes when a limit is exceeded.
    pub async fn exceeded(&self) -> LimitExceeded {
        loop {
            let notified = self.shared.notify.notified();
            if let Some(exceeded) = self.shared.exceeded.get() {
                return exceeded.clone();
            }
            notified.await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.wake.notify_all();
        if self.watches_memory {
            MEMORY_WATCHES.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// Whether the watch is dropped within this time.
    fn ends_within(&self, time: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.wake.wait_timeout_while(ended, time, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until a limit is exceeded; returns `None` if the watch ends first.
    fn wait(
        &self,
        started: Instant,
        timeout: Option<Duration>,
        memory: Option<(ByteSize, u64)>,
    ) -> Option<LimitExceeded> {
        loop {
            let left = timeout.map(|limit| limit.saturating_sub(started.elapsed()));
            if let (Some(limit), Some(Duration::ZERO)) = (timeout, left) {
                return Some(LimitExceeded::Time { limit });
            }
            if let Some((limit, before)) = memory {
                let demanded = FAILED_ALLOCATION.swap(0, Ordering::Relaxed) as u64;
                if demanded > 0 {
                    return Some(LimitExceeded::Allocation { limit, demanded: ByteSize(demanded) });
                }
                let grown = process_memory().unwrap_or(0).saturating_sub(before);
                if grown > limit.0.saturating_add(PROCESS_SLACK) {
                    return Some(LimitExceeded::Process { limit, grown: ByteSize(grown) });
                }
            }
            let pause = match (memory, left) {
                (Some(_), Some(left)) => left.min(TICK),
                (Some(_), None) => TICK,
                (None, Some(left)) => left,
                (None, None) => return None,
            };
            if self.ends_within(pause) {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn time_ends_without_the_timers_of_the_runtime() {
        let watch = Watch::start(Some(Duration::from_millis(20)), None, None);
        // The thread of this test runs the timers, and does not yield.
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(watch.exceeded().await, LimitExceeded::Time { limit: Duration::from_millis(20) });
    }

    #[test]
    fn a_watch_that_is_dropped_in_time_calls_nobody() {
        fn never(exceeded: &LimitExceeded) {
            panic!("{exceeded}");
        }
        let watch = Watch::start(Some(Duration::from_millis(300)), None, Some(never));
        let shared = Arc::clone(&watch.shared);
        drop(watch);
        std::thread::sleep(Duration::from_millis(400));
        assert!(shared.exceeded.get().is_none());
        assert_eq!(Arc::strong_count(&shared), 1, "the watch has ended");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_process_that_grows_is_noticed() {
        let watch = Watch::start(None, Some(ByteSize::mib(16)), None);
        let block = std::hint::black_box(vec![1u8; 256 << 20]);
        assert!(matches!(watch.exceeded().await, LimitExceeded::Process { .. }));
        drop(block);
    }
}
