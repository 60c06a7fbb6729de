//! Windows that slide over floating-point numbers.
//!
//! DataFusion 55 subtracts the rows that leave a frame. After an infinity or a NaN, all further
//! results are NaN, and a large number takes the small ones beside it away: with 1e17, 1, 2, 3 in
//! frames of two rows, the last sum would be 2 and its variance negative.
//!
//! Here, a frame is two stacks, as in a queue made of stacks:
//!
//! ```text
//! oldest  front: for each row, the state of the rows from it to the end of the front
//!         back:  the state of its rows, and the rows
//! newest
//! ```
//! A row that leaves takes its state off the front. If the front is empty, the rows of the back
//! become it, from the newest to the oldest. The result of a frame is that of both states together.
//! So each row is added twice, and none is subtracted.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, LogicalPlan, Signature,
    WindowFunctionDefinition,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

use crate::query::analysis::expression_schema::rewrite_expressions;
use crate::query::walk::WalkPlan;

/// Functions that subtract the rows that leave.
const SUBTRACTING: &[&str] = &[
    "sum",
    "avg",
    "stddev",
    "stddev_pop",
    "var",
    "var_pop",
    "covar_samp",
    "covar_pop",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_count",
    "regr_r2",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
];

/// Computes windows over floating-point numbers without subtraction. Runs after types are coerced.
#[derive(Debug)]
pub(in crate::query) struct FloatFrames;

impl AnalyzerRule for FloatFrames {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries_dyn(|plan| {
            let LogicalPlan::Window(window) = &plan else { return Ok(Transformed::no(plan)) };
            let schema = Arc::clone(window.input.schema());
            rewrite_expressions(plan, |expr| match expr {
                Expr::WindowFunction(function) => without_subtraction(function, &schema),
                other => Ok(Transformed::no(other)),
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &'static str {
        "FloatFrames"
    }
}

fn without_subtraction(mut function: Box<WindowFunction>, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut has_floats = false;
    for argument in &function.params.args {
        has_floats |= matches!(argument.get_type(schema)?, DataType::Float64 | DataType::Float32);
    }
    let slides = !function.params.window_frame.start_bound.is_unbounded();
    let sliding = match &function.fun {
        WindowFunctionDefinition::AggregateUDF(udf) if has_floats && slides => {
            let is_known = SUBTRACTING.contains(&udf.name()) && !udf.inner().is::<FloatFrame>();
            is_known.then(|| AggregateUDF::new_from_impl(FloatFrame { inner: Arc::clone(udf) }))
        }
        _ => None,
    };
    let changes = sliding.is_some();
    if let Some(sliding) = sliding {
        function.fun = WindowFunctionDefinition::AggregateUDF(Arc::new(sliding));
    }
    Ok(Transformed::new_transformed(Expr::WindowFunction(function), changes))
}

/// A function that never subtracts.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatFrame {
    inner: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for FloatFrame {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let back = self.inner.accumulator(args.clone())?;
        let recipe = Recipe::new(Arc::clone(&self.inner), &args);
        Ok(Box::new(Frame { recipe, front: Vec::new(), back, rows: Vec::new() }))
    }
}

/// What it takes to make an accumulator.
#[derive(Debug)]
struct Recipe {
    function: Arc<AggregateUDF>,
    schema: SchemaRef,
    return_field: FieldRef,
    order_bys: Vec<PhysicalSortExpr>,
    name: String,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    expr_fields: Vec<FieldRef>,
    flags: (bool, bool, bool),
}

impl Recipe {
    fn new(function: Arc<AggregateUDF>, args: &AccumulatorArgs<'_>) -> Self {
        Self {
            function,
            schema: Arc::new(Schema::clone(args.schema)),
            return_field: Arc::clone(&args.return_field),
            order_bys: args.order_bys.to_vec(),
            name: args.name.to_owned(),
            exprs: args.exprs.to_vec(),
            expr_fields: args.expr_fields.to_vec(),
            flags: (args.ignore_nulls, args.is_reversed, args.is_distinct),
        }
    }

    fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        let (ignore_nulls, is_reversed, is_distinct) = self.flags;
        self.function.accumulator(AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &self.schema,
            ignore_nulls,
            order_bys: &self.order_bys,
            is_reversed,
            name: &self.name,
            is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        })
    }
}

/// The rows of one frame.
#[derive(Debug)]
struct Frame {
    recipe: Recipe,
    /// States of the oldest rows: the last is that of all of them.
    front: Vec<Vec<ScalarValue>>,
    /// State of the newest rows.
    back: Box<dyn Accumulator>,
    /// Rows of the back, in the pieces in which they came.
    rows: Vec<Vec<ArrayRef>>,
}

impl Frame {
    /// Makes the back the front.
    fn turn(&mut self) -> Result<()> {
        let mut state = self.recipe.accumulator()?;
        for piece in self.rows.drain(..).rev() {
            for row in (0..piece.first().map_or(0, |column| column.len())).rev() {
                let row: Vec<ArrayRef> = piece.iter().map(|column| column.slice(row, 1)).collect();
                state.update_batch(&row)?;
                self.front.push(state.state()?);
            }
        }
        self.back = self.recipe.accumulator()?;
        Ok(())
    }

    /// The state of all rows.
    fn whole(&mut self) -> Result<Box<dyn Accumulator>> {
        let mut whole = self.recipe.accumulator()?;
        for state in self.front.last().cloned().into_iter().chain([self.back.state()?]) {
            let state: Vec<ArrayRef> = state.iter().map(ScalarValue::to_array).collect::<Result<_>>()?;
            whole.merge_batch(&state)?;
        }
        Ok(whole)
    }
}

impl Accumulator for Frame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.rows.push(values.to_vec());
        self.back.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for _ in 0..values.first().map_or(0, |column| column.len()) {
            if self.front.is_empty() {
                self.turn()?;
            }
            self.front.pop();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.front.is_empty() { self.back.evaluate() } else { self.whole()?.evaluate() }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.whole()?.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.back.merge_batch(states)
    }

    fn size(&self) -> usize {
        let of_state = |state: &Vec<ScalarValue>| state.iter().map(ScalarValue::size).sum::<usize>();
        let rows = self.rows.iter().flatten().map(|column| column.get_array_memory_size()).sum::<usize>();
        size_of_val(self) + self.back.size() + rows + self.front.iter().map(of_state).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, RecordBatch};
    use arrow::datatypes::Float64Type;

    use crate::query::Params;
    use crate::testing::{create, session_on};

    /// Rows of the columns `k` and `d`.
    fn rows(large: &str) -> String {
        format!(
            "(VALUES (1, 1.5e0), (2, 'NaN'::double), (3, 2e0), (4, NULL), (5, 'inf'::double), (6, 4e0),
             (7, 5e0), (8, {large}), (9, 1e0), (10, 2e0), (11, 3e0), (12, 4e0)) AS v(k, d)"
        )
    }

    fn are_alike(one: &[Option<f64>], other: &[Option<f64>]) -> bool {
        let alike = |pair: (&Option<f64>, &Option<f64>)| match pair {
            (Some(a), Some(b)) => {
                a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * a.abs().max(1.0)
            }
            (a, b) => a == b,
        };
        one.len() == other.len() && one.iter().zip(other).all(alike)
    }

    #[tokio::test]
    async fn the_result_of_a_frame_is_that_of_its_rows_alone() {
        let (_folder, table) = create(
            "CREATE TABLE t (k Int64 NOT NULL, PRIMARY KEY (k)) PARTITION BY HASH(k) WITH (STORE = COLUMN)",
        )
        .await;
        let session = session_on(&table, 2, false);
        let numbers = async |sql: String| -> Vec<Option<f64>> {
            let batches = session.collect(&sql, &Params::default()).await.unwrap();
            let column = |batch: &RecordBatch| batch.column(0).as_primitive::<Float64Type>().iter().collect();
            batches.iter().flat_map(|batch| -> Vec<Option<f64>> { column(batch) }).collect()
        };
        // Differences of products of large numbers have no exact digits.
        for (function, large) in [
            ("sum(d)", "1e17"),
            ("avg(d)", "1e17"),
            ("avg(k)", "1e17"),
            ("var_pop(d)", "1e17"),
            ("stddev(d)", "1e17"),
            ("covar_pop(d, k)", "1e5"),
            ("regr_slope(d, k)", "1e5"),
        ] {
            let rows = rows(large);
            for (before, after) in [(1, 0), (0, 0), (3, 1), (2, -1), (-1, 2)] {
                let bound = |rows: i64| match rows {
                    0 => "CURRENT ROW".to_owned(),
                    1.. => format!("{rows} FOLLOWING"),
                    _ => format!("{} PRECEDING", -rows),
                };
                let frame = format!("ROWS BETWEEN {} AND {}", bound(-before), bound(after));
                let sql = format!("SELECT {function} OVER (ORDER BY k {frame}) AS r FROM {rows} ORDER BY k");
                let mut alone = Vec::new();
                for k in 1..=12 {
                    let of_frame = format!("k BETWEEN {} AND {}", k - before, k + after);
                    alone.extend(
                        numbers(format!("SELECT {function} AS r FROM {rows} WHERE {of_frame}")).await,
                    );
                }
                let slid = numbers(sql.clone()).await;
                assert!(are_alike(&slid, &alone), "{sql}\n{slid:?}\n{alone:?}");
            }
        }
    }
}
