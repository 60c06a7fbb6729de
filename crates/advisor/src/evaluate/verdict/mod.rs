//! Judgement of figures: findings, the ranking, the proposed table, and comparisons with a baseline
//! or thresholds.

mod alternatives;
pub(super) mod ddl;
pub(super) mod drift;
pub(super) mod findings;
pub(super) mod knowledge;
mod primary_key;
mod qualification;
pub(super) mod ranking;
mod reasons;
mod sizing;
pub(super) mod threshold;
pub(super) mod workload_cost;
