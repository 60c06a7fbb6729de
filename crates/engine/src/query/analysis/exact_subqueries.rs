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

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
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

/// Rewrites the conditions of filters, and subqueries of constants. Runs after the rules that
/// coerce types.
#[derive(Debug)]
pub(in crate::query) struct ExactSubqueries;

impl AnalyzerRule for ExactSubqueries {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
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
    let computed = computed.clone().unalias().transform_up(|expr| {
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
    expr.exists(is_subquery).unwrap_or(true)
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
        other => Ok(other.map_children(|inner| Ok(Transformed::yes(rewritten(inner, schema, false)?)))?.data),
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
    let outer = expr.clone().transform(|expr| match expr {
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
    subquery.subquery.apply(|node| {
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
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::query::Params;
    use crate::testing::{Score, latest, overlapping_commits, scores};

    const TABLES: &str =
        "WITH t AS (SELECT * FROM (VALUES (1, 10), (2, 20), (NULL, 30), (4, 40)) AS t(k, v)),
        u AS (SELECT * FROM (VALUES (1, 15), (NULL, 5), (7, 100)) AS u(k, v)),
        o AS (SELECT * FROM (VALUES (1), (2), (3)) AS o(k)),
        i AS (SELECT * FROM (VALUES (1, 10), (1, 11), (3, 20)) AS i(k, v)) ";

    fn context() -> SessionContext {
        let context = SessionContext::new();
        context.add_analyzer_rule(Arc::new(ExactSubqueries));
        context
    }

    async fn run(context: &SessionContext, sql: &str) -> Result<Vec<Option<i64>>> {
        let batches = context.sql(&format!("{TABLES}{sql} ORDER BY 1 NULLS LAST")).await?.collect().await?;
        let of_batch = |batch: &arrow::array::RecordBatch| {
            batch.column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>()
        };
        Ok(batches.iter().flat_map(of_batch).collect())
    }

    #[tokio::test]
    async fn a_value_beside_null_is_neither_in_nor_not_in_a_list() {
        let context = context();
        let all = [Some(10), Some(20), Some(30), Some(40)];
        for (condition, expected) in [
            ("k NOT IN (SELECT k FROM u)", vec![]),
            ("k NOT IN (SELECT k FROM u WHERE u.v > t.v)", vec![Some(20), Some(40)]),
            ("NOT (k IN (SELECT k FROM u WHERE u.v > t.v)) OR v = 1", vec![Some(20), Some(40)]),
            ("k NOT IN (SELECT k FROM u) OR v = 10", vec![Some(10)]),
            ("k NOT IN (SELECT k FROM u WHERE false) OR v = 1", all.to_vec()),
            ("(k NOT IN (SELECT k FROM u)) IS NULL", vec![Some(20), Some(30), Some(40)]),
            ("coalesce(k IN (SELECT k FROM u), true)", all.to_vec()),
            ("NOT (k IN (SELECT k FROM u) AND v < 15)", vec![Some(20), Some(30), Some(40)]),
            ("NOT (v = 20 OR k IN (SELECT k FROM u WHERE u.v > t.v))", vec![Some(40)]),
            ("NOT (NOT (k IN (SELECT k FROM u WHERE u.v > t.v)) AND v > 0)", vec![Some(10)]),
            ("NOT (v < 40 AND NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k))", vec![Some(10), Some(40)]),
            ("3 NOT IN (SELECT k FROM u)", vec![]),
            ("3 NOT IN (SELECT k FROM u WHERE u.v < t.v)", vec![]),
            ("(3 NOT IN (SELECT k FROM u)) IS NULL", all.to_vec()),
            ("3 NOT IN (SELECT k FROM u WHERE u.v = t.v)", all.to_vec()),
            ("k IN (SELECT k FROM u) OR v = 30", vec![Some(10), Some(30)]),
            ("k + 1 NOT IN (SELECT k FROM u WHERE k IS NOT NULL)", vec![Some(10), Some(20), Some(40)]),
            ("NOT (k NOT IN (SELECT max(k) FROM u WHERE k > 0 GROUP BY v) AND v > 0)", vec![Some(10)]),
            ("k IN (SELECT nullif(k, 2) FROM u GROUP BY nullif(k, 2)) OR v = 30", vec![Some(10), Some(30)]),
            ("k NOT IN (SELECT max(k) FROM u GROUP BY v ORDER BY v) OR v = 10", vec![Some(10)]),
            ("k IN (SELECT k FROM u ORDER BY v) OR v = 30", vec![Some(10), Some(30)]),
            ("k IN (SELECT DISTINCT k FROM u ORDER BY k) OR v = 30", vec![Some(10), Some(30)]),
            (
                "k NOT IN (SELECT k + 6 FROM u WHERE u.v > t.v ORDER BY k + 6) OR v = 10",
                vec![Some(10), Some(20), Some(40)],
            ),
        ] {
            let found = run(&context, &format!("SELECT v FROM t WHERE {condition}")).await.unwrap();
            assert_eq!(found, expected, "{condition}");
        }
    }

    #[tokio::test]
    async fn columns_without_null_need_no_join_that_knows_it() {
        let (_folder, table) = scores(&overlapping_commits()).await;
        let session = table.session().unwrap();
        let rows = latest(&overlapping_commits());
        let is_in = |a: &Score| rows.iter().any(|b| b.0 == a.0 && b.2 > 2_000 && b.1 == a.1 + 2);
        let selected = "a.game + 2 IN (SELECT b.game FROM t b WHERE b.player = a.player AND b.points > 2000)";
        type Keeps<'k> = &'k dyn Fn(&Score) -> bool;
        let cases: [(String, Keeps<'_>); 4] = [
            (format!("NOT (a.points = 7 OR {selected})"), &|a| !(a.2 == 7 || is_in(a))),
            (format!("NOT (a.points > 7 AND NOT ({selected}))"), &|a| a.2 <= 7 || is_in(a)),
            (format!("({selected}) = (a.points > 1000)"), &|a| is_in(a) == (a.2 > 1_000)),
            (format!("CASE WHEN {selected} THEN false ELSE true END"), &|a| !is_in(a)),
        ];
        for (condition, keeps) in cases {
            let sql = format!("SELECT count(*) FROM t a WHERE {condition}");
            let batches = session.collect(&sql, &Params::default()).await.unwrap();
            let found = batches[0].column(0).as_primitive::<Int64Type>().value(0);
            let expected = rows.iter().filter(|row| keeps(row)).count() as i64;
            assert!(expected > 0 && expected < rows.len() as i64, "{condition}: {expected}");
            assert_eq!(found, expected, "{condition}");
        }
    }

    #[tokio::test]
    async fn an_aggregation_without_groups_has_a_row_for_each_row_of_the_query() {
        let context = context();
        let of_i = "FROM i WHERE i.k = o.k";
        for (condition, expected) in [
            (format!("EXISTS (SELECT count(*) {of_i})"), vec![1, 2, 3]),
            (format!("NOT EXISTS (SELECT count(*) {of_i})"), vec![]),
            (format!("EXISTS (SELECT * FROM (SELECT max(v) {of_i}) AS x)"), vec![1, 2, 3]),
            (format!("0 IN (SELECT count(*) {of_i})"), vec![2]),
            (format!("0 NOT IN (SELECT count(*) {of_i})"), vec![1, 3]),
            (format!("11 NOT IN (SELECT max(v) {of_i})"), vec![3]),
            (format!("EXISTS (SELECT count(*) {of_i} HAVING count(*) < 2)"), vec![2, 3]),
            (format!("NOT EXISTS (SELECT max(v) {of_i} HAVING count(*) < 2)"), vec![1]),
            (format!("EXISTS (SELECT 1 {of_i} GROUP BY ROLLUP (i.k))"), vec![1, 2, 3]),
            (format!("EXISTS (SELECT 1 {of_i} GROUP BY GROUPING SETS ((i.k), (i.v)))"), vec![1, 3]),
            (format!("EXISTS (SELECT row_number() OVER (ORDER BY v) {of_i})"), vec![1, 3]),
            (format!("2 IN (SELECT row_number() OVER (PARTITION BY i.k ORDER BY v) {of_i})"), vec![1]),
            (format!("EXISTS (SELECT * {of_i} OFFSET 1)"), vec![1]),
            (format!("EXISTS (SELECT * {of_i} ORDER BY v OFFSET 1)"), vec![1]),
            (format!("NOT EXISTS (SELECT * {of_i} OFFSET 1)"), vec![2, 3]),
            (format!("EXISTS (SELECT * {of_i} ORDER BY v LIMIT 1)"), vec![1, 3]),
            (format!("EXISTS (SELECT * {of_i} LIMIT 0)"), vec![]),
            (format!("(SELECT count(*) IS NULL {of_i}) = false"), vec![1, 2, 3]),
        ] {
            let found = run(&context, &format!("SELECT k FROM o WHERE {condition}")).await;
            let found = found.unwrap_or_else(|error| panic!("{condition}: {error}"));
            assert_eq!(found, expected.into_iter().map(Some).collect::<Vec<_>>(), "{condition}");
        }
    }

    #[tokio::test]
    async fn what_a_join_cannot_look_below_is_refused() {
        let context = context();
        for condition in [
            "k IN (SELECT row_number() OVER (ORDER BY i.v) FROM i WHERE i.k = o.k)",
            "k NOT IN (SELECT rank() OVER (PARTITION BY i.v ORDER BY i.v) FROM i WHERE i.k = o.k)",
            "EXISTS (SELECT 1 FROM (SELECT row_number() OVER (ORDER BY v) AS n FROM i WHERE i.k = o.k) a WHERE n = 2)",
            "EXISTS (SELECT 1 FROM (SELECT * FROM i WHERE i.k = o.k) a JOIN (SELECT k FROM o LIMIT 1) b ON a.k = b.k)",
            "EXISTS (SELECT 1 FROM (SELECT * FROM i WHERE i.k = o.k ORDER BY v LIMIT 1) a WHERE a.v > 10)",
            "EXISTS (SELECT 1 FROM (SELECT count(*) AS n FROM i WHERE i.k = o.k) a JOIN u ON a.n = u.k)",
        ] {
            let error = run(&context, &format!("SELECT k FROM o WHERE {condition}")).await.unwrap_err();
            assert!(error.to_string().contains("join the tables instead"), "{condition}: {error}");
        }
    }
}
