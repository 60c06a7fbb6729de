//! The judgement of figures: findings, the ranking, the proposed table, and comparisons with a baseline or thresholds.

pub(super) mod ddl;
pub(super) mod drift;
pub(super) mod findings;
pub(super) mod ranking;
pub(super) mod threshold;

/// Distinct values that YDB advises per partition, at least.
pub(super) const FEWEST_KEYS_PER_PARTITION: u64 = 100;
