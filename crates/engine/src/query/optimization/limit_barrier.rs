//! Keeps limits what they are: conditions that are known only while a query runs stay above the
//! limits below them, and the limit above a join stays away from the sorts below it.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::query::walk::Walk;

/// Puts a limit above each node that has absorbed one.
///
/// A hash join, and a sort with a limit, pass down to the scan a condition that selects the rows
/// that can still matter. DataFusion 55 passes such conditions through nodes that stop after a
/// number of rows, including scans: in `(SELECT a FROM t ORDER BY k LIMIT 100) INTERSECT ...`, the
/// first 100 rows would be selected from those that match the other side. No condition passes a
/// limit that is a node of its own, so each such node gets one, which cuts nothing that is not cut
/// already. The rule must run before the last pushdown of filters, and after that of limits.
#[derive(Debug)]
pub(in crate::query) struct LimitBarrier;

/// Keeps the limit of a sort in a node of its own, unless it sorts the rows of a scan.
///
/// When DataFusion 55 pushes a sort with a limit down, or finds that rows have its order already,
/// it gives the limit to the sorts below, even below joins: in `... WHERE k IN (SELECT k FROM t
/// ORDER BY k DESC LIMIT 100) ORDER BY k LIMIT 10`, the inner limit became 10. If there is no sort
/// below, the limit is lost: `SELECT ..., rank() OVER (ORDER BY k) ... ORDER BY k LIMIT 10`
/// returned all rows. The pushdown of limits, which runs later, gives the sort its limit back.
#[derive(Debug)]
pub(in crate::query) struct LimitsOverSorts;

impl PhysicalOptimizerRule for LimitsOverSorts {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let split = |node: Arc<dyn ExecutionPlan>| {
            let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
            let Some(rows) = sort.fetch() else { return Ok(Transformed::no(node)) };
            let is_scan = |below: &dyn ExecutionPlan| {
                below.children().is_empty() || ["ProjectionExec", "FilterExec"].contains(&below.name())
            };
            if !sort.input().exists_dyn(|below| Ok(!is_scan(below.as_ref())))? {
                return Ok(Transformed::no(node));
            }
            let sorted = SortExec::new(sort.expr().clone(), Arc::clone(sort.input()))
                .with_preserve_partitioning(sort.preserve_partitioning());
            let limited = GlobalLimitExec::new(Arc::new(sorted), 0, Some(rows));
            Ok(Transformed::yes(Arc::new(limited) as Arc<dyn ExecutionPlan>))
        };
        Ok(plan.transform_up_dyn(split)?.data)
    }

    fn name(&self) -> &'static str {
        "LimitsOverSorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
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
        Ok(plan.transform_up_dyn(|node| Ok(above(node)))?.data)
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
