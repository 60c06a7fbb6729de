//! Writes portions from rows that are sorted by partition, key and position.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, partition, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, LexOrdering, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::arrivals::{ManifestEntry, NOTES, arrival_order, arrival_schema, notes_in};
use super::scan::storage_of;
use super::{Work, external, json_lines};
use evenkeel_engine::query::key_ordering;
use evenkeel_model::table::{TableDefinition, TableSpec};
use evenkeel_model::units::{ByteSize, PartitionId, Version};
use evenkeel_store::ingest::{IngestError, IngestMode, key_of};
use evenkeel_store::log::{Sequence, TableLog};
use evenkeel_store::portion::PortionEncoder;

/// Number of manifest entries per message of a task.
const MANIFEST_LINES: usize = 4096;

/// Specification of a write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WriteSpec {
    /// Directory or URL of the table.
    pub place: String,
    pub definition: TableDefinition,
    pub mode: IngestMode,
    /// Size at which a portion ends.
    pub target: ByteSize,
    /// Memory budget of an unfinished row group.
    pub group_memory: ByteSize,
}

#[derive(Debug)]
pub(super) struct Write {
    spec: Arc<WriteSpec>,
    table: Arc<TableSpec>,
    arrival: SchemaRef,
}

impl Write {
    pub(super) fn new(spec: &WriteSpec) -> Result<Self> {
        let table = TableSpec::new(spec.definition.clone());
        let table = Arc::new(table.map_err(external)?);
        Ok(Self { spec: Arc::new(spec.clone()), arrival: arrival_schema(&table), table })
    }

    fn manifest_schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("entry", DataType::Utf8, false)]))
    }
}

impl Work for Write {
    fn schema(&self) -> SchemaRef {
        Self::manifest_schema()
    }

    fn describe(&self) -> String {
        format!("TaskExec: write portions of {}", self.table.name())
    }

    fn needs(&self) -> (Distribution, Option<LexOrdering>) {
        let partition: Arc<dyn PhysicalExpr> =
            Arc::new(Column::new("__partition", self.table.columns().len()));
        let order = key_ordering(&self.arrival, &arrival_order(&self.table));
        (Distribution::KeyPartitioned(vec![partition]), order)
    }

    fn run(
        &self,
        input: SendableRecordBatchStream,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (spec, table) = (Arc::clone(&self.spec), Arc::clone(&self.table));
        let task = format!("{} {}", context.task_id().unwrap_or_default(), uuid::Uuid::new_v4());
        let mut manifest = RecordBatchReceiverStream::builder(Self::manifest_schema(), 1);
        let entries = manifest.tx();
        manifest.spawn(async move {
            let log = TableLog::in_storage(storage_of(&spec.place)?);
            let mut writer =
                Writer { spec: &spec, table: &table, log, task, under_way: None, manifest: Vec::new() };
            let mut input = input;
            while let Some(batch) = input.try_next().await? {
                writer.take(&batch).await?;
                if writer.manifest.len() >= MANIFEST_LINES && !writer.send_entries(&entries).await? {
                    return Ok(());
                }
            }
            writer.end_partition().await?;
            writer.send_entries(&entries).await?;
            Ok(())
        });
        Ok(manifest.build())
    }
}

struct Writer<'a> {
    spec: &'a WriteSpec,
    table: &'a TableSpec,
    log: TableLog,
    task: String,
    under_way: Option<OpenPartition<'a>>,
    manifest: Vec<ManifestEntry>,
}

/// Partition that is being written.
struct OpenPartition<'a> {
    partition: PartitionId,
    encoder: PortionEncoder<'a>,
    /// Last row so far, which the next one may supersede.
    held: Option<RecordBatch>,
    rows_in: u64,
    replaced: u64,
    portions: u64,
}

impl<'a> Writer<'a> {
    /// Sends the manifest so far; returns `false` if the receiver is gone.
    async fn send_entries(&mut self, entries: &mpsc::Sender<Result<RecordBatch>>) -> Result<bool> {
        let lines = Arc::new(json_lines(&std::mem::take(&mut self.manifest))?);
        let batch = RecordBatch::try_new(Write::manifest_schema(), vec![lines])?;
        Ok(entries.send(Ok(batch)).await.is_ok())
    }

    async fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = self.table.columns().len();
        let Some(partitions) =
            batch.columns().get(columns).and_then(|column| column.as_primitive_opt::<UInt32Type>())
        else {
            return internal_err!("arrivals have no partition");
        };
        let runs = partition(&[Arc::new(partitions.clone()) as ArrayRef])?.ranges();
        for run in runs {
            let rows = batch.slice(run.start, run.len());
            let number = partitions.value(run.start);
            if number == NOTES {
                self.manifest.extend(notes_in(&rows)?);
                continue;
            }
            let partition = PartitionId(number);
            if self.under_way.as_ref().is_none_or(|under_way| under_way.partition != partition) {
                self.end_partition().await?;
                self.begin(partition);
            }
            let rows = rows.project(&(0..columns).collect::<Vec<_>>())?;
            // Arrivals are nullable in all columns; rows of the table are not.
            let rows = RecordBatch::try_new(Arc::clone(self.table.schema()), rows.columns().to_vec())?;
            self.add(rows).await?;
        }
        Ok(())
    }

    fn encoder(&self, partition: PartitionId) -> PortionEncoder<'a> {
        PortionEncoder::new(self.table, partition).with_group_memory(self.spec.group_memory)
    }

    fn begin(&mut self, partition: PartitionId) {
        let encoder = self.encoder(partition);
        self.under_way =
            Some(OpenPartition { partition, encoder, held: None, rows_in: 0, replaced: 0, portions: 0 });
    }

    /// Adds rows of the current partition, keeping the last row of each key.
    async fn add(&mut self, rows: RecordBatch) -> Result<()> {
        let Some(under_way) = self.under_way.as_mut() else {
            return internal_err!("no partition is being written");
        };
        under_way.rows_in += rows.num_rows() as u64;
        let rows = match under_way.held.take() {
            Some(held) => concat_batches(rows.schema_ref(), [&held, &rows])?,
            None => rows,
        };
        let key: Vec<ArrayRef> =
            self.table.primary_key().iter().filter_map(|index| rows.columns().get(*index).cloned()).collect();
        let same = partition(&key)?.ranges();
        if let (IngestMode::Insert, Some(repeated)) = (self.spec.mode, same.iter().find(|run| run.len() > 1))
        {
            let key = key_of(self.table, &rows, repeated.start);
            return Err(external(IngestError::RepeatedKey { key }));
        }
        under_way.replaced += (rows.num_rows() - same.len()) as u64;
        let last: Vec<u32> = same.iter().map(|run| u32::try_from(run.end - 1).unwrap_or(u32::MAX)).collect();
        let Some((held, newest)) = last.split_last() else { return Ok(()) };
        under_way.held = Some(rows.slice(*held as usize, 1));
        let newest = take_record_batch(&rows, &UInt32Array::from(newest.to_vec()))?;
        if newest.num_rows() > 0 {
            under_way.encoder.push(&newest).map_err(external)?;
        }
        if under_way.encoder.bytes() >= self.spec.target.0 {
            self.end_portion().await?;
        }
        Ok(())
    }

    async fn end_portion(&mut self) -> Result<()> {
        let Some(mut under_way) = self.under_way.take() else { return Ok(()) };
        let fresh = self.encoder(under_way.partition);
        let full = std::mem::replace(&mut under_way.encoder, fresh);
        if full.rows() > 0 {
            let encoded = full.finish().map_err(external)?;
            // A placeholder: the commit sets the age.
            let ageless = Sequence { version: Version::FIRST, ordinal: 0 };
            let stored = self.log.store_portion(under_way.partition, ageless, encoded).await;
            let portion = stored.map_err(external)?;
            under_way.portions += 1;
            self.manifest.push(ManifestEntry::Portion { task: self.task.clone(), portion });
        }
        self.under_way = Some(under_way);
        Ok(())
    }

    async fn end_partition(&mut self) -> Result<()> {
        let Some(under_way) = self.under_way.as_mut() else { return Ok(()) };
        if let Some(held) = under_way.held.take() {
            under_way.encoder.push(&held).map_err(external)?;
        }
        self.end_portion().await?;
        let Some(OpenPartition { partition, rows_in, replaced, portions, .. }) = self.under_way.take() else {
            return Ok(());
        };
        self.manifest.push(ManifestEntry::Partition {
            task: self.task.clone(),
            partition,
            rows_in,
            replaced,
            portions,
        });
        Ok(())
    }
}
