//! Processes that are held up before one of their requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use evenkeel::TableError;
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::sync::watch;

use crate::hooked_store::{Fate, HookedStore, Hooks, Request};
use crate::interleavings::acts::Act;
use crate::interleavings::{PATIENCE, copy, storage};

/// Holds a process up from its request of one number on.
#[derive(Debug)]
pub(super) struct Gate {
    requests: AtomicUsize,
    at: usize,
    pub(super) reached: watch::Sender<bool>,
    pub(super) open: watch::Sender<bool>,
}

impl Gate {
    pub(super) fn at(at: usize) -> Self {
        Self {
            requests: AtomicUsize::new(0),
            at,
            reached: watch::Sender::new(false),
            open: watch::Sender::new(false),
        }
    }
}

#[async_trait]
impl Hooks for Gate {
    async fn fate(&self, _request: Request, _location: &Path) -> Fate {
        if self.requests.fetch_add(1, Ordering::SeqCst) >= self.at {
            self.reached.send_replace(true);
            let _ = self.open.subscribe().wait_for(|open| *open).await;
        }
        Fate::Answered
    }
}

/// A process under way.
pub(super) struct Process {
    pub(super) act: Act,
    gate: Arc<HookedStore<Gate>>,
    work: tokio::task::JoinHandle<Result<(), TableError>>,
}

impl Process {
    /// Begins the work and waits until it is held up at a request, or done.
    pub(super) async fn begin(store: &Arc<dyn ObjectStore>, act: Act, at: usize) -> Self {
        let gate = Arc::new(HookedStore::new(Arc::clone(store), Gate::at(at)));
        let mut work = tokio::spawn(act.work(storage(gate.clone())));
        let mut reached = gate.hooks.reached.subscribe();
        let held_up = reached.wait_for(|reached| *reached);
        tokio::select! {
            _ = held_up => {}
            ended = &mut work => {
                let ended = ended.unwrap();
                work = tokio::spawn(async move { ended });
            }
        }
        Self { act, gate, work }
    }

    pub(super) async fn end(self, what: &str) -> Result<(), TableError> {
        self.gate.hooks.open.send_replace(true);
        let ended = tokio::time::timeout(PATIENCE, self.work).await;
        ended.unwrap_or_else(|_| panic!("{what}: {:?} hangs", self.act)).unwrap()
    }
}

/// The requests that an act makes on a table of nobody else.
pub(super) async fn requests(template: &Arc<dyn ObjectStore>, act: Act) -> usize {
    let store = copy(template).await;
    let gate = Arc::new(HookedStore::new(store, Gate::at(usize::MAX)));
    act.work(storage(gate.clone())).await.unwrap();
    gate.hooks.requests.load(Ordering::SeqCst)
}
