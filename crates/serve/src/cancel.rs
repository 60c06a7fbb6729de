//! Ends queries of other connections, at a client's request or for lack of memory.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

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
    pub(crate) fn cancel(&self, reason: Reason) {
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

    /// Start of the running query, if there is one.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.lock().since
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
