//! Writes rows in the schema of the table as portions, and commits them.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::{JoinError, JoinSet};

use crate::ingest::buffer::{Buffer, Pieces};
use crate::ingest::encode::{Encoded, encode};
use crate::ingest::existing::{find_common_key, find_repeated_key};
use crate::ingest::memory::MemoryPlan;
use crate::ingest::{IngestError, IngestMode, IngestOptions};
use crate::log::{
    CommitDraft, CommitOutcome, LogError, Operation, PortionEntry, Sequence, Snapshot, SourceEntry, TableLog,
};
use evenkeel_model::table::TableSpec;
use evenkeel_model::units::{PartitionId, Version};

/// Portions waiting to be stored while others are encoded.
const PORTIONS_IN_FLIGHT: usize = 4;
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
    encoders: ThreadPool,
    free_encoders: Arc<Semaphore>,
    buffer: Buffer,
    /// Portions being encoded and stored.
    under_way: JoinSet<Done>,
    /// Number of portions started.
    started: u64,
    /// Portions stored, with their numbers.
    portions: Vec<(u64, PortionEntry)>,
    writes: Vec<PartitionWrite>,
    rows: u64,
    replaced: u64,
    /// Whether to take inputs that another writer commits in the meantime.
    again: bool,
    /// Stops the ingest before its commit when notified.
    interrupt: Option<Arc<Notify>>,
}

/// Totals of what an ingest wrote to one partition.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PartitionWrite {
    /// Number of rows.
    pub rows: u64,
    /// Bytes of the portions.
    pub bytes: u64,
    /// Number of portions.
    pub portions: u64,
    /// Seconds spent sorting, encoding and storing them; partitions overlap in time.
    pub seconds: f64,
}

/// Result of a finished ingest.
#[derive(Debug)]
pub struct Committed {
    /// The table with the new rows.
    pub snapshot: Snapshot,
    /// The version that the commit made.
    pub version: Version,
    /// Rows taken.
    pub rows: u64,
    /// Of those, rows that a later row of the same portion replaced.
    pub replaced: u64,
    /// Totals of what was written, per partition.
    pub writes: Vec<PartitionWrite>,
}

impl Committed {
    /// Rows written per partition.
    #[must_use]
    pub fn rows_per_partition(&self) -> Vec<u64> {
        self.writes.iter().map(|write| write.rows).collect()
    }

    /// Bytes of the portions.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.writes.iter().map(|write| write.bytes).sum()
    }

    /// Number of portions written.
    #[must_use]
    pub fn portions(&self) -> u64 {
        self.writes.iter().map(|write| write.portions).sum()
    }
}

impl Ingest {
    /// Starts an ingest into the table at `base`.
    ///
    /// # Errors
    /// [`IngestError::Memory`] if the budget is below [`crate::ingest::LEAST_MEMORY`].
    pub fn new(log: TableLog, base: Snapshot, options: &IngestOptions) -> Result<Self, IngestError> {
        let spec = Arc::clone(base.spec());
        let partitions = spec.partitions();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let memory = MemoryPlan::new(options.memory, partitions, cores)?;
        let encoders = ThreadPoolBuilder::new().num_threads(memory.encoders);
        // A panic drops the channel of its portion, which fails the ingest.
        let encoders = encoders.panic_handler(|_| {}).build();
        let encoders = encoders.map_err(|error| IngestError::Worker { reason: error.to_string() })?;
        Ok(Self {
            mode: options.mode,
            memory,
            encoders,
            free_encoders: Arc::new(Semaphore::new(memory.encoders)),
            buffer: Buffer::new(&spec, memory.buffer.as_usize() / STAGED_SHARE),
            under_way: JoinSet::new(),
            started: 0,
            portions: Vec::new(),
            writes: vec![PartitionWrite::default(); partitions.len()],
            rows: 0,
            replaced: 0,
            again: false,
            interrupt: None,
            log,
            base,
            spec,
        })
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
        let schema = batch.schema();
        if schema.fields() != self.spec.schema().fields() && schema.fields() != self.buffer.schema().fields()
        {
            let names = |schema: &arrow::datatypes::Schema| {
                schema
                    .fields()
                    .iter()
                    .map(|f| format!("{} {}", f.name(), f.data_type()))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            return Err(IngestError::Schema { expected: names(self.spec.schema()), found: names(&schema) });
        }
        self.rows += batch.num_rows() as u64;
        self.buffer.push(batch)?;
        while self.buffer.bytes() > self.memory.buffer.as_usize()
            && let Some((partition, pieces)) = self.buffer.take_fullest(self.memory.portion.as_usize())
        {
            self.start(partition, pieces).await?;
        }
        Ok(())
    }

    /// Takes inputs even if the table has them already, or gets them in the meantime.
    pub fn take_again(&mut self) {
        self.again = true;
    }

    /// Makes the ingest fail with [`IngestError::Interrupted`] before its commit when `interrupt`
    /// is notified, even while it writes.
    pub fn stop_on(&mut self, interrupt: Arc<Notify>) {
        self.interrupt = Some(interrupt);
    }

    /// Takes portions that were stored elsewhere.
    pub fn adopt(&mut self, portions: Vec<PortionEntry>, rows: u64, replaced: u64) {
        self.rows += rows;
        self.replaced += replaced;
        for portion in portions {
            if let Some(write) = self.writes.get_mut(portion.partition.index()) {
                write.rows += portion.rows;
                write.bytes += portion.bytes;
                write.portions += 1;
            }
            self.portions.push((self.started, portion));
            self.started += 1;
        }
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
        let draft = CommitDraft::rows(self.operation(), self.portions(), sources.clone());
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
    pub async fn abandon(mut self) {
        while let Some(done) = self.under_way.join_next().await {
            if let Ok((number, Ok(stored))) = done {
                self.portions.push((number, stored.portion));
            }
        }
        for (_, portion) in &self.portions {
            let _ = self.log.storage().delete(&portion.path).await;
        }
    }

    fn operation(&self) -> Operation {
        match self.mode {
            IngestMode::Upsert => Operation::Upsert,
            IngestMode::Insert => Operation::Insert,
        }
    }

    /// Writes the buffered rows. Returns the snapshot that they were checked against.
    async fn write(&mut self, sources: &[SourceEntry]) -> Result<Snapshot, IngestError> {
        self.flush().await?;
        if self.mode == IngestMode::Upsert {
            return Ok(self.base.clone());
        }
        let portions = self.portions();
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
            let known: std::collections::HashSet<String> =
                base.portions().iter().map(|portion| portion.path.clone()).collect();
            let fresh: Vec<_> =
                newest.portions().into_iter().filter(|portion| !known.contains(&portion.path)).collect();
            find_common_key(self.log.storage(), &self.spec, &self.portions(), &fresh).await?;
        }
        Ok(())
    }

    fn committed(&self, snapshot: Snapshot, draft: &CommitDraft) -> Committed {
        Committed {
            version: snapshot.version_of(draft.id()).unwrap_or(snapshot.version()),
            snapshot,
            rows: self.rows,
            replaced: self.replaced,
            writes: self.writes.clone(),
        }
    }

    /// Passes the rows of one partition to an encoder, as soon as one is free.
    async fn start(&mut self, partition: PartitionId, pieces: Pieces) -> Result<(), IngestError> {
        while self.under_way.len() >= self.memory.encoders + PORTIONS_IN_FLIGHT {
            self.keep_next().await?;
        }
        let free = Arc::clone(&self.free_encoders).acquire_owned();
        let free = tokio::select! {
            biased;
            () = notified(self.interrupt.as_deref()) => return Err(IngestError::Interrupted),
            free = free => free.map_err(|error| IngestError::Worker { reason: error.to_string() })?,
        };
        let (sender, encoded) = oneshot::channel();
        let (spec, mode, log) = (Arc::clone(&self.spec), self.mode, self.log.clone());
        let group_memory = self.memory.group;
        self.encoders.spawn(move || {
            // The receiver is gone if the ingest was dropped.
            let _ = sender.send(encode(&spec, mode, partition, pieces, group_memory));
            drop(free);
        });
        let number = self.started;
        self.started += 1;
        let store = async move {
            let encoded = encoded.await.map_err(|_| IngestError::Worker {
                reason: format!("encoding partition {partition} failed"),
            })?;
            let Encoded { portion, replaced, seconds } = encoded?;
            let started = Instant::now();
            // The commit sets the sequence; until then the portion has a placeholder.
            let ageless = Sequence { version: Version::FIRST, ordinal: 0 };
            let portion = log.store_portion(partition, ageless, portion).await?;
            let seconds = seconds + started.elapsed().as_secs_f64();
            Ok(Stored { portion, replaced, seconds })
        };
        self.under_way.spawn(async move { (number, store.await) });
        while let Some(done) = self.under_way.try_join_next() {
            self.keep(done).await?;
        }
        Ok(())
    }

    /// Waits for one of the portions in progress.
    async fn keep_next(&mut self) -> Result<(), IngestError> {
        let done = tokio::select! {
            biased;
            () = notified(self.interrupt.as_deref()) => return Err(IngestError::Interrupted),
            done = self.under_way.join_next() => done,
        };
        match done {
            Some(done) => self.keep(done).await,
            None => Ok(()),
        }
    }

    /// Keeps a portion. If it failed, others in progress may fail too: waits for them and returns
    /// the error of the first portion that failed, whichever ended first.
    async fn keep(&mut self, done: Result<Done, JoinError>) -> Result<(), IngestError> {
        let Some(mut failure) = self.note(done) else { return Ok(()) };
        while let Some(done) = self.under_way.join_next().await {
            if let Some(other) = self.note(done).filter(|other| other.0 < failure.0) {
                failure = other;
            }
        }
        Err(failure.1)
    }

    /// Records the result of a portion. Returns the number and the error of one that failed.
    fn note(&mut self, done: Result<Done, JoinError>) -> Option<(u64, IngestError)> {
        let Stored { portion, replaced, seconds } = match done {
            Ok((number, Ok(stored))) => {
                self.portions.push((number, stored.portion.clone()));
                stored
            }
            Ok((number, Err(error))) => return Some((number, error)),
            Err(error) => return Some((u64::MAX, IngestError::Worker { reason: error.to_string() })),
        };
        self.replaced += replaced;
        if let Some(write) = self.writes.get_mut(portion.partition.index()) {
            write.rows += portion.rows;
            write.bytes += portion.bytes;
            write.portions += 1;
            write.seconds += seconds;
        }
        None
    }

    /// Writes all remaining rows, and waits until every portion is stored.
    async fn flush(&mut self) -> Result<(), IngestError> {
        for (partition, pieces) in self.buffer.take_rest(self.memory.portion.as_usize())? {
            self.start(partition, pieces).await?;
        }
        while !self.under_way.is_empty() {
            self.keep_next().await?;
        }
        // Portions finish in any order; a later one of a partition replaces rows of those before
        // it.
        self.portions.sort_by_key(|(number, _)| *number);
        Ok(())
    }

    /// Returns the portions written so far.
    fn portions(&self) -> Vec<PortionEntry> {
        self.portions.iter().map(|(_, portion)| portion.clone()).collect()
    }
}

/// Waits until `interrupt` is notified; for ever if it is `None`.
async fn notified(interrupt: Option<&Notify>) {
    match interrupt {
        Some(interrupt) => interrupt.notified().await,
        None => std::future::pending().await,
    }
}

/// Result of a portion: its number, in the order in which rows left the buffer, and the stored
/// portion or the error.
type Done = (u64, Result<Stored, IngestError>);

/// A stored portion.
struct Stored {
    portion: PortionEntry,
    replaced: u64,
    /// Seconds spent sorting, encoding and storing.
    seconds: f64,
}
