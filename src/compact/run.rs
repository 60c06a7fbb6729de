//! Carrying decisions out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::stream::{FuturesUnordered, StreamExt, TryStreamExt};
use tokio::sync::{Semaphore, mpsc};

use crate::compact::encode::{RowCounts, RunShape, encode_run};
use crate::compact::memory::MemoryPlan;
use crate::compact::policy::{CompactionPolicy, Decision, Expiry, Merge};
use crate::compact::{CompactionError, CompactionOptions, CompactionProgress, CompactionReport};
use crate::log::{CommitDraft, CommitOutcome, PortionEntry, Snapshot, TableLog};
use crate::overlap::depths;
use crate::portion::EncodedPortion;
use crate::query::{QueryError, SnapshotTable};
use crate::table::ROW_GROUP_ROWS;
use crate::units::{ByteSize, PartitionId};

/// Rounds in a row that another compaction may spoil before this one gives up.
const PATIENCE: u32 = 5;
/// Batches and portions that wait between reading, encoding and storing.
const IN_FLIGHT: usize = 2;

/// Compacts the table, from its newest version on, until there is nothing to do. Gives the report and the table after it.
///
/// # Errors
/// [`CompactionError`]; the table is then as after the last commit, and files that no commit names are deleted.
pub async fn compact(
    log: &TableLog,
    base: &Snapshot,
    options: &CompactionOptions,
    progress: &(dyn Fn(&CompactionProgress) + Sync),
) -> Result<(CompactionReport, Snapshot), CompactionError> {
    let started = Instant::now();
    let mut snapshot = log.refresh(base).await?;
    let mut report = CompactionReport {
        portions_before: snapshot.portion_count(),
        max_depth_before: max_depth(&snapshot),
        ..CompactionReport::default()
    };
    let now = options.now.unwrap_or_else(|| chrono::Utc::now().timestamp_micros());
    let mut spoilt = 0;
    loop {
        let round = Round::plan(log, &snapshot, options, now)?;
        if round.work.is_empty() {
            break;
        }
        let began = Instant::now();
        let done = round.carry_out(options, progress).await?;
        let (newest, lost) = commit(log, snapshot, done, began, &mut report).await?;
        snapshot = newest;
        spoilt = if lost { spoilt + 1 } else { 0 };
        if spoilt == PATIENCE {
            report.notes.push(
                "another compaction is at work on the same portions; the rest was left to it".to_owned(),
            );
            break;
        }
    }
    report.portions_after = snapshot.portion_count();
    report.max_depth_after = max_depth(&snapshot);
    report.seconds = started.elapsed().as_secs_f64();
    Ok((report, snapshot))
}

fn max_depth(snapshot: &Snapshot) -> u64 {
    let portions = snapshot.portions();
    let of_partition = portions.chunk_by(|a, b| a.partition == b.partition).map(|portions| {
        let ranges: Vec<_> =
            portions.iter().map(|portion| (&portion.key_range.min, &portion.key_range.max)).collect();
        depths(&ranges).into_iter().max().unwrap_or(0)
    });
    of_partition.max().unwrap_or(0)
}

/// What is done with one commit.
struct Round {
    log: TableLog,
    table: Arc<SnapshotTable>,
    context: Arc<SessionContext>,
    expiry: Option<Expiry>,
    memory: MemoryPlan,
    work: Vec<(PartitionId, Decision)>,
}

/// What was done for one partition. It is committed as a whole or not at all: rows may have been dropped because older ones go
/// with them.
struct Done {
    decision: Decision,
    merged: Vec<PortionEntry>,
    counts: RowCounts,
}

impl Done {
    /// The portions that it takes the place of.
    fn removed(&self) -> impl Iterator<Item = &Arc<PortionEntry>> {
        self.decision.expired.iter().chain(self.decision.merges.iter().flat_map(|merge| &merge.portions))
    }
}

impl Round {
    fn plan(
        log: &TableLog,
        snapshot: &Snapshot,
        options: &CompactionOptions,
        now: i64,
    ) -> Result<Self, CompactionError> {
        let spec = snapshot.spec();
        let expiry = spec.oldest_kept(now).map(|(column, oldest_kept)| Expiry { column, oldest_kept });
        let portions = snapshot.portions();
        let row_group = portions.iter().map(|portion| row_group_bytes(portion)).max().unwrap_or(0);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let memory = MemoryPlan::new(options.memory, cores, options.policy.target, row_group)?;
        let policy = CompactionPolicy { target: memory.target, ..options.policy };
        let decide = |portions: &[Arc<PortionEntry>]| {
            let partition = portions.first()?.partition;
            let decision = policy.decide(portions, options.scope, expiry.as_ref(), memory.runs);
            (!decision.is_empty()).then_some((partition, decision))
        };
        let work = portions.chunk_by(|a, b| a.partition == b.partition).filter_map(decide).collect();
        let table = SnapshotTable::try_new(log.storage().clone(), snapshot.clone());
        // Each file is read once: there is nothing to keep of its end.
        let runtime = RuntimeEnvBuilder::new().with_metadata_cache_limit(1 << 20).build_arc();
        let context = SessionContext::new_with_config_rt(
            SessionConfig::new().with_target_partitions(1),
            runtime.map_err(QueryError::from)?,
        );
        Ok(Self {
            log: log.clone(),
            table: Arc::new(table.map_err(QueryError::from)?),
            context: Arc::new(context),
            expiry,
            memory,
            work,
        })
    }

    /// Merges what was decided, so many sets at one time as the memory allows. Where that fails, what was stored is deleted.
    async fn carry_out(
        self,
        options: &CompactionOptions,
        progress: &(dyn Fn(&CompactionProgress) + Sync),
    ) -> Result<Vec<Done>, CompactionError> {
        let merges: usize = self.work.iter().map(|(_, decision)| decision.merges.len()).sum();
        let shared = Arc::new(Shared::default());
        let permits = Arc::new(Semaphore::new(self.memory.workers));
        let mut running = FuturesUnordered::new();
        let mut done: Vec<Done> = Vec::new();
        for (index, (partition, decision)) in self.work.into_iter().enumerate() {
            for merge in decision.merges.clone() {
                let worker = Worker {
                    log: self.log.clone(),
                    table: Arc::clone(&self.table),
                    context: Arc::clone(&self.context),
                    shared: Arc::clone(&shared),
                    partition,
                    target: self.memory.target,
                    expiry: self.expiry.clone(),
                };
                let permits = Arc::clone(&permits);
                running.push(tokio::spawn(async move {
                    let _permit = permits.acquire_owned().await;
                    let mut stored = Vec::new();
                    let counts = worker.merge(&merge, &mut stored).await;
                    (index, stored, counts)
                }));
            }
            done.push(Done { decision, merged: Vec::new(), counts: RowCounts::default() });
        }
        let mut failure = None;
        let mut merged = 0;
        let mut interrupt = std::pin::pin!(options.interrupt.notified());
        loop {
            let ended = tokio::select! {
                biased;
                () = &mut interrupt, if failure.is_none() => {
                    failure = Some(CompactionError::Interrupted);
                    shared.stop.store(true, Ordering::Relaxed);
                    continue;
                }
                ended = running.next() => ended,
            };
            let Some(ended) = ended else { break };
            merged += 1;
            match ended {
                Ok((index, stored, counts)) => {
                    if let Some(done) = done.get_mut(index) {
                        done.merged.extend(stored);
                        match counts {
                            Ok(counts) => {
                                done.counts.came += counts.came;
                                done.counts.expired += counts.expired;
                            }
                            Err(error) => failure = failure.or(Some(error)),
                        }
                    }
                }
                Err(error) => {
                    failure = failure.or(Some(CompactionError::Worker { reason: error.to_string() }));
                }
            }
            if failure.is_some() {
                // Those that run end at their next batch, those that wait do not begin.
                shared.stop.store(true, Ordering::Relaxed);
            } else {
                progress(&CompactionProgress { merged, merges, rows: shared.rows.load(Ordering::Relaxed) });
            }
        }
        match failure {
            None => Ok(done),
            Some(error) => {
                for portion in done.iter().flat_map(|done| &done.merged) {
                    // A file that cannot be deleted is not visible in the table either.
                    let _ = self.log.storage().delete(&portion.path).await;
                }
                Err(error)
            }
        }
    }
}

/// Compressed bytes of a row group, about.
fn row_group_bytes(portion: &PortionEntry) -> u64 {
    let groups = portion.rows.div_ceil(ROW_GROUP_ROWS as u64).max(1);
    portion.bytes / groups
}

/// How long a compaction may run before it looks whether its files were taken for leftovers of a dead one.
const LONG: Duration = Duration::from_secs(3600);

/// Commits what was done, without the partitions whose portions are no longer there. Gives the newest snapshot, and whether
/// anything was lost.
async fn commit(
    log: &TableLog,
    mut base: Snapshot,
    mut done: Vec<Done>,
    began: Instant,
    report: &mut CompactionReport,
) -> Result<(Snapshot, bool), CompactionError> {
    let mut lost = false;
    while !done.is_empty() {
        if began.elapsed() > LONG {
            log.expect_there(done.iter().flat_map(|done| &done.merged)).await?;
        }
        let removed = done.iter().flat_map(Done::removed).map(|portion| portion.path.clone()).collect();
        let merged = done.iter().flat_map(|done| done.merged.iter().cloned()).collect();
        // Whether a commit that failed is there is not known, so its portions stay.
        match log.try_commit(&base, &CommitDraft::compaction(removed, merged)).await? {
            CommitOutcome::Committed(snapshot) => {
                report.versions.push(snapshot.version());
                done.iter().for_each(|done| count(done, report));
                return Ok((snapshot, lost));
            }
            CommitOutcome::Lost(newest) => {
                let is_there =
                    |done: &Done| done.removed().all(|portion| newest.portion(&portion.path).is_some());
                let (kept, given_up): (Vec<_>, Vec<_>) = done.into_iter().partition(is_there);
                for portion in given_up.iter().flat_map(|done| &done.merged) {
                    let _ = log.storage().delete(&portion.path).await;
                }
                lost |= !given_up.is_empty();
                report.partitions_lost += given_up.len() as u64;
                done = kept;
                base = newest;
            }
        }
    }
    Ok((base, lost))
}

fn count(done: &Done, report: &mut CompactionReport) {
    let merges = &done.decision.merges;
    let rows_read: u64 = merges.iter().map(Merge::rows).sum();
    let rows_written: u64 = done.merged.iter().map(|portion| portion.rows).sum();
    let rows_dropped: u64 = done.decision.expired.iter().map(|portion| portion.rows).sum();
    report.portions_merged += merges.iter().map(|merge| merge.portions.len() as u64).sum::<u64>();
    report.portions_expired += done.decision.expired.len() as u64;
    report.rows_read += rows_read;
    report.rows_written += rows_written;
    report.rows_superseded += rows_read - done.counts.came;
    report.rows_expired += done.counts.expired + rows_dropped;
    report.bytes_read += merges.iter().map(Merge::bytes).sum::<u64>();
    report.bytes_written += done.merged.iter().map(|portion| portion.bytes).sum::<u64>();
}

/// What the workers of a round share.
#[derive(Default)]
struct Shared {
    /// Rows read.
    rows: AtomicU64,
    /// Whether they should end.
    stop: AtomicBool,
}

/// Merges one set.
struct Worker {
    log: TableLog,
    table: Arc<SnapshotTable>,
    context: Arc<SessionContext>,
    shared: Arc<Shared>,
    partition: PartitionId,
    target: ByteSize,
    expiry: Option<Expiry>,
}

impl Worker {
    /// Merges and stores; `stored` has what was stored, also where it fails.
    async fn merge(
        &self,
        merge: &Merge,
        stored: &mut Vec<PortionEntry>,
    ) -> Result<RowCounts, CompactionError> {
        for portion in &merge.portions {
            self.go_on()?;
            // A damaged file must not become a sound one with damaged rows.
            if let Some(damage) = self.log.damage(portion).await {
                let table = self.log.storage().name().to_owned();
                return Err(CompactionError::Damaged { table, file: portion.path.clone(), damage });
            }
        }
        let spec = self.table.snapshot().spec();
        let pieces = (merge.bytes() as f64 / self.target.0 as f64).round();
        let shape = RunShape {
            spec: Arc::clone(spec),
            partition: self.partition,
            // All pieces alike, rather than full ones and a small rest.
            target: if pieces > 1.0 { (merge.bytes() as f64 / pieces) as u64 } else { self.target.0 * 2 },
            expiry: self.expiry.clone().filter(|_| merge.hides_nothing),
        };
        let Some(sequence) = merge.sequence() else { return Ok(RowCounts::default()) };
        let plan =
            self.table.scan_portions(&self.context.state(), &merge.portions).map_err(QueryError::from)?;
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
        // Whoever fails drops its end of a channel, and so the others end too.
        let (read, stored) = tokio::join!(read, store);
        let counts = encoding.await.map_err(|error| CompactionError::Worker { reason: error.to_string() })?;
        read?;
        stored?;
        counts
    }

    fn go_on(&self) -> Result<(), CompactionError> {
        if self.shared.stop.load(Ordering::Relaxed) { Err(CompactionError::Interrupted) } else { Ok(()) }
    }
}
