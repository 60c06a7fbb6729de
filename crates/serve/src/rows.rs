//! Rows of a running query, on their way to a client.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use evenkeel_engine::query::QueryProgress;

use crate::metrics::{Metrics, Outcome, subtract};
use crate::threads::QueryThreads;
use crate::values::{Column, Format, ValueError, columns};

/// Rows of a running query.
pub(crate) struct Rows {
    pub(crate) schema: SchemaRef,
    pub(crate) stream: SendableRecordBatchStream,
    /// Rows that were read but not sent yet.
    pub(crate) batch: Option<Batch>,
    /// Threads that compute them.
    pub(crate) threads: Option<QueryThreads>,
    /// Deadline of the statement.
    pub(crate) deadline: Option<tokio::time::Instant>,
    pub(crate) tally: Tally,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}

/// A batch of rows, the first of which may have been sent.
pub(crate) struct Batch {
    batch: RecordBatch,
    formats: Vec<Format>,
    pub(crate) columns: Vec<Column>,
    pub(crate) next: usize,
    pub(crate) rows: usize,
}

impl Batch {
    pub(crate) fn new(batch: &RecordBatch, formats: &[Format]) -> Result<Self, ValueError> {
        let columns = columns(batch, formats)?;
        Ok(Self { batch: batch.clone(), formats: formats.to_vec(), columns, next: 0, rows: batch.num_rows() })
    }

    /// Writes the remaining rows in these formats.
    pub(crate) fn write_as(&mut self, formats: &[Format]) -> Result<(), ValueError> {
        if self.formats != formats {
            self.columns = columns(&self.batch, formats)?;
            self.formats = formats.to_vec();
        }
        Ok(())
    }
}

/// Counts a query in the metrics, however it ends.
pub(crate) struct Tally {
    metrics: Arc<Metrics>,
    started: Instant,
    progress: Option<QueryProgress>,
    pub(crate) outcome: Outcome,
}

impl Tally {
    pub(crate) fn start(metrics: &Arc<Metrics>) -> Self {
        crate::metrics::add(&metrics.running_queries, 1);
        // The client abandoned a query that is dropped before its end.
        Self {
            metrics: Arc::clone(metrics),
            started: Instant::now(),
            progress: None,
            outcome: Outcome::Canceled,
        }
    }

    pub(crate) fn follow(&mut self, progress: Option<QueryProgress>) {
        self.progress = progress;
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        subtract(&self.metrics.running_queries, 1);
        self.metrics.count_query(self.outcome, self.started.elapsed());
        if let Some(progress) = &self.progress {
            self.metrics.count_bytes(progress.bytes_read(), progress.bytes_of_tables());
        }
    }
}
