//! SQL arithmetic that fails on overflow, while DataFusion wraps around.
//!
//! ```text
//! a + b, a - b, a * b, -a of whole numbers   -> checking functions, inserted after types are coerced;
//!                                           constants fold through them too
//! sum(whole numbers, Decimal)  -> 128 bits inside, checked when the sum is returned
//! ```
//! All other arithmetic of whole numbers, decimals, dates and times already fails in DataFusion;
//! decimal arithmetic uses the same functions since they are faster (see `decimal_arithmetic`).
//! Floats follow IEEE 754: they become infinite.

use std::sync::Arc;

use arrow::compute::kernels::numeric::{add, mul, sub};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

use crate::query::analysis::decimal_arithmetic::compute;
use crate::query::analysis::expression_schema::rewrite_plan;
use crate::query::analysis::operation::Operation;

/// An operation as a function of two whole numbers of one type, or of two decimals.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operation: Operation,
    signature: Signature,
}

impl Checked {
    fn new(operation: Operation) -> Self {
        Self { operation, signature: Signature::any(2, Volatility::Immutable) }
    }
}

/// Functions that [`CheckedArithmetic`] inserts.
pub(in crate::query) fn checked_functions() -> impl Iterator<Item = ScalarUDF> {
    Operation::ALL.into_iter().map(|operation| ScalarUDF::new_from_impl(Checked::new(operation)))
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.operation.name()
    }

    /// Name that the expression has without the check, since columns of results are named after it.
    /// Chains of operators lean to the left, and are followed without recursion.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let mut links = Vec::new();
        let (mut operation, mut operands) = (self.operation, args);
        let first = loop {
            let [left, right] = operands else {
                return internal_err!("{} has two arguments", operation.name());
            };
            links.push((operation, right));
            let inner = match left {
                Expr::ScalarFunction(function) => Operation::from_function(function.func.name())
                    .map(|inner| (inner, function.args.as_slice())),
                _ => None,
            };
            match inner {
                Some(inner) => (operation, operands) = inner,
                None => break left,
            }
        };
        let mut name = first.schema_name().to_string();
        for (operation, right) in links.into_iter().rev() {
            name.push_str(&format!(" {operation} {}", right.schema_name()));
        }
        Ok(name)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [left, right] if left == right && left.is_integer() => Ok(left.clone()),
            [left @ DataType::Decimal128(..), right @ DataType::Decimal128(..)] => {
                BinaryTypeCoercer::new(left, &self.operation.operator(), right).get_result_type()
            }
            _ => exec_err!("{} needs two whole numbers of the same type, or two decimals", self.name()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return internal_err!("{} has two arguments", self.name());
        };
        if matches!(left.data_type(), DataType::Decimal128(..)) {
            return apply(left, right, |left, right| compute(self.operation, left, right));
        }
        match self.operation {
            Operation::Add => apply(left, right, add),
            Operation::Subtract => apply(left, right, sub),
            Operation::Multiply => apply(left, right, mul),
        }
    }
}

/// Inserts checks into integer arithmetic, and fast functions into decimal arithmetic. Runs after
/// the rules that coerce types.
#[derive(Debug)]
pub(in crate::query) struct CheckedArithmetic {
    functions: [Arc<ScalarUDF>; 3],
}

impl CheckedArithmetic {
    pub(in crate::query) fn new() -> Self {
        let function = |operation| Arc::new(ScalarUDF::new_from_impl(Checked::new(operation)));
        Self { functions: Operation::ALL.map(function) }
    }

    fn rewritten(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        if let Expr::Negative(operand) = &expr
            && let data_type = operand.get_type(schema)?
            && data_type.is_signed_integer()
        {
            // The negative of the least number is beyond its type.
            let zero = Expr::Literal(ScalarValue::new_zero(&data_type)?, None);
            let [_, subtract, _] = &self.functions;
            let difference = vec![zero, operand.as_ref().clone()];
            let checked = ScalarFunction::new_udf(Arc::clone(subtract), difference);
            return Ok(Transformed::yes(Expr::ScalarFunction(checked)));
        }
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return Ok(Transformed::no(expr)) };
        let function = Operation::from_operator(op).and_then(|operation| {
            Operation::ALL.into_iter().zip(&self.functions).find(|(candidate, _)| *candidate == operation)
        });
        let checked = match function {
            Some((_, function)) => {
                let (one, other) = (left.get_type(schema)?, right.get_type(schema)?);
                let is_decimal = |data_type: &DataType| matches!(data_type, DataType::Decimal128(..));
                let is_taken = (one.is_integer() && one == other) || (is_decimal(&one) && is_decimal(&other));
                is_taken.then_some(function)
            }
            None => None,
        };
        Ok(match checked {
            Some(function) => Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                Arc::clone(function),
                vec![*left, *right],
            ))),
            None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        })
    }
}

impl AnalyzerRule for CheckedArithmetic {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_plan(plan, |expr, schema| self.rewritten(expr, schema))
    }

    fn name(&self) -> &str {
        "checked_arithmetic"
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, RecordBatch};
    use arrow::datatypes::Int64Type;
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn run(context: &SessionContext, expression: &str) -> Result<RecordBatch> {
        let rows =
            format!("(VALUES ({}, {}, 1, 1.5)) AS v(largest, least, one, half)", i64::MAX, i64::MIN + 1);
        let batches = context.sql(&format!("SELECT {expression} FROM {rows}")).await?.collect().await?;
        Ok(batches[0].clone())
    }

    #[tokio::test]
    async fn a_result_beyond_its_type_is_an_error_and_any_other_is_unchanged() {
        let checked = SessionContext::new();
        checked.add_analyzer_rule(Arc::new(CheckedArithmetic::new()));
        for expression in [
            "largest + one",
            "least - one - one",
            "largest * 2",
            "one + largest * one",
            "sum(largest + one)",
            "9223372036854775807 + 1",
            "-(least - one)",
            "abs(one) - -(least - one)",
        ] {
            assert!(run(&checked, expression).await.is_err(), "{expression}");
        }
        for (expression, value) in [
            ("largest + 0", i64::MAX),
            ("largest - one * 2", i64::MAX - 2),
            ("least + largest - one + 2", 1),
            ("-least", i64::MAX),
            ("-(-one)", 1),
            ("CAST(half * 2 AS BIGINT)", 3),
        ] {
            let batch = run(&checked, expression).await.unwrap();
            assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), value, "{expression}");
            let plain = run(&SessionContext::new(), expression).await.unwrap();
            assert_eq!(batch.schema().field(0).name(), plain.schema().field(0).name());
        }
    }
}
