//! Subqueries in conditions, in forms that become the right joins.
//!
//! DataFusion 55 joins the subqueries of IN and EXISTS with a query. Some of these joins forget
//! that a comparison with NULL is NULL, others that an aggregation without groups returns a row
//! even if no row belongs to it, or that a limit applies before a correlation above it.
//!
//! ```text
//! x NOT IN (S) in an OR, correlated, or of a constant
//!      ->  NOT EXISTS (S of x) AND NOT EXISTS (S of NULL) AND (x IS NOT NULL OR NOT EXISTS (S))
//! x IN (S) if NULL must not count as FALSE, as in ... IS NULL
//!      ->  CASE WHEN EXISTS (S of x) THEN true
//!               WHEN EXISTS (S of NULL) OR x IS NULL AND EXISTS (S) THEN NULL ELSE false END
//! x IN (SELECT count(*) ...)                    ->  x = (SELECT count(*) ...)
//! EXISTS (SELECT count(*) ...)                  ->  true
//! EXISTS (SELECT count(*) ... HAVING p)         ->  (SELECT p FROM ...) IS TRUE
//! EXISTS (... GROUP BY ROLLUP (a))              ->  true
//! EXISTS (S OFFSET n)                           ->  (SELECT count(*) FROM S) > n
//! (SELECT count(*) IS NULL FROM ...)            ->  false
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue, not_impl_err};
use datafusion::config::ConfigOptions;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, ExprSchemable, FetchType, Filter, LogicalPlan, LogicalPlanBuilder, Operator, SkipType, Subquery,
    binary_expr, lit, not, when,
};
use datafusion::optimizer::AnalyzerRule;

use crate::query::analysis::expression_schema::rewrite_expressions;
use crate::query::analysis::subquery_plans::{
    Groups, always_one_row, check_windows, is_correlated, subquery_of, unsorted, visit_upwards, without_order,
};
use crate::query::walk::{Walk, WalkPlan};

/// Rewrites the conditions of filters, and subqueries of constants. Runs after the rules that
/// coerce types.
#[derive(Debug)]
pub(in crate::query) struct ExactSubqueries;

impl AnalyzerRule for ExactSubqueries {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries_dyn(|plan| {
            rewrite_expressions(plan, constant_of_row)?.transform_data(|plan| match plan {
                LogicalPlan::Filter(Filter { predicate, input, .. }) if has_subquery(&predicate) => {
                    let schema = input.schema();
                    let parts = split_conjunction_owned(predicate).into_iter();
                    let parts: Vec<_> = parts.map(|part| conjunct(part, schema)).collect::<Result<_>>()?;
                    let predicate = conjunction(parts).unwrap_or_else(|| lit(true));
                    Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, input)?)))
                }
                plan => Ok(Transformed::no(plan)),
            })
        })?;
        Ok(rewritten.data)
    }

    fn name(&self) -> &'static str {
        "exact_subqueries"
    }
}

/// Replaces a subquery that returns a constant in its one row. DataFusion would find the constant
/// later, and then no longer see that there is a row if no row belongs to the query's.
fn constant_of_row(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = &expr else { return Ok(Transformed::no(expr)) };
    let LogicalPlan::Projection(projection) = subquery.subquery.as_ref() else {
        return Ok(Transformed::no(expr));
    };
    let [computed] = projection.expr.as_slice() else { return Ok(Transformed::no(expr)) };
    if !is_correlated(subquery) || !always_one_row(&projection.input) {
        return Ok(Transformed::no(expr));
    }
    let schema = projection.input.schema();
    let computed = computed.clone().unalias().transform_up_dyn(|expr| {
        Ok(match &expr {
            Expr::IsNull(inner) if !inner.nullable(schema)? => Transformed::yes(lit(false)),
            Expr::IsNotNull(inner) if !inner.nullable(schema)? => Transformed::yes(lit(true)),
            _ => Transformed::no(expr),
        })
    })?;
    let is_constant = !computed.data.any_column_refs() && !computed.data.contains_outer();
    Ok(if is_constant { Transformed::yes(computed.data) } else { Transformed::no(expr) })
}

fn has_subquery(expr: &Expr) -> bool {
    let is_subquery = |expr: &Expr| Ok(matches!(expr, Expr::InSubquery(_) | Expr::Exists(_)));
    expr.exists_dyn(is_subquery).unwrap_or(true)
}

/// Rewrites one conjunct of a condition.
fn conjunct(part: Expr, schema: &DFSchema) -> Result<Expr> {
    match part {
        Expr::Not(inner) if has_opposite(&inner) => conjunct(negated(*inner), schema),
        Expr::BinaryExpr(both) if both.op == Operator::And => {
            Ok(conjunct(*both.left, schema)?.and(conjunct(*both.right, schema)?))
        }
        // A join that handles NULL, and is faster than the joins of several subqueries.
        Expr::InSubquery(set)
            if set.negated
                && !is_correlated(&set.subquery)
                && set.expr.any_column_refs()
                && !always_one_row(&set.subquery.subquery) =>
        {
            let subquery = with_name(&set.subquery)?;
            Ok(Expr::InSubquery(InSubquery { subquery, ..set }))
        }
        part => rewritten(part, schema, true),
    }
}

/// Rewrites an expression; if `is_condition`, its NULL may become FALSE.
fn rewritten(expr: Expr, schema: &DFSchema, is_condition: bool) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(both) if matches!(both.op, Operator::And | Operator::Or) => Ok(binary_expr(
            rewritten(*both.left, schema, is_condition)?,
            both.op,
            rewritten(*both.right, schema, is_condition)?,
        )),
        Expr::Not(inner) if has_opposite(&inner) => rewritten(negated(*inner), schema, is_condition),
        Expr::Exists(Exists { subquery, negated }) => {
            let condition = exists(subquery)?;
            Ok(if negated { not(condition) } else { condition })
        }
        Expr::InSubquery(set) => in_subquery(set, schema, is_condition),
        other => {
            Ok(other.map_children_dyn(|inner| Ok(Transformed::yes(rewritten(inner, schema, false)?)))?.data)
        }
    }
}

/// Whether NOT of an expression with subqueries can be written without NOT, as DataFusion does
/// later.
fn has_opposite(expr: &Expr) -> bool {
    match expr {
        Expr::InSubquery(_) | Expr::Exists(_) => true,
        Expr::Not(inner) => has_subquery(inner),
        Expr::BinaryExpr(both) => matches!(both.op, Operator::And | Operator::Or) && has_subquery(expr),
        _ => false,
    }
}

fn negated(expr: Expr) -> Expr {
    match expr {
        Expr::Not(inner) => *inner,
        Expr::BinaryExpr(both) if both.op == Operator::And => negated(*both.left).or(negated(*both.right)),
        Expr::BinaryExpr(both) if both.op == Operator::Or => negated(*both.left).and(negated(*both.right)),
        Expr::InSubquery(set) => Expr::InSubquery(InSubquery { negated: !set.negated, ..set }),
        Expr::Exists(exists) => Expr::Exists(Exists { negated: !exists.negated, ..exists }),
        other => not(other),
    }
}

fn in_subquery(set: InSubquery, schema: &DFSchema, is_condition: bool) -> Result<Expr> {
    let InSubquery { expr: value, subquery, negated } = set;
    let subquery = with_name(&subquery)?;
    check_windows(&subquery, &subquery.subquery)?;
    if always_one_row(&subquery.subquery) {
        let op = if negated { Operator::NotEq } else { Operator::Eq };
        return Ok(binary_expr(*value, op, Expr::ScalarSubquery(subquery)));
    }
    let Some(item) = subquery.subquery.schema().columns().into_iter().next() else {
        return Ok(Expr::InSubquery(InSubquery { expr: value, subquery, negated }));
    };
    let (value_is_nullable, item_is_nullable) =
        (value.nullable(schema)?, subquery.subquery.schema().field(0).is_nullable());
    let is_known = !value_is_nullable && !item_is_nullable;
    let is_right = match is_condition {
        true => !negated,
        // Simplified, it may become a condition, also its opposite.
        false => is_known && !is_correlated(&subquery),
    };
    // Columns of a query further out cannot be reached from within another subquery.
    if is_right || value.contains_outer() || has_subquery(&value) {
        return Ok(Expr::InSubquery(InSubquery { expr: value, subquery, negated }));
    }
    let equal = binary_expr(as_outer(&value, schema)?, Operator::Eq, Expr::Column(item.clone()));
    let with_value = exists(restricted(&subquery, Some(equal))?)?;
    let with_null = exists(restricted(&subquery, Some(Expr::Column(item).is_null()))?)?;
    let with_any = exists(restricted(&subquery, None)?)?;
    if is_condition {
        let mut parts = vec![not(with_value)];
        if item_is_nullable {
            parts.push(not(with_null));
        }
        if value_is_nullable {
            parts.push(value.is_not_null().or(not(with_any)));
        }
        return Ok(conjunction(parts).unwrap_or_else(|| lit(true)));
    }
    if is_known {
        return Ok(if negated { not(with_value) } else { with_value });
    }
    let is_unknown = match (item_is_nullable, value_is_nullable) {
        (true, false) => with_null,
        (false, _) => value.is_null().and(with_any),
        (true, true) => with_null.or(value.is_null().and(with_any)),
    };
    when(with_value, lit(!negated)).when(is_unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(negated))
}

/// Names the computed values of a subquery, and drops their order. DataFusion adds the column that
/// a condition compares next to a value of the same name, such as a cast of it.
fn with_name(subquery: &Subquery) -> Result<Subquery> {
    let plan = unsorted(&subquery.subquery)?;
    let plan = match &plan {
        LogicalPlan::Projection(projection) => match projection.expr.as_slice() {
            [Expr::Alias(_) | Expr::Column(Column { relation: Some(_), .. })] => plan,
            [value] => {
                let value = value.clone().alias("__value");
                LogicalPlanBuilder::from(Arc::clone(&projection.input)).project([value])?.build()?
            }
            _ => plan,
        },
        _ => plan,
    };
    Ok(subquery_of(&Arc::new(plan), subquery))
}

/// Turns the columns of an expression into columns of the query outside a subquery.
fn as_outer(expr: &Expr, schema: &DFSchema) -> Result<Expr> {
    let outer = expr.clone().transform_up_dyn(|expr| match expr {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(outer.data)
}

/// Returns a subquery of the rows that fulfil a condition. One row is enough if all rows of the
/// query share them.
fn restricted(subquery: &Subquery, condition: Option<Expr>) -> Result<Subquery> {
    let plan = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery));
    let plan = match condition {
        Some(condition) => plan.filter(condition)?,
        None => plan,
    };
    let plan = plan.build()?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    let plan = match outer_ref_columns.is_empty() {
        true => LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build()?,
        false => plan,
    };
    Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: subquery.spans.clone() })
}

/// Returns whether a subquery has rows, as an expression.
fn exists(subquery: Subquery) -> Result<Expr> {
    if !is_correlated(&subquery) {
        let unsorted = subquery_of(&Arc::new(unsorted(&subquery.subquery)?), &subquery);
        let subquery = restricted(&unsorted, None)?;
        return Ok(Expr::Exists(Exists { subquery, negated: false }));
    }
    // A window adds no rows and removes none.
    let below = match without_order(&subquery.subquery) {
        LogicalPlan::Window(window) => &window.input,
        other => other,
    };
    check_windows(&subquery, below)?;
    match without_order(&subquery.subquery) {
        LogicalPlan::Limit(limit) => match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (_, FetchType::Literal(Some(0))) => Ok(lit(false)),
            (SkipType::Literal(0), FetchType::Literal(_)) => exists(subquery_of(&limit.input, &subquery)),
            (SkipType::Literal(skipped), FetchType::Literal(_)) => {
                let counted = LogicalPlanBuilder::from(unsorted(&limit.input)?)
                    .aggregate(Vec::<Expr>::new(), [count(lit(1))])?
                    .build()?;
                let counted = Expr::ScalarSubquery(subquery_of(&Arc::new(counted), &subquery));
                let skipped = i64::try_from(skipped).unwrap_or(i64::MAX);
                Ok(binary_expr(counted, Operator::Gt, lit(skipped)))
            }
            _ => not_impl_err!("a limit of a subquery that depends on its query must be a number"),
        },
        LogicalPlan::Aggregate(aggregate) => match Groups::new(aggregate) {
            Groups::AlwaysSome => Ok(lit(true)),
            Groups::Sets => exists(subquery_of(&aggregate.input, &subquery)),
            Groups::Plain => checked_exists(subquery),
        },
        LogicalPlan::Filter(having) if always_one_row(&having.input) => {
            let condition = LogicalPlanBuilder::from(Arc::clone(&having.input))
                .project([having.predicate.clone().alias("having")])?
                .build()?;
            Ok(Expr::ScalarSubquery(subquery_of(&Arc::new(condition), &subquery)).is_true())
        }
        _ => checked_exists(subquery),
    }
}

/// Returns EXISTS of a subquery whose parts DataFusion can join in any order.
fn checked_exists(subquery: Subquery) -> Result<Expr> {
    let subquery = subquery_of(&Arc::new(unsorted(&subquery.subquery)?), &subquery);
    let (mut is_correlated, mut obstacle) = (false, None);
    subquery.subquery.apply_dyn(|node| {
        obstacle = obstacle.or(match node {
            LogicalPlan::Aggregate(aggregate) if !matches!(Groups::new(aggregate), Groups::Plain) => {
                (!node.all_out_ref_exprs().is_empty())
                    .then_some("grouping sets or an aggregation without groups")
            }
            _ => None,
        });
        Ok(TreeNodeRecursion::Continue)
    })?;
    // Correlations are found in this order: a limit after the first would be lost.
    visit_upwards(&subquery.subquery, &mut |node| {
        if matches!(node, LogicalPlan::Limit(_)) && is_correlated {
            obstacle = Some("a limit");
        }
        is_correlated |= node.expressions().iter().any(Expr::contains_outer);
    });
    match obstacle {
        Some(obstacle) => not_impl_err!(
            "EXISTS cannot look below {obstacle} in a subquery that depends on its query; join the tables instead"
        ),
        None => Ok(Expr::Exists(Exists { subquery, negated: false })),
    }
}

#[cfg(test)]
#[path = "exact_subqueries_tests.rs"]
mod tests;
