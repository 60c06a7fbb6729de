//! Limits on the memory and the time of queries.
//!
//! ```text
//! memory  QueryMemory: memory that operators reserve; at its limit, sorting, grouping and merge
//!                      joins spill, others fail
//!         Watch:       memory of the process, for what operators do not reserve (on request only)
//! time    Watch:       a thread of its own, as an operator that does not yield keeps the timers of
//!                      tokio from running
//! ```

pub(in crate::query) mod watch;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, TrackConsumersPool,
};
use thiserror::Error;

use evenkeel_model::units::{ByteSize, elapsed};

/// Smallest memory budget of a query.
pub const MIN_QUERY_MEMORY: ByteSize = ByteSize::mib(16);

/// Smallest value that [`default_memory`] returns.
const MIN_DEFAULT: u64 = 256 << 20;

/// Divisor of a machine's memory that gives the default of a query: one third leaves the rest of a
/// laptop usable.
const DEFAULT_SHARE: u64 = 3;

/// Memory assumed if a system does not report how much it has; the default is a third of it.
const SUPPOSED_MEMORY: u64 = 4 << 30;

/// Quarters of a query's memory that operators may reserve. The last one is for memory that they do
/// not reserve: batches in flight, file buffers, and memory that the allocator retains.
const RESERVED_QUARTERS: usize = 3;

/// Limits of one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryLimits {
    /// Memory of its operators, which spill to disk before they fail.
    pub memory: ByteSize,
    /// Directory for spilled data; `None` for the temporary directory of the system.
    pub spill: Option<PathBuf>,
    /// Time from its planning to its last row; `None` for no limit.
    pub timeout: Option<Duration>,
}

impl Default for QueryLimits {
    /// The memory of [`default_memory`], and no time limit.
    fn default() -> Self {
        Self { memory: default_memory(), spill: None, timeout: None }
    }
}

/// A limit that a query exceeded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum LimitExceeded {
    #[error(
        "the query needs more than its {limit} of memory: {operator} holds {held} and demanded {demanded} more; {MEMORY_ADVICE}"
    )]
    Reserved { limit: ByteSize, operator: String, held: ByteSize, demanded: ByteSize },
    #[error("the query needs more than its {limit} of memory: the process grew by {grown}; {MEMORY_ADVICE}")]
    Process { limit: ByteSize, grown: ByteSize },
    #[error(
        "the query needs more than its {limit} of memory: one value or list would need {demanded}; {MEMORY_ADVICE}"
    )]
    Allocation { limit: ByteSize, demanded: ByteSize },
    #[error("the values of {function} would need {demanded}; the limit for a batch of rows is {limit}")]
    Values { function: String, limit: ByteSize, demanded: ByteSize },
    #[error(
        "the query took longer than its limit of {}; raise it with --timeout, or read less ('--explain' \
            shows how much is read)",
        elapsed(i64::try_from(limit.as_micros()).unwrap_or(i64::MAX))
    )]
    Time { limit: Duration },
}

/// Advice for a query that has too little memory.
const MEMORY_ADVICE: &str =
    "raise it with --memory, or hold less in memory: fewer columns, a condition, a join over equal keys";

/// Returns the error of another library or of ours that an error of DataFusion carries, if it is of
/// this type.
pub(in crate::query) fn carried<T: std::error::Error + 'static>(error: &DataFusionError) -> Option<&T> {
    match error.find_root() {
        DataFusionError::External(cause) => cause.downcast_ref(),
        _ => None,
    }
}

impl LimitExceeded {
    /// Returns the limit that an error of DataFusion carries, if any.
    #[must_use]
    pub fn from_error(error: &DataFusionError) -> Option<&Self> {
        carried(error)
    }
}

/// Returns a third of the memory of this machine, or of its cgroup if that has less; at least
/// 256 MiB.
#[must_use]
pub fn default_memory() -> ByteSize {
    static MEMORY: OnceLock<ByteSize> = OnceLock::new();
    *MEMORY.get_or_init(|| {
        let machine = total_memory().unwrap_or(SUPPOSED_MEMORY);
        let available = cgroup_memory().map_or(machine, |limit| limit.min(machine));
        ByteSize((available / DEFAULT_SHARE).max(MIN_DEFAULT))
    })
}

/// Parses the value of a line such as `MemTotal:  16384 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Memory of this machine, if it is known.
fn total_memory() -> Option<u64> {
    kilobytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")
}

/// Smallest limit of the cgroups that this process is in.
fn cgroup_memory() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let limit = |file: String| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let of_group = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // In a container the path refers to the host, and the group itself is mounted at the root.
        let mut ancestors: Vec<&str> =
            std::path::Path::new(path).ancestors().filter_map(|path| path.to_str()).collect();
        ancestors.push("/");
        ancestors.iter().filter_map(|path| limit(format!("{root}{path}/{file}"))).min()
    };
    groups.lines().filter_map(of_group).min()
}

/// Memory of this process that no file backs, in bytes; `None` if the system does not report it.
#[must_use]
pub fn process_memory() -> Option<u64> {
    kilobytes(&std::fs::read_to_string("/proc/self/status").ok()?, "RssAnon")
}

/// Memory that the operators of one session's queries may reserve.
#[derive(Debug)]
pub(in crate::query) struct QueryMemory {
    limit: ByteSize,
    pool: TrackConsumersPool<FairSpillPool>,
    /// Last reservation that was refused. Operators that can spill continue after one.
    refused: Mutex<Option<LimitExceeded>>,
}

impl QueryMemory {
    /// Creates the memory of queries within `limit`.
    #[must_use]
    pub(in crate::query) fn new(limit: ByteSize) -> Self {
        let reserved = limit.as_usize() / 4 * RESERVED_QUARTERS;
        let pool = TrackConsumersPool::new(FairSpillPool::new(reserved), NonZeroUsize::MIN);
        Self { limit, pool, refused: Mutex::new(None) }
    }

    /// Returns the last reservation that was refused.
    fn refused(&self) -> Option<LimitExceeded> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Converts the error of a query that ran out of this memory to [`LimitExceeded`]; returns any
    /// other error unchanged.
    pub(in crate::query) fn explained(pool: &Arc<dyn MemoryPool>, error: DataFusionError) -> DataFusionError {
        let exhausted = matches!(error.find_root(), DataFusionError::ResourcesExhausted(_));
        match pool.downcast_ref::<Self>().filter(|_| exhausted).and_then(Self::refused) {
            Some(refused) => DataFusionError::External(Box::new(refused)),
            None => error,
        }
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory of a query ({})", self.limit)
    }
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> datafusion::error::Result<()> {
        self.pool.try_grow(reservation, additional).inspect_err(|_| {
            let refused = LimitExceeded::Reserved {
                limit: self.limit,
                operator: reservation.consumer().name().to_owned(),
                held: ByteSize(reservation.size() as u64),
                demanded: ByteSize(additional as u64),
            };
            *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused);
        })
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

/// Number of queries that run in separate tasks: a panic in one becomes an error of the query.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Whether a query is running whose panics become errors, so that a panic hook has nothing to
/// report.
#[must_use]
pub fn panics_are_caught() -> bool {
    RUNNING.load(Ordering::Relaxed) > 0
}

/// Number of queries that are being planned or run, including abandoned ones.
#[must_use]
pub fn running_queries() -> usize {
    RUNNING.load(Ordering::Relaxed).saturating_sub(EXPECTED.load(Ordering::Relaxed))
}

/// Number of places, other than queries, that turn a panic into an error.
static EXPECTED: AtomicUsize = AtomicUsize::new(0);

/// Makes [`panics_are_caught`] true until the guard is dropped: for work of libraries that may
/// panic, and whose panics the caller catches.
#[must_use]
pub fn expect_panics() -> impl Drop {
    struct Expected(RunningQueryGuard);
    impl Drop for Expected {
        fn drop(&mut self) {
            let Self(RunningQueryGuard) = self;
            EXPECTED.fetch_sub(1, Ordering::Relaxed);
        }
    }
    EXPECTED.fetch_add(1, Ordering::Relaxed);
    Expected(RunningQueryGuard::start())
}

/// Guard that counts a running query.
#[derive(Debug)]
pub(in crate::query) struct RunningQueryGuard;

impl RunningQueryGuard {
    pub(in crate::query) fn start() -> Self {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for RunningQueryGuard {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_a_third_of_what_there_is() {
        let machine = total_memory().unwrap_or(SUPPOSED_MEMORY);
        let memory = default_memory().0;
        assert!(memory >= MIN_DEFAULT);
        assert!(memory <= (machine / 2).max(MIN_DEFAULT), "{memory} of {machine}");
        assert_eq!(kilobytes("a: 1\nMemTotal:     16 kB\n", "MemTotal"), Some(16 * 1024));
        assert_eq!(kilobytes("MemTotal: many", "MemTotal"), None);
    }

    #[test]
    fn a_reservation_beyond_the_limit_is_explained() {
        let pool: Arc<dyn MemoryPool> = Arc::new(QueryMemory::new(ByteSize::mib(4)));
        let reservation = MemoryConsumer::new("Join").register(&pool);
        reservation.try_grow(3 << 20).unwrap();
        let error = reservation.try_grow(1).unwrap_err();
        let explained = QueryMemory::explained(&pool, error.context("while joining"));
        let exceeded = LimitExceeded::from_error(&explained).unwrap();
        assert!(
            matches!(exceeded, LimitExceeded::Reserved { operator, held, .. } if operator == "Join" && *held == ByteSize::mib(3))
        );
        let other = DataFusionError::Execution("other".to_owned());
        assert!(LimitExceeded::from_error(&QueryMemory::explained(&pool, other)).is_none());
    }
}
