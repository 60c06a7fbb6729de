//! The grouping of one stream.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{Stream, StreamExt};

use crate::query::dictionary_groups::groups::Groups;

/// How the input is read.
enum Read {
    /// Rows are grouped. Holds the number of rows grouped so far.
    Grouped(usize),
    /// Rows are returned as groups of their own.
    Converted,
    /// There are no more rows.
    Done,
}

/// The grouping of one stream.
pub(super) struct Grouping {
    input: SendableRecordBatchStream,
    groups: Groups,
    /// Memory of the groups; `None` if rows are no longer grouped.
    reservation: Option<MemoryReservation>,
    read: Read,
    /// Groups that are returned batch by batch.
    ready: Option<RecordBatch>,
    batch_size: usize,
    /// Rows after which `most_groups` applies.
    rows_of_probe: usize,
    /// Largest number of groups for one row with which grouping is worth it.
    most_groups: f64,
    metrics: BaselineMetrics,
}

impl Grouping {
    pub(super) fn new(
        input: SendableRecordBatchStream,
        groups: Groups,
        context: &TaskContext,
        metrics: BaselineMetrics,
    ) -> Self {
        // The groups can be given out at any time, so that a share of the memory suffices.
        let consumer = MemoryConsumer::new("DictionaryGroups").with_can_spill(true);
        let options = &context.session_config().options().execution;
        Self {
            input,
            groups,
            reservation: Some(consumer.register(context.memory_pool())),
            read: Read::Grouped(0),
            ready: None,
            batch_size: options.batch_size.get().max(1),
            rows_of_probe: options.skip_partial_aggregation_probe_rows_threshold,
            most_groups: options.skip_partial_aggregation_probe_ratio_threshold,
            metrics,
        }
    }

    /// Returns the states of groups.
    pub(super) fn states(self) -> impl Stream<Item = Result<RecordBatch>> + Send {
        futures::stream::try_unfold(self, |mut grouping| async move {
            Ok::<_, DataFusionError>(grouping.next().await?.map(|batch| (batch, grouping)))
        })
    }

    /// Returns the groups of all rows. If memory does not suffice for them, `combine` gets the
    /// states so far and those of each other row, and all memory.
    pub(super) async fn results(
        mut self,
        schema: SchemaRef,
        combine: impl FnOnce(Self) -> Result<SendableRecordBatchStream>,
    ) -> Result<SendableRecordBatchStream> {
        // All rows must be grouped anyway.
        self.rows_of_probe = usize::MAX;
        while let Some(rows) = self.input.next().await.transpose()? {
            let compute = self.metrics.elapsed_compute().clone();
            let _timer = compute.timer();
            self.add(&rows)?;
            if self.ready.is_some() {
                (self.read, self.reservation) = (Read::Converted, None);
                return combine(self);
            }
        }
        self.read = Read::Done;
        self.ready = self.groups.results(&schema)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, self.states())))
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.take_ready() {
                return Ok(Some(batch.record_output(&self.metrics)));
            }
            if matches!(self.read, Read::Done) {
                return Ok(None);
            }
            let Some(rows) = self.input.next().await.transpose()? else {
                self.read = Read::Done;
                self.give_out()?;
                continue;
            };
            let compute = self.metrics.elapsed_compute().clone();
            let _timer = compute.timer();
            if matches!(self.read, Read::Converted) {
                return Ok(Some(self.groups.converted(&rows)?.record_output(&self.metrics)));
            }
            self.add(&rows)?;
        }
    }

    /// Adds rows to their groups. Gives out all groups if memory does not suffice, or if grouping
    /// is not worth it.
    fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        self.groups.add(rows, self.batch_size)?;
        if let Read::Grouped(all) = &mut self.read {
            *all += rows.num_rows();
            if *all >= self.rows_of_probe && self.groups.len() as f64 > self.most_groups * *all as f64 {
                self.read = Read::Converted;
                return self.give_out();
            }
        }
        let size = self.groups.size();
        match self.reservation.as_mut().map(|memory| memory.try_resize(size)) {
            Some(Err(_)) => self.give_out(),
            Some(Ok(())) | None => Ok(()),
        }
    }

    fn give_out(&mut self) -> Result<()> {
        self.ready = self.groups.states()?;
        Ok(())
    }

    fn take_ready(&mut self) -> Option<RecordBatch> {
        let all = self.ready.take()?;
        if all.num_rows() <= self.batch_size {
            if let Some(memory) = &mut self.reservation {
                memory.free();
            }
            return Some(all);
        }
        self.ready = Some(all.slice(self.batch_size, all.num_rows() - self.batch_size));
        Some(all.slice(0, self.batch_size))
    }
}
