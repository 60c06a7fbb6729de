//! DataFusion's pushdown of filters, without the moves that take other columns.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase,
    FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};

use crate::query::optimization::projection_pushdown::without_projection;
use crate::query::walk::Walk;

/// Pushes filters down as the wrapped rule does, but none by a name that is not certain.
///
/// DataFusion 55 looks up the columns of a filter by name in the input below. Above a join of two
/// tables that both have a column `points`, a condition on the second becomes one on the first;
/// this applies to WHERE above an outer join as well as to the conditions that a sort with a limit
/// or a join finds out while it runs. So below a node that would read another column, a [`Barrier`]
/// lets only filters on the other columns through. The barriers are removed afterwards.
///
/// Neither does a filter on a column that `random()` returns pass the node that computes it,
/// because it would be evaluated on other values.
#[derive(Debug)]
pub(in crate::query) struct SafeFilterPushdown {
    rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl SafeFilterPushdown {
    pub(in crate::query) fn new(rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { rule }
    }
}

impl PhysicalOptimizerRule for SafeFilterPushdown {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let separated = plan.transform_up_dyn(with_projection_apart)?.data;
        let guarded = separated.transform_up_dyn(with_barriers)?;
        let pushed = self.rule.optimize(guarded.data, config)?;
        if !guarded.transformed {
            return Ok(pushed);
        }
        Ok(pushed.transform_up_dyn(|node| Ok(without_barrier(node)))?.data)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// Gives the projection of a filter a node of its own if the input repeats names, because the
/// filter would look up in the input, by name, what it takes over from a filter above.
fn with_projection_apart(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let repeats = |filter: &FilterExec| {
        let schema = filter.input().schema();
        unique_columns(&schema).len() < schema.fields().len()
    };
    match node.downcast_ref::<FilterExec>().is_some_and(repeats) {
        true => without_projection(node),
        false => Ok(Transformed::no(node)),
    }
}

fn with_barriers(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let mut has_barrier = false;
    let mut inputs = Vec::new();
    for (position, input) in node.children().into_iter().enumerate() {
        let mut passed = certain_columns(node.as_ref(), position, &input.schema());
        passed.retain(|column| !is_drawn(input, *column));
        for column in otherwise_ordered(node.as_ref(), position, &input.schema()) {
            passed.remove(&column);
        }
        inputs.push(match passed.len() < input.schema().fields().len() {
            true => {
                has_barrier = true;
                Arc::new(Barrier { input: Arc::clone(input), passed }) as Arc<dyn ExecutionPlan>
            }
            false => Arc::clone(input),
        });
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    match has_barrier {
        true => Ok(Transformed::yes(node.replace_children(inputs, options)?)),
        false => Ok(Transformed::no(node)),
    }
}

/// Returns the columns of an input by whose values a node may find conditions while it runs that
/// exclude rows it needs, since the conditions order the values otherwise than the node does.
///
/// To a join, -0.0 equals 0.0, but the least and the greatest key exclude the other. Of lists and
/// structs with a NULL inside, comparisons take another for the least than `min` does.
fn otherwise_ordered(node: &dyn ExecutionPlan, position: usize, input: &Schema) -> Vec<usize> {
    let mut values = Vec::new();
    let join = node.downcast_ref::<HashJoinExec>();
    if let Some(join) = join {
        values.extend(join.on().iter().map(|(left, right)| if position == 0 { left } else { right }.clone()));
    } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        values.extend(aggregate.aggr_expr().iter().flat_map(|function| function.expressions()));
    }
    let is_otherwise =
        |data_type: &DataType| data_type.is_nested() || (join.is_some() && data_type.is_floating());
    values.retain(|value| value.data_type(input).is_ok_and(|data_type| is_otherwise(&data_type)));
    values.iter().flat_map(collect_columns).map(|column| column.index()).collect()
}

fn without_barrier(node: Arc<dyn ExecutionPlan>) -> Transformed<Arc<dyn ExecutionPlan>> {
    match node.downcast_ref::<Barrier>() {
        Some(barrier) => Transformed::yes(Arc::clone(&barrier.input)),
        None => Transformed::no(node),
    }
}

/// Returns the columns of an input for which the lookup by name from the node above finds the right
/// column.
fn certain_columns(node: &dyn ExecutionPlan, position: usize, input: &Schema) -> HashSet<usize> {
    let mut certain = unique_columns(input);
    let name = |column: &usize| input.field(*column).name();
    if node.is::<UnionExec>() {
        let output = node.schema();
        certain.retain(|column| output.field(*column).name() == name(column));
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        let renamed = aggregate.group_expr().expr().iter().filter(|(expr, name)| !is_named(expr, name));
        let renamed: HashSet<&str> = renamed.map(|(_, name)| name.as_str()).collect();
        certain.retain(|column| !renamed.contains(name(column).as_str()));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        // A condition on a key of the side that a semi join returns also selects rows of the other.
        let pairs = join.on().iter();
        let keys: Vec<_> = match (join.join_type(), position) {
            (JoinType::LeftSemi, 1) => pairs.map(|(left, right)| (left, right)).collect(),
            (JoinType::RightSemi, 0) => pairs.map(|(left, right)| (right, left)).collect(),
            _ => return certain,
        };
        let is_key = |column: &usize| keys.iter().any(|(returned, _)| is_named(returned, name(column)));
        let is_paired = |column: &usize| {
            keys.iter()
                .any(|(returned, other)| is_named(returned, name(column)) && is_named(other, name(column)))
        };
        certain.retain(|column| !is_key(column) || is_paired(column));
    }
    certain
}

/// Whether a plan computes a column by a function that returns another value each time, so that a
/// filter on the column must not compute it again.
fn is_drawn(plan: &Arc<dyn ExecutionPlan>, column: usize) -> bool {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return projection.expr().get(column).is_some_and(|computed| is_volatile(&computed.expr));
    }
    let scan = plan.downcast_ref::<DataSourceExec>();
    let config = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
    let projection = config.and_then(|config| config.file_source().projection());
    let computed = projection.and_then(|projection| projection.as_ref().get(column));
    computed.is_some_and(|computed| is_volatile(&computed.expr))
}

fn is_named(expr: &Arc<dyn PhysicalExpr>, name: &str) -> bool {
    expr.downcast_ref::<Column>().is_some_and(|column| column.name() == name)
}

/// Returns the columns whose names no other column has.
fn unique_columns(schema: &Schema) -> HashSet<usize> {
    let mut by_name: HashMap<&str, Option<usize>> = HashMap::with_capacity(schema.fields().len());
    for (column, field) in schema.fields().iter().enumerate() {
        by_name.entry(field.name()).and_modify(|only| *only = None).or_insert(Some(column));
    }
    by_name.into_values().flatten().collect()
}

/// A node between two others that only some filters pass, while filters are pushed down.
#[derive(Debug)]
struct Barrier {
    input: Arc<dyn ExecutionPlan>,
    /// The columns that a filter may have.
    passed: HashSet<usize>,
}

impl DisplayAs for Barrier {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Barrier")
    }
}

impl ExecutionPlan for Barrier {
    fn name(&self) -> &'static str {
        "Barrier"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = inputs.pop() else { return internal_err!("a barrier has one input") };
        Ok(Arc::new(Self { input, passed: self.passed.clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn fetch(&self) -> Option<usize> {
        self.input.fetch()
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let passed = self.passed.clone();
        let filters =
            ChildFilterDescription::from_child_with_allowed_indices(&parent_filters, passed, &self.input)?;
        Ok(FilterDescription::new().with_child(filters))
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(child_pushdown_result))
    }
}

#[cfg(test)]
#[path = "filter_pushdown_tests.rs"]
mod tests;
