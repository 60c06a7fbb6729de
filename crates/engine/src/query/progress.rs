//! How far a running query is.

use std::fmt;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use crate::query::local_joins::PartitionwiseExec;

/// How many rows a running query has read.
#[derive(Clone)]
pub struct QueryProgress {
    plan: Arc<dyn ExecutionPlan>,
    rows: u64,
}

impl QueryProgress {
    /// Creates the progress of a plan whose scans of tables read at most `rows` rows.
    pub(super) fn new(plan: Arc<dyn ExecutionPlan>, rows: u64) -> Self {
        Self { plan, rows }
    }

    /// Returns the number of rows in the portions of tables that the query reads; rows of exports
    /// are not known before they are read. A query may read fewer.
    #[must_use]
    pub fn rows_to_read(&self) -> u64 {
        self.rows
    }

    /// Returns the number of rows that scans have returned so far.
    #[must_use]
    pub fn rows_read(&self) -> u64 {
        rows_of_scans(&self.plan)
    }
}

impl fmt::Debug for QueryProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryProgress").field("rows", &self.rows).finish_non_exhaustive()
    }
}

fn rows_of_scans(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    if let Some(node) = plan.downcast_ref::<PartitionwiseExec>() {
        return node.started().iter().map(rows_of_scans).sum();
    }
    let children = plan.children();
    if !children.is_empty() {
        return children.into_iter().map(rows_of_scans).sum();
    }
    let rows = plan.metrics().and_then(|metrics| metrics.output_rows());
    rows.map_or(0, |rows| rows as u64)
}
