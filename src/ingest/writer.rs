//! Rows of the table's schema to portions and a commit.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use futures::stream::{FuturesUnordered, StreamExt};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::{Notify, mpsc};

use crate::ingest::existing::{find_common_key, find_repeated_key};
use crate::ingest::memory::MemoryPlan;
use crate::ingest::{IngestError, IngestMode, IngestOptions};
use crate::log::{
    CommitDraft, CommitOutcome, LogError, Operation, PortionEntry, Sequence, Snapshot, SourceEntry, TableLog,
};
use crate::placement::{Placement, Scatter};
use crate::portion::{EncodedPortion, WRITE_BATCH_ROWS, encode_portion, key_value};
use crate::sort::{RowRef, SortedRows, gather, sort_newest_wins};
use crate::source::batch_bytes;
use crate::table::TableSpec;
use crate::units::{PartitionId, Version};

/// Portions that wait to be stored while others are encoded.
const PORTIONS_IN_FLIGHT: usize = 4;
/// Bytes of rows that are gathered and encoded at one time.
const WRITE_BATCH_BYTES: usize = 8 << 20;

/// An ingest under way. Dropping it without [`Ingest::finish`] leaves no visible trace; [`Ingest::abandon`] also deletes
/// the files it wrote.
#[derive(Debug)]
pub struct Ingest {
    log: TableLog,
    base: Snapshot,
    spec: Arc<TableSpec>,
    placement: Placement,
    mode: IngestMode,
    memory: MemoryPlan,
    encoders: Arc<ThreadPool>,
    buffer: Buffer,
    portions: Vec<PortionEntry>,
    writes: Vec<PartitionWrite>,
    rows: u64,
    replaced: u64,
    /// Whether inputs are taken that another writer commits in the meantime.
    again: bool,
    /// Stops the ingest before its commit when it is notified.
    interrupt: Option<Arc<Notify>>,
}

/// What an ingest wrote to one partition.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PartitionWrite {
    /// Rows.
    pub rows: u64,
    /// Bytes of the portions.
    pub bytes: u64,
    /// Portions.
    pub portions: u64,
    /// Seconds to sort, encode and store them; partitions overlap in time.
    pub seconds: f64,
}

/// What a finished ingest made.
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
    /// What was written, per partition.
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

    /// Portions written.
    #[must_use]
    pub fn portions(&self) -> u64 {
        self.writes.iter().map(|write| write.portions).sum()
    }
}

/// Batches in input order, and each partition's rows among them.
#[derive(Debug, Default)]
struct Buffer {
    batches: Vec<RecordBatch>,
    rows: Vec<Vec<RowRef>>,
    bytes: usize,
}

impl Buffer {
    fn new(partitions: usize) -> Self {
        Self { batches: Vec::new(), rows: vec![Vec::new(); partitions], bytes: 0 }
    }

    fn push(&mut self, batch: RecordBatch, bytes: usize, scatter: &Scatter) {
        // A buffer holds fewer than 2^32 batches: each takes more than a byte of at most 1 GiB.
        let number = self.batches.len() as u32;
        for (partition, rows) in (0u32..).map(PartitionId).zip(&mut self.rows) {
            rows.extend(scatter.rows(partition).iter().map(|row| RowRef { batch: number, row: *row }));
        }
        self.bytes += bytes + batch.num_rows() * size_of::<RowRef>();
        self.batches.push(batch);
    }
}

/// The batch with buffers of its own, where it is a small slice of larger ones that it would keep in memory.
fn unshared(batch: RecordBatch, bytes: usize) -> Result<RecordBatch, IngestError> {
    const NEGLIGIBLE: usize = 1 << 16;
    let kept = batch.get_array_memory_size();
    if kept <= NEGLIGIBLE.max(3 * bytes) {
        return Ok(batch);
    }
    let rows = UInt32Array::from_iter_values(0..batch.num_rows() as u32);
    take_record_batch(&batch, &rows).map_err(|source| IngestError::Copy { source })
}

impl Ingest {
    /// An ingest into the table at `base`.
    ///
    /// # Errors
    /// [`IngestError::Memory`] where the budget is below [`crate::ingest::LEAST_MEMORY`].
    pub fn new(log: TableLog, base: Snapshot, options: &IngestOptions) -> Result<Self, IngestError> {
        let spec = Arc::clone(base.spec());
        let partitions = spec.partitions();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let memory = MemoryPlan::new(options.memory, partitions, cores)?;
        let encoders = ThreadPoolBuilder::new().num_threads(memory.encoders).build();
        let encoders = encoders.map_err(|error| IngestError::Worker { reason: error.to_string() })?;
        Ok(Self {
            placement: Placement::of_table(&spec),
            mode: options.mode,
            memory,
            encoders: Arc::new(encoders),
            buffer: Buffer::new(partitions.len()),
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

    /// Takes rows in the schema of the table. Of rows with one primary key the later one wins.
    ///
    /// # Errors
    /// [`IngestError`] where the batch has another schema, or a full buffer cannot be written.
    pub async fn push(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if batch.schema().fields() != self.spec.schema().fields() {
            let names = |schema: &arrow::datatypes::Schema| {
                schema
                    .fields()
                    .iter()
                    .map(|f| format!("{} {}", f.name(), f.data_type()))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            return Err(IngestError::Schema {
                expected: names(self.spec.schema()),
                found: names(&batch.schema()),
            });
        }
        let bytes = batch_bytes(&batch);
        let batch = unshared(batch, bytes)?;
        if !self.buffer.batches.is_empty() && self.buffer.bytes + bytes > self.memory.buffer.as_usize() {
            self.flush().await?;
        }
        let key: Vec<_> = self
            .spec
            .partition_key()
            .iter()
            .filter_map(|index| batch.columns().get(*index).cloned())
            .collect();
        let assigned = self.placement.assign(&key)?;
        let scatter = Scatter::new(&assigned, self.spec.partitions());
        self.rows += batch.num_rows() as u64;
        self.buffer.push(batch, bytes, &scatter);
        Ok(())
    }

    /// Takes inputs also where the table has them, or gets them in the meantime.
    pub fn take_again(&mut self) {
        self.again = true;
    }

    /// Lets the ingest fail with [`IngestError::Interrupted`] before its commit when this is notified, also while it writes.
    pub fn stop_on(&mut self, interrupt: Arc<Notify>) {
        self.interrupt = Some(interrupt);
    }

    /// Rows taken so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes what is buffered and commits it all at once, with the inputs it came from.
    ///
    /// # Errors
    /// [`IngestError`]; nothing is visible then and the files written are deleted, except after [`crate::log::LogError::Unknown`].
    pub async fn finish(mut self, sources: Vec<SourceEntry>) -> Result<Committed, IngestError> {
        let mut base = match self.write(&sources).await {
            Ok(base) => base,
            Err(error) => {
                self.abandon().await;
                return Err(error);
            }
        };
        let draft = CommitDraft::rows(self.operation(), self.portions.clone(), sources.clone());
        loop {
            match self.log.try_commit(&base, &draft).await {
                Ok(CommitOutcome::Committed(snapshot)) => return Ok(self.committed(snapshot, &draft)),
                Err(error @ LogError::Swept { .. }) => {
                    self.abandon().await;
                    return Err(error.into());
                }
                // Whether a commit that failed is there is not known, so its portions stay.
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

    /// Deletes the files written so far. A file that cannot be deleted is not visible in the table either.
    pub async fn abandon(self) {
        for portion in &self.portions {
            let _ = self.log.storage().delete(&portion.path).await;
        }
    }

    fn operation(&self) -> Operation {
        match self.mode {
            IngestMode::Upsert => Operation::Upsert,
            IngestMode::Insert => Operation::Insert,
        }
    }

    /// Writes what is buffered. Gives the snapshot that the rows were checked against.
    async fn write(&mut self, sources: &[SourceEntry]) -> Result<Snapshot, IngestError> {
        self.flush().await?;
        if self.mode == IngestMode::Upsert {
            return Ok(self.base.clone());
        }
        find_repeated_key(self.log.storage(), &self.spec, &self.portions).await?;
        // The portions of an older version may have been compacted and cleaned away.
        let newest = self.log.refresh(&self.base).await?;
        self.check_sources(&self.base, &newest, sources)?;
        find_common_key(self.log.storage(), &self.spec, &self.portions, &newest.portions()).await?;
        Ok(newest)
    }

    /// Fails where another writer committed one of the inputs since `base`.
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

    /// What other writers committed since `base` may forbid this commit.
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
            find_common_key(self.log.storage(), &self.spec, &self.portions, &fresh).await?;
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

    /// Sorts and writes every partition's buffered rows.
    async fn flush(&mut self) -> Result<(), IngestError> {
        let buffer = std::mem::replace(&mut self.buffer, Buffer::new(self.spec.partitions().len()));
        if buffer.batches.is_empty() {
            return Ok(());
        }
        let (sender, mut encoded) = mpsc::channel(PORTIONS_IN_FLIGHT);
        let (spec, mode) = (Arc::clone(&self.spec), self.mode);
        let encoders = Arc::clone(&self.encoders);
        let encoding = tokio::task::spawn_blocking(move || {
            encoders.install(|| encode_all(&spec, mode, buffer, &sender))
        });
        let mut stored = FuturesUnordered::new();
        let mut failure = None;
        let first_new = self.portions.len();
        loop {
            let sorted = tokio::select! {
                biased;
                () = notified(self.interrupt.as_deref()) => {
                    failure = Some(IngestError::Interrupted);
                    break;
                }
                sorted = encoded.recv() => sorted,
            };
            let Some(Sorted { partition, portion, replaced, seconds }) = sorted else { break };
            self.replaced += replaced;
            let log = self.log.clone();
            stored.push(async move {
                let started = Instant::now();
                // The commit sets the sequence; until then the portion has no age.
                let ageless = Sequence { version: Version::FIRST, ordinal: 0 };
                let entry = log.store_portion(partition, ageless, portion).await?;
                Ok((entry, seconds + started.elapsed().as_secs_f64()))
            });
            if stored.len() >= PORTIONS_IN_FLIGHT
                && let Some(result) = stored.next().await
            {
                failure = self.keep(result).err().or(failure);
            }
            if failure.is_some() {
                break;
            }
        }
        // The encoder stops at its next portion when nobody receives any more.
        drop(encoded);
        while let Some(result) = stored.next().await {
            failure = self.keep(result).err().or(failure);
        }
        // Portions are ready in any order; the commit names them in that of the partitions.
        if let Some(new) = self.portions.get_mut(first_new..) {
            new.sort_by_key(|portion| portion.partition);
        }
        let encoding = encoding.await.map_err(|error| IngestError::Worker { reason: error.to_string() })?;
        match failure {
            Some(error) => Err(error),
            None => encoding,
        }
    }

    fn keep(&mut self, stored: Result<(PortionEntry, f64), IngestError>) -> Result<(), IngestError> {
        let (portion, seconds) = stored?;
        if let Some(write) = self.writes.get_mut(portion.partition.index()) {
            write.rows += portion.rows;
            write.bytes += portion.bytes;
            write.portions += 1;
            write.seconds += seconds;
        }
        self.portions.push(portion);
        Ok(())
    }
}

/// Waits until this is notified; for ever where there is nothing that could be.
async fn notified(interrupt: Option<&Notify>) {
    match interrupt {
        Some(interrupt) => interrupt.notified().await,
        None => std::future::pending().await,
    }
}

/// A partition's rows, encoded.
struct Sorted {
    partition: PartitionId,
    portion: EncodedPortion,
    replaced: u64,
    /// Seconds that sorting and encoding took.
    seconds: f64,
}

/// Encodes all partitions of a buffer, in parallel, and sends them on as they are ready.
fn encode_all(
    spec: &TableSpec,
    mode: IngestMode,
    mut buffer: Buffer,
    sender: &mpsc::Sender<Sorted>,
) -> Result<(), IngestError> {
    let rows = std::mem::take(&mut buffer.rows);
    let all: usize = rows.iter().map(Vec::len).sum();
    let row_bytes = (buffer.bytes / all.max(1)).max(1);
    let chunk_rows = (WRITE_BATCH_BYTES / row_bytes).clamp(1, WRITE_BATCH_ROWS);
    let filled: Vec<_> = (0u32..).map(PartitionId).zip(rows).filter(|(_, rows)| !rows.is_empty()).collect();
    filled.into_par_iter().try_for_each(|(partition, rows)| {
        let sorted = encode_one(spec, mode, &buffer.batches, partition, &rows, chunk_rows)?;
        sender
            .blocking_send(sorted)
            .map_err(|_| IngestError::Worker { reason: "the writer is gone".to_owned() })
    })
}

fn encode_one(
    spec: &TableSpec,
    mode: IngestMode,
    batches: &[RecordBatch],
    partition: PartitionId,
    rows: &[RowRef],
    chunk_rows: usize,
) -> Result<Sorted, IngestError> {
    let started = Instant::now();
    let sorted = sort_newest_wins(batches, rows, spec.primary_key())
        .map_err(|source| IngestError::Sort { partition, source })?;
    if mode == IngestMode::Insert && !sorted.repeated.is_empty() {
        return Err(IngestError::RepeatedKey { key: first_repeated(spec, batches, &sorted) });
    }
    let chunks = sorted.rows.chunks(chunk_rows).map(|chunk| gather(batches, chunk));
    let portion = encode_portion(spec, partition, chunks)?;
    Ok(Sorted { partition, portion, replaced: sorted.replaced, seconds: started.elapsed().as_secs_f64() })
}

fn first_repeated(spec: &TableSpec, batches: &[RecordBatch], sorted: &SortedRows) -> String {
    let row =
        sorted.repeated.first().and_then(|row| Some((batches.get(row.batch as usize)?, row.row as usize)));
    let parts = spec.primary_key().iter().zip(spec.primary_key_types()).map(|(index, column_type)| {
        let value = row.and_then(|(batch, row)| key_value(batch.columns().get(*index)?, column_type, row));
        value.map_or("?".to_owned(), |value| value.display(column_type))
    });
    format!("({})", parts.collect::<Vec<_>>().join(", "))
}
