//! Values or range that the conditions of a scan allow for a column.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::new_empty_array;
use arrow::datatypes::SchemaRef;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{Guarantee, LiteralGuarantee};

use evenkeel_model::workload::ScanCondition;

/// Values that `predicate` allows for a column, if it fixes the column to one value or a list of
/// values.
#[must_use]
pub fn fixed_values(
    predicate: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
    column: &str,
) -> Option<Vec<ScalarValue>> {
    let data_type = schema.field_with_name(column).ok()?.data_type();
    let guarantees = LiteralGuarantee::analyze(predicate);
    let guarantee = guarantees.iter().find(|g| g.guarantee == Guarantee::In && g.column.name == column)?;
    let literal = |literal: &ScalarValue| {
        let value = literal.cast_to(data_type).ok()?;
        let back = value.cast_to(&literal.data_type()).ok()?;
        // A value that changes in the cast is a different value.
        (!value.is_null() && back == *literal).then_some(value)
    };
    guarantee.literals.iter().map(literal).collect()
}

/// Condition of one scan, all of whose `filters` hold.
pub(super) fn scan_condition(
    state: &SessionState,
    schema: &SchemaRef,
    filters: &[Expr],
) -> Result<ScanCondition> {
    let mut fixed = Vec::new();
    if let Some(filter) = conjunction(filters.to_vec()) {
        let df_schema = DFSchema::try_from(schema.as_ref().clone())?;
        let predicate = state.create_physical_expr(filter, &df_schema)?;
        for field in schema.fields() {
            let Some(values) = fixed_values(&predicate, schema, field.name()) else { continue };
            let array = match values.is_empty() {
                true => new_empty_array(field.data_type()),
                false => ScalarValue::iter_to_array(values)?,
            };
            fixed.push((field.name().clone(), array));
        }
    }
    let mut ranges = BTreeMap::new();
    for filter in filters.iter().flat_map(split_conjunction) {
        narrow(&mut ranges, filter);
    }
    let closed = ranges.into_iter().filter_map(|(column, range)| Some((column, (range.0?, range.1?))));
    Ok(ScanCondition::new(fixed, closed.collect()))
}

/// Narrows the bounds of a column if `filter` compares it with a point in time.
fn narrow(ranges: &mut BTreeMap<String, (Option<i64>, Option<i64>)>, filter: &Expr) {
    match filter {
        Expr::BinaryExpr(binary) => {
            let (column, operator, literal) = match (binary.left.as_ref(), binary.right.as_ref()) {
                (Expr::Column(column), Expr::Literal(literal, _)) => (column, Some(binary.op), literal),
                (Expr::Literal(literal, _), Expr::Column(column)) => (column, binary.op.swap(), literal),
                _ => return,
            };
            let Some(at) = micros(literal) else { return };
            let bounds = ranges.entry(column.name.clone()).or_default();
            let low = |bounds: &mut (Option<i64>, Option<i64>), at: i64| bounds.0 = bounds.0.max(Some(at));
            let high = |bounds: &mut (Option<i64>, Option<i64>), at: i64| {
                bounds.1 = Some(bounds.1.map_or(at, |known| known.min(at)));
            };
            match operator {
                Some(Operator::Eq) => {
                    low(bounds, at);
                    high(bounds, at);
                }
                Some(Operator::Gt) => low(bounds, at.saturating_add(1)),
                Some(Operator::GtEq) => low(bounds, at),
                Some(Operator::Lt) => high(bounds, at.saturating_sub(1)),
                Some(Operator::LtEq) => high(bounds, at),
                _ => {}
            }
        }
        Expr::Between(between) if !between.negated => {
            if let (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _)) =
                (between.expr.as_ref(), between.low.as_ref(), between.high.as_ref())
                && let (Some(low), Some(high)) = (micros(low), micros(high))
            {
                let bounds = ranges.entry(column.name.clone()).or_default();
                bounds.0 = bounds.0.max(Some(low));
                bounds.1 = Some(bounds.1.map_or(high, |known| known.min(high)));
            }
        }
        _ => {}
    }
}

/// Point in time in microseconds; `None` for other literals.
fn micros(literal: &ScalarValue) -> Option<i64> {
    let micros = arrow::datatypes::DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None);
    match literal {
        ScalarValue::TimestampSecond(..)
        | ScalarValue::TimestampMillisecond(..)
        | ScalarValue::TimestampMicrosecond(..)
        | ScalarValue::TimestampNanosecond(..)
        | ScalarValue::Date32(_) => match literal.cast_to(&micros).ok()? {
            ScalarValue::TimestampMicrosecond(at, _) => at,
            _ => None,
        },
        _ => None,
    }
}
