//! What the conditions of a scan leave to a column: some values, or a range.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{Guarantee, LiteralGuarantee};

/// The most keys that are placed to find partitions; a list with more of them reads all partitions.
pub const MOST_KEYS: usize = 10_000;

/// The values that `predicate` leaves to a column, where it fixes it to one or a list of them.
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
        // A value that changes by the cast is another one.
        (!value.is_null() && back == *literal).then_some(value)
    };
    guarantee.literals.iter().map(literal).collect()
}

/// All combinations of one value per column, as one array per column; none for more than [`MOST_KEYS`] of them, and for a
/// column without values.
#[must_use]
pub fn combinations(values: &[Vec<ScalarValue>]) -> Option<Vec<ArrayRef>> {
    let keys = values.iter().try_fold(1usize, |count, list| count.checked_mul(list.len()))?;
    if keys > MOST_KEYS {
        return None;
    }
    let mut repeat = keys;
    let mut columns = Vec::with_capacity(values.len());
    for list in values {
        repeat = repeat.checked_div(list.len()).unwrap_or(0);
        let column = (0..keys).filter_map(|key| list.get((key / repeat.max(1)) % list.len()).cloned());
        // A predicate that no value satisfies has no keys; then there is no type to make an array of either.
        columns.push(ScalarValue::iter_to_array(column).ok()?);
    }
    Some(columns)
}

/// The conditions that reach one scan of a table.
#[derive(Debug, Clone)]
pub struct ScanCondition {
    schema: SchemaRef,
    predicate: Option<Arc<dyn PhysicalExpr>>,
    /// Inclusive bounds of columns of points in time, in microseconds.
    ranges: BTreeMap<String, (Option<i64>, Option<i64>)>,
}

impl ScanCondition {
    /// The conditions `filters`, all of which hold.
    pub(super) fn new(state: &SessionState, schema: &SchemaRef, filters: &[Expr]) -> Result<Self> {
        let predicate = match conjunction(filters.to_vec()) {
            Some(filter) => {
                let df_schema = DFSchema::try_from(schema.as_ref().clone())?;
                Some(state.create_physical_expr(filter, &df_schema)?)
            }
            None => None,
        };
        let mut ranges = BTreeMap::new();
        for filter in filters.iter().flat_map(split_conjunction) {
            narrow(&mut ranges, filter);
        }
        Ok(Self { schema: Arc::clone(schema), predicate, ranges })
    }

    /// The values that the conditions leave to a column, where they fix it.
    #[must_use]
    pub fn fixed_values(&self, column: &str) -> Option<Vec<ScalarValue>> {
        fixed_values(self.predicate.as_ref()?, &self.schema, column)
    }

    /// The bounds of a column of points in time, both included, in microseconds; none where one is open.
    #[must_use]
    pub fn time_range(&self, column: &str) -> Option<(i64, i64)> {
        match self.ranges.get(column) {
            Some((Some(low), Some(high))) if low <= high => Some((*low, *high)),
            _ => None,
        }
    }

    /// Columns that are fixed to values.
    #[must_use]
    pub fn fixed_columns(&self) -> Vec<String> {
        let names = self.schema.fields().iter().map(|field| field.name().clone());
        names.filter(|name| self.fixed_values(name).is_some()).collect()
    }
}

/// Takes a comparison of a column with a point in time into its bounds.
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

/// A point in time in microseconds.
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
