//! Groups of ROLLUP, CUBE and GROUPING SETS, whose orders and constants must not be assumed.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use crate::query::optimization::nulls_of_joins::without_knowledge;
use crate::query::walk::Walk;

/// Hides from groupings by several sets what is known about their rows.
///
/// A column that a set leaves out is NULL in its groups. But DataFusion 55 takes a column that is
/// constant or equal to another one before such a grouping for one that is so after it:
/// `WHERE k = 3 GROUP BY CUBE (k, c) ORDER BY k, c` was not sorted by k. A union with no rows gives
/// the same rows and knows nothing about them:
///
/// ```text
/// grouping by sets         grouping by sets
///   └─ rows of k = 3   ──►   └─ union
///                                 ├─ rows of k = 3
///                                 └─ no rows
/// ```
/// Must run before the rules that rely on orders.
#[derive(Debug)]
pub(in crate::query) struct SetsOfGroups;

impl PhysicalOptimizerRule for SetsOfGroups {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let hide = |node: Arc<dyn ExecutionPlan>| {
            let Some(grouping) = node.downcast_ref::<AggregateExec>() else {
                return Ok(Transformed::no(node));
            };
            if grouping.group_expr().groups().len() < 2
                || grouping.mode().input_mode() != AggregateInputMode::Raw
            {
                return Ok(Transformed::no(node));
            }
            let union = without_knowledge(grouping.input())?;
            replace_children_if_necessary(node, vec![union]).map(Transformed::yes)
        };
        Ok(plan.transform_up_dyn(hide)?.data)
    }

    fn name(&self) -> &'static str {
        "SetsOfGroups"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
