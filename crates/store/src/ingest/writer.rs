//! Writes rows in the schema of the table as portions, and commits them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use tokio::sync::Notify;

use crate::ingest::buffer::Buffer;
use crate::ingest::committed::Committed;
use crate::ingest::error::IngestError;
use crate::ingest::existing::{find_common_key, find_repeated_key};
use crate::ingest::memory::MemoryPlan;
use crate::ingest::options::{IngestMode, IngestOptions};
use crate::ingest::pipeline::PortionPipeline;
use crate::log::{
    CommitDraft, CommitOutcome, LogError, Operation, PortionEntry, Snapshot, SourceEntry, TableLog,
};
use evenkeel_model::table::TableSpec;

/// Fraction of the buffer (a divisor) for rows that are not yet scattered by partition.
const STAGED_SHARE: usize = 8;

/// An ingest in progress. Dropping it without [`Ingest::finish`] leaves no visible trace;
/// [`Ingest::abandon`] also deletes the files it wrote.
#[derive(Debug)]
pub struct Ingest {
    log: TableLog,
    base: Snapshot,
    spec: Arc<TableSpec>,
    mode: IngestMode,
    memory: MemoryPlan,
    buffer: Buffer,
    pipeline: PortionPipeline,
    rows: u64,
    /// Whether to take inputs that another writer commits in the meantime.
    again: bool,
}

impl Ingest {
    /// Starts an ingest into the table at `base`.
    ///
    /// # Errors
    /// [`IngestError::Memory`] if the budget is below [`crate::ingest::LEAST_MEMORY`].
    pub fn new(log: TableLog, base: Snapshot, options: &IngestOptions) -> Result<Self, IngestError> {
        let (spec, mode) = (Arc::clone(base.spec()), options.mode);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let memory = MemoryPlan::new(options.memory, spec.partitions(), cores)?;
        let pipeline =
            PortionPipeline::new(log.clone(), Arc::clone(&spec), mode, memory.encoders, memory.group)?;
        let buffer = Buffer::new(&spec, memory.buffer.as_usize() / STAGED_SHARE);
        Ok(Self { log, base, spec, mode, memory, buffer, pipeline, rows: 0, again: false })
    }

    /// Takes rows in the schema of the table; text and bytes may be views. Of rows with the same
    /// primary key, the later one wins.
    ///
    /// # Errors
    /// [`IngestError`] if the batch has another schema, or a full buffer cannot be written.
    pub async fn push(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.check_schema(&batch.schema())?;
        self.rows += batch.num_rows() as u64;
        self.buffer.push(batch)?;
        while self.buffer.bytes() > self.memory.buffer.as_usize()
            && let Some((partition, pieces)) = self.buffer.take_fullest(self.memory.portion.as_usize())
        {
            self.pipeline.start(partition, pieces).await?;
        }
        Ok(())
    }

    /// Fails if rows have neither the schema of the table nor the same with views.
    fn check_schema(&self, schema: &Schema) -> Result<(), IngestError> {
        if schema.fields() == self.spec.schema().fields() || schema.fields() == self.buffer.schema().fields()
        {
            return Ok(());
        }
        let names = |schema: &Schema| {
            let fields = schema.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type()));
            fields.collect::<Vec<_>>().join(", ")
        };
        Err(IngestError::Schema { expected: names(self.spec.schema()), found: names(schema) })
    }

    /// Takes inputs even if the table has them already, or gets them in the meantime.
    pub(super) fn take_again(&mut self) {
        self.again = true;
    }

    /// Makes the ingest fail with [`IngestError::Interrupted`] before its commit when `interrupt`
    /// is notified, even while it writes.
    pub fn stop_on(&mut self, interrupt: Arc<Notify>) {
        self.pipeline.stop_on(interrupt);
    }

    /// Takes portions that were stored elsewhere.
    pub(super) fn adopt(&mut self, portions: Vec<PortionEntry>, rows: u64, replaced: u64) {
        self.rows += rows;
        self.pipeline.adopt(portions, replaced);
    }

    /// Rows taken so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the buffered rows and commits everything at once, together with its inputs.
    ///
    /// # Errors
    /// [`IngestError`]; nothing is visible then and the files written are deleted, except after
    /// [`crate::log::LogError::Unknown`].
    pub async fn finish(mut self, sources: Vec<SourceEntry>) -> Result<Committed, IngestError> {
        let mut base = match self.write(&sources).await {
            Ok(base) => base,
            Err(error) => {
                self.abandon().await;
                return Err(error);
            }
        };
        let draft = CommitDraft::rows(self.operation(), self.pipeline.portions(), sources.clone());
        loop {
            match self.log.try_commit(&base, &draft).await {
                Ok(CommitOutcome::Committed(snapshot)) => return Ok(self.committed(snapshot, &draft)),
                Err(error @ LogError::Swept { .. }) => {
                    self.abandon().await;
                    return Err(error.into());
                }
                // It is unknown whether a commit that failed exists, so its portions are kept.
                Err(error) => return Err(error.into()),
                Ok(CommitOutcome::Lost(newest)) => {
                    if let Err(error) = self.check_against(&base, &newest, &sources).await {
                        self.abandon().await;
                        return Err(error);
                    }
                    base = newest;
                }
            }
        }
    }

    /// Deletes the files written so far. A file that cannot be deleted is not visible in the table
    /// anyway.
    pub async fn abandon(self) {
        self.pipeline.abandon().await;
    }

    fn operation(&self) -> Operation {
        match self.mode {
            IngestMode::Upsert => Operation::Upsert,
            IngestMode::Insert => Operation::Insert,
        }
    }

    /// Writes the buffered rows. Returns the snapshot that they were checked against.
    async fn write(&mut self, sources: &[SourceEntry]) -> Result<Snapshot, IngestError> {
        for (partition, pieces) in self.buffer.take_rest(self.memory.portion.as_usize())? {
            self.pipeline.start(partition, pieces).await?;
        }
        self.pipeline.drain().await?;
        if self.mode == IngestMode::Upsert {
            return Ok(self.base.clone());
        }
        let portions = self.pipeline.portions();
        find_repeated_key(self.log.storage(), &self.spec, &portions).await?;
        // The portions of an older version may have been compacted and cleaned away.
        let newest = self.log.refresh(&self.base).await?;
        self.check_sources(&self.base, &newest, sources)?;
        find_common_key(self.log.storage(), &self.spec, &portions, &newest.portions()).await?;
        Ok(newest)
    }

    /// Fails if another writer has committed one of the inputs since `base`.
    fn check_sources(
        &self,
        base: &Snapshot,
        newest: &Snapshot,
        sources: &[SourceEntry],
    ) -> Result<(), IngestError> {
        for source in sources.iter().filter(|_| !self.again) {
            let before = base.source_version(&source.xxh3);
            if let (None, Some(version)) = (before, newest.source_version(&source.xxh3)) {
                return Err(IngestError::TakenMeanwhile { name: source.name.clone(), version });
            }
        }
        Ok(())
    }

    /// Fails if commits of other writers since `base` forbid this one.
    async fn check_against(
        &self,
        base: &Snapshot,
        newest: &Snapshot,
        sources: &[SourceEntry],
    ) -> Result<(), IngestError> {
        self.check_sources(base, newest, sources)?;
        if self.mode == IngestMode::Insert {
            let known: HashSet<String> = base.portions().iter().map(|portion| portion.path.clone()).collect();
            let fresh: Vec<_> =
                newest.portions().into_iter().filter(|portion| !known.contains(&portion.path)).collect();
            find_common_key(self.log.storage(), &self.spec, &self.pipeline.portions(), &fresh).await?;
        }
        Ok(())
    }

    fn committed(&self, snapshot: Snapshot, draft: &CommitDraft) -> Committed {
        Committed {
            version: snapshot.version_of(draft.id()).unwrap_or(snapshot.version()),
            snapshot,
            rows: self.rows,
            replaced: self.pipeline.replaced(),
            writes: self.pipeline.writes().to_vec(),
        }
    }
}
