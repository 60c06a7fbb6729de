//! All open connections: which client may cancel which query, and their activity.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pgwire::messages::response::TransactionStatus;
use pgwire::messages::startup::SecretKey;

use crate::activity::Activity;
use crate::cancel::{Reason, RunningQuery};

/// All connections, by number.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<BTreeMap<i32, Entry>>);

#[derive(Debug)]
struct Entry {
    key: SecretKey,
    running: Arc<RunningQuery>,
    activity: Arc<Mutex<Activity>>,
}

impl Connections {
    /// Registers a connection; anyone with its secret key can cancel its queries.
    pub(crate) fn add(self: &Arc<Self>, number: i32, key: SecretKey, activity: Activity) -> Registered {
        let running = Arc::new(RunningQuery::default());
        let activity = Arc::new(Mutex::new(activity));
        let entry = Entry { key, running: Arc::clone(&running), activity: Arc::clone(&activity) };
        self.lock().insert(number, entry);
        Registered { running, activity, number, connections: Arc::clone(self) }
    }

    /// Ends the query of a connection.
    pub(crate) fn cancel(&self, number: i32, key: &SecretKey) {
        if let Some(entry) = self.lock().get(&number).filter(|entry| is_same(&entry.key, key)) {
            entry.running.cancel(Reason::Requested);
        }
    }

    /// Ends the query that started last: the earlier ones fit in memory without it.
    pub(crate) fn cancel_youngest(&self, message: &str) {
        let connections = self.lock();
        if let Some(youngest) = connections.values().max_by_key(|entry| entry.running.since()) {
            youngest.running.cancel(Reason::Memory(message.to_owned()));
        }
    }

    /// Number of connections with a running query.
    pub(crate) fn running(&self) -> usize {
        self.lock().values().filter(|entry| entry.running.since().is_some()).count()
    }

    /// Ends all queries.
    pub(crate) fn cancel_all(&self) {
        self.lock().values().for_each(|entry| entry.running.cancel(Reason::Shutdown));
    }

    /// Activities of all connections, by their numbers.
    pub(crate) fn activities(&self) -> Vec<(i32, Activity)> {
        let activity = |entry: &Entry| entry.activity.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.lock().iter().map(|(number, entry)| (*number, activity(entry))).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<i32, Entry>> {
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
    activity: Arc<Mutex<Activity>>,
    number: i32,
    connections: Arc<Connections>,
}

impl Registered {
    /// Records the start of a statement.
    pub(crate) fn begin(&self, statement: &str) {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner).begin(statement);
    }

    /// Records that the connection waits for its client.
    pub(crate) fn end(&self, transaction: TransactionStatus, application: &str) {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner).end(transaction, application);
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.connections.lock().remove(&self.number);
    }
}
