//! Ends joins within a batch.
//!
//! A join evaluates its condition on millions of pairs before it has a batch of rows that meet it,
//! and does not yield meanwhile. The condition of an abandoned query fails instead.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema};
use datafusion::common::{internal_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;

use crate::query::computed_once::release_rows;
use crate::query::optimization::join_filters::with_condition;
use crate::query::walk::Walk;

/// Whether a query continues. Its joins, and the tasks that compute rows once for several readers,
/// end when this value, which the consumer holds, is dropped.
#[derive(Debug, Default)]
pub(in crate::query) struct Consumer {
    is_over: Arc<AtomicBool>,
    plan: Option<Arc<dyn ExecutionPlan>>,
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.plan.iter().for_each(release_rows);
    }
}

impl Consumer {
    /// Returns the plan with joins that end with this consumer.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub(in crate::query) fn stoppable(
        &mut self,
        plan: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let watched = |condition: &Arc<dyn PhysicalExpr>| {
            let watched = Watched { condition: Arc::clone(condition), is_over: Arc::clone(&self.is_over) };
            Ok(Some(Arc::new(watched) as Arc<dyn PhysicalExpr>))
        };
        let plan = plan.transform_up_dyn(|node| with_condition(node, watched))?.data;
        self.plan = Some(Arc::clone(&plan));
        Ok(plan)
    }
}

/// A condition that fails once its query is over.
#[derive(Debug)]
struct Watched {
    condition: Arc<dyn PhysicalExpr>,
    is_over: Arc<AtomicBool>,
}

impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition) && Arc::ptr_eq(&self.is_over, &other.is_over)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PhysicalExpr for Watched {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.condition.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.is_over.load(Ordering::Relaxed) {
            return plan_err!("nobody waits for this query any longer");
        }
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(condition), true) => Ok(Arc::new(Self { condition, is_over: Arc::clone(&self.is_over) })),
            _ => internal_err!("a watched condition has one child"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use futures::StreamExt;

    use crate::testing::{overlapping_commits, scores};
    use evenkeel_sql::Params;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn joins_that_find_nothing_end_with_their_query() {
        let (_folder, table) = scores(&overlapping_commits()).await;
        let session = table.session().unwrap();
        for join in ["JOIN", "LEFT JOIN"] {
            // Hundreds of millions of pairs, none of which meet the condition.
            let sql = format!(
                "WITH n AS (SELECT unnest(range(1, 20000)) AS v) \
                 SELECT count(*) FROM n a {join} n b ON a.v + b.v < 0 {join} n c ON a.v * c.v < 0"
            );
            let mut result = session.query(&sql, &Params::default()).await.unwrap();
            let first = tokio::time::timeout(Duration::from_millis(200), result.batches.next()).await;
            assert!(first.is_err(), "{join}: it is still running");
            drop(result);
            // The threads are free again, and run the next query.
            let started = Instant::now();
            let next = session.collect("SELECT 1 AS one", &Params::default()).await.unwrap();
            assert_eq!(next[0].num_rows(), 1);
            assert!(started.elapsed() < Duration::from_secs(60), "{join}");
        }
    }
}
