//! Keeps the orders that plans rely on.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

/// A rule that applies only if each node still finds its input in the order it requires.
///
/// When DataFusion 55 moves a projection below a repartitioning that preserves an order, it makes a
/// repartitioning that does not: an aggregation above becomes unordered, and the merge of its
/// sorted streams refuses the plan. The moves only make plans faster, so such a plan stays as it
/// is.
#[derive(Debug)]
pub(super) struct KeptOrders {
    rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl KeptOrders {
    pub(super) fn new(rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { rule }
    }
}

impl PhysicalOptimizerRule for KeptOrders {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let optimized = self.rule.optimize(Arc::clone(&plan), config)?;
        Ok(if lacks_order(&optimized)? && !lacks_order(&plan)? { plan } else { optimized })
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// Whether a node requires an order that its input does not have.
fn lacks_order(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| {
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
