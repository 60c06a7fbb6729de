//! How a compaction divides its memory.

use crate::compact::CompactionError;
use crate::units::ByteSize;

/// The least budget that a compaction works in.
pub const LEAST_MEMORY: ByteSize = ByteSize::mib(128);
/// The program itself, and what the allocator keeps (measured).
const BASE: ByteSize = ByteSize::mib(85);
/// One encoder: a row group under way, its dictionaries and compression buffers (measured).
const PER_ENCODER: ByteSize = ByteSize::mib(20);
/// Memory per byte of a portion under way: the file as it grows, and its copy while it is stored.
const PER_TARGET_BYTE: u64 = 2;
/// A portion that is read: decoded pages and batches, beside its compressed row group (measured).
const PER_RUN: ByteSize = ByteSize::mib(2);
/// A portion under way takes at most this part of the budget.
const TARGET_PART: u64 = 16;
/// A merge should be able to read at least so many portions at one time.
const WANTED_RUNS: u64 = 8;

/// What a compaction may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryPlan {
    /// Merges at one time.
    pub(super) workers: usize,
    /// Portions that one merge may read at one time.
    pub(super) runs: usize,
    /// Most bytes of a portion.
    pub(super) target: ByteSize,
}

impl MemoryPlan {
    /// Divides `memory` on a machine of `cores`, for portions of `target` whose row groups have at most `row_group` bytes.
    pub(super) fn new(
        memory: ByteSize,
        cores: usize,
        target: ByteSize,
        row_group: u64,
    ) -> Result<Self, CompactionError> {
        if memory < LEAST_MEMORY {
            return Err(CompactionError::Memory { found: memory });
        }
        let target = target.min(ByteSize(memory.0 / TARGET_PART));
        let run = PER_RUN.0 + row_group;
        let left = memory.0.saturating_sub(BASE.0);
        let writing = PER_ENCODER.0 + PER_TARGET_BYTE * target.0;
        let workers = (left / (writing + WANTED_RUNS * run)).clamp(1, cores.max(1) as u64);
        let runs = (left / workers).saturating_sub(writing) / run;
        Ok(Self { workers: workers as usize, runs: runs.max(2) as usize, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_stay_within_the_budget() {
        for (memory, cores, target, row_group) in
            [(128, 64, 64, 1 << 20), (256, 1, 64, 1 << 21), (1024, 2, 64, 1 << 21), (65_536, 64, 64, 1 << 23)]
        {
            let budget = ByteSize::mib(memory);
            let plan = MemoryPlan::new(budget, cores, ByteSize::mib(target), row_group).unwrap();
            let worker =
                PER_ENCODER.0 + PER_TARGET_BYTE * plan.target.0 + plan.runs as u64 * (PER_RUN.0 + row_group);
            // Two runs are read in any case.
            let fits = BASE.0 + plan.workers as u64 * worker <= budget.0;
            assert!(fits || plan.runs == 2, "{memory} {cores}: {plan:?}");
            assert!((1..=cores).contains(&plan.workers) && plan.runs >= 2, "{plan:?}");
        }
        assert!(MemoryPlan::new(ByteSize::mib(127), 1, ByteSize::mib(64), 0).is_err());
    }
}
