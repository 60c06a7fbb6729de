//! The first rows by lists or structs, found by sorting all rows.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::query::walk::Walk;

/// Sorts all rows before a limit if the sort is by lists or structs.
///
/// DataFusion 55 keeps the first rows in a heap, and compares further ones with the last of them.
/// The comparison takes a NULL inside a list or struct for the least value, while the sort places
/// it as it places NULL, so that rows are left out.
#[derive(Debug)]
pub(in crate::query) struct NestedTops;

impl PhysicalOptimizerRule for NestedTops {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sorted_first = |node: Arc<dyn ExecutionPlan>| {
            let sort = node.downcast_ref::<SortExec>().filter(|sort| has_nested_key(sort));
            Ok(match sort.and_then(|sort| Some((sort, sort.fetch()?))) {
                Some((sort, rows)) => {
                    let all = Arc::new(sort.with_fetch(None));
                    Transformed::yes(Arc::new(LocalLimitExec::new(all, rows)) as Arc<dyn ExecutionPlan>)
                }
                None => Transformed::no(node),
            })
        };
        Ok(plan.transform_up_dyn(sorted_first)?.data)
    }

    fn name(&self) -> &'static str {
        "NestedTops"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn has_nested_key(sort: &SortExec) -> bool {
    let schema = sort.input().schema();
    sort.expr().iter().any(|key| key.expr.data_type(&schema).is_ok_and(|data_type| data_type.is_nested()))
}
