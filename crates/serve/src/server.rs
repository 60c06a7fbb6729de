//! The server: sockets, limits and shutdown.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::query::{
    LimitExceeded, QueryEnvironment, QueryLimits, Watch, expect_panics, outlive_failed_allocations,
    process_memory, running_queries, stopped_threads,
};
use futures::FutureExt;
use pgwire::api::RandomPidSecretKeyGenerator;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::catalog::Catalog;
use crate::connection::Connection;
use crate::metrics::add;
use crate::shared::{ServeOptions, Shared, Stage};
use crate::startup::start;
use crate::statement::KnownNames;
use crate::tables::{ServedTables, Tables};
use crate::threads::turns;

/// Time limit of a login.
const TIME_TO_LOG_IN: Duration = Duration::from_secs(20);

/// Maximum number of concurrent logins.
const MAX_LOGINS: usize = 256;

/// Time for connections to close after their queries were ended.
const TIME_TO_CLOSE: Duration = Duration::from_secs(2);

/// Time between ending two queries for lack of memory, in which the first frees its memory.
const TIME_TO_FREE: Duration = Duration::from_millis(500);

/// Error when starting a server.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}; give another address with {option}")]
    Listen { address: SocketAddr, option: &'static str, source: std::io::Error },
    #[error("{0}")]
    Tables(String),
    #[error(
        "{address} is open to other machines, and anyone could connect; add --password-file, or --no-password if that is intended"
    )]
    Open { address: SocketAddr },
}

/// A listening server.
pub struct Server {
    shared: Arc<Shared>,
    listener: TcpListener,
    metrics: Option<TcpListener>,
    stage: watch::Sender<Stage>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the tables and begins to listen.
    ///
    /// # Errors
    /// [`ServeError`] if an address is taken, or a table cannot be read.
    pub async fn bind(served: ServedTables, options: ServeOptions) -> Result<Self, ServeError> {
        let refused = |error: String| ServeError::Tables(error);
        let limits = QueryLimits { memory: options.memory, spill: options.spill.clone(), timeout: None };
        let environment = QueryEnvironment::new(&limits).map_err(|error| refused(error.to_string()))?;
        let catalog = Catalog::new(&environment).map_err(|error| refused(error.to_string()))?;
        let tables = Tables::new(served, environment).map_err(|failure| refused(failure.message))?;
        let listener = listen(options.listen, "--listen").await?;
        let metrics = match options.metrics {
            Some(address) => Some(listen(address, "--metrics").await?),
            None => None,
        };
        let opened = tables.newest().await.map_err(|failure| refused(failure.message))?;
        let known = KnownNames {
            functions: opened.session.function_names().into_iter().collect(),
            tables: opened.session.names().iter().cloned().collect(),
        };
        let turns = turns(options.memory);
        let (stage, stages) = watch::channel(Stage::Serving);
        let shared = Arc::new(Shared {
            options,
            tables,
            catalog: Arc::new(catalog),
            threads: Arc::default(),
            known,
            turns: Arc::new(Semaphore::new(turns)),
            metrics: Arc::default(),
            connections: Arc::default(),
            logins: Arc::new(Semaphore::new(MAX_LOGINS)),
            keys: RandomPidSecretKeyGenerator::default(),
            stage: stages,
        });
        Ok(Self { shared, listener, metrics, stage })
    }

    /// Address for clients.
    ///
    /// # Errors
    /// If the system does not report it.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Address for metrics and health.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop` completes, and then until the running queries are done or `grace` is
    /// over.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        let pages = self
            .metrics
            .take()
            .map(|listener| tokio::spawn(crate::http::serve(listener, Arc::clone(&self.shared))));
        let memory = tokio::spawn(watch_memory(Arc::clone(&self.shared)));
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => drop(connections.spawn(connect(stream, Arc::clone(&self.shared)))),
                    Err(error) => {
                // Out of file descriptors, for example: closing connections frees some.
                        log::error!("cannot accept a connection: {error}");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
        drop(self.listener);
        let _ = self.stage.send(Stage::Stopping);
        let all_done = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(self.shared.options.grace, all_done).await.is_err() {
            self.shared.connections.cancel_all();
            let all_done = async { while connections.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(TIME_TO_CLOSE, all_done).await;
        }
        connections.abort_all();
        memory.abort();
        if let Some(pages) = pages {
            pages.abort();
        }
        self.shared.threads.end();
    }
}

/// Whether anyone can connect to an address.
///
/// # Errors
/// [`ServeError::Open`] if other machines can connect without a password.
pub fn check_exposure(address: SocketAddr, has_passwords: bool, is_intended: bool) -> Result<(), ServeError> {
    if address.ip().is_loopback() || has_passwords || is_intended {
        return Ok(());
    }
    Err(ServeError::Open { address })
}

async fn listen(address: SocketAddr, option: &'static str) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, option, source })
}

/// Runs the login of a connection; at most [`MAX_LOGINS`] run concurrently.
async fn connect(stream: TcpStream, shared: Arc<Shared>) {
    add(&shared.metrics.connections, 1);
    let Ok(login) = Arc::clone(&shared.logins).try_acquire_owned() else {
        add(&shared.metrics.refused_connections, 1);
        return;
    };
    let _expected = expect_panics();
    let starting = AssertUnwindSafe(start(stream, &shared)).catch_unwind();
    let started = tokio::time::timeout(TIME_TO_LOG_IN, starting).await;
    drop((login, _expected));
    let Ok(Ok(Some(started))) = started else { return };
    let serving = AssertUnwindSafe(Connection::serve(Arc::clone(&shared), started)).catch_unwind();
    if serving.await.is_err() {
        log::error!("a connection ended because of an internal error");
    }
}

/// Ends the query that began last whenever the process needs more memory than its queries may.
async fn watch_memory(shared: Arc<Shared>) {
    let memory = shared.options.memory;
    let before = process_memory();
    let _alive = outlive_failed_allocations();
    loop {
        let exceeded = Watch::over(memory, before).exceeded().await;
        // A query that was ended before may still be unwinding, and hold its
        // memory. Ending others would not help. Queries whose threads were stopped by a failed
        // allocation never end.
        if running_queries().saturating_sub(stopped_threads()) > shared.connections.running() {
            tokio::time::sleep(TIME_TO_FREE).await;
            continue;
        }
        let message = match exceeded {
            LimitExceeded::Process { .. } => format!(
                "the queries of this server need more than its {memory} of memory; raise it with --memory, or run fewer at a time"
            ),
            other => other.to_string(),
        };
        log::warn!("{message}: ending the query that started last");
        shared.connections.cancel_youngest(&message);
        tokio::time::sleep(TIME_TO_FREE).await;
    }
}
