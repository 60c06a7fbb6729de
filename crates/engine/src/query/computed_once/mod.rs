//! Queries in WITH that are computed once, however often a statement names them.
//!
//! DataFusion 55 puts a copy of the query's plan in place of each of its names. That costs the work
//! several times, and the copies may disagree: `random()` draws anew, LIMIT without an order picks
//! other rows, sums of floats differ in their last digit. PostgreSQL and DuckDB compute such a
//! query once, and so do sessions of this crate:
//!
//! 1. [`mark_repeated_ctes`](crate::sql::mark_repeated_ctes) gives each copy an alias.
//! 2. [`CtesComputedOnce`], the last rule of the analysis, puts a [`ComputedOnce`] in place of each
//!    copy of a query that is worth it. It hides the plan of the query from all rules.
//! 3. [`OncePlanner`] optimizes and plans each of these queries by itself, without rows that no
//!    place needs (`filters`).
//! 4. A [`ComputedOnceExec`](exec::ComputedOnceExec) reads the rows in each place. The first one
//!    that is read starts to compute them, for all.

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
