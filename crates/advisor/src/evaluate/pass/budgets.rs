//! Memory of an evaluation.

use crate::evaluate::EvaluateError;
use crate::evaluate::options::EvaluateOptions;
use evenkeel_model::units::ByteSize;
use evenkeel_stats::windows::{MAX_WINDOWS, moment_counters};

/// Memory of the program itself and of batches in flight (measured).
const BASE_MEMORY: ByteSize = ByteSize::mib(192);

/// Minimum memory that counting needs beyond that, for all keys and for each partition key.
const MIN_FOR_KEYS: ByteSize = ByteSize::mib(32);

const MIN_PER_KEY: ByteSize = ByteSize::mib(9);

/// One in this many bytes of the remaining memory is left unused, because freed memory cannot
/// always be reused (measured).
const UNUSED: u64 = 16;

/// Memory of the candidates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budgets {
    /// Bytes for the exact tables of all partition keys together.
    pub(super) partition_keys: usize,
    /// Bytes for the keys of the rows of one primary key.
    pub(super) primary_key: usize,
    /// Maximum number of windows of a requested length.
    pub(super) windows: usize,
}

impl Budgets {
    /// Divides the memory; `counters` is the number of counters of a window for one key: one for
    /// each partition of all placements, or two if bytes are counted, too.
    pub(super) fn new(
        options: &EvaluateOptions,
        counters: usize,
        over_time: bool,
    ) -> Result<Self, EvaluateError> {
        let usual = if over_time { MAX_WINDOWS } else { 0 };
        let short = if over_time { moment_counters(counters) } else { 0 };
        let per_key = ((usual + 4) * counters + short) * size_of::<u64>();
        let fixed = BASE_MEMORY.0 + (per_key * partition_keys_of(options)) as u64;
        let least = ByteSize(fixed + MIN_FOR_KEYS.0 + MIN_PER_KEY.0 * partition_keys_of(options) as u64);
        if options.memory < least {
            return Err(EvaluateError::Memory { found: options.memory, least });
        }
        let remaining = options.memory.0 - fixed;
        let left = remaining - remaining / UNUSED;
        // A requested length may use a quarter of the remaining memory for more windows than usual.
        let more = left / 4 / (counters.max(1) * size_of::<u64>() * partition_keys_of(options).max(1)) as u64;
        let windows = MAX_WINDOWS + usize::try_from(more).unwrap_or(usize::MAX / 2);
        let left = if options.window.is_some() { left - left / 4 } else { left };
        let (partition_keys, primary_keys) =
            (partition_keys_of(options) as u64, options.primary_keys.len() as u64);
        // Keys of rows spill to disk cheaply, so they get the smaller part.
        let for_rows = if primary_keys == 0 { 0 } else { left / if partition_keys == 0 { 1 } else { 3 } };
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Self {
            partition_keys: bytes(left - for_rows),
            primary_key: bytes(for_rows / primary_keys.max(1)),
            windows,
        })
    }
}

/// Number of partition keys that are counted.
fn partition_keys_of(options: &EvaluateOptions) -> usize {
    options.partition_keys.len() + options.also_counted.len()
}
