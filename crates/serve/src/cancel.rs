//! Ends queries of other connections, at a client's request or for lack of memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pgwire::messages::startup::SecretKey;
use tokio::sync::Notify;

use crate::failure::{Failure, SqlState};

/// Reason why a query is ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    Requested,
    Shutdown,
    Memory(String),
}

impl Reason {
    pub(crate) fn failure(self) -> Failure {
        match self {
            Self::Requested => Failure::new(SqlState::CANCELED, "canceling statement due to user request"),
            Self::Shutdown => {
                Failure::fatal(SqlState::SHUTDOWN, "terminating connection due to administrator command")
            }
            Self::Memory(message) => Failure::new(SqlState::OUT_OF_MEMORY, message),
        }
    }
}

/// The query of one connection, if one is running.
#[derive(Debug, Default)]
pub(crate) struct RunningQuery {
    state: Mutex<State>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct State {
    since: Option<Instant>,
    reason: Option<Reason>,
}

impl RunningQuery {
    pub(crate) fn begin(&self) {
        *self.lock() = State { since: Some(Instant::now()), reason: None };
    }

    pub(crate) fn end(&self) {
        *self.lock() = State::default();
    }

    /// Ends the query, if one is running.
    fn cancel(&self, reason: Reason) {
        let mut state = self.lock();
        if state.since.is_some() && state.reason.is_none() {
            state.reason = Some(reason);
            self.notify.notify_waiters();
        }
    }

    /// Completes when the query should end.
    pub(crate) async fn cancelled(&self) -> Reason {
        loop {
            let notified = self.notify.notified();
            if let Some(reason) = self.lock().reason.clone() {
                return reason;
            }
            notified.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All connections, by number.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<BTreeMap<i32, (SecretKey, Arc<RunningQuery>)>>);

impl Connections {
    /// Registers a connection; anyone with its secret key can cancel its queries.
    pub(crate) fn add(self: &Arc<Self>, number: i32, key: SecretKey) -> Registered {
        let running = Arc::new(RunningQuery::default());
        self.lock().insert(number, (key, Arc::clone(&running)));
        Registered { running, number, connections: Arc::clone(self) }
    }

    /// Ends the query of a connection.
    pub(crate) fn cancel(&self, number: i32, key: &SecretKey) {
        if let Some((_, running)) = self.lock().get(&number).filter(|(own, _)| is_same(own, key)) {
            running.cancel(Reason::Requested);
        }
    }

    /// Ends the query that started last: the earlier ones fit in memory without it.
    pub(crate) fn cancel_youngest(&self, message: &str) {
        let connections = self.lock();
        let began = |running: &Arc<RunningQuery>| running.lock().since;
        let youngest = connections.values().map(|(_, running)| running).max_by_key(|running| began(running));
        if let Some(running) = youngest {
            running.cancel(Reason::Memory(message.to_owned()));
        }
    }

    /// Number of connections with a running query.
    pub(crate) fn running(&self) -> usize {
        self.lock().values().filter(|(_, running)| running.lock().since.is_some()).count()
    }

    /// Ends all queries.
    pub(crate) fn cancel_all(&self) {
        self.lock().values().for_each(|(_, running)| running.cancel(Reason::Shutdown));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<i32, (SecretKey, Arc<RunningQuery>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two keys are equal. A key of four bytes may be given as a number or as bytes.
fn is_same(own: &SecretKey, given: &SecretKey) -> bool {
    let (own, given) = (own.to_bytes(), given.to_bytes());
    // In constant time, so as not to reveal the number of correct bytes.
    own.len() == given.len() && own.iter().zip(&given).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// A registered connection, which is removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) running: Arc<RunningQuery>,
    number: i32,
    connections: Arc<Connections>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.connections.lock().remove(&self.number);
    }
}
