//! How an ingest divides its memory.

use crate::ingest::IngestError;
use crate::units::{ByteSize, PartitionCount};

/// The least budget that an ingest works in.
pub const LEAST_MEMORY: ByteSize = ByteSize::mib(128);
/// The program itself, batches that are read ahead, and what the allocator keeps (measured).
const BASE: ByteSize = ByteSize::mib(70);
/// One encoder: a row group under way, its dictionaries and compression buffers (measured).
const PER_ENCODER: ByteSize = ByteSize::mib(20);
/// Encoders take at most this part of the budget, so that enough is left for rows.
const ENCODERS_SHARE: u64 = 4;
/// Memory per buffered byte outside of encoding: the bytes, slack of the allocator, encoded portions on their way
/// (measured).
const PER_BUFFERED_BYTE: f64 = 1.45;
/// Memory per byte of the partitions that are being encoded: sort keys, order, gathered columns (measured).
const PER_SORTED_BYTE: f64 = 1.9;
/// The largest buffer, whatever the budget: the text of one partition's column stays below the 2 GiB that Arrow
/// offsets reach.
const LARGEST_BUFFER: ByteSize = ByteSize::mib(1024);

/// What an ingest may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryPlan {
    /// Bytes of rows that are buffered before they are written.
    pub(super) buffer: ByteSize,
    /// Partitions that are sorted and encoded at one time.
    pub(super) encoders: usize,
}

impl MemoryPlan {
    /// Divides `memory` for a table of `partitions` on a machine of `cores`.
    pub(super) fn new(
        memory: ByteSize,
        partitions: PartitionCount,
        cores: usize,
    ) -> Result<Self, IngestError> {
        if memory < LEAST_MEMORY {
            return Err(IngestError::Memory { found: memory });
        }
        let most = (memory.0 / ENCODERS_SHARE / PER_ENCODER.0).max(1) as usize;
        let encoders = cores.clamp(1, most).min(partitions.len());
        let left = memory.0.saturating_sub(BASE.0 + encoders as u64 * PER_ENCODER.0);
        let sorted_share = encoders as f64 / partitions.len() as f64;
        let buffer = left as f64 / (PER_BUFFERED_BYTE + PER_SORTED_BYTE * sorted_share);
        Ok(Self { buffer: ByteSize(buffer as u64).min(LARGEST_BUFFER), encoders })
    }
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
            let sorted = PER_SORTED_BYTE * plan.encoders as f64 / partitions as f64;
            let used = (BASE.0 + plan.encoders as u64 * PER_ENCODER.0) as f64
                + plan.buffer.0 as f64 * (PER_BUFFERED_BYTE + sorted);
            assert!(used <= budget.0 as f64, "{memory} {partitions} {cores}: {plan:?} takes {used}");
            assert!(plan.buffer >= ByteSize::mib(10) && plan.buffer <= LARGEST_BUFFER, "{plan:?}");
            assert!((1..=cores).contains(&plan.encoders));
        }
    }

    #[test]
    fn a_budget_below_the_least_is_refused() {
        let count = PartitionCount::new(16).unwrap();
        assert!(MemoryPlan::new(LEAST_MEMORY, count, 1).is_ok());
        assert!(MemoryPlan::new(ByteSize(LEAST_MEMORY.0 - 1), count, 1).is_err());
    }
}
