//! Queries in WITH that are computed once, regardless of the number of references.
//!
//! DataFusion 55 replaces each reference by a copy of the query's plan. That repeats the work, and
//! the copies may disagree: `random()` draws again, LIMIT without an order picks other rows, sums
//! of floats differ in their last digit. PostgreSQL and DuckDB compute such a query once, and so do
//! sessions of this crate:
//!
//! 1. [`mark_repeated_ctes`](evenkeel_sql::mark_repeated_ctes) gives each copy an alias.
//! 2. [`CtesComputedOnce`], the last rule of the analysis, replaces each copy of a worthwhile query
//!    by a [`ComputedOnce`]. It hides the plan of the query from all rules.
//! 3. [`OncePlanner`] optimizes and plans each of these queries separately, without rows that no
//!    reference needs (`filters`).
//! 4. A [`ComputedOnceExec`](exec::ComputedOnceExec) reads the rows at each reference. The first
//!    one that is read starts to compute them, for all.

mod analysis;
mod exec;
mod filters;
mod node;
mod planner;
mod rows;

pub(super) use analysis::CtesComputedOnce;
pub(super) use exec::release_rows;
use node::ComputedOnce;
pub(super) use planner::OncePlanner;

#[cfg(test)]
mod tests;
