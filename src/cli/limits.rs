//! `--memory` and `--timeout` of commands that run queries.

use std::str::FromStr;
use std::time::Duration;

use clap::Args as ClapArgs;
use evenkeel::query::{LEAST_QUERY_MEMORY, LimitExceeded, QueryError, QueryLimits, Watch, default_memory};
use evenkeel::units::{ByteSize, Micros};

use crate::cli::{Failure, check_memory};

/// Limits of a query.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct LimitArgs {
    /// Memory of a query, such as 512MiB: sorting and grouping spill to disk at it, and a query that still needs more fails [default: a
    /// third of this machine's memory].
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,

    /// Longest time of a query, such as 90s or 2h; none for any.
    #[arg(long, value_name = "TIME", default_value = "30m")]
    timeout: Timeout,
}

/// A length of time, or none.
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
    /// The limits of each query.
    pub(crate) fn limits(self) -> Result<QueryLimits, Failure> {
        let memory = self.memory.unwrap_or_else(default_memory);
        check_memory(memory, LEAST_QUERY_MEMORY)?;
        Ok(QueryLimits { memory, timeout: self.timeout.0 })
    }
}

/// Does the work of a command that queries: as long as it takes, the process stays within `limits`. Without a timeout there, each query has
/// one of its own.
pub(crate) async fn within<T>(
    limits: QueryLimits,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let watch = Watch::start(limits.timeout, Some(limits.memory), Some(end));
    tokio::select! {
        done = work => done,
        exceeded = watch.exceeded() => Err(QueryError::from(exceeded).into()),
    }
}

/// Ends the program in the middle of what does not yield.
fn end(exceeded: &LimitExceeded) {
    let _ = Failure::from(QueryError::from(exceeded.clone())).report();
    std::process::exit(1);
}
