//! One merge: reads portions, drops rows and writes the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use datafusion::execution::TaskContext;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use futures::stream::TryStreamExt;
use tokio::sync::mpsc;

use crate::compact::encode::{RowCounts, RunShape, encode_run};
use crate::compact::error::CompactionError;
use crate::compact::expiry::Expiry;
use crate::compact::policy::Merge;
use crate::query::{QueryError, SnapshotTable};
use evenkeel_model::units::{ByteSize, PartitionId};
use evenkeel_store::log::{PortionEntry, TableLog};
use evenkeel_store::portion::EncodedPortion;

/// Batches buffered between reading and encoding.
const IN_FLIGHT: usize = 2;

/// State that the workers of a round share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Rows read.
    rows: AtomicU64,
    /// Whether the workers should end.
    stop: AtomicBool,
}

impl Shared {
    /// Rows read so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Makes every worker end.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Worker that merges one set.
pub(super) struct Worker {
    pub(super) log: TableLog,
    pub(super) table: Arc<SnapshotTable>,
    pub(super) context: Arc<SessionContext>,
    pub(super) shared: Arc<Shared>,
    pub(super) partition: PartitionId,
    pub(super) target: ByteSize,
    pub(super) group_memory: ByteSize,
    pub(super) expiry: Option<Expiry>,
}

impl Worker {
    /// Merges the set and stores the result. `stored` receives the stored portions, even on
    /// failure.
    pub(super) async fn merge(
        &self,
        merge: &Merge,
        stored: &mut Vec<PortionEntry>,
    ) -> Result<RowCounts, CompactionError> {
        self.check_files(merge).await?;
        let shape = self.shape(merge);
        let Some(sequence) = merge.sequence() else { return Ok(RowCounts::default()) };
        let plan = self.table.scan_portions(&self.context.state(), &merge.portions, merge.keeps_deletes());
        let plan = plan.map_err(QueryError::from)?;
        let (batches, to_encode) = mpsc::channel(IN_FLIGHT);
        let (encoded, mut to_store) = mpsc::channel::<EncodedPortion>(1);
        let encoding = tokio::task::spawn_blocking(move || encode_run(&shape, to_encode, &encoded));
        let task: Arc<TaskContext> = self.context.task_ctx();
        let read = async move {
            let mut rows = execute_stream(plan, task).map_err(QueryError::from)?;
            while let Some(batch) = rows.try_next().await.map_err(QueryError::from)? {
                self.go_on()?;
                self.shared.rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                if batches.send(batch).await.is_err() {
                    break;
                }
            }
            Ok::<(), CompactionError>(())
        };
        let store = async move {
            while let Some(portion) = to_store.recv().await {
                stored.push(self.log.store_portion(self.partition, sequence, portion).await?);
            }
            Ok::<(), CompactionError>(())
        };
        // A task that fails drops its end of a channel, which ends the others too.
        let (read, stored) = tokio::join!(read, store);
        let counts = encoding.await.map_err(|error| CompactionError::Worker { reason: error.to_string() })?;
        read?;
        stored?;
        counts
    }

    /// Refuses damaged files, so that they do not become valid files with damaged rows.
    async fn check_files(&self, merge: &Merge) -> Result<(), CompactionError> {
        for portion in &merge.portions {
            self.go_on()?;
            if let Some(damage) = self.log.damage(portion).await {
                let table = self.log.storage().name().to_owned();
                return Err(CompactionError::Damaged { table, file: portion.path.clone(), damage });
            }
        }
        Ok(())
    }

    /// Settings for writing the merged run.
    fn shape(&self, merge: &Merge) -> RunShape {
        let bytes = merge.bytes() as f64;
        let pieces = (bytes / self.target.0 as f64).round();
        RunShape {
            spec: Arc::clone(self.table.snapshot().spec()),
            partition: self.partition,
            // Equal pieces, rather than full ones and a small remainder.
            target: if pieces > 1.0 { (bytes / pieces) as u64 } else { self.target.0 * 2 },
            most_rows: usize::try_from(merge.rows_and_deletes()).unwrap_or(usize::MAX),
            keeps_deletes: merge.keeps_deletes(),
            group_memory: self.group_memory,
            expiry: self.expiry.clone().filter(|_| merge.hides_nothing),
        }
    }

    fn go_on(&self) -> Result<(), CompactionError> {
        if self.shared.stop.load(Ordering::Relaxed) { Err(CompactionError::Interrupted) } else { Ok(()) }
    }
}
