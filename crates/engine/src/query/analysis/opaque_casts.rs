//! Casts that lose something, hidden from the rules that move casts.
//!
//! DataFusion 55 turns `CAST(d AS Decimal(20, 2)) = 1.23` into `d = 1.23`, which is false for
//! 1.2345, and `TRY_CAST(b AS Int) > 1` into `b > 1`, which is true for a number beyond Int. It
//! excludes row groups by casts of their least and greatest values even if the cast does not keep
//! their order, as from a timestamp to a time of day. So a cast that loses something becomes a
//! function, which no rule looks into:
//!
//! ```text
//! CAST(d AS Decimal(20, 2)) = 1.23    ->  opaque_cast(d, NULL::Decimal(20, 2)) = 1.23
//! TRY_CAST(b AS Int) > 1              ->  opaque_try_cast(b, NULL::Int) > 1
//! ```

use std::sync::Arc;

use arrow::compute::CastOptions;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::query::analysis::expression_schema::rewrite_plan;

/// A cast of its first argument to the type of its second.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OpaqueCast {
    /// Whether a value that has no counterpart becomes NULL, instead of an error.
    is_try: bool,
    signature: Signature,
}

impl OpaqueCast {
    fn new(is_try: bool) -> Self {
        Self { is_try, signature: Signature::any(2, Volatility::Immutable) }
    }
}

/// Functions that [`OpaqueCasts`] inserts.
pub(in crate::query) fn opaque_casts() -> impl Iterator<Item = ScalarUDF> {
    [opaque_cast(), ScalarUDF::new_from_impl(OpaqueCast::new(true))].into_iter()
}

/// Returns the cast that fails for a value without a counterpart.
pub(in crate::query) fn opaque_cast() -> ScalarUDF {
    ScalarUDF::new_from_impl(OpaqueCast::new(false))
}

impl ScalarUDFImpl for OpaqueCast {
    fn name(&self) -> &'static str {
        if self.is_try { "opaque_try_cast" } else { "opaque_cast" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        internal_err!("{} returns a field", self.name())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [value, target] = args.arg_fields else {
            return internal_err!("{} has two arguments", self.name());
        };
        let nullable = self.is_try || value.is_nullable();
        Ok(Arc::new(Field::new(self.name(), target.data_type().clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, _] = args.args.as_slice() else {
            return internal_err!("{} has two arguments", self.name());
        };
        let options = CastOptions { safe: self.is_try, ..CastOptions::default() };
        value.cast_to(args.return_field.data_type(), Some(&options))
    }
}

/// Hides casts that lose something from the rules that look into comparisons. Runs after the rules
/// that coerce types, which insert casts themselves.
#[derive(Debug)]
pub(in crate::query) struct OpaqueCasts {
    cast: Arc<ScalarUDF>,
    try_cast: Arc<ScalarUDF>,
}

impl OpaqueCasts {
    pub(in crate::query) fn new() -> Self {
        let function = |is_try| Arc::new(ScalarUDF::new_from_impl(OpaqueCast::new(is_try)));
        Self { cast: function(false), try_cast: function(true) }
    }

    fn rewritten(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let (inner, target, is_try) = match &expr {
            Expr::Cast(Cast { expr, field }) => (expr, field.data_type(), false),
            Expr::TryCast(TryCast { expr, field }) => (expr, field.data_type(), true),
            _ => return Ok(Transformed::no(expr)),
        };
        if !inner.any_column_refs() || !loses_something(&inner.get_type(schema)?, target, is_try) {
            return Ok(Transformed::no(expr));
        }
        let function = if is_try { &self.try_cast } else { &self.cast };
        let target = Expr::Literal(ScalarValue::try_from(target)?, None);
        let call = ScalarFunction::new_udf(Arc::clone(function), vec![inner.as_ref().clone(), target]);
        Ok(Transformed::yes(Expr::ScalarFunction(call)))
    }
}

impl AnalyzerRule for OpaqueCasts {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_plan(plan, |expr, schema| self.rewritten(expr, schema))
    }

    fn name(&self) -> &'static str {
        "opaque_casts"
    }
}

/// Whether values of one type become equal, change their order, or have no counterpart when they
/// are cast to another type.
fn loses_something(from: &DataType, to: &DataType, is_try: bool) -> bool {
    use DataType::{Boolean, Decimal128, Decimal256, Dictionary, Time32, Time64, Timestamp};
    match (from, to) {
        (from, to) if from == to => false,
        (Dictionary(_, from), to) => loses_something(from, to, is_try),
        (from, Dictionary(_, to)) => loses_something(from, to, is_try),
        (_, Boolean) | (Timestamp(..), Time32(_) | Time64(_)) => true,
        (Timestamp(_, from), Timestamp(_, to)) => is_try || from != to,
        (Decimal128(..) | Decimal256(..), to) if to.is_integer() => true,
        (
            Decimal128(precision, scale) | Decimal256(precision, scale),
            Decimal128(to_precision, to_scale) | Decimal256(to_precision, to_scale),
        ) => {
            let whole = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
            to_scale < scale || whole(*to_precision, *to_scale) < whole(*precision, *scale)
        }
        (from, Decimal128(precision, scale) | Decimal256(precision, scale)) if from.is_integer() => {
            i16::from(*precision) - i16::from(*scale) < digits(from)
        }
        (from, to) if from.is_integer() && to.is_integer() => !widens(from, to),
        (from, to) => is_try && !(from.is_string() && to.is_string()),
    }
}

/// Whether each whole number of one type is one of another.
fn widens(from: &DataType, to: &DataType) -> bool {
    let (from_bits, to_bits) = (from.primitive_width(), to.primitive_width());
    match (from.is_signed_integer(), to.is_signed_integer()) {
        (true, false) => false,
        (false, true) => from_bits < to_bits,
        _ => from_bits <= to_bits,
    }
}

/// Maximum number of decimal digits of a whole number.
fn digits(whole: &DataType) -> i16 {
    match (whole.primitive_width(), whole.is_signed_integer()) {
        (Some(1), _) => 3,
        (Some(2), _) => 5,
        (Some(4), _) => 10,
        (_, true) => 19,
        (_, false) => 20,
    }
}

#[cfg(test)]
mod tests {
    use arrow::util::pretty::pretty_format_batches;
    use datafusion::datasource::MemTable;
    use datafusion::prelude::SessionContext;

    use super::*;

    const ROWS: &str = "(VALUES
        (1, arrow_cast(1.2345, 'Decimal128(22, 4)'), 5, TIMESTAMP '2024-01-31 10:00:00'),
        (2, arrow_cast(1.25, 'Decimal128(22, 4)'), 9999999999, TIMESTAMP '2024-02-01 01:00:00'),
        (3, arrow_cast(-1.2399, 'Decimal128(22, 4)'), -1, NULL)) AS v(n, d, b, ts)";

    /// Compares the value of a condition, and the rows that it selects, with the same comparison of
    /// precomputed values.
    #[tokio::test]
    async fn a_comparison_with_a_cast_compares_what_the_cast_returns() {
        let context = SessionContext::new();
        context.add_analyzer_rule(Arc::new(OpaqueCasts::new()));
        let answer = async |sql: &str| {
            let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
            pretty_format_batches(&batches).unwrap().to_string()
        };
        for cast in [
            "CAST(d AS DECIMAL(20, 2))",
            "CAST(d AS DECIMAL(30, 6))",
            "CAST(d AS INT)",
            "CAST(CAST(d AS INT) AS BIGINT)",
            "TRY_CAST(b AS INT)",
            "TRY_CAST(b AS BIGINT UNSIGNED)",
            "CAST(b AS BOOLEAN)",
            "CAST(ts AS TIME)",
            "CAST(ts AS DATE)",
        ] {
            let values = if cast.contains("BOOLEAN") {
                ["true", "false"]
            } else if cast.contains("TIME") {
                ["TIME '01:00:00'", "TIME '02:00:00'"]
            } else if cast.contains("DATE") {
                ["DATE '2024-02-01'", "DATE '2024-02-02'"]
            } else {
                ["1", "1.23"]
            };
            let rows = context.sql(&format!("SELECT n, {cast} AS x FROM {ROWS}")).await.unwrap();
            let computed = MemTable::try_new(
                Arc::new(rows.schema().as_arrow().clone()),
                vec![rows.collect().await.unwrap()],
            );
            context.register_table("computed", Arc::new(computed.unwrap())).unwrap();
            for condition in [
                format!("$ = {}", values[0]),
                format!("{} < $", values[1]),
                format!("$ <> {}", values[1]),
                format!("$ IS DISTINCT FROM {}", values[0]),
                format!("$ BETWEEN {} AND {}", values[0], values[1]),
                format!("$ NOT IN ({}, {})", values[0], values[1]),
            ] {
                let compared = condition.replace('$', cast);
                let plain = condition.replace('$', "x");
                assert_eq!(
                    answer(&format!("SELECT n, {compared} AS p FROM {ROWS} ORDER BY n")).await,
                    answer(&format!("SELECT n, {plain} AS p FROM computed ORDER BY n")).await,
                    "{compared}"
                );
                assert_eq!(
                    answer(&format!("SELECT n FROM {ROWS} WHERE {compared} ORDER BY n")).await,
                    answer(&format!("SELECT n FROM computed WHERE {plain} ORDER BY n")).await,
                    "{compared}"
                );
                assert_eq!(
                    answer(&format!(
                        "SELECT n FROM (SELECT n, {cast} AS x FROM {ROWS} UNION ALL SELECT 4, NULL WHERE false) WHERE {plain} ORDER BY n"
                    ))
                    .await,
                    answer(&format!("SELECT n FROM computed WHERE {plain} ORDER BY n")).await,
                    "{compared} after the cast"
                );
            }
            context.deregister_table("computed").unwrap();
        }
    }

    #[test]
    fn casts_that_keep_all_values_and_their_order_stay_as_they_are() {
        use DataType::{
            Date32, Decimal128, Float64, Int8, Int32, Int64, Time64, Timestamp, UInt32, UInt64, Utf8,
        };
        let micros =
            |zone: Option<&str>| Timestamp(arrow::datatypes::TimeUnit::Microsecond, zone.map(Into::into));
        for (from, to, loses) in [
            (Int32, Int64, false),
            (UInt32, Int64, false),
            (Int64, UInt64, true),
            (UInt32, Int32, true),
            (Int64, Int8, true),
            (UInt64, Decimal128(20, 0), false),
            (Int64, Decimal128(20, 2), true),
            (Int64, Float64, false),
            (Decimal128(22, 9), Decimal128(35, 9), false),
            (Decimal128(22, 9), Decimal128(22, 10), true),
            (micros(None), Date32, false),
            (micros(None), micros(Some("UTC")), true),
            (micros(None), Time64(arrow::datatypes::TimeUnit::Microsecond), true),
            (Utf8, Int64, false),
        ] {
            assert_eq!(loses_something(&from, &to, false), loses, "{from} to {to}");
        }
        assert!(loses_something(&Utf8, &Int64, true));
    }
}
