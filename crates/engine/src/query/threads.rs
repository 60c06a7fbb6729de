//! Threads for the parts of a query that do not run in tasks.
//!
//! A thread is kept for a second after its work: starting one takes as long as a tenth of a small
//! query, as its stack and its share of the allocator are new.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{self, Receiver, SendError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Time for which a thread waits for more work. Until then, it keeps the used part of its stack.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// Maximum number of threads of a kind that wait for work.
const MAX_IDLE: usize = 16;

/// Threads with a stack for the deepest SQL, as planning is recursive and does not yield. Only the
/// used part of a stack takes memory.
static PLANNING: KeptThreads = KeptThreads::new("query-plan", 64 << 20);

/// Threads that watch queries.
static WATCHING: KeptThreads = KeptThreads::new("query-watch", 256 << 10);

/// Has a thread do `work`, with a stack for planning.
///
/// # Errors
/// If no thread can be started.
pub(in crate::query) fn plan(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    PLANNING.start(Box::new(work))
}

/// Has a thread do `work`, which watches a query.
///
/// # Errors
/// If no thread can be started.
pub(in crate::query) fn watch(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    WATCHING.start(Box::new(work))
}

type Work = Box<dyn FnOnce() + Send>;

/// A thread that waits for work.
struct Idle {
    thread: ThreadId,
    work: Sender<Work>,
}

/// Threads of one kind. Nothing is allocated or freed while the lock is held: a thread whose
/// allocation fails may stop forever.
struct KeptThreads {
    name: &'static str,
    stack: usize,
    idle: Mutex<[Option<Idle>; MAX_IDLE]>,
}

impl KeptThreads {
    const fn new(name: &'static str, stack: usize) -> Self {
        Self { name, stack, idle: Mutex::new([const { None }; MAX_IDLE]) }
    }

    fn idle(&self) -> MutexGuard<'_, [Option<Idle>; MAX_IDLE]> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&'static self, mut work: Work) -> io::Result<()> {
        loop {
            let waiting = self.idle().iter_mut().find_map(Option::take);
            let Some(idle) = waiting else { break };
            match idle.work.send(work) {
                Ok(()) => return Ok(()),
                Err(SendError(not_sent)) => work = not_sent,
            }
        }
        let thread = thread::Builder::new().name(self.name.to_owned()).stack_size(self.stack);
        thread.spawn(move || self.serve(work)).map(drop)
    }

    /// Does the work of a thread until none comes for a while.
    fn serve(&self, first: Work) {
        let (sender, receiver) = mpsc::channel();
        let mut next = Some(first);
        while let Some(work) = next {
            // Whoever waits for the work learns of the panic, and the thread is as good as before.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(work));
            next = self.wait(&sender, &receiver);
        }
    }

    fn wait(&self, sender: &Sender<Work>, receiver: &Receiver<Work>) -> Option<Work> {
        let thread = thread::current().id();
        let idle = Idle { thread, work: sender.clone() };
        *self.idle().iter_mut().find(|place| place.is_none())? = Some(idle);
        if let Ok(work) = receiver.recv_timeout(KEEP_ALIVE) {
            return Some(work);
        }
        let is_this = |place: &&mut Option<Idle>| place.as_ref().is_some_and(|idle| idle.thread == thread);
        let removed = self.idle().iter_mut().find(is_this).and_then(Option::take);
        // If somebody has just taken this thread, work is on its way.
        if removed.is_some() { None } else { receiver.recv().ok() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const SOON: Duration = Duration::from_secs(60);

    #[test]
    fn a_thread_does_more_than_one_piece_of_work() {
        let (sender, receiver) = mpsc::channel();
        let threads: HashSet<_> = (0..20)
            .map(|_| {
                let sender = sender.clone();
                plan(move || sender.send(thread::current().id()).unwrap()).unwrap();
                // Leaves the thread the time to wait for more.
                thread::sleep(Duration::from_millis(5));
                receiver.recv_timeout(SOON).unwrap()
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
            done.send("first").unwrap();
        })
        .unwrap();
        watch(move || sender.send("second").unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(SOON), Ok("second"));
        drop(go);
        assert_eq!(receiver.recv_timeout(SOON), Ok("first"));
    }

    #[test]
    fn all_work_is_done_once_while_threads_come_and_go() {
        static THREADS: KeptThreads = KeptThreads::new("test", 64 << 10);
        let (sender, receiver) = mpsc::channel();
        for number in 0..2_000 {
            let sender = sender.clone();
            let work = move || {
                sender.send(number).unwrap();
                assert!(number != 1_000, "one piece of work panics");
            };
            THREADS.start(Box::new(work)).unwrap();
            if number % 500 == 499 {
                // Longer than idle threads wait, for some of them.
                thread::sleep(KEEP_ALIVE);
            }
        }
        let mut done: Vec<i32> = (0..2_000).map(|_| receiver.recv_timeout(SOON).unwrap()).collect();
        done.sort_unstable();
        assert_eq!(done, (0..2_000).collect::<Vec<_>>());
        assert!(THREADS.idle().iter().flatten().count() <= MAX_IDLE);
    }
}
