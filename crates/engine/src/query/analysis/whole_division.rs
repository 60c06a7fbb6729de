//! Division of `Uint64` by signed whole numbers.
//!
//! DataFusion 55 has no type of whole numbers for both, and divides decimals: `u / 2` of 3 would be
//! 1.5, although the quotient of whole numbers is whole everywhere else.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::{cast, try_binary};
use arrow::datatypes::{DataType, Decimal128Type};
use arrow::error::ArrowError;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::query::analysis::expression_schema::rewrite_plan;

/// Decimals that hold the whole numbers of all types.
const WHOLE: DataType = DataType::Decimal128(20, 0);

/// Returns the function that [`WholeDivision`] inserts.
pub(in crate::query) fn whole_quotient() -> ScalarUDF {
    ScalarUDF::new_from_impl(WholeQuotient { signature: Signature::any(2, Volatility::Immutable) })
}

/// Divides `Uint64` and signed whole numbers as whole numbers. Runs before types are coerced.
#[derive(Debug)]
pub(in crate::query) struct WholeDivision(Arc<ScalarUDF>);

impl WholeDivision {
    pub(in crate::query) fn new() -> Self {
        Self(Arc::new(whole_quotient()))
    }

    fn divided(&self, expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }) = &expr else {
            return Transformed::no(expr);
        };
        let (Ok(of_left), Ok(of_right)) = (left.get_type(schema), right.get_type(schema)) else {
            return Transformed::no(expr);
        };
        let (dividend, divisor) = match (&of_left, &of_right) {
            (DataType::UInt64, signed) if signed.is_signed_integer() => (None, unsigned(right)),
            (signed, DataType::UInt64) if signed.is_signed_integer() => (unsigned(left), None),
            _ => return Transformed::no(expr),
        };
        if dividend.is_none() && divisor.is_none() {
            let operands = vec![left.as_ref().clone(), right.as_ref().clone()];
            return Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                Arc::clone(&self.0),
                operands,
            )));
        }
        let left = dividend.map_or_else(|| left.clone(), Box::new);
        let right = divisor.map_or_else(|| right.clone(), Box::new);
        Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }))
    }
}

/// Returns a constant as `Uint64`; `None` if it is negative or no constant.
fn unsigned(expr: &Expr) -> Option<Expr> {
    let Expr::Literal(value, metadata) = expr else { return None };
    let value = value.cast_to(&DataType::UInt64).ok().filter(|value| !value.is_null())?;
    Some(Expr::Literal(value, metadata.clone()))
}

impl AnalyzerRule for WholeDivision {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_plan(plan, |expr, schema| Ok(self.divided(expr, schema)))
    }

    fn name(&self) -> &'static str {
        "WholeDivision"
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WholeQuotient {
    signature: Signature,
}

impl ScalarUDFImpl for WholeQuotient {
    fn name(&self) -> &'static str {
        "whole_quotient"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(WHOLE)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let are_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [dividends, divisors] = arrays.as_slice() else {
            return internal_err!("{} has two arguments", self.name());
        };
        let quotients = quotients(dividends, divisors)?;
        Ok(match are_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&quotients, 0)?),
            false => ColumnarValue::Array(Arc::new(quotients)),
        })
    }
}

fn quotients(dividends: &ArrayRef, divisors: &ArrayRef) -> Result<Decimal128Array, ArrowError> {
    let (dividends, divisors) = (cast(dividends, &WHOLE)?, cast(divisors, &WHOLE)?);
    let (dividends, divisors) =
        (dividends.as_primitive::<Decimal128Type>(), divisors.as_primitive::<Decimal128Type>());
    let quotient =
        |dividend: i128, divisor: i128| dividend.checked_div(divisor).ok_or(ArrowError::DivideByZero);
    let quotients: Decimal128Array = try_binary(dividends, divisors, quotient)?;
    quotients.with_precision_and_scale(20, 0)
}

#[cfg(test)]
mod tests {
    use arrow::util::display::array_value_to_string;

    use crate::query::Params;
    use crate::testing::{create, session_on};

    #[tokio::test]
    async fn quotients_of_whole_numbers_are_whole() {
        let (_folder, table) = create(
            "CREATE TABLE t (k Int64 NOT NULL, PRIMARY KEY (k)) PARTITION BY HASH(k) WITH (STORE = COLUMN)",
        )
        .await;
        let session = session_on(&table, 2, false);
        let rows =
            "(SELECT CAST(a AS BIGINT UNSIGNED) AS u, b AS i FROM (VALUES (3, 2), (18446744073709551615, -2),
                     (2, 7), (NULL, 1)) AS v(a, b)) AS t";
        let values = async |expression: &str| {
            let sql = format!("SELECT {expression} FROM {rows}");
            let batches = session.collect(&sql, &Params::default()).await?;
            let all = batches.iter().flat_map(|batch| {
                (0..batch.num_rows()).map(|row| array_value_to_string(batch.column(0), row).unwrap())
            });
            Ok::<_, crate::query::QueryError>(all.collect::<Vec<_>>().join(","))
        };
        for (expression, expected) in [
            ("u / 2", "1,9223372036854775807,1,"),
            ("u / i", "1,-9223372036854775807,0,"),
            ("i / u", "0,0,3,"),
            ("7 / u", "2,0,3,"),
            ("u / -2", "-1,-9223372036854775807,-1,"),
            ("u / CAST(2 AS INT)", "1,9223372036854775807,1,"),
            ("u / 2 = 1", "true,false,true,"),
            ("u % 2", "1,1,0,"),
            ("sum(u / 4) / count(*)", "1152921504606846975"),
            (
                "CAST(18446744073709551615 AS BIGINT UNSIGNED) / CAST(-4 AS BIGINT)",
                "-4611686018427387903,-4611686018427387903,-4611686018427387903,-4611686018427387903",
            ),
        ] {
            assert_eq!(values(expression).await.unwrap(), expected, "{expression}");
        }
        for expression in ["u / 0", "u / (i - i)", "i / (u - u)"] {
            assert!(values(expression).await.is_err(), "{expression}");
        }
    }
}
