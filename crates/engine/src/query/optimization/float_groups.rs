//! Groups of floating-point numbers are all kept until they are sorted.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use crate::query::walk::Walk;

/// Removes ordered limits from aggregations by a floating-point number.
///
/// For `SELECT DISTINCT f FROM t ORDER BY f LIMIT 10`, DataFusion 55 keeps only the first ten
/// groups while it aggregates, in a table that finds keys by `==`. A NaN equals nothing, so each
/// NaN becomes a group of its own, or cannot be found again, which panics.
#[derive(Debug)]
pub(in crate::query) struct FloatGroups;

impl PhysicalOptimizerRule for FloatGroups {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let unlimited = |node: Arc<dyn ExecutionPlan>| {
            let Some(aggregate) = node.downcast_ref::<AggregateExec>() else {
                return Ok(Transformed::no(node));
            };
            let is_ordered = aggregate.limit_options().is_some_and(|options| options.descending.is_some());
            if !is_ordered || !has_float_key(aggregate)? {
                return Ok(Transformed::no(node));
            }
            Ok(Transformed::yes(Arc::new(aggregate.with_new_limit_options(None)) as Arc<dyn ExecutionPlan>))
        };
        Ok(plan.transform_up_dyn(unlimited)?.data)
    }

    fn name(&self) -> &'static str {
        "FloatGroups"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn has_float_key(aggregate: &AggregateExec) -> Result<bool> {
    let schema = aggregate.input().schema();
    for (key, _) in aggregate.group_expr().expr() {
        if key.data_type(&schema)?.is_floating() {
            return Ok(true);
        }
    }
    Ok(false)
}
