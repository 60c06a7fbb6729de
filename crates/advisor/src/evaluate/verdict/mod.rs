//! Judgement of figures: findings, the ranking, the proposed table, and comparisons with a baseline
//! or thresholds.
//!
//! The word for a placement (`Verdict`) is decided before: `pass/cells.rs` asks `stats::skew` for
//! it, with the `AtATime` of `figures/pattern.rs`. The modules here decide what follows from it:
//! which keys qualify, how they rank, and how severe a finding is.

mod alternatives;
pub(super) mod ddl;
pub(super) mod drift;
mod entity_weights;
pub(super) mod findings;
pub(super) mod knowledge;
mod primary_key;
mod qualification;
pub(super) mod ranking;
mod reasons;
mod sizing;
pub(super) mod threshold;
pub(super) mod workload_cost;
