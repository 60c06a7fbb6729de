//! Conditions of joins beside their equal keys.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};

/// Changes the condition of a hash or nested-loop join; other nodes, and joins for which `change`
/// returns `None`, stay as they are.
pub(in crate::query) fn with_condition(
    node: Arc<dyn ExecutionPlan>,
    change: impl Fn(&Arc<dyn PhysicalExpr>) -> Result<Option<Arc<dyn PhysicalExpr>>>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let changed = |filter: Option<&JoinFilter>| {
        let Some(filter) = filter else { return Ok(None) };
        let of_filter = |condition| {
            JoinFilter::new(condition, filter.column_indices().to_vec(), Arc::clone(filter.schema()))
        };
        Ok::<_, datafusion::error::DataFusionError>(change(filter.expression())?.map(of_filter))
    };
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = changed(join.filter())?
    {
        let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter));
        return Ok(Transformed::yes(Arc::new(join.build()?)));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>()
        && let Some(filter) = changed(join.filter())?
    {
        let join = HashJoinExecBuilder::from(join).with_filter(Some(filter));
        return Ok(Transformed::yes(Arc::new(join.build()?)));
    }
    Ok(Transformed::no(node))
}
