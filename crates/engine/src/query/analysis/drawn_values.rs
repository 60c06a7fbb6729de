//! Values that functions such as `random()` return, drawn once for each row.

use std::sync::Arc;

use arrow::array::Datum;
use arrow::compute::kernels::boolean::and_kleene;
use arrow::compute::kernels::cmp::{gt_eq, lt_eq};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Aggregate, Between, ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::query::analysis::expression_schema::rewrite_expressions;
use crate::query::walk::WalkPlan;

/// Keeps DataFusion 55 from drawing a value twice.
///
/// ```text
/// random() BETWEEN a AND b   ->  is_between(random(), a, b), not random() >= a AND random() <= b
/// GROUP BY random() < 0.5    ->  GROUP BY a column of the input, which conditions can refer to
/// ```
#[derive(Debug)]
pub(in crate::query) struct DrawnValues {
    is_between: Arc<ScalarUDF>,
}

impl DrawnValues {
    pub(in crate::query) fn new() -> Self {
        Self { is_between: Arc::new(is_between()) }
    }

    fn drawn_once(&self, expr: Expr) -> Transformed<Expr> {
        match expr {
            Expr::Between(Between { expr, negated, low, high }) if expr.is_volatile() => {
                let call = ScalarFunction::new_udf(Arc::clone(&self.is_between), vec![*expr, *low, *high]);
                let is_between = Expr::ScalarFunction(call);
                Transformed::yes(if negated { Expr::Not(Box::new(is_between)) } else { is_between })
            }
            other => Transformed::no(other),
        }
    }
}

impl AnalyzerRule for DrawnValues {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries_dyn(|plan| {
            rewrite_expressions(plan, |expr| Ok(self.drawn_once(expr)))?.transform_data(|plan| match plan {
                LogicalPlan::Aggregate(aggregate) => grouped_by_columns(aggregate),
                other => Ok(Transformed::no(other)),
            })
        })?;
        Ok(rewritten.data)
    }

    fn name(&self) -> &'static str {
        "drawn_values"
    }
}

/// Computes groups of drawn values below the aggregation.
fn grouped_by_columns(mut aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let is_drawn = |expr: &Expr| expr.is_volatile() && !matches!(expr, Expr::GroupingSet(_));
    if !aggregate.group_expr.iter().any(is_drawn) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let mut columns: Vec<Expr> = aggregate.input.schema().columns().into_iter().map(Expr::Column).collect();
    for group in &mut aggregate.group_expr {
        if is_drawn(group) {
            let name = group.schema_name().to_string();
            columns.push(group.clone().unalias().alias(&name));
            *group = Expr::Column(Column::from_name(name));
        }
    }
    let input = LogicalPlanBuilder::from(aggregate.input).project(columns)?.build()?;
    let aggregate = Aggregate::try_new(Arc::new(input), aggregate.group_expr, aggregate.aggr_expr)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
}

/// Whether a value is between two others, as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IsBetween {
    signature: Signature,
}

/// Returns the function that [`DrawnValues`] inserts.
pub(in crate::query) fn is_between() -> ScalarUDF {
    ScalarUDF::new_from_impl(IsBetween { signature: Signature::any(3, Volatility::Immutable) })
}

impl ScalarUDFImpl for IsBetween {
    fn name(&self) -> &'static str {
        "is_between"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [value, low, high] = arrays.as_slice() else {
            return internal_err!("{} has three arguments", self.name());
        };
        let [value, low, high]: [&dyn Datum; 3] = [value, low, high];
        Ok(ColumnarValue::Array(Arc::new(and_kleene(&gt_eq(value, low)?, &lt_eq(value, high)?)?)))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::joins::{answer, tables};

    #[tokio::test]
    async fn a_value_is_drawn_once() {
        let tables = tables().await;
        for contradiction in [
            "SELECT count(*) FROM big WHERE random() BETWEEN 0.6 AND 0.4",
            "SELECT count(*) FROM (SELECT random() NOT BETWEEN 0 AND 1 AS b FROM big) WHERE b",
            "SELECT count(*) FROM (SELECT random() < 0.5 AS k, count(*) FROM big GROUP BY random() < 0.5) WHERE k IS NULL",
            "SELECT count(*) - 1 FROM (SELECT random() < 0.5 AS k, count(*) FROM big GROUP BY random() < 0.5) WHERE NOT k",
            "SELECT count(*) FROM (SELECT random() * 0 + points AS k FROM big GROUP BY random() * 0 + points) WHERE k > 90",
        ] {
            let printed = answer(&tables.ours, contradiction).await;
            assert!(printed.contains("| 0 "), "{contradiction}\n{printed}");
        }
        let columns = answer(&tables.ours, "SELECT random() BETWEEN 0 AND 1 FROM small LIMIT 1").await;
        assert!(
            columns.contains("random() BETWEEN Int64(0) AND Int64(1)") && columns.contains("true"),
            "{columns}"
        );
    }
}
