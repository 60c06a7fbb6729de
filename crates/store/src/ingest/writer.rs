//! Writes rows in the schema of the table as portions, and commits them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::datatypes::Schema;
use tokio::sync::Notify;

use crate::ingest::buffer::Buffer;
use crate::ingest::committed::Committed;
use crate::ingest::deletes::{marked, rows_of_keys};
use crate::ingest::error::IngestError;
use crate::ingest::existing::{find_common_key, find_repeated_key};
use crate::ingest::memory::MemoryPlan;
use crate::ingest::options::{IngestMode, IngestOptions};
use crate::ingest::pipeline::PortionPipeline;
use crate::log::{
    CommitDraft, CommitOutcome, CommitSummary, LogError, Operation, PortionEntry, Snapshot, SourceEntry,
    TableLog,
};
use evenkeel_model::table::{TableSpec, view_schema};

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
    /// Whether to ingest inputs that another writer commits in the meantime.
    again: bool,
    /// Whether to fail if another writer changes rows in the meantime.
    only_on_base: bool,
}

impl Ingest {
    /// Starts an ingest into the table at `base`.
    ///
    /// # Errors
    /// [`IngestError::Memory`] if the budget is below [`crate::ingest::MIN_MEMORY`].
    pub fn new(log: TableLog, base: Snapshot, options: &IngestOptions) -> Result<Self, IngestError> {
        let (spec, mode) = (Arc::clone(base.spec()), options.mode);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let memory = MemoryPlan::new(options.memory, spec.partitions(), cores)?;
        let pipeline =
            PortionPipeline::new(log.clone(), Arc::clone(&spec), mode, memory.encoders, memory.group)?;
        let buffer = Buffer::new(&spec, memory.buffer.as_usize() / STAGED_SHARE, memory.threads)?;
        let ingest = Self {
            log,
            base,
            spec,
            mode,
            memory,
            buffer,
            pipeline,
            rows: 0,
            again: false,
            only_on_base: false,
        };
        Ok(if mode == IngestMode::Delete { ingest.with_deletes() } else { ingest })
    }

    /// Makes the ingest accept deletes, too. To be called before the first row.
    #[must_use]
    pub fn with_deletes(self) -> Self {
        if self.buffer.has_marks() {
            return self;
        }
        Self { buffer: self.buffer.with_marks(), pipeline: self.pipeline.with_marks(), ..self }
    }

    /// Makes the ingest fail with [`IngestError::ChangedMeanwhile`] if another writer changes rows
    /// of the table before it commits.
    #[must_use]
    pub fn only_on_base(self) -> Self {
        Self { only_on_base: true, ..self }
    }

    /// Takes rows in the schema of the table; text and bytes may be views. Of rows with the same
    /// primary key, the later one wins.
    ///
    /// # Errors
    /// [`IngestError`] if the batch has another schema, or a full buffer cannot be written.
    pub async fn push(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        self.push_marked(batch, None).await
    }

    /// Accepts rows like [`Ingest::push`]; marked rows delete the rows with their keys, if the
    /// ingest accepts deletes. Their other columns have no meaning.
    ///
    /// # Errors
    /// As for [`Ingest::push`].
    pub async fn push_marked(
        &mut self,
        batch: RecordBatch,
        marks: Option<BooleanArray>,
    ) -> Result<(), IngestError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.check_schema(&batch.schema())?;
        let batch = match (self.buffer.has_marks(), marks) {
            (false, None) => batch,
            (false, Some(_)) => {
                return Err(IngestError::Worker { reason: "the ingest accepts no deletes".to_owned() });
            }
            (true, marks) => {
                let all = || BooleanArray::from(vec![self.mode == IngestMode::Delete; batch.num_rows()]);
                let marks = marks.unwrap_or_else(all);
                marked(&batch, marks).map_err(|source| IngestError::Copy { source })?
            }
        };
        self.rows += batch.num_rows() as u64;
        self.buffer.push(batch)?;
        while self.buffer.bytes() > self.memory.buffer.as_usize()
            && let Some((partition, pieces)) = self.buffer.take_fullest(self.memory.portion.as_usize())
        {
            self.pipeline.start(partition, pieces).await?;
        }
        Ok(())
    }

    /// Deletes the rows with these primary keys, whose columns are in key order.
    ///
    /// # Errors
    /// As for [`Ingest::push_marked`].
    pub async fn delete(&mut self, keys: &RecordBatch) -> Result<(), IngestError> {
        let rows = rows_of_keys(&self.spec, keys).map_err(|source| IngestError::Copy { source })?;
        let marks = BooleanArray::from(vec![true; rows.num_rows()]);
        self.push_marked(rows, Some(marks)).await
    }

    /// Fails if rows have neither the schema of the table nor the same with views.
    fn check_schema(&self, schema: &Schema) -> Result<(), IngestError> {
        let plain = self.spec.schema();
        if schema.fields() == plain.fields() || schema.fields() == view_schema(plain).fields() {
            return Ok(());
        }
        let names = |schema: &Schema| {
            let fields = schema.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type()));
            fields.collect::<Vec<_>>().join(", ")
        };
        Err(IngestError::Schema { expected: names(self.spec.schema()), found: names(schema) })
    }

    /// Accepts inputs even if the table already has them, or another writer commits them in the
    /// meantime.
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
            IngestMode::Delete => Operation::Delete,
        }
    }

    /// Writes the buffered rows. Returns the snapshot that they were checked against.
    async fn write(&mut self, sources: &[SourceEntry]) -> Result<Snapshot, IngestError> {
        for (partition, pieces) in self.buffer.take_rest(self.memory.portion.as_usize())? {
            self.pipeline.start(partition, pieces).await?;
        }
        self.pipeline.drain().await?;
        if self.mode != IngestMode::Insert {
            return Ok(self.base.clone());
        }
        let portions = self.pipeline.portions();
        find_repeated_key(self.log.storage(), &self.spec, &portions).await?;
        // The portions of an older version may have been compacted and cleaned away.
        let newest = self.log.refresh(&self.base).await?;
        self.check_sources(&self.base, &newest, sources)?;
        let all = newest.portions();
        find_common_key(self.log.storage(), &self.spec, &portions, &all, &all).await?;
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
        let changes = |commit: &&Arc<CommitSummary>| {
            commit.info.version > base.version() && commit.info.operation.changes_rows()
        };
        if let Some(commit) = newest.commits().iter().rev().find(changes).filter(|_| self.only_on_base) {
            return Err(IngestError::ChangedMeanwhile { version: commit.info.version });
        }
        if self.mode == IngestMode::Insert {
            let known: HashSet<String> = base.portions().iter().map(|portion| portion.path.clone()).collect();
            let fresh: Vec<_> =
                newest.portions().into_iter().filter(|portion| !known.contains(&portion.path)).collect();
            let (portions, all) = (self.pipeline.portions(), newest.portions());
            find_common_key(self.log.storage(), &self.spec, &portions, &fresh, &all).await?;
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

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
