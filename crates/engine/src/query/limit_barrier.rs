//! Keeps conditions that are known only while a query runs above the limits below them.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::LocalLimitExec;

use crate::query::float_groups::FloatGroups;

/// Puts a limit above each node that has absorbed one.
///
/// A hash join, and a sort with a limit, pass down to the scan a condition that selects the rows
/// that can still matter. DataFusion 55 passes such conditions through nodes that stop after a
/// number of rows, including scans: in `(SELECT a FROM t ORDER BY k LIMIT 100) INTERSECT ...`, the
/// first 100 rows would be selected from those that match the other side. No condition passes a
/// limit that is a node of its own, so each such node gets one, which cuts nothing that is not cut
/// already. The rule must run before the last pushdown of filters, and after that of limits.
#[derive(Debug)]
pub(crate) struct LimitBarrier;

/// Returns the rules with those about limits inserted at their place.
pub fn with_limit_rules(
    mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let last_pushdown = rules.iter().rposition(|rule| rule.name().starts_with("FilterPushdown"));
    let place = last_pushdown.unwrap_or(rules.len());
    rules.splice(place..place, [Arc::new(FloatGroups) as _, Arc::new(LimitBarrier) as _]);
    rules
}

impl PhysicalOptimizerRule for LimitBarrier {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let above = |node: Arc<dyn ExecutionPlan>| match node.fetch() {
            Some(rows) if passes_filters(node.as_ref()) => {
                Transformed::yes(Arc::new(LocalLimitExec::new(node, rows)) as Arc<dyn ExecutionPlan>)
            }
            _ => Transformed::no(node),
        };
        Ok(plan.transform_up(|node| Ok(above(node)))?.data)
    }

    fn name(&self) -> &'static str {
        "LimitBarrier"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a node with a limit may pass conditions down. Sorts, merges of sorted streams and table
/// scans handle them correctly, and limits pass nothing down.
fn passes_filters(node: &dyn ExecutionPlan) -> bool {
    let safe = ["SortExec", "SortPreservingMergeExec", "GlobalLimitExec", "LocalLimitExec", "DataSourceExec"];
    !safe.contains(&node.name())
}
