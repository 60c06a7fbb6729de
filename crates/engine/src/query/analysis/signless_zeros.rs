//! Zeros of both signs as one value.

use arrow::datatypes::{ArrowPrimitiveType, DataType, Float16Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{AggregateFunction, InList, Sort, WindowFunction};
use datafusion::logical_expr::{BinaryExpr, Case, Expr, ExprSchemable, LogicalPlan, Operator, lit, when};
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::query::analysis::expression_schema::{expression_schema, rewrite_expressions};
use crate::query::walk::WalkPlan;

/// Finds -0.0 and 0.0 equal wherever values are looked up.
///
/// To DataFusion 55 they are equal in `=`, in groups and in the keys of joins. But it looks up the
/// values of IN, CASE and DISTINCT by their bits, separates partitions and peers of windows by an
/// order in which -0.0 precedes 0.0, and turns `x = 0 OR x = 1 OR ...` into a list:
///
/// ```text
/// x IN (0.0, 1.0)                       x IN (0.0, 1.0, -0.0)
/// x IN (y, 1.0)                         x + 0.0 IN (y + 0.0, 1.0)
/// CASE x WHEN y THEN ...                CASE x + 0.0 WHEN y + 0.0 THEN ...
/// nullif(x, y)                          CASE WHEN x = y THEN NULL ELSE x END
/// count(DISTINCT x)                     count(DISTINCT x + 0.0)
/// OVER (PARTITION BY x ORDER BY y)      OVER (PARTITION BY x + 0.0 ORDER BY y + 0.0)
/// ORDER BY x, y                         ORDER BY x + 0.0, y
/// ```
/// The sum of -0.0 and 0.0 is 0.0, and all other values are unchanged.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) enum SignlessZeros {
    /// In IN, CASE and nullif. Must run after each simplification of expressions, which creates IN
    /// lists.
    Lookups,
    /// In windows, DISTINCT and ORDER BY. Must run after filters were pushed down: they are pushed
    /// below windows only if these are partitioned by columns.
    Orders,
}

/// Takes the signs of zeros in conditions away before lists are combined: DataFusion 55 finds `x IN
/// (0.0) AND x IN (-0.0)` impossible.
impl AnalyzerRule for SignlessZeros {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries_dyn(|plan| {
            rewrite_expressions(plan, |expr| Ok(with_plain_zeros(expr)))
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "PlainZeros"
    }
}

impl OptimizerRule for SignlessZeros {
    fn name(&self) -> &'static str {
        match self {
            Self::Lookups => "SignlessZeros",
            Self::Orders => "SignlessOrders",
        }
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let schema = expression_schema(&plan)?;
        match self {
            Self::Lookups => rewrite_expressions(plan, |expr| signless_lookup(expr, &schema)),
            Self::Orders => {
                rewrite_expressions(plan, |expr| signless_call(expr, &schema))?.transform_data(|plan| {
                    match plan {
                        LogicalPlan::Sort(mut sort) => {
                            let changes = signless_order(&mut sort.expr, &schema)?;
                            Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), changes))
                        }
                        plan => Ok(Transformed::no(plan)),
                    }
                })
            }
        }
    }
}

fn signless_lookup(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::InList(list) if is_fractional(&list.expr, schema)? => in_list(list, schema),
        Expr::Case(case) => case_of(case, schema),
        Expr::ScalarFunction(ref call) if call.name() == "nullif" => match call.args.as_slice() {
            [value, other] if !value.is_volatile() && is_fractional(value, schema)? => {
                let equal = value.clone().eq(other.clone());
                let null = ScalarValue::try_from(value.get_type(schema)?)?;
                when(equal, lit(null)).otherwise(value.clone()).map(Transformed::yes)
            }
            _ => Ok(Transformed::no(expr)),
        },
        expr => Ok(Transformed::no(expr)),
    }
}

fn signless_call(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            // DISTINCT values can be ordered by themselves only.
            let changes = if params.distinct {
                let order = params.order_by.iter_mut().map(|sort| &mut sort.expr);
                all_signless(params.args.iter_mut().chain(order), schema)?
            } else {
                signless_order(&mut params.order_by, schema)?
            };
            let call = Expr::AggregateFunction(AggregateFunction { func, params });
            Ok(Transformed::new_transformed(call, changes))
        }
        Expr::WindowFunction(mut call) => {
            let changes = signless_window(&mut call, schema)?;
            Ok(Transformed::new_transformed(Expr::WindowFunction(call), changes))
        }
        expr => Ok(Transformed::no(expr)),
    }
}

/// Takes the signs of zeros away that an expression is compared with.
fn with_plain_zeros(expr: Expr) -> Transformed<Expr> {
    let mut changes = false;
    let mut plain = |expr: &mut Expr| changes |= take_sign(expr);
    let mut expr = expr;
    match &mut expr {
        Expr::BinaryExpr(both) if both.op.supports_propagation() => {
            plain(&mut both.left);
            plain(&mut both.right);
        }
        Expr::InList(list) => std::iter::once(&mut *list.expr).chain(&mut list.list).for_each(plain),
        Expr::Case(case) => {
            if let Some(base) = &mut case.expr {
                plain(base);
                case.when_then_expr.iter_mut().for_each(|(when, _)| plain(when));
            }
        }
        Expr::ScalarFunction(call) if call.name() == "nullif" => call.args.iter_mut().for_each(plain),
        _ => {}
    }
    Transformed::new_transformed(expr, changes)
}

/// Replaces a constant -0.0 by 0.0, and returns whether it did.
fn take_sign(expr: &mut Expr) -> bool {
    let is_zero = |value: &ScalarValue| {
        let zero = ScalarValue::new_zero(&value.data_type());
        zero.is_ok_and(|zero| {
            value.arithmetic_negate().is_ok_and(|negative| zero == negative || zero == *value)
        })
    };
    match expr {
        Expr::Literal(value, _) if value.data_type().is_floating() && is_zero(value) => {
            let Ok(zero) = ScalarValue::new_zero(&value.data_type()) else { return false };
            let changes = *value != zero;
            *value = zero;
            changes
        }
        Expr::Negative(inner) if matches!(inner.as_ref(), Expr::Literal(value, _) if is_zero(value)) => {
            let inner = std::mem::take(inner.as_mut());
            *expr = inner;
            take_sign(expr);
            true
        }
        Expr::Cast(cast) => take_sign(&mut cast.expr),
        _ => false,
    }
}

fn in_list(mut list: InList, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if list.list.iter().all(|item| matches!(item, Expr::Literal(..))) {
        let has = |list: &InList, zero: &Expr| list.list.contains(zero);
        let [zero, negative] = zeros(&list.expr.get_type(schema)?);
        let missing = match (has(&list, &zero), has(&list, &negative)) {
            (true, false) => negative,
            (false, true) => zero,
            _ => return Ok(Transformed::no(Expr::InList(list))),
        };
        list.list.push(missing);
        return Ok(Transformed::yes(Expr::InList(list)));
    }
    let changes = all_signless(std::iter::once(&mut *list.expr).chain(&mut list.list), schema)?;
    Ok(Transformed::new_transformed(Expr::InList(list), changes))
}

fn case_of(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some(base) = &mut case.expr else { return Ok(Transformed::no(Expr::Case(case))) };
    let whens = case.when_then_expr.iter_mut().map(|(when, _)| &mut **when);
    let changes = all_signless(std::iter::once(&mut **base).chain(whens), schema)?;
    Ok(Transformed::new_transformed(Expr::Case(case), changes))
}

fn signless_window(call: &mut WindowFunction, schema: &DFSchema) -> Result<bool> {
    let params = &mut call.params;
    let values = params.args.iter_mut().filter(|_| params.distinct);
    let order = params.order_by.iter_mut().map(|sort| &mut sort.expr);
    all_signless(params.partition_by.iter_mut().chain(order).chain(values), schema)
}

/// Sorts equal zeros by the following sort expressions.
fn signless_order(order: &mut [Sort], schema: &DFSchema) -> Result<bool> {
    let before_others = order.len().saturating_sub(1);
    all_signless(order.iter_mut().take(before_others).map(|sort| &mut sort.expr), schema)
}

/// Takes the signs of zeros away, and returns whether anything changed.
fn all_signless<'e>(exprs: impl Iterator<Item = &'e mut Expr>, schema: &DFSchema) -> Result<bool> {
    let mut changes = false;
    for expr in exprs {
        changes |= signless(expr, schema)?;
    }
    Ok(changes)
}

fn signless(expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
    if !is_fractional(expr, schema)? {
        return Ok(false);
    }
    let [zero, negative] = zeros(&expr.get_type(schema)?);
    let is_sum =
        |expr: &Expr| matches!(expr, Expr::BinaryExpr(sum) if sum.op == Operator::Plus && *sum.right == zero);
    if *expr == negative {
        *expr = zero;
        return Ok(true);
    }
    if matches!(expr, Expr::Literal(..)) || is_sum(expr) {
        return Ok(false);
    }
    let value = std::mem::take(expr);
    *expr = Expr::BinaryExpr(BinaryExpr::new(Box::new(value), Operator::Plus, Box::new(zero)));
    Ok(true)
}

fn is_fractional(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    Ok(expr.get_type(schema)?.is_floating())
}

/// Returns 0.0 and -0.0 of a type.
fn zeros(data_type: &DataType) -> [Expr; 2] {
    match data_type {
        DataType::Float16 => [0.0_f32, -0.0].map(|zero| {
            let zero = <Float16Type as ArrowPrimitiveType>::Native::from_f32(zero);
            lit(ScalarValue::Float16(Some(zero)))
        }),
        DataType::Float32 => [0.0_f32, -0.0].map(lit),
        _ => [0.0_f64, -0.0].map(lit),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float32Array, Float64Array, Int64Array, RecordBatch};
    use arrow::util::pretty::pretty_format_batches;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::testing::joins::{Tables, tables};

    /// Statements on `f` and `g` that return no zeros, and that DataFusion answers wrongly.
    const WRONG_WITHOUT: [&str; 16] = [
        "k FROM t WHERE f IN (0.0, 7.5, 8.5, 9.5, 10.5)",
        "k FROM t WHERE f NOT IN (-0.0, 7.5, 8.5, 9.5, 10.5)",
        "k FROM t WHERE f = 0 OR f = 7.5 OR f = 8.5 OR f = 9.5 OR f = 10.5",
        "k FROM t WHERE f IN (g, k, k + 1, k + 2, k + 3)",
        "k, CASE f WHEN 0.0 THEN 'zero' WHEN 1.5 THEN 'more' ELSE 'else' END AS c FROM t",
        "k, CASE f WHEN g THEN 'same' ELSE 'else' END AS c FROM t",
        "k FROM t WHERE nullif(f, -0.0) IS NULL",
        "count(DISTINCT f) AS f, count(DISTINCT g) AS g, count(DISTINCT k) AS k FROM t",
        "k, row_number() OVER (PARTITION BY f ORDER BY k) AS n FROM t",
        "k, rank() OVER (ORDER BY f DESC) AS n FROM t",
        "k, first_value(k) OVER (PARTITION BY g ORDER BY f, k) AS n FROM t",
        "k, count(*) OVER (ORDER BY f RANGE BETWEEN 0 PRECEDING AND CURRENT ROW) AS n FROM t",
        "k, count(DISTINCT f) OVER () AS n FROM t",
        "k FROM (SELECT k, f FROM t ORDER BY f NULLS LAST, k DESC LIMIT 3)",
        "CASE f WHEN g THEN 1 ELSE 2 END AS c, count(*) AS n FROM t GROUP BY ROLLUP (CASE f WHEN g THEN 1 ELSE 2 END)",
        "array_agg(k ORDER BY f, k DESC) AS k FROM t",
    ];
    const RIGHT_WITHOUT: [&str; 14] = [
        "k FROM t WHERE f IN (0.0, 1.5) AND f IN (-0.0)",
        "k FROM t WHERE f IN (0.0, 1.5) AND f NOT IN (-0.0, 2.5)",
        "k FROM t WHERE f = 0.0 AND f <> -0.0",
        "k FROM t WHERE nullif(-0.0, 0.0) IS NULL AND -0.0 IN (0.0, 1.0)",
        "array_agg(DISTINCT abs(f) ORDER BY abs(f)) AS a FROM t",
        "k FROM t WHERE f <> 0 AND f <> 7.5 AND f <> 8.5 AND f <> 9.5 AND f <> 10.5",
        "k FROM t WHERE f = 0.0 OR g = -0.0",
        "k FROM t WHERE f IN (0.0)",
        "k FROM t WHERE f BETWEEN 0.0 AND 1",
        "count(*) FROM (SELECT DISTINCT f, g FROM t)",
        "count(*) FROM (SELECT f FROM t INTERSECT SELECT g FROM t)",
        "a.k, b.k FROM t a JOIN t b ON a.f = b.g",
        "k FROM t WHERE f IN (SELECT g FROM t WHERE k < 3)",
        "k FROM t WHERE f IS DISTINCT FROM g",
    ];

    /// Returns rows of numbers, with zeros as they are or all positive.
    fn rows(positive: bool, data_type: &DataType) -> RecordBatch {
        let value = |value: f64| if positive { value + 0.0 } else { value };
        let f: Vec<Option<f64>> =
            [Some(-0.0), Some(0.0), Some(1.5), None, Some(-0.0), Some(f64::NAN), Some(0.0), Some(-2.0)]
                .map(|number| number.map(value))
                .to_vec();
        let g: Vec<Option<f64>> =
            [Some(0.0), Some(-0.0), Some(1.5), Some(-0.0), None, Some(0.0), Some(-0.0), Some(-0.0)]
                .map(|number| number.map(value))
                .to_vec();
        let array = |numbers: Vec<Option<f64>>| -> arrow::array::ArrayRef {
            match data_type {
                DataType::Float32 => Arc::new(
                    numbers.into_iter().map(|number| number.map(|n| n as f32)).collect::<Float32Array>(),
                ),
                _ => Arc::new(Float64Array::from(numbers)),
            }
        };
        let k = Arc::new(Int64Array::from_iter_values(1..=8)) as _;
        RecordBatch::try_from_iter([("k", k), ("f", array(f)), ("g", array(g))]).unwrap()
    }

    async fn answer(context: &SessionContext, batch: RecordBatch, sql: &str) -> String {
        context.deregister_table("t").unwrap();
        context.register_batch("t", batch).unwrap();
        let batches = context.sql(&format!("SELECT {sql} ORDER BY 1")).await.unwrap().collect().await;
        pretty_format_batches(&batches.unwrap_or_else(|error| panic!("{sql}: {error}"))).unwrap().to_string()
    }

    #[tokio::test]
    async fn answers_do_not_depend_on_the_signs_of_zeros() {
        let Tables { ours, .. } = &tables().await;
        let state = ours.state();
        let others = state.optimizers().iter().filter(|rule| !rule.name().starts_with("Signless")).cloned();
        let twin = SessionStateBuilder::new_from_existing(state.clone());
        let twin = SessionContext::new_with_state(twin.with_optimizer_rules(others.collect()).build());
        for data_type in [DataType::Float32, DataType::Float64] {
            let [signed, positive] = [false, true].map(|positive| rows(positive, &data_type));
            for (sql, is_wrong) in
                WRONG_WITHOUT.map(|sql| (sql, true)).into_iter().chain(RIGHT_WITHOUT.map(|sql| (sql, false)))
            {
                let expected = answer(ours, positive.clone(), sql).await;
                assert_eq!(answer(ours, signed.clone(), sql).await, expected, "{sql}");
                // Conditions cast Float32 values, so they are not turned into lists.
                if data_type == DataType::Float64 {
                    assert_eq!(answer(&twin, signed.clone(), sql).await != expected, is_wrong, "{sql}");
                }
            }
        }
    }
}
