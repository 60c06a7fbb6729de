//! DataFusion's rule that moves projections down, without the moves that break a plan.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::query::walk::Walk;

/// Moves projections down as the wrapped rule does, with two corrections.
///
/// DataFusion 55 reads the columns of a filter by their positions in its output when it moves a
/// projection below it, although a filter with a projection of its own numbers them differently.
/// So the projections of filters become nodes of their own first; the rule merges them again.
///
/// When it moves a projection below a repartitioning that preserves an order, it makes a
/// repartitioning that does not: an aggregation above becomes unordered, and the merge of its
/// sorted streams refuses the plan. The moves only make plans faster, so such a plan stays as it
/// is.
#[derive(Debug)]
pub(in crate::query) struct SafeProjectionPushdown {
    rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl SafeProjectionPushdown {
    pub(in crate::query) fn new(rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { rule }
    }
}

impl PhysicalOptimizerRule for SafeProjectionPushdown {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let separated = Arc::clone(&plan).transform_up_dyn(without_projection)?.data;
        let optimized = self.rule.optimize(separated, config)?;
        unless_order_is_lost(optimized, plan)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// Returns the optimized plan, or the one before if only that has the orders that its nodes
/// require.
fn unless_order_is_lost(
    optimized: Arc<dyn ExecutionPlan>,
    before: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(if lacks_order(&optimized)? && !lacks_order(&before)? { before } else { optimized })
}

/// Whether a node requires an order that its input does not have.
fn lacks_order(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists_dyn(|node| {
        for (input, required) in node.children().into_iter().zip(node.required_input_ordering()) {
            let Some(required) = required else { continue };
            let properties = input.equivalence_properties();
            if !properties.ordering_satisfy_requirement(required.into_single())? {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

/// Splits a filter with a projection into a projection over a filter.
pub(in crate::query) fn without_projection(
    node: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some((filter, projection)) =
        node.downcast_ref::<FilterExec>().and_then(|filter| Some((filter, filter.projection().as_ref()?)))
    else {
        return Ok(Transformed::no(node));
    };
    let whole = FilterExecBuilder::from(filter).apply_projection(None)?.build()?;
    let schema = whole.schema();
    let columns = projection.iter().map(|&index| {
        let name = schema.field(index).name();
        ProjectionExpr::new(Arc::new(Column::new(name, index)), name.clone())
    });
    Ok(Transformed::yes(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), Arc::new(whole))?)))
}
