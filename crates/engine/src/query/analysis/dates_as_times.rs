//! Comparisons of dates and literals with times, such as `created_at >= due_on`.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, cast};
use datafusion::optimizer::AnalyzerRule;

use crate::query::analysis::expression_schema::{expression_schema, rewrite_expressions};
use crate::query::walk::WalkPlan;

/// Compares dates, and literals in quotes, with times in the unit of the times.
///
/// DataFusion 55 compares them in nanoseconds, which end in 2262: with one later or earlier value
/// in the column or literal, the query fails. The rule must run before types are coerced.
#[derive(Debug)]
pub(in crate::query) struct DatesAsTimes;

impl AnalyzerRule for DatesAsTimes {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let compared = plan.transform_up_with_subqueries_dyn(|plan| {
            let schema = expression_schema(&plan)?;
            rewrite_expressions(plan, |expr| Ok(compared(expr, &schema)))
        })?;
        Ok(compared.data)
    }

    fn name(&self) -> &'static str {
        "DatesAsTimes"
    }
}

fn compared(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let mut expr = expr;
    let operands: Vec<&mut Expr> = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            vec![left.as_mut(), right.as_mut()]
        }
        Expr::Between(Between { expr, low, high, .. }) => vec![expr.as_mut(), low.as_mut(), high.as_mut()],
        Expr::InList(InList { expr, list, .. }) => std::iter::once(expr.as_mut()).chain(list).collect(),
        _ => return Transformed::no(expr),
    };
    let types: Vec<DataType> = operands.iter().filter_map(|operand| operand.get_type(schema).ok()).collect();
    // Nanoseconds hold fewer years than dates do, in any unit.
    let time = types
        .iter()
        .find(|data_type| matches!(data_type, DataType::Timestamp(unit, _) if *unit != TimeUnit::Nanosecond));
    let Some(time) = time.filter(|_| types.len() == operands.len()).cloned() else {
        return Transformed::no(expr);
    };
    let is_cast =
        |operand: &Expr, data_type: &DataType| *data_type == DataType::Date32 || is_exact(operand, &time);
    let is_comparable = |(operand, data_type): (&&mut Expr, &DataType)| {
        *data_type == time || *data_type == DataType::Null || is_cast(operand, data_type)
    };
    if !operands.iter().zip(&types).all(is_comparable) {
        return Transformed::no(expr);
    }
    let mut changes = false;
    for (operand, data_type) in operands.into_iter().zip(types) {
        if is_cast(operand, &data_type) {
            let date = std::mem::take(operand);
            *operand = cast(date, time.clone());
            changes = true;
        }
    }
    Transformed::new_transformed(expr, changes)
}

/// Whether an expression is a literal in quotes with no more digits than the times have.
fn is_exact(expr: &Expr, time: &DataType) -> bool {
    let Expr::Literal(literal, _) = expr else { return false };
    let (Some(Some(text)), DataType::Timestamp(unit, None)) = (literal.try_as_str(), time) else {
        return false;
    };
    let digits = text.split_once('.').map_or("", |(_, fraction)| fraction.trim_end_matches('0'));
    let most = match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    digits.len() <= most && digits.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Date32Array, RecordBatch, TimestampMicrosecondArray};
    use arrow::datatypes::Int64Type;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::optimizer::Analyzer;
    use datafusion::prelude::SessionContext;

    use super::*;

    const DAY: i64 = 86_400_000_000;

    #[tokio::test]
    async fn dates_and_times_of_any_year_are_compared() {
        let mut rules = Analyzer::new().rules;
        rules.insert(0, Arc::new(DatesAsTimes));
        let state = SessionStateBuilder::new().with_default_features().with_analyzer_rules(rules).build();
        let context = SessionContext::new_with_state(state);
        // The days before 1677, after 2262, and between.
        let days = [-171_664, 0, 19_000, 400_000];
        let times = days.map(|day| i64::from(day) * DAY + i64::from(day % 3) * DAY / 24);
        let batch = RecordBatch::try_from_iter([
            ("d", Arc::new(Date32Array::from(days.to_vec())) as ArrayRef),
            ("t", Arc::new(TimestampMicrosecondArray::from(times.to_vec()))),
        ]);
        context.register_batch("r", batch.unwrap()).unwrap();
        let equal = days.iter().zip(times).filter(|(day, time)| i64::from(**day) * DAY == *time).count();
        let later = days.iter().zip(times).filter(|(day, time)| i64::from(**day) * DAY < *time).count();
        let from_1970 = times.iter().filter(|time| **time >= 0).count();
        for (condition, rows) in [
            ("t = d", equal),
            ("d = t", equal),
            ("t > d", later),
            ("t IS DISTINCT FROM d", days.len() - equal),
            ("t BETWEEN d AND DATE '2300-01-01'", equal + later - 1),
            ("t IN (d, NULL)", equal),
            ("t >= DATE '1970-01-01'", from_1970),
            ("t >= '1970-01-01'", from_1970),
            ("'1970-01-01T00:00:00Z' <= t", from_1970),
            ("t < '9999-12-31'", days.len()),
            ("t > '0001-01-01 00:00:00'", days.len()),
            (
                "t BETWEEN '1500-01-01' AND '2200-01-01 00:00:00.5'",
                2 + usize::from(times[0] >= -171_664 * DAY),
            ),
            ("t IN ('1500-01-01', '1970-01-01')", 1),
            ("t NOT IN ('1500-01-01', d)", days.len() - equal),
        ] {
            let sql = format!("SELECT count(*) FROM r WHERE {condition}");
            let batches = context.sql(&sql).await.unwrap().collect().await.unwrap();
            let count = batches[0].column(0).as_primitive::<Int64Type>().value(0);
            assert_eq!(count, i64::try_from(rows).unwrap(), "{condition}");
        }
    }
}
