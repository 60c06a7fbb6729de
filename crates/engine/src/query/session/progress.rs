//! Progress of a running query.

use std::fmt;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;

use crate::query::local_joins::PartitionwiseExec;
use crate::query::scan::scan_summary::ScanSummary;

/// Number of rows and bytes that a running query has read.
#[derive(Clone)]
pub struct QueryProgress {
    plan: Arc<dyn ExecutionPlan>,
    rows: u64,
    bytes: u64,
}

impl QueryProgress {
    /// Creates the progress of a plan with these scans of tables.
    pub(in crate::query) fn new(plan: Arc<dyn ExecutionPlan>, scans: &[ScanSummary]) -> Self {
        let rows = scans.iter().map(|scan| scan.rows_in_portions).sum();
        let bytes = scans.iter().map(|scan| scan.bytes).sum();
        Self { plan, rows, bytes }
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
        sum_of_scans(&self.plan, &|metrics| metrics.output_rows())
    }

    /// Returns the number of bytes that scans have read of files so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        sum_of_scans(&self.plan, &|metrics| Some(metrics.sum_by_name("bytes_scanned")?.as_usize()))
    }

    /// Returns the number of bytes of all portions of the tables that the query reads, once for
    /// each of their scans.
    #[must_use]
    pub fn bytes_of_tables(&self) -> u64 {
        self.bytes
    }
}

impl fmt::Debug for QueryProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryProgress").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// Sums a metric of all scans below a plan.
fn sum_of_scans(plan: &Arc<dyn ExecutionPlan>, metric: &dyn Fn(&MetricsSet) -> Option<usize>) -> u64 {
    if let Some(node) = plan.downcast_ref::<PartitionwiseExec>() {
        // The parts of a scan share its metrics, so that each plan has the figures of all.
        return node.started().iter().map(|plan| sum_of_scans(plan, metric)).max().unwrap_or(0);
    }
    let children = plan.children();
    if !children.is_empty() {
        return children.into_iter().map(|plan| sum_of_scans(plan, metric)).sum();
    }
    plan.metrics().and_then(|metrics| metric(&metrics)).map_or(0, |value| value as u64)
}
