//! The expressions of a plan node, and the columns that they refer to.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::query::walk::{Walk, WalkPlan};

/// Returns the columns that the expressions of a node refer to: those of its inputs. The filters of
/// a scan refer to all columns of its table, no matter which of them the scan returns.
pub(in crate::query) fn expression_schema(plan: &LogicalPlan) -> Result<DFSchema> {
    match plan {
        // A wide table is not described for nothing.
        LogicalPlan::TableScan(scan) if scan.filters.is_empty() => Ok(DFSchema::empty()),
        LogicalPlan::TableScan(scan) => {
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())
        }
        plan => Ok(merge_schema(&plan.inputs())),
    }
}

/// Rewrites the expressions of a node from the bottom up. Its output columns keep their names, by
/// which other nodes refer to them.
pub(in crate::query) fn rewrite_expressions(
    plan: LogicalPlan,
    mut rewrite: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    let mut rewritten = |expr: Expr| {
        let name = names.save(&expr);
        Ok(expr.transform_up_dyn(&mut rewrite)?.update_data(|expr| name.restore(expr)))
    };
    plan.map_expressions_dyn(|expr| match expr {
        // The members of a set have names, not the set.
        Expr::GroupingSet(_) => expr.map_children_dyn(&mut rewritten),
        expr => rewritten(expr),
    })
}

/// Rewrites the expressions of all nodes of a plan, including those of subqueries, each from the
/// bottom up and with the columns that it refers to. The rewritten ones may have other types.
pub(in crate::query) fn rewrite_plan(
    plan: LogicalPlan,
    mut rewrite: impl FnMut(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries_dyn(|plan| {
        let schema = expression_schema(&plan)?;
        rewrite_expressions(plan, |expr| rewrite(expr, &schema))?.map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(rewritten.data)
}
