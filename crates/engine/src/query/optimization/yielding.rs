//! Makes operators that return many rows for few input rows yield, so that a query can be ended
//! between their batches.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::unnest::UnnestExec;

use crate::query::walk::Walk;

/// Wraps joins and UNNEST. DataFusion makes scans yield for every batch that they return, but one
/// batch of a scan can become thousands in a join.
#[derive(Debug)]
pub(crate) struct YieldingJoins;

impl PhysicalOptimizerRule for YieldingJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wrapped = plan.transform_up_dyn(|node| {
            let multiplies = node.is::<CrossJoinExec>()
                || node.is::<NestedLoopJoinExec>()
                || node.is::<HashJoinExec>()
                || node.is::<SortMergeJoinExec>()
                || node.is::<UnnestExec>();
            Ok(match multiplies {
                true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as _),
                false => Transformed::no(node),
            })
        })?;
        Ok(wrapped.data)
    }

    fn name(&self) -> &'static str {
        "YieldingJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
