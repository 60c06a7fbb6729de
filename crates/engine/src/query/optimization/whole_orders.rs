//! Merges of sorted streams by all that the streams are sorted by.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::query::walk::Walk;

/// Merges streams by their whole order instead of the beginning that the node above needs.
///
/// DataFusion 55 takes the result of a merge for sorted as each of its streams is. But streams that
/// are sorted by (k, j) and merged by k come out sorted by k alone: rows with the same k follow
/// each other in the order of the streams. `SELECT ..., rank() OVER (ORDER BY k) ... ORDER BY k, j`
/// was not sorted by j.
#[derive(Debug)]
pub(in crate::query) struct WholeOrders;

impl PhysicalOptimizerRule for WholeOrders {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let whole = |node: Arc<dyn ExecutionPlan>| {
            let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() else {
                return Ok(Transformed::no(node));
            };
            let input = merge.input();
            let Some(order) = input.output_ordering() else { return Ok(Transformed::no(node)) };
            let schema = input.schema();
            let continues = order.len() > merge.expr().len()
                && merge.expr().iter().zip(order).all(|(by, other)| is_same(by, other, &schema));
            if !continues {
                return Ok(Transformed::no(node));
            }
            let mut by = merge.expr().clone();
            by.extend(order.iter().skip(merge.expr().len()).cloned());
            let merge = SortPreservingMergeExec::new(by, Arc::clone(input)).with_fetch(merge.fetch());
            Ok(Transformed::yes(Arc::new(merge) as Arc<dyn ExecutionPlan>))
        };
        Ok(plan.transform_up_dyn(whole)?.data)
    }

    fn name(&self) -> &'static str {
        "WholeOrders"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether two expressions sort alike. The place of NULL does not matter if there is no NULL.
fn is_same(a: &PhysicalSortExpr, b: &PhysicalSortExpr, schema: &Schema) -> bool {
    let has_null = || a.expr.nullable(schema).unwrap_or(true);
    a.expr.eq(&b.expr)
        && a.options.descending == b.options.descending
        && (a.options.nulls_first == b.options.nulls_first || !has_null())
}
