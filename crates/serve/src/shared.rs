//! Options of a server, and the state that its connections share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_model::units::ByteSize;
use pgwire::api::RandomPidSecretKeyGenerator;
use tokio::sync::{Semaphore, watch};

use crate::catalog::Catalog;
use crate::connections::Connections;
use crate::metrics::{Metrics, subtract};
use crate::passwords::Passwords;
use crate::statement::KnownNames;
use crate::tables::Tables;
use crate::threads::Threads;
use crate::tls::Tls;

/// Options of a server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Address for clients.
    pub listen: SocketAddr,
    /// Address for metrics and health; `None` if they are disabled.
    pub metrics: Option<SocketAddr>,
    /// Users with passwords; `None` if everyone may connect.
    pub passwords: Option<Passwords>,
    /// Encryption; `None` if connections are unencrypted.
    pub tls: Option<Tls>,
    /// Maximum number of connections.
    pub max_connections: usize,
    /// Memory budget of all queries together.
    pub memory: ByteSize,
    /// Directory that queries spill to.
    pub spill: Option<std::path::PathBuf>,
    /// Time limit of a query.
    pub query_timeout: Option<Duration>,
    /// Longest time that a client may accept no rows.
    pub client_timeout: Duration,
    /// Longest time that a connection may be idle.
    pub idle_timeout: Duration,
    /// Time for running queries to finish after a request to stop.
    pub grace: Duration,
}

/// Stage of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Serving,
    /// Idle connections are closed; running queries continue.
    Stopping,
}

/// State shared by all connections.
pub(crate) struct Shared {
    pub(crate) options: ServeOptions,
    pub(crate) tables: Tables,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) threads: Arc<Threads>,
    /// Names of functions and tables.
    pub(crate) known: KnownNames,
    /// Permits for running queries.
    pub(crate) turns: Arc<Semaphore>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) logins: Arc<Semaphore>,
    pub(crate) keys: RandomPidSecretKeyGenerator,
    pub(crate) stage: watch::Receiver<Stage>,
}

/// Counts a connection of a user as long as it is open.
pub(crate) struct Open(Arc<Metrics>);

impl Open {
    /// Counts another connection. Returns `None` beyond the limit.
    pub(crate) fn new(shared: &Shared) -> Option<Self> {
        let limit = u64::try_from(shared.options.max_connections).unwrap_or(u64::MAX);
        let counter = &shared.metrics.open_connections;
        let more = |open: u64| (open < limit).then_some(open + 1);
        counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(Arc::clone(&shared.metrics)))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        subtract(&self.0.open_connections, 1);
    }
}
