//! Encodes and stores portions, several at a time.

use std::sync::Arc;
use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::{JoinError, JoinSet};

use crate::ingest::buffer::StagedRows;
use crate::ingest::committed::PartitionWrite;
use crate::ingest::encode::{Encoded, encode};
use crate::ingest::error::IngestError;
use crate::ingest::options::IngestMode;
use crate::log::{PortionEntry, Sequence, TableLog};
use evenkeel_model::table::TableSpec;
use evenkeel_model::units::{ByteSize, PartitionId, Version};

/// Portions waiting to be stored while others are encoded.
const PORTIONS_IN_FLIGHT: usize = 4;

/// Portions of an ingest, in progress and stored.
#[derive(Debug)]
pub(super) struct PortionPipeline {
    log: TableLog,
    spec: Arc<TableSpec>,
    mode: IngestMode,
    /// Whether the last column of rows marks deletes.
    has_marks: bool,
    /// Maximum bytes held by a row group being written.
    group_memory: ByteSize,
    encoders: ThreadPool,
    free_encoders: Arc<Semaphore>,
    /// Portions being encoded and stored.
    under_way: JoinSet<Done>,
    /// Number of portions started.
    started: u64,
    /// Portions stored, with their numbers.
    portions: Vec<(u64, PortionEntry)>,
    writes: Vec<PartitionWrite>,
    replaced: u64,
    /// Stops the pipeline when notified.
    interrupt: Option<Arc<Notify>>,
}

impl PortionPipeline {
    /// Creates an empty pipeline with this number of encoders.
    pub(super) fn new(
        log: TableLog,
        spec: Arc<TableSpec>,
        mode: IngestMode,
        encoders: usize,
        group_memory: ByteSize,
    ) -> Result<Self, IngestError> {
        // A panic drops the channel of its portion, which fails the ingest.
        let pool = ThreadPoolBuilder::new().num_threads(encoders).panic_handler(|_| {}).build();
        let pool = pool.map_err(|error| IngestError::Worker { reason: error.to_string() })?;
        Ok(Self {
            writes: vec![PartitionWrite::default(); spec.partitions().len()],
            log,
            spec,
            mode,
            has_marks: false,
            group_memory,
            encoders: pool,
            free_encoders: Arc::new(Semaphore::new(encoders)),
            under_way: JoinSet::new(),
            started: 0,
            portions: Vec::new(),
            replaced: 0,
            interrupt: None,
        })
    }

    /// Makes the pipeline fail with [`IngestError::Interrupted`] when `interrupt` is notified.
    pub(super) fn stop_on(&mut self, interrupt: Arc<Notify>) {
        self.interrupt = Some(interrupt);
    }

    /// Configures the pipeline for rows whose last column marks deletes.
    pub(super) fn with_marks(self) -> Self {
        Self { has_marks: true, ..self }
    }

    /// Takes portions that were stored elsewhere.
    pub(super) fn adopt(&mut self, portions: Vec<PortionEntry>, replaced: u64) {
        self.replaced += replaced;
        for portion in portions {
            self.count(&portion, 0.0);
            self.portions.push((self.started, portion));
            self.started += 1;
        }
    }

    /// Passes the rows of one partition to an encoder, as soon as one is free.
    pub(super) async fn start(
        &mut self,
        partition: PartitionId,
        pieces: StagedRows,
    ) -> Result<(), IngestError> {
        while self.under_way.len() >= self.encoders.current_num_threads() + PORTIONS_IN_FLIGHT {
            self.keep_next().await?;
        }
        let free = Arc::clone(&self.free_encoders).acquire_owned();
        let free = tokio::select! {
            biased;
            () = notified(self.interrupt.as_deref()) => return Err(IngestError::Interrupted),
            free = free => free.map_err(|error| IngestError::Worker { reason: error.to_string() })?,
        };
        let (sender, encoded) = oneshot::channel();
        let (spec, mode, group_memory) = (Arc::clone(&self.spec), self.mode, self.group_memory);
        let has_marks = self.has_marks;
        self.encoders.spawn(move || {
            // The receiver is gone if the ingest was dropped.
            let _ = sender.send(encode(&spec, mode, partition, pieces, group_memory, has_marks));
            drop(free);
        });
        let (number, log) = (self.started, self.log.clone());
        self.started += 1;
        self.under_way.spawn(async move { (number, store(log, partition, encoded).await) });
        while let Some(done) = self.under_way.try_join_next() {
            self.keep(done).await?;
        }
        Ok(())
    }

    /// Waits until every portion is stored.
    pub(super) async fn drain(&mut self) -> Result<(), IngestError> {
        while !self.under_way.is_empty() {
            self.keep_next().await?;
        }
        // Portions finish in any order; a later portion of a partition replaces rows of earlier
        // ones.
        self.portions.sort_by_key(|(number, _)| *number);
        Ok(())
    }

    /// Deletes the files written so far. A file that cannot be deleted is not visible in the table
    /// anyway.
    pub(super) async fn abandon(mut self) {
        while let Some(done) = self.under_way.join_next().await {
            if let Ok((number, Ok(stored))) = done {
                self.portions.extend(stored.portions.into_iter().map(|portion| (number, portion)));
            }
        }
        for (_, portion) in &self.portions {
            let _ = self.log.storage().delete(&portion.path).await;
        }
    }

    /// Returns the portions stored so far.
    pub(super) fn portions(&self) -> Vec<PortionEntry> {
        self.portions.iter().map(|(_, portion)| portion.clone()).collect()
    }

    /// Number of rows dropped because a later row of the same portion has the same key.
    pub(super) fn replaced(&self) -> u64 {
        self.replaced
    }

    /// Totals per partition.
    pub(super) fn writes(&self) -> &[PartitionWrite] {
        &self.writes
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
        let (number, stored) = match done {
            Ok((number, Ok(stored))) => (number, stored),
            Ok((number, Err(error))) => return Some((number, error)),
            Err(error) => return Some((u64::MAX, IngestError::Worker { reason: error.to_string() })),
        };
        let StoredPortions { portions, replaced, mut seconds } = stored;
        self.replaced += replaced;
        for portion in portions {
            self.count(&portion, std::mem::take(&mut seconds));
            self.portions.push((number, portion));
        }
        None
    }

    fn count(&mut self, portion: &PortionEntry, seconds: f64) {
        if let Some(write) = self.writes.get_mut(portion.partition.index()) {
            write.rows += portion.data_rows();
            write.deletes += portion.deleted_keys();
            write.bytes += portion.bytes;
            write.portions += 1;
            write.seconds += seconds;
        }
    }
}

/// Stores a portion as soon as it is encoded.
async fn store(
    log: TableLog,
    partition: PartitionId,
    encoded: oneshot::Receiver<Result<Encoded, IngestError>>,
) -> Result<StoredPortions, IngestError> {
    let encoded = encoded
        .await
        .map_err(|_| IngestError::Worker { reason: format!("encoding partition {partition} failed") })?;
    let Encoded { portions: encoded, replaced, seconds } = encoded?;
    let started = Instant::now();
    // The commit sets the sequence; until then the portion has a placeholder.
    let ageless = Sequence { version: Version::FIRST, ordinal: 0 };
    let mut portions = Vec::new();
    for portion in encoded {
        match log.store_portion(partition, ageless, portion).await {
            Ok(portion) => portions.push(portion),
            Err(error) => {
                for portion in &portions {
                    // A file that cannot be deleted is not visible in the table anyway.
                    let PortionEntry { path, .. } = portion;
                    let _ = log.storage().delete(path).await;
                }
                return Err(error.into());
            }
        }
    }
    Ok(StoredPortions { portions, replaced, seconds: seconds + started.elapsed().as_secs_f64() })
}

/// Waits until `interrupt` is notified; forever if it is `None`.
async fn notified(interrupt: Option<&Notify>) {
    match interrupt {
        Some(interrupt) => interrupt.notified().await,
        None => std::future::pending().await,
    }
}

/// Result of a portion: its number, in the order in which rows left the buffer, and the stored
/// portion or the error.
type Done = (u64, Result<StoredPortions, IngestError>);

/// The stored portions of one encoding.
struct StoredPortions {
    portions: Vec<PortionEntry>,
    replaced: u64,
    /// Seconds spent sorting, encoding and storing.
    seconds: f64,
}
