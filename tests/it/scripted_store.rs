//! Object stores in which the put of one file fails, or waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::sync::Notify;

use crate::hooked_store::{Fate, HookedStore, Hooks, Request};

/// When a put fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// Nothing is written.
    Before,
    /// The file is written, the answer is lost.
    After,
}

/// What happens at the put of one number.
#[derive(Debug)]
enum Event {
    Fail(Fault),
    Wait { reached: Notify, go_on: Notify },
}

/// What happens at the first put of which file, counted from 0. Files are counted rather than puts,
/// because a writer whose answer was lost puts the same file again.
#[derive(Debug)]
pub(crate) struct Script {
    written: Mutex<Vec<Path>>,
    at: AtomicUsize,
    event: Event,
}

/// A store in which the put of one file fails, or waits until it is told to go on.
pub(crate) type ScriptedStore = HookedStore<Script>;

impl ScriptedStore {
    /// The put of file number `at` fails.
    pub(crate) fn failing(inner: Arc<dyn ObjectStore>, at: usize, fault: Fault) -> Self {
        Self::scripted(inner, at, Event::Fail(fault))
    }

    /// The first put waits.
    pub(crate) fn waiting(inner: Arc<dyn ObjectStore>) -> Self {
        Self::scripted(inner, 0, Event::Wait { reached: Notify::new(), go_on: Notify::new() })
    }

    fn scripted(inner: Arc<dyn ObjectStore>, at: usize, event: Event) -> Self {
        Self::new(inner, Script { written: Mutex::default(), at: AtomicUsize::new(at), event })
    }

    /// Lets the put of this file wait instead of the first.
    pub(crate) fn wait_at(&self, file: usize) {
        self.hooks.at.store(file, Ordering::SeqCst);
    }

    /// Waits until the put is reached that waits.
    pub(crate) async fn reached(&self) {
        if let Event::Wait { reached, .. } = &self.hooks.event {
            reached.notified().await;
        }
    }

    pub(crate) fn go_on(&self) {
        if let Event::Wait { go_on, .. } = &self.hooks.event {
            go_on.notify_one();
        }
    }
}

#[async_trait]
impl Hooks for Script {
    async fn fate(&self, request: Request, location: &Path) -> Fate {
        if request != Request::Put {
            return Fate::Answered;
        }
        let put = {
            let mut written = self.written.lock().unwrap();
            if written.contains(location) {
                return Fate::Answered;
            }
            written.push(location.clone());
            written.len() - 1
        };
        if put != self.at.load(Ordering::SeqCst) {
            return Fate::Answered;
        }
        match &self.event {
            Event::Fail(Fault::Before) => Fate::Lost,
            Event::Fail(Fault::After) => Fate::AnswerLost,
            Event::Wait { reached, go_on } => {
                reached.notify_one();
                go_on.notified().await;
                Fate::Answered
            }
        }
    }
}
