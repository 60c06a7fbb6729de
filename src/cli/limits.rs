//! `--memory` and `--timeout` of commands that run queries.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

use clap::Args as ClapArgs;
use evenkeel::query::{LimitExceeded, MIN_QUERY_MEMORY, QueryError, QueryLimits, Watch, default_memory};
use evenkeel::units::{ByteSize, Micros};
use tempfile::TempDir;

use crate::cli::allocator::is_program;
use crate::cli::{Failure, check_memory};

/// Limits of a query.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct LimitArgs {
    /// Memory budget of a query, such as 512MiB; beyond it sorting and grouping spill to disk, and
    /// a query that needs still more fails [default: a third of this machine's memory].
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,

    /// Maximum time of a query, such as 90s or 2h; 'none' for no limit.
    #[arg(long, value_name = "TIME", default_value = "30m")]
    timeout: Timeout,
}

/// Time limit; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timeout(Option<Duration>);

impl FromStr for Timeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().eq_ignore_ascii_case("none") {
            return Ok(Self(None));
        }
        let time: Micros = text.parse().map_err(|error| format!("{error}; or none"))?;
        Ok(Self(Some(Duration::from_micros(time.get().unsigned_abs()))))
    }
}

impl LimitArgs {
    /// Returns the limits of each query.
    pub(crate) fn limits(self) -> Result<QueryLimits, Failure> {
        let memory = self.memory.unwrap_or_else(default_memory);
        check_memory(memory, MIN_QUERY_MEMORY)?;
        Ok(QueryLimits { memory, spill: spill_directory(), timeout: self.timeout.0 })
    }
}

/// Runs the work of a command that queries, and keeps the process within `limits` until it is done.
/// If these have no timeout, each query has its own.
pub(crate) async fn within<T>(
    limits: &QueryLimits,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let done = watched(limits, work).await;
    remove_spilled();
    done
}

/// Runs the work of one query of several, and keeps the process within `limits` until it is done.
pub(crate) async fn watched<T>(
    limits: &QueryLimits,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    // In another program, a query that does not yield continues in the background.
    let end = is_program().then_some(end as fn(&LimitExceeded));
    let watch = Watch::start(limits.timeout, Some(limits.memory), end);
    tokio::select! {
        done = work => done,
        exceeded = watch.exceeded() => Err(QueryError::from(exceeded).into()),
    }
}

/// Directory that queries spill to.
static SPILL: OnceLock<TempDir> = OnceLock::new();

/// Returns the spill directory of this process, which removes it: a query that is ended may not
/// remove its own files.
fn spill_directory() -> Option<PathBuf> {
    if SPILL.get().is_none() {
        // Without a directory, a query that needs it reports an error.
        let _ = SPILL.set(tempfile::Builder::new().prefix("evenkeel-query-").tempdir().ok()?);
    }
    SPILL.get().map(|directory| directory.path().to_owned())
}

/// Removes the spilled files of queries. An operator that is still running may add a file
/// meanwhile.
pub(crate) fn remove_spilled() {
    let Some(directory) = SPILL.get() else { return };
    for _ in 0..ATTEMPTS {
        let _ = std::fs::remove_dir_all(directory.path());
        if !directory.path().exists() {
            break;
        }
    }
}

/// Number of attempts to remove a directory while files are still added to it.
const ATTEMPTS: usize = 5;

/// Ends the program in the middle of work that does not yield.
fn end(exceeded: &LimitExceeded) {
    remove_spilled();
    let _ = Failure::from(QueryError::from(exceeded.clone())).report();
    std::process::exit(1);
}
