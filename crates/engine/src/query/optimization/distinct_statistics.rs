//! Distinct values are counted, not taken from statistics.

use std::sync::Arc;

use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use crate::query::walk::Walk;

/// Answers aggregations from statistics, unless they count distinct values.
///
/// DataFusion 55 says that a column of a constant has one distinct value, even if there are no rows
/// or the constant is NULL, and takes that for `count(DISTINCT ...)`.
#[derive(Debug)]
pub(in crate::query) struct DistinctIsCounted {
    inner: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl DistinctIsCounted {
    /// Wraps DataFusion's rule.
    pub(in crate::query) fn new(inner: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { inner }
    }
}

impl PhysicalOptimizerRule for DistinctIsCounted {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let counts_distinct = plan.exists_dyn(|node| {
            let aggregate = node.downcast_ref::<AggregateExec>();
            Ok(aggregate
                .is_some_and(|aggregate| aggregate.aggr_expr().iter().any(|function| function.is_distinct())))
        })?;
        if counts_distinct { Ok(plan) } else { self.inner.optimize(plan, config) }
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion::physical_optimizer::aggregate_statistics::AggregateStatistics;

    use super::*;
    use crate::testing::joins::{Tables, answer, tables, with_own_rule};

    #[tokio::test]
    async fn constants_without_rows_and_null_have_no_distinct_values() {
        let Tables { ours, .. } = &tables().await;
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("k", Arc::clone(&numbers), true),
            ("c", numbers, true),
        ]);
        ours.register_batch("numbers", batch.unwrap()).unwrap();
        let sql = "SELECT count(*) AS n, count(DISTINCT a.k) AS d, max(b.c) AS m
            FROM (SELECT * FROM numbers LIMIT 0) a FULL JOIN numbers b ON a.k = b.k WHERE a.c <> a.c AND b.k IS NULL";
        let expected = "+---+---+---+\n| n | d | m |\n+---+---+---+\n| 0 | 0 |   |\n+---+---+---+";
        assert_eq!(answer(ours, sql).await, expected);
        let twin = with_own_rule(ours, Arc::new(AggregateStatistics::new()));
        assert_ne!(answer(&twin, sql).await, expected, "DataFusion answers right: the rule may go");
    }
}
