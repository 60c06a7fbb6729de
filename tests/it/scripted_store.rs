//! Object stores one put of which fails, or waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use object_store::ObjectStore;
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

/// What happens at which put, counted from 0.
#[derive(Debug)]
pub(crate) struct Script {
    puts: AtomicUsize,
    at: AtomicUsize,
    event: Event,
}

/// A store one put of which fails, or waits until it is told to go on.
pub(crate) type ScriptedStore = HookedStore<Script>;

impl ScriptedStore {
    /// The put of number `at` fails.
    pub(crate) fn failing(inner: Arc<dyn ObjectStore>, at: usize, fault: Fault) -> Self {
        Self::scripted(inner, at, Event::Fail(fault))
    }

    /// The first put waits.
    pub(crate) fn waiting(inner: Arc<dyn ObjectStore>) -> Self {
        Self::scripted(inner, 0, Event::Wait { reached: Notify::new(), go_on: Notify::new() })
    }

    fn scripted(inner: Arc<dyn ObjectStore>, at: usize, event: Event) -> Self {
        Self::new(inner, Script { puts: AtomicUsize::new(0), at: AtomicUsize::new(at), event })
    }

    /// Lets the put of this number wait instead of the first.
    pub(crate) fn wait_at(&self, put: usize) {
        self.hooks.at.store(put, Ordering::SeqCst);
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
    async fn fate(&self, request: Request) -> Fate {
        let is_put = request == Request::Put;
        if !is_put || self.puts.fetch_add(1, Ordering::SeqCst) != self.at.load(Ordering::SeqCst) {
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
