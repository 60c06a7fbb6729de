//! Plans of subqueries: whether they return rows for any input, one row, or rows in an order.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, Result, not_impl_err};
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Subquery};

use crate::query::walk::Walk;

pub(super) fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

pub(super) fn subquery_of(plan: &Arc<LogicalPlan>, like: &Subquery) -> Subquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Subquery { subquery: Arc::clone(plan), outer_ref_columns, spans: like.spans.clone() }
}

/// Refuses windows over rows that belong to several rows of the query. DataFusion joins the rows of
/// all of them, and then no longer computes the window for each.
pub(super) fn check_windows(subquery: &Subquery, plan: &LogicalPlan) -> Result<()> {
    let mixes = |node: &LogicalPlan| {
        let LogicalPlan::Window(window) = node else { return Ok(false) };
        let correlated = correlated_columns(&window.input)?;
        let is_partitioned = |expr: &Expr| match expr.clone().unalias() {
            Expr::WindowFunction(call) => correlated
                .iter()
                .all(|column| call.params.partition_by.contains(&Expr::Column(column.clone()))),
            _ => false,
        };
        Ok(!correlated.is_empty() && !window.window_expr.iter().all(is_partitioned))
    };
    if is_correlated(subquery) && plan.exists_dyn(mixes)? {
        return not_impl_err!(
            "a window function in a subquery that depends on its query must be partitioned by the columns that they \
             share; join the tables instead"
        );
    }
    Ok(())
}

/// Columns of a subquery's tables that conditions compare with the query's.
pub(super) fn correlated_columns(plan: &LogicalPlan) -> Result<HashSet<Column>> {
    let mut columns = HashSet::new();
    plan.apply_dyn(|node| {
        let conditions = node.expressions().into_iter().flat_map(split_conjunction_owned);
        let correlated = conditions.filter(Expr::contains_outer);
        columns.extend(
            correlated.flat_map(|condition| condition.column_refs().into_iter().cloned().collect::<Vec<_>>()),
        );
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(columns)
}

pub(super) fn visit_upwards(plan: &LogicalPlan, visit: &mut impl FnMut(&LogicalPlan)) {
    for input in plan.inputs() {
        visit_upwards(input, visit);
    }
    visit(plan);
}

/// Returns the plan below the nodes that neither add nor remove all rows.
pub(super) fn without_order(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => without_order(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => without_order(&alias.input),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => without_order(&sort.input),
        LogicalPlan::Distinct(distinct) => without_order(distinct.input()),
        other => other,
    }
}

/// Returns a plan without the sorts that make no difference to a set of rows.
pub(super) fn unsorted(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let unsorted = plan.clone().transform_down_dyn(|node| {
        Ok(match node {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                Transformed::new(unsorted(&sort.input)?, true, TreeNodeRecursion::Jump)
            }
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Distinct(_) => {
                Transformed::no(node)
            }
            _ => Transformed::new(node, false, TreeNodeRecursion::Jump),
        })
    })?;
    Ok(unsorted.data)
}

/// Whether a plan returns one row, whatever its tables have.
pub(super) fn always_one_row(plan: &LogicalPlan) -> bool {
    match without_order(plan) {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// When an aggregation has groups.
pub(super) enum Groups {
    /// Even if there are no rows.
    AlwaysSome,
    /// One row per group if there are rows; each row is in several groups.
    Sets,
    /// If there are rows.
    Plain,
}

impl Groups {
    pub(super) fn new(aggregate: &Aggregate) -> Self {
        match aggregate.group_expr.as_slice() {
            [] => Self::AlwaysSome,
            [Expr::GroupingSet(GroupingSet::Rollup(_) | GroupingSet::Cube(_))] => Self::AlwaysSome,
            [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] if sets.iter().any(Vec::is_empty) => {
                Self::AlwaysSome
            }
            groups if groups.iter().any(|group| matches!(group, Expr::GroupingSet(_))) => Self::Sets,
            _ => Self::Plain,
        }
    }
}
