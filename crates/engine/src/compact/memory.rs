//! Division of memory within a compaction.

use crate::compact::error::CompactionError;
use crate::compact::options::MIN_MEMORY;
use evenkeel_model::units::ByteSize;
use evenkeel_store::portion::GROUP_MEMORY;

/// Memory of the program itself, and memory that the allocator retains (measured).
const BASE: ByteSize = ByteSize::mib(85);
/// Memory of one encoder without the row group in progress (measured).
const PER_ENCODER: ByteSize = ByteSize::mib(12);
/// Memory per byte of the target: one portion grows, one waits, one is being stored.
const PER_TARGET_BYTE: u64 = 3;
/// Approximate bytes of rows in memory for each byte in a portion.
const UNCOMPRESSED: u64 = 4;
/// Maximum size of a batch that is read, in bytes; wide rows mean fewer rows per batch.
const BATCH_BYTES: u64 = 1 << 20;
/// Memory of a portion that is read, in addition to its compressed row group: decoded pages,
/// batches and sort keys (measured); and the number of rows in its batches.
const SMALL_BATCHES: (ByteSize, usize) = (ByteSize::mib(4), 2048);
/// Memory and number of rows in the case of large batches.
const LARGE_BATCHES: (ByteSize, usize) = (ByteSize::mib(6), 8192);
/// Budget above which batches are large, which makes merging a tenth faster.
const LARGE: ByteSize = ByteSize::mib(512);
/// Base memory of a row group in progress. One part in `GROUP_PART` of the budget is added to it:
/// large groups compress better.
const MIN_GROUP: ByteSize = ByteSize::mib(6);
const GROUP_PART: u64 = 64;
/// Divisor of the budget: a portion in progress takes at most this part of it.
const TARGET_PART: u64 = 16;

/// Shape of the portions of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableShape {
    /// Maximum number of overlapping portions.
    pub(super) depth: u64,
    /// Maximum compressed size of a row group, in bytes.
    pub(super) row_group: u64,
    /// Maximum compressed size of a row, in bytes.
    pub(super) row_bytes: u64,
    /// Size of the largest partition, in bytes.
    pub(super) partition: u64,
}

/// Resources that a compaction may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryPlan {
    /// Number of concurrent merges.
    pub(super) workers: usize,
    /// Portions that one merge may read concurrently.
    pub(super) runs: usize,
    /// Maximum size of a portion, in bytes.
    pub(super) target: ByteSize,
    /// Number of rows per batch.
    pub(super) batch_rows: usize,
    /// Memory of a row group that is being written.
    pub(super) group: ByteSize,
}

impl MemoryPlan {
    /// Divides `memory` on a machine with `cores` cores, for portions of `target`. One merge that
    /// reads all portions is better than several concurrent ones in many rounds.
    pub(super) fn new(
        memory: ByteSize,
        cores: usize,
        target: ByteSize,
        table: TableShape,
    ) -> Result<Self, CompactionError> {
        if memory < MIN_MEMORY {
            return Err(CompactionError::Memory { found: memory });
        }
        let target = target.min(ByteSize(memory.0 / TARGET_PART));
        let (per_run, batch_rows) = if memory < LARGE { SMALL_BATCHES } else { LARGE_BATCHES };
        let group = ByteSize(MIN_GROUP.0 + memory.0 / GROUP_PART).min(GROUP_MEMORY);
        let width = (table.row_bytes * UNCOMPRESSED).max(1);
        let batch_rows = batch_rows.min((BATCH_BYTES / width).max(1) as usize);
        // The compressed row group, and the part of it that is decoded.
        let run = per_run.0 + 2 * table.row_group;
        let left = memory.0.saturating_sub(BASE.0);
        // Small partitions are merged into one portion each.
        let portions = PER_TARGET_BYTE.saturating_mul(target.0.min(table.partition));
        let writing = PER_ENCODER.0 + group.0 + portions;
        let workers = (left / (writing + table.depth.max(2) * run)).clamp(1, cores.max(1) as u64);
        let runs = (left / workers).saturating_sub(writing) / run;
        Ok(Self { workers: workers as usize, runs: runs.max(2) as usize, target, batch_rows, group })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_stay_within_the_budget() {
        for (memory, cores, target, depth, row_group, partition) in [
            (128, 64, 64, 20, 1 << 20, u64::MAX),
            (128, 64, 64, 20, 1 << 16, 1 << 20),
            (256, 1, 64, 1000, 1 << 21, 1 << 31),
            (1024, 2, 64, 8, 1 << 21, u64::MAX),
            (1024, 64, 64, 16, 1 << 16, 1 << 20),
            (1024, 64, 64, 16, 1 << 20, 60 << 20),
            (65_536, 64, 64, 8, 1 << 23, u64::MAX),
        ] {
            let budget = ByteSize::mib(memory);
            let shape = TableShape { depth, row_group, row_bytes: 20, partition };
            let plan = MemoryPlan::new(budget, cores, ByteSize::mib(target), shape).unwrap();
            let per_run = if memory < 512 { SMALL_BATCHES.0 } else { LARGE_BATCHES.0 };
            let written = PER_TARGET_BYTE * plan.target.0.min(partition);
            let writing = PER_ENCODER.0 + plan.group.0 + written;
            let worker = writing + plan.runs as u64 * (per_run.0 + 2 * row_group);
            // At least two portions are read in any case.
            let fits = BASE.0 + plan.workers as u64 * worker <= budget.0;
            assert!(fits || (plan.runs, plan.workers) == (2, 1), "{memory} {cores}: {plan:?}");
            assert!((1..=cores).contains(&plan.workers) && plan.runs >= 2, "{plan:?}");
        }
        let narrow = TableShape { depth: 1, row_group: 0, row_bytes: 0, partition: 0 };
        assert!(MemoryPlan::new(ByteSize::mib(127), 1, ByteSize::mib(64), narrow).is_err());
        let wide = TableShape { depth: 4, row_group: 32 << 20, row_bytes: 6000, partition: 1 << 30 };
        let plan = MemoryPlan::new(ByteSize::mib(1024), 2, ByteSize::mib(64), wide).unwrap();
        assert!(plan.batch_rows < 50 && plan.runs >= 4, "{plan:?}");
    }

    #[test]
    fn one_merge_of_all_comes_before_many_rounds_of_several() {
        let plan = |depth| {
            let shape = TableShape { depth, row_group: 1 << 19, row_bytes: 20, partition: 1 << 30 };
            MemoryPlan::new(ByteSize::mib(256), 8, ByteSize::mib(64), shape).unwrap()
        };
        assert!(plan(2).workers > 1);
        assert!(plan(18).runs >= 18 && plan(18).workers == 1, "{:?}", plan(18));
    }

    #[test]
    fn more_small_partitions_than_large_ones_are_merged_at_a_time() {
        let workers = |partition| {
            let shape = TableShape { depth: 16, row_group: 1 << 16, row_bytes: 20, partition };
            MemoryPlan::new(ByteSize::mib(1024), 64, ByteSize::mib(64), shape).unwrap().workers
        };
        assert_eq!(workers(u64::MAX), workers(96 << 20));
        assert!(workers(1 << 20) > workers(16 << 20) && workers(16 << 20) > workers(96 << 20));
    }
}
