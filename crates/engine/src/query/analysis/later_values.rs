//! LEAD and LAG without NULLs.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::functions_window::lead_lag::lag_udwf;
use datafusion::logical_expr::expr::{NullTreatment, Sort, WindowFunction};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    Expr, LogicalPlan, PartitionEvaluator, ReversedUDWF, Signature, WindowFrame, WindowFunctionDefinition,
    WindowUDF, WindowUDFImpl, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::PhysicalExpr;

use crate::query::analysis::expression_schema::rewrite_expressions;
use crate::query::walk::WalkPlan;

/// Looks ahead by looking back in the opposite order, if NULLs are ignored.
///
/// DataFusion 55 returns too few of the values that LEAD finds more than one row ahead, and forgets
/// rows before the frame of LAG, which has no frame. It also replaces each of the two by the other
/// if that saves sorting:
///
/// ```text
/// lead(v, 2) IGNORE NULLS OVER (ORDER BY k)  ->  earlier_value(v, 2) ... OVER (ORDER BY k DESC)
/// lag(v, 2) IGNORE NULLS OVER (ORDER BY k)   ->  earlier_value(v, 2) ... OVER (ORDER BY k)
/// ```
#[derive(Debug)]
pub(in crate::query) struct LaterValues {
    earlier: Arc<WindowUDF>,
}

impl LaterValues {
    pub(in crate::query) fn new() -> Self {
        Self { earlier: Arc::new(earlier_value()) }
    }
}

/// DataFusion's `lag`, which always looks back.
#[derive(Debug, PartialEq, Eq, Hash)]
struct EarlierValue {
    lag: Arc<WindowUDF>,
}

/// Returns the function that [`LaterValues`] inserts.
pub(in crate::query) fn earlier_value() -> WindowUDF {
    WindowUDF::new_from_impl(EarlierValue { lag: lag_udwf() })
}

impl WindowUDFImpl for EarlierValue {
    fn name(&self) -> &'static str {
        "earlier_value"
    }

    fn signature(&self) -> &Signature {
        self.lag.signature()
    }

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        self.lag.expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        self.lag.partition_evaluator_factory(args)
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        self.lag.field(args)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        ReversedUDWF::NotSupported
    }
}

impl LaterValues {
    fn looking_back(&self, mut function: Box<WindowFunction>) -> Transformed<Expr> {
        let ahead = match &function.fun {
            WindowFunctionDefinition::WindowUDF(udf) if udf.name() == "lead" => offset(&function),
            WindowFunctionDefinition::WindowUDF(udf) if udf.name() == "lag" => {
                offset(&function).and_then(i64::checked_neg)
            }
            _ => None,
        };
        let params = &mut function.params;
        let Some(ahead) = ahead.filter(|_| params.null_treatment == Some(NullTreatment::IgnoreNulls)) else {
            return Transformed::no(Expr::WindowFunction(function));
        };
        params.window_frame = WindowFrame::new((!params.order_by.is_empty()).then_some(true));
        let offset = lit(ahead.saturating_abs());
        match params.args.get_mut(1) {
            Some(given) => *given = offset,
            None => params.args.push(offset),
        }
        if ahead > 0 {
            for Sort { asc, nulls_first, .. } in &mut params.order_by {
                (*asc, *nulls_first) = (!*asc, !*nulls_first);
            }
        }
        function.fun = WindowFunctionDefinition::WindowUDF(Arc::clone(&self.earlier));
        Transformed::yes(Expr::WindowFunction(function))
    }
}

impl AnalyzerRule for LaterValues {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries_dyn(|plan| {
            if !matches!(plan, LogicalPlan::Window(_)) {
                return Ok(Transformed::no(plan));
            }
            rewrite_expressions(plan, |expr| match expr {
                Expr::WindowFunction(function) => Ok(self.looking_back(function)),
                other => Ok(Transformed::no(other)),
            })
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "LaterValues"
    }
}

/// Returns the number of rows that a function looks ahead or back, if it is a constant.
fn offset(function: &WindowFunction) -> Option<i64> {
    match function.params.args.get(1) {
        None => Some(1),
        Some(Expr::Literal(ScalarValue::Int64(rows), _)) => *rows,
        Some(Expr::Negative(inner)) => match inner.as_ref() {
            Expr::Literal(ScalarValue::Int64(rows), _) => rows.and_then(i64::checked_neg),
            _ => None,
        },
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

    use crate::query::Params;
    use crate::testing::{Score, scores};

    #[tokio::test]
    async fn nulls_are_skipped_in_both_directions() {
        let values: Vec<Score> = (0..30).map(|row| (row, 0, row * row % 7)).collect();
        let (_folder, table) = scores(std::slice::from_ref(&values)).await;
        let session = table.session().unwrap();
        let is_null = |score: &&Score| score.2 % 3 != 0;
        let frame = "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING";
        for (call, at, frame) in [
            ("lead(v, 2)", 2, ""),
            ("lead(v, 3)", 3, frame),
            ("lead(v)", 1, ""),
            ("lag(v, -3)", 3, ""),
            ("lag(v, 2)", -2, ""),
            ("lag(v, 3)", -3, frame),
            ("lead(v, -1)", -1, ""),
        ] {
            let sql = format!(
                "SELECT {call} IGNORE NULLS OVER (ORDER BY player {frame}) FROM \
                 (SELECT player, nullif(points, CASE WHEN points % 3 = 0 THEN points END) AS v FROM t) ORDER BY player"
            );
            let batches = session.collect(&sql, &Params::default()).await.unwrap();
            let found: Vec<Option<i64>> =
                batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().iter()).collect();
            let expected: Vec<Option<i64>> = (0..values.len())
                .map(|row| {
                    let mut known: Box<dyn Iterator<Item = &Score>> = match at > 0 {
                        true => Box::new(values[row + 1..].iter().filter(is_null)),
                        false => Box::new(values[..row].iter().rev().filter(is_null)),
                    };
                    known.nth(usize::try_from(i64::abs(at)).unwrap() - 1).map(|score| score.2)
                })
                .collect();
            assert_eq!(found, expected, "{call} {frame}");
        }
    }
}
