//! Comparisons of durations with intervals, such as `waited > INTERVAL '2 days'`.

use arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::query::analysis::expression_schema::expression_schema;
use crate::query::walk::{Walk, WalkPlan};

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

/// Compares durations with the durations that intervals are.
///
/// DataFusion 55 compares the parts of both instead, and a duration has only nanoseconds: 36 hours
/// would be less than one day. The rule must run before types are coerced.
#[derive(Debug)]
pub(in crate::query) struct IntervalsAsDurations;

impl AnalyzerRule for IntervalsAsDurations {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries_dyn(|plan| {
            let schema = expression_schema(&plan)?;
            let names = NamePreserver::new(&plan);
            plan.map_expressions_dyn(|expr| {
                let name = names.save(&expr);
                let changed = expr.transform_up_dyn(|expr| compared(expr, &schema))?;
                Ok(changed.update_data(|expr| name.restore(expr)))
            })
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "IntervalsAsDurations"
    }
}

fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let unit_of = |side: &Expr| match side.get_type(schema) {
        Ok(DataType::Duration(unit)) => Some(unit),
        _ => None,
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            let of_left = if is_interval(&right) { unit_of(&left) } else { None };
            let of_right = if is_interval(&left) { unit_of(&right) } else { None };
            let (left, right) = match (of_left, of_right) {
                (Some(unit), _) => (left, Box::new(as_duration(*right, unit)?)),
                (_, Some(unit)) => (Box::new(as_duration(*left, unit)?), right),
                _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            };
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        Expr::Between(between) => match unit_of(&between.expr) {
            Some(unit) => {
                let low = Box::new(as_duration(*between.low, unit)?);
                let high = Box::new(as_duration(*between.high, unit)?);
                Ok(Transformed::yes(Expr::Between(Between { low, high, ..between })))
            }
            None => Ok(Transformed::no(Expr::Between(between))),
        },
        Expr::InList(list) => match unit_of(&list.expr) {
            Some(unit) => {
                let values = list.list.into_iter().map(|value| as_duration(value, unit));
                let values = values.collect::<Result<_>>()?;
                Ok(Transformed::yes(Expr::InList(InList { list: values, ..list })))
            }
            None => Ok(Transformed::no(Expr::InList(list))),
        },
        other => Ok(Transformed::no(other)),
    }
}

fn is_interval(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Literal(
            ScalarValue::IntervalMonthDayNano(Some(_))
                | ScalarValue::IntervalDayTime(Some(_))
                | ScalarValue::IntervalYearMonth(Some(_)),
            _
        )
    )
}

/// Returns an interval as a duration, and any other expression as it is.
fn as_duration(expr: Expr, unit: TimeUnit) -> Result<Expr> {
    let interval = match &expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => *interval,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(interval)), _) => {
            IntervalMonthDayNano::new(0, interval.days, i64::from(interval.milliseconds) * 1_000_000)
        }
        Expr::Literal(ScalarValue::IntervalYearMonth(Some(months)), _) => {
            IntervalMonthDayNano::new(*months, 0, 0)
        }
        _ => return Ok(expr),
    };
    if interval.months != 0 {
        return plan_err!("a duration cannot be compared with months, which differ in length; write days");
    }
    let nanos = i128::from(interval.days) * i128::from(DAY) + i128::from(interval.nanoseconds);
    let per_unit = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let (units, rest) = (nanos.div_euclid(per_unit), nanos.rem_euclid(per_unit));
    let Some(units) = i64::try_from(units).ok().filter(|_| rest == 0) else {
        return plan_err!("the interval is finer, or longer, than durations in this column can be");
    };
    let duration = match unit {
        TimeUnit::Second => ScalarValue::DurationSecond(Some(units)),
        TimeUnit::Millisecond => ScalarValue::DurationMillisecond(Some(units)),
        TimeUnit::Microsecond => ScalarValue::DurationMicrosecond(Some(units)),
        TimeUnit::Nanosecond => ScalarValue::DurationNanosecond(Some(units)),
    };
    Ok(Expr::Literal(duration, None))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, DurationMicrosecondArray, Int64Array, RecordBatch};

    use crate::testing::{create, ingest};
    use evenkeel_sql::Params;

    #[tokio::test]
    async fn durations_are_compared_by_their_length() {
        let ddl = "CREATE TABLE waits (id Int64 NOT NULL, waited Interval64, PRIMARY KEY (id))
                   PARTITION BY HASH(id) WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 2)";
        let (_folder, mut table) = create(ddl).await;
        let hour: i64 = 3_600_000_000;
        let waits = [Some(0), Some(-1), Some(24 * hour), None, Some(100 * hour), Some(30 * hour)];
        let ids = Arc::new(Int64Array::from_iter_values(0..6)) as ArrayRef;
        let waited = Arc::new(DurationMicrosecondArray::from(waits.to_vec())) as ArrayRef;
        ingest(&mut table, RecordBatch::try_from_iter([("id", ids), ("waited", waited)]).unwrap()).await;
        let session = table.session().unwrap();
        for (condition, expected) in [
            ("waited = INTERVAL '1 day'", vec![2]),
            ("waited = INTERVAL '24 hours'", vec![2]),
            ("INTERVAL '1 day' < waited", vec![4, 5]),
            ("waited < INTERVAL '2 days'", vec![0, 1, 2, 5]),
            ("waited >= INTERVAL '1 day'", vec![2, 4, 5]),
            ("waited BETWEEN INTERVAL '1 day' AND INTERVAL '30 hours'", vec![2, 5]),
            ("waited IN (INTERVAL '4 days 4 hours', INTERVAL '0 seconds')", vec![0, 4]),
            ("waited <> INTERVAL '1 day'", vec![0, 1, 4, 5]),
            ("waited < INTERVAL '0 seconds'", vec![1]),
        ] {
            let sql = format!("SELECT id FROM waits WHERE {condition} ORDER BY id");
            let rows = session.collect(&sql, &Params::default()).await.unwrap();
            let ids: Vec<i64> = rows
                .iter()
                .flat_map(|batch| {
                    batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec()
                })
                .collect();
            assert_eq!(ids, expected, "{condition}");
        }
        let months = "SELECT id FROM waits WHERE waited > INTERVAL '1 month'";
        let refused = session.collect(months, &Params::default()).await.unwrap_err();
        assert!(refused.to_string().contains("months"), "{refused}");
    }
}
