//! `<`, `<=`, `>`, `>=` and BETWEEN of lists and structs, in the order in which ORDER BY sorts
//! them.
//!
//! DataFusion 55 takes NULL inside a list or struct for the least value when it compares two of
//! them. ORDER BY, `min` and `max`, PostgreSQL and DuckDB take it for the greatest. So such a
//! comparison becomes one of a number:
//!
//! ```text
//! a < b                ->  nested_order(a, b) < 0
//! a BETWEEN b AND c    ->  nested_order(a, b) >= 0 AND nested_order(a, c) <= 0
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, Int8Array, make_comparator};
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{
    Between, BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit, not,
};
use datafusion::optimizer::AnalyzerRule;

use crate::query::analysis::expression_schema::rewrite_plan;

/// Whether the first of two values is less than the second (-1), equal (0) or greater (1).
#[derive(Debug, PartialEq, Eq, Hash)]
struct NestedOrder {
    signature: Signature,
}

/// Function that [`NestedComparisons`] inserts.
pub(in crate::query) fn nested_order() -> ScalarUDF {
    ScalarUDF::new_from_impl(NestedOrder { signature: Signature::any(2, Volatility::Immutable) })
}

impl ScalarUDFImpl for NestedOrder {
    fn name(&self) -> &'static str {
        "nested_order"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = arrays.as_slice() else {
            return internal_err!("nested_order has two arguments");
        };
        let nulls_last = SortOptions { descending: false, nulls_first: false };
        let compare = make_comparator(left, right, nulls_last)?;
        let order = |row| {
            (left.is_valid(row) && right.is_valid(row)).then(|| match compare(row, row) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            })
        };
        Ok(ColumnarValue::Array(Arc::new((0..left.len()).map(order).collect::<Int8Array>())))
    }
}

/// Compares lists and structs as ORDER BY does. Runs after the rules that coerce types.
#[derive(Debug)]
pub(in crate::query) struct NestedComparisons {
    function: Arc<ScalarUDF>,
}

impl NestedComparisons {
    pub(in crate::query) fn new() -> Self {
        Self { function: Arc::new(nested_order()) }
    }

    fn rewritten(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let order = |left: &Expr, right: &Expr| self.function.call(vec![left.clone(), right.clone()]);
        let are_nested = |values: &[&Expr]| {
            let types = values.iter().map(|value| value.get_type(schema)).collect::<Result<Vec<_>>>()?;
            let is_first = |data_type: &DataType| types.first() == Some(data_type);
            Ok::<_, datafusion::error::DataFusionError>(
                types.first().is_some_and(DataType::is_nested) && types.iter().all(is_first),
            )
        };
        let is_of_order =
            |op: Operator| matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
        let compared = match &expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if is_of_order(*op) && are_nested(&[left, right])? =>
            {
                let zero = Box::new(lit(0i8));
                Expr::BinaryExpr(BinaryExpr::new(Box::new(order(left, right)), *op, zero))
            }
            Expr::Between(Between { expr, negated, low, high }) if are_nested(&[expr, low, high])? => {
                let within = order(expr, low).gt_eq(lit(0i8)).and(order(expr, high).lt_eq(lit(0i8)));
                if *negated { not(within) } else { within }
            }
            _ => return Ok(Transformed::no(expr)),
        };
        Ok(Transformed::yes(compared))
    }
}

impl AnalyzerRule for NestedComparisons {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_plan(plan, |expr, schema| self.rewritten(expr, schema))
    }

    fn name(&self) -> &'static str {
        "NestedComparisons"
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, StructArray};
    use arrow::datatypes::{Field, Int64Type};
    use datafusion::prelude::SessionContext;

    use super::*;

    /// Values with NULL as the greatest.
    type Key = Option<Vec<(bool, i64)>>;

    fn key(value: Option<i64>) -> (bool, i64) {
        (value.is_none(), value.unwrap_or_default())
    }

    const INNER: [Option<i64>; 3] = [None, Some(1), Some(2)];

    /// Pairs of small numbers and NULL, and NULL itself.
    fn pairs_of_values() -> Vec<Option<[Option<i64>; 2]>> {
        let pairs = INNER.iter().flat_map(|a| INNER.iter().map(move |b| Some([*a, *b])));
        std::iter::once(None).chain(pairs).collect()
    }

    async fn context(column: ArrayRef) -> SessionContext {
        let context = SessionContext::new();
        context.add_analyzer_rule(Arc::new(NestedComparisons::new()));
        let rows = Int64Array::from_iter_values(0..column.len() as i64);
        let batch = RecordBatch::try_from_iter([("row", Arc::new(rows) as ArrayRef), ("v", column)]).unwrap();
        context.register_batch("t", batch).unwrap();
        context
    }

    /// Pairs of rows for which a condition on `a.v` and `b.v` is true.
    async fn pairs(context: &SessionContext, condition: &str) -> Vec<(usize, usize)> {
        let sql = format!("SELECT a.row, b.row FROM t a, t b WHERE {condition} ORDER BY 1, 2");
        let batches = context.sql(&sql).await.unwrap().collect().await.unwrap();
        let column = |batch: &RecordBatch, at: usize| batch.column(at).as_primitive::<Int64Type>().clone();
        let of_batch = |batch: &RecordBatch| {
            let [left, right] = [0, 1].map(|at| column(batch, at));
            left.values()
                .iter()
                .zip(right.values())
                .map(|(a, b)| (*a as usize, *b as usize))
                .collect::<Vec<_>>()
        };
        batches.iter().flat_map(of_batch).collect()
    }

    async fn compare(column: ArrayRef, keys: Vec<Key>) {
        let context = context(column).await;
        let expected = |holds: &dyn Fn(Ordering) -> bool| {
            let all = (0..keys.len()).flat_map(|a| (0..keys.len()).map(move |b| (a, b)));
            let holds = |(a, b): &(usize, usize)| match (&keys[*a], &keys[*b]) {
                (Some(a), Some(b)) => holds(a.cmp(b)),
                _ => false,
            };
            all.filter(holds).collect::<Vec<_>>()
        };
        for (condition, holds) in [
            ("a.v < b.v", Ordering::is_lt as fn(Ordering) -> bool),
            ("a.v <= b.v", Ordering::is_le),
            ("a.v > b.v", Ordering::is_gt),
            ("a.v >= b.v", Ordering::is_ge),
            ("NOT a.v < b.v", Ordering::is_ge),
            ("a.v BETWEEN b.v AND b.v", Ordering::is_eq),
            ("a.v NOT BETWEEN b.v AND b.v", Ordering::is_ne),
            ("CASE WHEN a.v < b.v THEN 1 ELSE 0 END = 1", Ordering::is_lt),
        ] {
            assert_eq!(pairs(&context, condition).await, expected(&holds), "{condition}");
        }
        // The order is that of ORDER BY.
        let sql = "SELECT bool_and(n IS NULL OR v <= n) FROM (SELECT v, lead(v) OVER (ORDER BY v ROWS \
                   BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n FROM t WHERE v IS NOT NULL)";
        let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
        assert!(batches[0].column(0).as_boolean().value(0));
    }

    #[tokio::test]
    async fn null_inside_is_greater_than_all_values() {
        let pairs = pairs_of_values();
        let mut lists: Vec<_> = pairs.iter().map(|pair| pair.map(|pair| pair.to_vec())).collect();
        lists.extend(INNER.map(|value| Some(vec![value])));
        lists.push(Some(Vec::new()));
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>(lists.clone());
        let list_keys = lists.into_iter().map(|list| list.map(|list| list.into_iter().map(key).collect()));
        compare(Arc::new(list), list_keys.collect()).await;
        let fields: Vec<_> = ["x", "y"].map(|name| Field::new(name, DataType::Int64, true)).to_vec();
        let columns = [0, 1].map(|at| {
            let of_pair = |pair: &Option<[Option<i64>; 2]>| pair.and_then(|pair| pair[at]);
            Arc::new(pairs.iter().map(of_pair).collect::<Int64Array>()) as ArrayRef
        });
        let nulls = pairs.iter().map(Option::is_some).collect();
        let structs = StructArray::new(fields.into(), columns.to_vec(), Some(nulls));
        let struct_keys = pairs.into_iter().map(|pair| pair.map(|pair| pair.map(key).to_vec()));
        compare(Arc::new(structs), struct_keys.collect()).await;
    }
}
