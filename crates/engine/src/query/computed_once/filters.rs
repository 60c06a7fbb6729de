//! Conditions of the places that read a query.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::utils::{conjunction, disjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan};

use crate::query::computed_once::ComputedOnce;
use crate::query::walk::{Walk, WalkPlan};

/// Returns the plan of a query without rows that no reference to it needs. `plans` are optimized
/// and contain all references.
///
/// If each reference has a condition, a row is needed if it meets one of them:
///
/// ```text
/// WITH q AS (SELECT k, count(*) AS n FROM t GROUP BY k)
/// SELECT * FROM q AS a JOIN q AS b ON a.n = b.n WHERE a.k = 1 AND b.k = 2
///     q is computed for k = 1 OR k = 2
/// ```
pub(super) fn needed_rows(query: &ComputedOnce, plans: &[&LogicalPlan]) -> Result<LogicalPlan> {
    let mut places = 0;
    let mut conditions: Vec<Expr> = Vec::new();
    let mut have_conditions = 0;
    let is_place =
        |plan: &LogicalPlan| ComputedOnce::from_plan(plan).is_some_and(|node| node.alias == query.alias);
    let is_part_of_place = |plan: &LogicalPlan| match plan {
        // Columns that the place does not need are left out below its condition.
        LogicalPlan::Projection(projection) => {
            projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_))) && is_place(&projection.input)
        }
        plan => is_place(plan),
    };
    for plan in plans {
        plan.apply_with_subqueries_dyn(|plan| {
            places += usize::from(is_place(plan));
            if let LogicalPlan::Filter(filter) = plan
                && is_part_of_place(&filter.input)
                && let Some(condition) = own_condition(&filter.predicate)?
            {
                have_conditions += 1;
                if !conditions.contains(&condition) {
                    conditions.push(condition);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    match disjunction(conditions).filter(|_| have_conditions == places) {
        Some(condition) => Ok(LogicalPlan::Filter(Filter::try_new(condition, Arc::clone(&query.query))?)),
        None => Ok(query.query.as_ref().clone()),
    }
}

/// Returns the part of a condition that depends on the values of a row alone.
fn own_condition(condition: &Expr) -> Result<Option<Expr>> {
    let mut own = Vec::new();
    for part in split_conjunction(condition) {
        let is_foreign = part.exists_dyn(|part| {
            Ok(matches!(
                part,
                Expr::ScalarSubquery(_)
                    | Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::SetComparison(_)
                    | Expr::OuterReferenceColumn(..)
            ))
        })?;
        if !is_foreign && !part.is_volatile() {
            own.push(part.clone());
        }
    }
    Ok(conjunction(own))
}
