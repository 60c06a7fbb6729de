//! State and last statement of each connection, for `pg_stat_activity`.

use std::net::SocketAddr;

use chrono::{DateTime, Utc};
use pgwire::messages::response::TransactionStatus;

/// Maximum length of a statement in `pg_stat_activity`, in bytes: PostgreSQL's default of
/// `track_activity_query_size`.
const MAX_STATEMENT: usize = 1024;

/// State of a connection, in PostgreSQL's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActivityState {
    Active,
    Idle,
    InTransaction,
    InFailedTransaction,
}

impl ActivityState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Idle => "idle",
            Self::InTransaction => "idle in transaction",
            Self::InFailedTransaction => "idle in transaction (aborted)",
        }
    }

    /// State of a connection that waits for its client.
    fn waiting(transaction: TransactionStatus) -> Self {
        match transaction {
            TransactionStatus::Idle => Self::Idle,
            TransactionStatus::Transaction => Self::InTransaction,
            TransactionStatus::Error => Self::InFailedTransaction,
        }
    }
}

/// A connection's client, its state and its last statement.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    pub(crate) user: String,
    pub(crate) application: String,
    pub(crate) client: SocketAddr,
    pub(crate) connected: DateTime<Utc>,
    pub(crate) transaction_began: Option<DateTime<Utc>>,
    pub(crate) statement_began: Option<DateTime<Utc>>,
    pub(crate) changed: DateTime<Utc>,
    pub(crate) state: ActivityState,
    /// Start of the last statement.
    pub(crate) statement: String,
}

impl Activity {
    pub(crate) fn new(user: &str, application: &str, client: SocketAddr) -> Self {
        let now = Utc::now();
        Self {
            user: user.to_owned(),
            application: application.to_owned(),
            client,
            connected: now,
            transaction_began: None,
            statement_began: None,
            changed: now,
            state: ActivityState::Idle,
            statement: String::new(),
        }
    }

    /// Records the start of a statement.
    pub(crate) fn begin(&mut self, statement: &str) {
        let now = Utc::now();
        self.statement = statement[..statement.floor_char_boundary(MAX_STATEMENT)].to_owned();
        self.statement_began = Some(now);
        self.transaction_began.get_or_insert(now);
        self.changed = now;
        self.state = ActivityState::Active;
    }

    /// Records the end of a statement, if one was running.
    pub(crate) fn end(&mut self, transaction: TransactionStatus, application: &str) {
        if self.state != ActivityState::Active {
            return;
        }
        self.state = ActivityState::waiting(transaction);
        self.changed = Utc::now();
        application.clone_into(&mut self.application);
        if self.state == ActivityState::Idle {
            self.transaction_began = None;
        }
    }
}

#[cfg(test)]
#[path = "activity_tests.rs"]
mod tests;
