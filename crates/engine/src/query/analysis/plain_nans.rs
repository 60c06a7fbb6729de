//! NaN of one sign.
//!
//! Results that are not defined are NaN with the sign bit set on x86, while DataFusion 55 compares
//! and sorts floats by their bits: such a NaN comes before all numbers instead of after them, and
//! equals no other NaN. Therefore expressions that can make one are wrapped:
//!
//! ```text
//! a / b > 5          ->  plain_nan(a / b) > 5
//! ORDER BY -f        ->  ORDER BY plain_nan(-f)
//! sqrt(a * b - c)    ->  plain_nan(sqrt(a * b - c))
//! ```
//! Exports are read with NaN of one sign, so columns need no call.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use evenkeel_input::floats::with_plain_nans;

use crate::query::analysis::expression_schema::{expression_schema, rewrite_expressions};
use crate::query::walk::WalkPlan;

/// Functions that return one of their arguments, or a number near it.
const KEEPS_SIGN: [&str; 11] =
    ["abs", "ceil", "coalesce", "floor", "greatest", "least", "nullif", "nvl", "plain_nan", "round", "trunc"];

/// Returns its argument, with NaN of the sign that NaN has elsewhere.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PlainNan {
    signature: Signature,
}

/// Returns the function that [`PlainNans`] inserts.
pub(in crate::query) fn plain_nan() -> ScalarUDF {
    ScalarUDF::new_from_impl(PlainNan { signature: Signature::any(1, Volatility::Immutable) })
}

impl ScalarUDFImpl for PlainNan {
    fn name(&self) -> &'static str {
        "plain_nan"
    }

    /// Columns of results are named after the expression.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| arg.schema_name().to_string()).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        internal_err!("{} returns a field", self.name())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [value] = args.arg_fields else {
            return internal_err!("{} has one argument", self.name());
        };
        Ok(Arc::new(Field::new(self.name(), value.data_type().clone(), value.is_nullable())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let plain = |values: &ArrayRef| with_plain_nans(values).unwrap_or_else(|| Arc::clone(values));
        match args.args.as_slice() {
            [ColumnarValue::Array(values)] => Ok(ColumnarValue::Array(plain(values))),
            [ColumnarValue::Scalar(value)] => {
                let value = plain(&value.to_array()?);
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&value, 0)?))
            }
            _ => internal_err!("{} has one argument", self.name()),
        }
    }
}

/// Wraps expressions that can make a NaN with the sign bit set. Runs after the rules that coerce
/// types.
#[derive(Debug)]
pub(in crate::query) struct PlainNans {
    function: Arc<ScalarUDF>,
}

impl PlainNans {
    pub(in crate::query) fn new() -> Self {
        Self { function: Arc::new(plain_nan()) }
    }

    fn rewritten(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        if !makes_nan(&expr, schema)? {
            return Ok(Transformed::no(expr));
        }
        // Only the last result of a chain of operators is looked at.
        let expr = match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => Expr::BinaryExpr(BinaryExpr::new(
                Box::new(self.unwrapped(*left)),
                op,
                Box::new(self.unwrapped(*right)),
            )),
            Expr::Negative(inner) => Expr::Negative(Box::new(self.unwrapped(*inner))),
            expr => expr,
        };
        let call = ScalarFunction::new_udf(Arc::clone(&self.function), vec![expr]);
        Ok(Transformed::yes(Expr::ScalarFunction(call)))
    }

    fn unwrapped(&self, expr: Expr) -> Expr {
        match expr {
            Expr::ScalarFunction(mut call) if call.func == self.function && call.args.len() == 1 => {
                call.args.remove(0)
            }
            expr => expr,
        }
    }
}

impl AnalyzerRule for PlainNans {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plain = plan.transform_up_with_subqueries_dyn(|plan| {
            let schema = expression_schema(&plan)?;
            rewrite_expressions(plan, |expr| self.rewritten(expr, &schema))
        })?;
        Ok(plain.data)
    }

    fn name(&self) -> &'static str {
        "PlainNans"
    }
}

/// Whether an expression can make a NaN with the sign bit set from values without one.
fn makes_nan(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let makes = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide => {
                !is_plain_number(left) && !is_plain_number(right)
            }
            Operator::Modulo => true,
            _ => false,
        },
        Expr::Negative(inner) => !matches!(inner.as_ref(), Expr::Literal(..)),
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => {
            expr.get_type(schema)?.is_string()
        }
        Expr::ScalarFunction(call) => !KEEPS_SIGN.contains(&call.name()),
        _ => false,
    };
    Ok(makes && expr.get_type(schema)?.is_floating())
}

/// Whether an expression is a finite nonzero number, with which the result of an operator is
/// defined.
fn is_plain_number(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => value.is_finite() && *value != 0.0,
        Expr::Literal(ScalarValue::Float32(Some(value)), _) => value.is_finite() && *value != 0.0,
        Expr::Negative(inner) | Expr::Cast(Cast { expr: inner, .. }) => is_plain_number(inner),
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => *value != 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Float64Array, Int64Array, RecordBatch};
    use arrow::datatypes::Float64Type;
    use datafusion::prelude::SessionContext;

    use super::*;

    const NUMBERS: [f64; 7] = [0.0, 1.0, -1.0, 2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

    /// A table of all pairs of numbers.
    fn pairs() -> SessionContext {
        let context = SessionContext::new();
        context.register_udf(plain_nan());
        context.add_analyzer_rule(Arc::new(PlainNans::new()));
        let pairs = || NUMBERS.into_iter().flat_map(|a| NUMBERS.map(|b| (a, b)));
        let count = i64::try_from(pairs().count()).unwrap();
        let batch = RecordBatch::try_from_iter([
            ("i", Arc::new(Int64Array::from_iter_values(0..count)) as ArrayRef),
            ("a", Arc::new(Float64Array::from_iter_values(pairs().map(|(a, _)| a)))),
            ("b", Arc::new(Float64Array::from_iter_values(pairs().map(|(_, b)| b)))),
        ]);
        context.register_batch("t", batch.unwrap()).unwrap();
        context
    }

    #[tokio::test]
    async fn no_expression_makes_a_nan_with_a_sign() {
        let context = pairs();
        for expression in [
            "a + b",
            "a - b",
            "a * b",
            "a / b",
            "a % b",
            "-a",
            "a * -2",
            "2 - a",
            "a / 0.0",
            "a * 0",
            "-(a - b) * b",
            "sqrt(abs(a))",
            "ln(abs(a))",
            "power(a, 2)",
            "sin(a)",
            "acos(a)",
            "abs(a - b)",
            "a - 1.5",
            "-2.5 / a",
            "round(a * b)",
            "coalesce(nullif(a, 2.5), b - a)",
            "CASE WHEN b > 1 THEN a / b ELSE -b END",
            "CAST('-nan' AS DOUBLE)",
            "CAST(CAST(a / b AS REAL) AS DOUBLE)",
            "greatest(a - b, b)",
            "first_value(a - b) OVER (ORDER BY i)",
        ] {
            let sql = format!("SELECT {expression} AS value FROM t");
            let batches = context.sql(&sql).await.unwrap().collect().await.unwrap();
            for batch in batches {
                let values = batch.column(0).as_primitive::<Float64Type>();
                let signed =
                    values.iter().flatten().filter(|value| value.is_nan() && value.is_sign_negative());
                assert_eq!(signed.count(), 0, "{expression}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_not_defined_comes_last_and_is_one_value() {
        let context = pairs();
        let count = async |sql: &str| {
            let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
            batches[0].column(0).as_primitive::<arrow::datatypes::Int64Type>().value(0)
        };
        let undefined = NUMBERS.iter().flat_map(|a| NUMBERS.map(|b| a / b)).filter(|value| value.is_nan());
        let undefined = i64::try_from(undefined.count()).unwrap();
        assert_eq!(count("SELECT count(*) FROM t WHERE a / b = 'NaN'::double").await, undefined);
        assert_eq!(
            count("SELECT count(*) FROM (SELECT a / b AS q FROM t ORDER BY q DESC LIMIT 1) WHERE isnan(q)")
                .await,
            1
        );
        assert_eq!(count("SELECT count(*) FROM (SELECT -a AS q FROM t GROUP BY -a) WHERE isnan(q)").await, 1);
        assert_eq!(count("SELECT count(DISTINCT a - b) FROM t WHERE isnan(a - b)").await, 1);
    }

    #[tokio::test]
    async fn columns_keep_their_names_and_most_expressions_their_form() {
        let context = pairs();
        let plain = SessionContext::new();
        plain.register_table("t", context.table_provider("t").await.unwrap()).unwrap();
        for (expression, wraps) in [
            ("t.a / t.b", 1),
            ("(a + b) * (a - b)", 1),
            ("sum(a - b)", 1),
            ("a * 1.5 + 2", 0),
            ("1 / b", 0),
            ("i / 2", 0),
            ("coalesce(a, b)", 0),
        ] {
            let sql = format!("SELECT {expression} FROM t");
            let plan = context.sql(&sql).await.unwrap();
            let names = plain.sql(&sql).await.unwrap();
            assert_eq!(plan.schema().field(0).name(), names.schema().field(0).name());
            let plan = plan.into_optimized_plan().unwrap().display_indent().to_string();
            assert_eq!(plan.matches("plain_nan(").count(), wraps, "{plan}");
        }
    }
}
