//! Finds sorts with a limit whose rows come straight from a scan.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

use super::FirstRows;
use crate::query::scan::ordered_scan::OrderedScan;
use crate::query::walk::Walk;

/// Number of rows up to which a scan looks for the first ones: a sort of more is rarely about the
/// first.
const MOST_ROWS: usize = 10_000;

/// Lets scans look for the rows that a sort with a limit asks for, if each row that the scan
/// returns reaches the sort.
#[derive(Debug)]
pub(in crate::query) struct FindFirstRows;

impl PhysicalOptimizerRule for FindFirstRows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let told = |node: Arc<dyn ExecutionPlan>| {
            let Some(first) = node.downcast_ref::<SortExec>().and_then(first_rows) else {
                return Ok(Transformed::no(node));
            };
            let inputs = node.children().into_iter().map(|input| with_first_rows(input, &first));
            match inputs.collect::<Result<Option<Vec<_>>>>()? {
                Some(inputs) => Ok(Transformed::yes(keeping_properties(node, inputs)?)),
                None => Ok(Transformed::no(node)),
            }
        };
        Ok(plan.transform_up_dyn(told)?.data)
    }

    fn name(&self) -> &'static str {
        "FindFirstRows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The rows that a sort asks for, by a key on the columns of its input.
fn first_rows(sort: &SortExec) -> Option<FirstRows> {
    let count = sort.fetch().filter(|rows| (1..=MOST_ROWS).contains(rows))?;
    let first = sort.expr().first();
    let is_nested = first.expr.data_type(&sort.input().schema()).ok()?.is_nested();
    (!is_nested && !is_volatile(&first.expr)).then(|| FirstRows {
        key: Arc::clone(&first.expr),
        order: first.options,
        count,
        condition: sort.dynamic_expressions_produced().iter().find_map(|condition| condition.expression_id()),
    })
}

/// Tells the scan of a plan that returns all of its rows; `None` if there is no such scan.
fn with_first_rows(
    plan: &Arc<dyn ExecutionPlan>,
    first: &FirstRows,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = OrderedScan::from_plan(plan.as_ref()) {
        let Some(config) = OrderedScan::config_of(plan.as_ref()) else { return Ok(None) };
        let Some(projection) = config.file_source().projection() else { return Ok(None) };
        let key = below(&first.key, projection)?;
        return Ok(key
            .filter(|_| config.limit.is_none())
            .map(|key| scan.with_first_rows(FirstRows { key, ..first.clone() })));
    }
    let first = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let Some(key) = below(&first.key, projection.projection_expr())? else { return Ok(None) };
        FirstRows { key, ..first.clone() }
    } else if plan.downcast_ref::<CoalescePartitionsExec>().is_some_and(|all| all.fetch().is_none()) {
        first.clone()
    } else {
        return Ok(None);
    };
    let inputs = plan.children().into_iter().map(|input| with_first_rows(input, &first));
    match inputs.collect::<Result<Option<Vec<_>>>>()? {
        Some(inputs) => keeping_properties(Arc::clone(plan), inputs).map(Some),
        None => Ok(None),
    }
}

/// Returns a key on the columns of a projection in terms of the columns of its input; `None` if it
/// is computed by a function that returns another value each time, or depends on no column.
fn below(key: &Arc<dyn PhysicalExpr>, projection: &ProjectionExprs) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let mut is_known = true;
    let mut has_column = false;
    let key = Arc::clone(key).transform_up_dyn(|part| {
        let Some(column) = part.downcast_ref::<Column>() else { return Ok(Transformed::no(part)) };
        match projection.as_ref().get(column.index()) {
            Some(computed) => {
                has_column |= !collect_columns(&computed.expr).is_empty();
                Ok(Transformed::yes(Arc::clone(&computed.expr)))
            }
            None => {
                is_known = false;
                Ok(Transformed::no(part))
            }
        }
    })?;
    Ok((is_known && has_column && !is_volatile(&key.data)).then_some(key.data))
}

fn keeping_properties(
    node: Arc<dyn ExecutionPlan>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    node.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
}
