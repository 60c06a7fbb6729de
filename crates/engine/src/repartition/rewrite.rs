//! Carries out a new partitioning.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;
use futures::stream::select_all;
use tokio::sync::Notify;

use crate::query::{QueryError, SnapshotTable};
use crate::repartition::error::RepartitionError;
use evenkeel_model::table::TableSpec;
use evenkeel_model::units::{ByteSize, PartitionId};
use evenkeel_storage::TableStorage;
use evenkeel_store::ingest::{Committed, Ingest, IngestError, IngestMode, IngestOptions, MIN_MEMORY};
use evenkeel_store::log::{Snapshot, TableLog};

/// Partitions that are read concurrently. The rows of a single one would go to only a few new
/// partitions, which would be written unevenly.
const PARTITIONS_AT_ONCE: usize = 8;
/// Divisor of the memory budget: reading may take this part of it, and the ingest takes the rest.
const READING_PART: u64 = 3;
/// Memory of a portion that is being read: its row group, decoded pages and batches (measured).
const PER_PORTION: ByteSize = ByteSize::mib(8);

/// The table with the new partitioning.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// Log of the new table.
    pub(crate) log: TableLog,
    /// Commit of the rewritten rows.
    pub(crate) committed: Committed,
}

/// Writes the visible rows of `table` into a new table at `storage`, with one commit, which also
/// records the inputs of the old table. `progress` receives the number of rows written so far.
///
/// A location where an earlier attempt died is reused if it holds a table with the same declaration
/// and no commit but its creation.
///
/// # Errors
/// [`RepartitionError`]; the new table has no rows then.
pub(crate) async fn rewrite(
    table: &SnapshotTable,
    to: &TableSpec,
    storage: TableStorage,
    memory: ByteSize,
    interrupt: &Arc<Notify>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Rewritten, RepartitionError> {
    let (log, empty) = declare(storage, to).await?;
    let per_partition = PER_PORTION.0 * table.snapshot().max_depth().max(1);
    let reading = (memory.0 / READING_PART / per_partition).clamp(1, PARTITIONS_AT_ONCE as u64);
    let left = memory.0.saturating_sub(reading * per_partition);
    let options = IngestOptions { mode: IngestMode::Upsert, memory: ByteSize(left).max(MIN_MEMORY) };
    let reading = reading as usize;
    let mut ingest = Ingest::new(log.clone(), empty, &options)?;
    ingest.stop_on(Arc::clone(interrupt));
    if let Err(error) = push_all(table, to, &mut ingest, reading, interrupt, progress).await {
        ingest.abandon().await;
        return Err(error);
    }
    let committed = ingest.finish(table.snapshot().sources()).await?;
    Ok(Rewritten { log, committed })
}

async fn declare(storage: TableStorage, to: &TableSpec) -> Result<(TableLog, Snapshot), RepartitionError> {
    match TableLog::open(storage.clone()).await {
        Ok((log, snapshot)) if snapshot.commits().len() == 1 && snapshot.spec().as_ref() == to => {
            Ok((log, snapshot))
        }
        _ => Ok(TableLog::create(storage, to).await?),
    }
}

async fn push_all(
    table: &SnapshotTable,
    to: &TableSpec,
    ingest: &mut Ingest,
    at_once: usize,
    interrupt: &Notify,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), RepartitionError> {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let columns: Vec<usize> = (0..to.columns().len()).collect();
    let mut pushed = 0;
    let partitions: Vec<_> = table.snapshot().spec().partitions().ids().collect();
    for together in partitions.chunks(at_once) {
        let open = |partition: &PartitionId| -> Result<_, RepartitionError> {
            let plan = table.scan_partition(&context.state(), *partition, &columns)?;
            Ok(execute_stream(plan, context.task_ctx())?)
        };
        let mut batches = select_all(together.iter().map(open).collect::<Result<Vec<_>, _>>()?);
        loop {
            let batch = tokio::select! {
                biased;
                () = interrupt.notified() => return Err(IngestError::Interrupted.into()),
                batch = batches.try_next() => batch.map_err(QueryError::from)?,
            };
            let Some(batch) = batch else { break };
            pushed += batch.num_rows() as u64;
            let batch = as_declared(to, &batch).map_err(|source| IngestError::Copy { source })?;
            ingest.push(batch).await?;
            progress(pushed);
        }
    }
    Ok(())
}

/// Casts a batch of a scan of all columns to the types that the table declares: scans return text
/// as views.
///
/// # Errors
/// [`ArrowError`] if the columns do not match the table, or a text column would exceed 2 GiB.
fn as_declared(spec: &TableSpec, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = spec.schema().fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| match column.data_type() == field.data_type() {
        true => Ok(ArrayRef::clone(column)),
        false => cast(column, field.data_type()),
    });
    RecordBatch::try_new(SchemaRef::clone(spec.schema()), columns.collect::<Result<Vec<_>, _>>()?)
}
