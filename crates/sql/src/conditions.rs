//! Values or range that the conditions of a scan allow for a column.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::new_empty_array;
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{Guarantee, LiteralGuarantee};

use evenkeel_model::workload::ScanCondition;

/// Columns that a predicate fixes to one value or a list of values.
#[derive(Debug)]
pub struct FixedColumns {
    guarantees: Vec<LiteralGuarantee>,
}

impl FixedColumns {
    /// Finds the columns that a predicate fixes.
    #[must_use]
    pub fn from_predicate(predicate: &Arc<dyn PhysicalExpr>) -> Self {
        Self { guarantees: LiteralGuarantee::analyze(predicate) }
    }

    /// Returns the values that the predicate allows for a column; `None` if it does not fix the
    /// column.
    #[must_use]
    pub fn values(&self, column: &Field) -> Option<Vec<ScalarValue>> {
        let is_list = |guarantee: &&LiteralGuarantee| {
            guarantee.guarantee == Guarantee::In && guarantee.column.name == *column.name()
        };
        let guarantee = self.guarantees.iter().find(is_list)?;
        let literal = |literal: &ScalarValue| {
            let value = literal.cast_to(column.data_type()).ok()?;
            let back = value.cast_to(&literal.data_type()).ok()?;
            // A value that changes in the cast is a different value.
            (!value.is_null() && back == *literal).then_some(value)
        };
        guarantee.literals.iter().map(literal).collect()
    }
}

/// Returns the condition of one scan: the conjunction of `filters`.
pub(super) fn scan_condition(
    state: &SessionState,
    schema: &SchemaRef,
    filters: &[Expr],
) -> Result<ScanCondition> {
    let mut fixed = Vec::new();
    if let Some(filter) = conjunction(filters.to_vec()) {
        let df_schema = DFSchema::try_from(schema.as_ref().clone())?;
        let columns = FixedColumns::from_predicate(&state.create_physical_expr(filter, &df_schema)?);
        for field in schema.fields() {
            let Some(values) = columns.values(field) else { continue };
            let array = match values.is_empty() {
                true => new_empty_array(field.data_type()),
                false => ScalarValue::iter_to_array(values)?,
            };
            fixed.push((field.name().clone(), array));
        }
    }
    let mut ranges: BTreeMap<String, TimeBounds> = BTreeMap::new();
    for filter in filters.iter().flat_map(split_conjunction) {
        narrow(&mut ranges, filter);
    }
    let closed =
        ranges.into_iter().filter_map(|(column, bounds)| Some((column, (bounds.earliest?, bounds.latest?))));
    Ok(ScanCondition::new(fixed, closed.collect()))
}

/// Earliest and latest point in time that conditions allow, in microseconds; `None` if open.
#[derive(Debug, Default)]
struct TimeBounds {
    earliest: Option<i64>,
    latest: Option<i64>,
}

impl TimeBounds {
    fn not_before(&mut self, at: i64) {
        self.earliest = self.earliest.max(Some(at));
    }

    fn not_after(&mut self, at: i64) {
        self.latest = Some(self.latest.map_or(at, |known| known.min(at)));
    }
}

/// Narrows the bounds of a column if `filter` compares it with a point in time.
fn narrow(ranges: &mut BTreeMap<String, TimeBounds>, filter: &Expr) {
    match filter {
        Expr::BinaryExpr(binary) => {
            let (column, operator, literal) = match (binary.left.as_ref(), binary.right.as_ref()) {
                (Expr::Column(column), Expr::Literal(literal, _)) => (column, Some(binary.op), literal),
                (Expr::Literal(literal, _), Expr::Column(column)) => (column, binary.op.swap(), literal),
                _ => return,
            };
            let Some(at) = micros(literal) else { return };
            let bounds = ranges.entry(column.name.clone()).or_default();
            match operator {
                Some(Operator::Eq) => {
                    bounds.not_before(at);
                    bounds.not_after(at);
                }
                Some(Operator::Gt) => bounds.not_before(at.saturating_add(1)),
                Some(Operator::GtEq) => bounds.not_before(at),
                Some(Operator::Lt) => bounds.not_after(at.saturating_sub(1)),
                Some(Operator::LtEq) => bounds.not_after(at),
                _ => {}
            }
        }
        Expr::Between(between) if !between.negated => {
            if let (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _)) =
                (between.expr.as_ref(), between.low.as_ref(), between.high.as_ref())
                && let (Some(low), Some(high)) = (micros(low), micros(high))
            {
                let bounds = ranges.entry(column.name.clone()).or_default();
                bounds.not_before(low);
                bounds.not_after(high);
            }
        }
        _ => {}
    }
}

/// Point in time in microseconds; `None` for other literals.
fn micros(literal: &ScalarValue) -> Option<i64> {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
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
