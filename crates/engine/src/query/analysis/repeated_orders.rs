//! Expressions that an ORDER BY has twice.

use std::collections::HashSet;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::query::analysis::expression_schema::rewrite_expressions;
use crate::query::walk::WalkPlan;

/// Removes expressions from the ORDER BY of aggregates and of DISTINCT ON that it has already.
///
/// They change no order, but DataFusion 55 panics: it expects as many values as expressions, and
/// keeps only the first of two that are equal. `SELECT DISTINCT ON (k) ... ORDER BY k, j, k`.
#[derive(Debug)]
pub(in crate::query) struct RepeatedOrders;

impl AnalyzerRule for RepeatedOrders {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.transform_up_with_subqueries_dyn(|plan| match plan {
            LogicalPlan::Distinct(Distinct::On(mut on)) => {
                let changes = on.sort_expr.as_mut().is_some_and(keep_first);
                Ok(Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), changes))
            }
            plan => rewrite_expressions(plan, |expr| match expr {
                Expr::AggregateFunction(mut call) => {
                    let changes = keep_first(&mut call.params.order_by);
                    Ok(Transformed::new_transformed(Expr::AggregateFunction(call), changes))
                }
                expr => Ok(Transformed::no(expr)),
            }),
        })?;
        Ok(changed.data)
    }

    fn name(&self) -> &'static str {
        "RepeatedOrders"
    }
}

/// Keeps the first of several equal expressions, and returns whether there were any.
fn keep_first(order: &mut Vec<Sort>) -> bool {
    let before = order.len();
    let mut seen = HashSet::new();
    order.retain(|sort| seen.insert(sort.expr.clone()));
    order.len() < before
}
