//! Division of the memory budget of an ingest.

use crate::ingest::error::IngestError;
use crate::ingest::options::MIN_MEMORY;
use crate::portion::GROUP_MEMORY;
use evenkeel_model::units::{ByteSize, PartitionCount};

/// Memory of the program itself, batches read ahead, and memory retained by the allocator
/// (measured).
const BASE: ByteSize = ByteSize::mib(70);
/// Memory of one encoder: a row group being written, its dictionaries and compression buffers
/// (measured).
const PER_ENCODER: ByteSize = ByteSize::mib(20);
/// A row group being written holds this fraction of the budget (a divisor), but at least
/// `MIN_GROUP`, which `PER_ENCODER` covers, and at most the largest useful size.
const GROUP_PART: u64 = 16;
const MIN_GROUP: ByteSize = ByteSize::mib(8);
/// Encoders take at most this fraction of the budget (a divisor), so that enough is left for rows.
const ENCODERS_SHARE: u64 = 4;
/// Memory per buffered byte: the byte itself, slack of the allocator, encoded portions in flight
/// (measured).
const PER_BUFFERED_BYTE: f64 = 1.25;
/// Memory per byte being encoded: the byte itself, its copy in one contiguous batch, the sort
/// order, gathered columns (measured).
const PER_ENCODED_BYTE: f64 = 2.6;
/// Largest buffer, whatever the budget.
const LARGEST_BUFFER: ByteSize = ByteSize::mib(1024);
/// Part of the budget for each thread that reads and scatters rows. A thread takes about 16 MiB of
/// it (measured), for its batches and for what the allocator keeps; the rest is used as above.
const PER_THREAD: ByteSize = ByteSize::mib(64);
/// Lower limit on the share of the buffer that one portion may take, divided among the encoders:
/// rows that all belong to one of many partitions should not end up in many small portions.
const MIN_PORTION_SHARE: f64 = 0.125;

/// Memory limits of an ingest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryPlan {
    /// Bytes of buffered rows above which the rows of the fullest partition are written.
    pub(super) buffer: ByteSize,
    /// Maximum bytes of rows written as one portion.
    pub(super) portion: ByteSize,
    /// Maximum bytes held by a row group being written.
    pub(super) group: ByteSize,
    /// Partitions sorted and encoded concurrently.
    pub(super) encoders: usize,
    /// Threads that read and scatter rows.
    pub(super) threads: usize,
}

impl MemoryPlan {
    /// Divides `memory` for a table of `partitions` on a machine with `cores`.
    ///
    /// If rows spread evenly, the partitions of a full buffer are between empty and full, so that
    /// the fullest has twice the average; more than that is written as one portion only if there
    /// are many partitions.
    pub(super) fn new(
        memory: ByteSize,
        partitions: PartitionCount,
        cores: usize,
    ) -> Result<Self, IngestError> {
        if memory < MIN_MEMORY {
            return Err(IngestError::Memory { found: memory });
        }
        let most = (memory.0 / ENCODERS_SHARE / PER_ENCODER.0).max(1) as usize;
        let encoders = cores.clamp(1, most).min(partitions.len());
        let left = memory.0.saturating_sub(BASE.0 + encoders as u64 * PER_ENCODER.0);
        let share = (2.0 / partitions.len() as f64).max(MIN_PORTION_SHARE / encoders as f64).min(1.0);
        let buffer = left as f64 / (PER_BUFFERED_BYTE + PER_ENCODED_BYTE * encoders as f64 * share);
        let group = ByteSize(memory.0 / GROUP_PART).clamp(MIN_GROUP, GROUP_MEMORY);
        let buffer = ByteSize(buffer as u64).min(LARGEST_BUFFER);
        let portion = ByteSize((buffer.0 as f64 * share) as u64);
        Ok(Self { buffer, portion, group, encoders, threads: threads_of(memory, cores) })
    }
}

/// Number of threads that read and scatter rows within `memory`.
pub(super) fn threads(memory: ByteSize) -> usize {
    threads_of(memory, std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

fn threads_of(memory: ByteSize, cores: usize) -> usize {
    usize::try_from(memory.0 / PER_THREAD.0).unwrap_or(usize::MAX).clamp(1, cores.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_never_add_up_to_more_than_the_budget() {
        for (memory, partitions, cores) in [
            (256, 1, 1),
            (256, 16, 64),
            (512, 4, 2),
            (1024, 16, 2),
            (1024, 1, 64),
            (1024, 1000, 64),
            (65_536, 64, 64),
        ] {
            let budget = ByteSize::mib(memory);
            let count = PartitionCount::new(partitions).unwrap();
            let plan = MemoryPlan::new(budget, count, cores).unwrap();
            let used = (BASE.0 + plan.encoders as u64 * PER_ENCODER.0) as f64
                + plan.buffer.0 as f64 * PER_BUFFERED_BYTE
                + (plan.portion.0 * plan.encoders as u64) as f64 * PER_ENCODED_BYTE;
            assert!(used <= budget.0 as f64, "{memory} {partitions} {cores}: {plan:?} takes {used}");
            assert!(plan.buffer >= ByteSize::mib(10) && plan.buffer <= LARGEST_BUFFER, "{plan:?}");
            assert!((1..=cores).contains(&plan.encoders) && (1..=cores).contains(&plan.threads));
            assert!(plan.threads as u64 * PER_THREAD.0 <= budget.0);
        }
    }

    #[test]
    fn a_budget_below_the_least_is_refused() {
        let count = PartitionCount::new(16).unwrap();
        assert!(MemoryPlan::new(MIN_MEMORY, count, 1).is_ok());
        assert!(MemoryPlan::new(ByteSize(MIN_MEMORY.0 - 1), count, 1).is_err());
    }
}
