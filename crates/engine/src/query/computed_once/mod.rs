//! Queries in WITH that are computed once, however often a statement names them.
//!
//! DataFusion 55 puts a copy of the query's plan in place of each of its names. That costs the work
//! several times, and the copies may disagree: `random()` draws anew, LIMIT without an order picks
//! other rows, sums of floats differ in their last digit. PostgreSQL and DuckDB compute such a query
//! once, and so do sessions of this crate, in four steps:
//!
//! 1. [`mark_repeated_ctes`](crate::sql::mark_repeated_ctes) gives each copy an alias.
//! 2. [`CtesComputedOnce`], the last rule of the analysis, makes a [`ComputedOnce`] of each copy of a
//!    query that is worth it. No other rule changes what these nodes return.
//! 3. [`FiltersOfCopies`] passes conditions down: if each copy has one, their disjunction.
//! 4. [`OncePlanner`] plans each query once, and puts a [`ComputedOnceExec`](exec::ComputedOnceExec)
//!    in place of its copies. The first of them that is read computes the rows of all.

mod analysis;
mod exec;
mod filters;
mod node;
mod planner;
mod rows;

pub(super) use analysis::CtesComputedOnce;
pub(super) use filters::FiltersOfCopies;
use node::ComputedOnce;
pub(super) use planner::OncePlanner;

#[cfg(test)]
mod tests;
