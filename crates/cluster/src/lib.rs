//! Runs work on other machines, with Apache DataFusion Ballista.
//!
//! ```text
//! client: snapshot -> physical plan -> scheduler: stages -> executors: tasks (pulled)
//!         -> results -> client
//!         a leaf of rows that say what to read (portions of partitions, parts of inputs),
//!         one range of them per task
//!           -> TaskExec (scan | read) -> ... -> TaskExec (write): our nodes, sent by the codec
//! ```
//! A [`Cluster`] counts the rows of an evaluation (`CountRows`) and writes the portions of an
//! ingest (`WritePortions`); a [`ClusterSession`] runs queries (`RunQueries`). The crates of these
//! jobs declare the traits and do not depend on this one.
//!
//! If an executor is lost, every job that it may have worked on fails, and the client runs the
//! whole job again: rows from the parts that Ballista would otherwise repeat could be duplicated. A
//! job has a deadline, and is cancelled if its client is gone.
//!
//! Credentials of stores are never sent: each machine has its own, from its own environment.

mod client;
mod codec;
mod engine;
mod evaluate;
mod executor;
mod ingest;
mod nodes;
mod query;
mod scheduler;
mod security;
mod session;
mod spilled_result;
mod task_error;

use std::time::Duration;

use datafusion::error::DataFusionError;
use thiserror::Error;

pub use crate::client::{Cluster, ClusterSize, JobOptions};
pub use crate::executor::{ExecutorOptions, RunningExecutor};
pub use crate::query::ClusterSession;
pub use crate::scheduler::{CLIENT_TIMEOUT, RunningScheduler, SchedulerOptions};
pub use crate::security::{ClientSecurity, ServerSecurity, Token, check_secret, read_pem};

use evenkeel_advisor::evaluate::EvaluateError;
use evenkeel_engine::query::QueryError;
use evenkeel_model::bounded::ReadError;
use evenkeel_model::units::elapsed;
use evenkeel_store::ingest::IngestError;

/// Largest message between processes, in bytes. A larger message is lost silently, so no message
/// should come close to this.
const MESSAGE_BYTES: usize = 256 << 20;

/// Time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Error of work on a cluster. Nothing of the work is visible then.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum ClusterError {
    #[error("{url}: no scheduler answers: {reason}. Is 'evenkeel cluster scheduler' running there?")]
    NoScheduler { url: String, reason: String },
    #[error("{url}: is not the address of a scheduler: {reason}")]
    Url { url: String, reason: String },
    #[error("{url}: the scheduler refused: {reason}")]
    Refused { url: String, reason: String },
    #[error(
        "{url}: no executor has registered within {}; start one with 'evenkeel cluster executor --scheduler {url}'",
        length(*within)
    )]
    NoExecutor { url: String, within: Duration },
    #[error("the job was not done within {} and was cancelled; give it more time with --deadline", length(*within))]
    Deadline { within: Duration },
    #[error("the job failed {tries} times, the last time: {reason}")]
    Failed { tries: u32, reason: String },
    #[error("{reason}")]
    Job { reason: String, too_large: bool },
    #[error(
        "{url}: the cluster cannot reach {path}, a path of this machine; name a place in an object store, \
            or a directory that all machines share"
    )]
    NotShared { url: String, path: String },
    #[error("standard input cannot be read by other machines; write it to a file that they share")]
    Stdin,
    #[error("the reports of the executors do not add up: {reason}. Nothing was committed")]
    Manifest { reason: String },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
    #[error("{path}: other users can read or replace this secret (mode {mode:03o}); run 'chmod 600 {path}'")]
    Readable { path: String, mode: u32 },
    #[error("{address}: cannot listen there: {reason}")]
    Listen { address: String, reason: String },
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Ingest(#[from] IngestError),
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    #[error(transparent)]
    Storage(#[from] evenkeel_storage::StorageError),
}

fn length(duration: Duration) -> String {
    elapsed(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

impl From<DataFusionError> for ClusterError {
    fn from(error: DataFusionError) -> Self {
        Self::Query(QueryError::from(error))
    }
}
