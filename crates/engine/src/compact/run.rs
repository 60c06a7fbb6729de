//! Carries out the decisions of a compaction.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::Semaphore;

use crate::compact::encode::RowCounts;
use crate::compact::memory::{MemoryPlan, TableShape};
use crate::compact::policy::{CompactionPolicy, Decision, Expiry, Merge};
use crate::compact::worker::{Shared, Worker};
use crate::compact::{CompactionError, CompactionOptions, CompactionProgress, CompactionReport};
use crate::query::{QueryError, SnapshotTable};
use evenkeel_model::table::{ROW_GROUP_BYTES, ROW_GROUP_ROWS};
use evenkeel_model::units::PartitionId;
use evenkeel_store::log::{CommitDraft, CommitOutcome, LogError, PortionEntry, Snapshot, TableLog};

/// Consecutive rounds that another compaction may spoil before this one gives up.
const PATIENCE: u32 = 5;

/// Compacts the table, starting from its newest version, until there is nothing left to do. Returns
/// the report and the snapshot after it.
///
/// # Errors
/// [`CompactionError`]; work that succeeded for other partitions is committed nevertheless, and
/// files that no commit names are deleted.
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
        max_depth_before: snapshot.max_depth(),
        ..CompactionReport::default()
    };
    let now = options.now.unwrap_or_else(|| chrono::Utc::now().timestamp_micros());
    let mut spoilt = 0;
    // Partitions that cannot be merged do not keep others from being merged.
    let mut failed: BTreeSet<PartitionId> = BTreeSet::new();
    let mut failure = None;
    loop {
        let round = Round::plan(log, &snapshot, options, now, &failed)?;
        if round.work.is_empty() {
            break;
        }
        let done = round.carry_out(options, progress).await?;
        let lost_before = report.partitions_lost;
        let (done, failures) = sort_out(log, &snapshot, done, &mut report).await?;
        for (partition, error) in failures {
            failed.insert(partition);
            failure = failure.or(Some(error));
        }
        snapshot = commit(log, snapshot, done, &mut report).await?;
        spoilt = if report.partitions_lost > lost_before { spoilt + 1 } else { 0 };
        if spoilt == PATIENCE {
            report
                .notes
                .push("another compaction is merging the same portions, which were left to it".to_owned());
            break;
        }
    }
    if let Some(error) = failure {
        return Err(error);
    }
    report.portions_after = snapshot.portion_count();
    report.max_depth_after = snapshot.max_depth();
    report.seconds = started.elapsed().as_secs_f64();
    Ok((report, snapshot))
}

/// Work that ends in one commit.
struct Round {
    log: TableLog,
    table: Arc<SnapshotTable>,
    context: Arc<SessionContext>,
    expiry: Option<Expiry>,
    memory: MemoryPlan,
    work: Vec<(PartitionId, Decision)>,
}

/// Work done for one partition. It is committed as a whole or not at all: rows may have been
/// dropped because older ones are removed with them.
struct Done {
    partition: PartitionId,
    decision: Decision,
    merged: Vec<PortionEntry>,
    counts: RowCounts,
    failure: Option<CompactionError>,
}

impl Done {
    /// Portions that it replaces.
    fn removed(&self) -> impl Iterator<Item = &Arc<PortionEntry>> {
        self.decision.expired.iter().chain(self.decision.merges.iter().flat_map(|merge| &merge.portions))
    }

    fn is_there(&self, snapshot: &Snapshot) -> bool {
        self.removed().all(|portion| snapshot.portion(&portion.path).is_some())
    }

    /// Whether rows were left out because of the time to live.
    fn expires(&self) -> bool {
        self.counts.expired > 0 || !self.decision.expired.is_empty()
    }

    /// Deletes the stored portions. If a file cannot be deleted, it is still not visible in the
    /// table.
    async fn discard(&self, log: &TableLog) {
        for portion in &self.merged {
            let _ = log.storage().delete(&portion.path).await;
        }
    }
}

impl Round {
    fn plan(
        log: &TableLog,
        snapshot: &Snapshot,
        options: &CompactionOptions,
        now: i64,
        without: &BTreeSet<PartitionId>,
    ) -> Result<Self, CompactionError> {
        let spec = snapshot.spec();
        let expiry = spec.oldest_kept(now).map(|(column, oldest_kept)| Expiry { column, oldest_kept });
        let portions = snapshot.portions();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let table = SnapshotTable::try_new(log.storage().clone(), snapshot.clone());
        let shape = TableShape {
            depth: snapshot.max_depth(),
            row_group: portions.iter().map(|portion| row_group_bytes(portion)).max().unwrap_or(0),
            row_bytes: portions.iter().map(|portion| portion.bytes / portion.rows.max(1)).max().unwrap_or(0),
        };
        let memory = MemoryPlan::new(options.memory, cores, options.policy.target, shape)?;
        let policy = CompactionPolicy { target: memory.target, ..options.policy };
        let decide = |portions: &[Arc<PortionEntry>]| {
            let partition = portions.first().map(|portion| portion.partition);
            let partition = partition.filter(|partition| !without.contains(partition))?;
            let decision = policy.decide(portions, options.scope, expiry.as_ref(), memory.runs);
            (!decision.is_empty()).then_some((partition, decision))
        };
        let work = portions.chunk_by(|a, b| a.partition == b.partition).filter_map(decide).collect();
        // Each file is read once, so caching its footer gains nothing.
        let runtime = RuntimeEnvBuilder::new().with_metadata_cache_limit(1 << 20).build_arc();
        let context = SessionContext::new_with_config_rt(
            SessionConfig::new().with_target_partitions(1).with_batch_size(memory.batch_rows),
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

    /// Merges the sets, several at a time within the memory budget. If interrupted, deletes the
    /// stored portions.
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
                    group_memory: self.memory.group,
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
            let (merged, counts) = (Vec::new(), RowCounts::default());
            done.push(Done { partition, decision, merged, counts, failure: None });
        }
        let mut interrupted = false;
        let mut merged = 0;
        let mut interrupt = std::pin::pin!(options.interrupt.notified());
        loop {
            let ended = tokio::select! {
                biased;
                () = &mut interrupt, if !interrupted => {
                    // Running merges end at their next batch; waiting ones do not begin.
                    interrupted = true;
                    shared.stop();
                    continue;
                }
                ended = running.next() => ended,
            };
            let Some(ended) = ended else { break };
            let (index, stored, counts) =
                ended.map_err(|error| CompactionError::Worker { reason: error.to_string() })?;
            merged += 1;
            if let Some(done) = done.get_mut(index) {
                done.merged.extend(stored);
                match counts {
                    Ok(counts) => {
                        done.counts.came += counts.came;
                        done.counts.expired += counts.expired;
                    }
                    Err(error) => done.failure = done.failure.take().or(Some(error)),
                }
            }
            progress(&CompactionProgress { merged, merges, rows: shared.rows() });
        }
        if interrupted {
            for done in &done {
                done.discard(&self.log).await;
            }
            return Err(CompactionError::Interrupted);
        }
        Ok(done)
    }
}

/// Approximate compressed bytes of a row group.
fn row_group_bytes(portion: &PortionEntry) -> u64 {
    let groups = portion.rows.div_ceil(ROW_GROUP_ROWS as u64).max(1);
    (portion.bytes / groups).min(ROW_GROUP_BYTES as u64)
}

/// Separates finished work from failures, and deletes the portions that the failures stored. If the
/// portions of a failed partition no longer exist, that is why it failed: another compaction
/// removed them, and a cleaning deleted their files.
async fn sort_out(
    log: &TableLog,
    base: &Snapshot,
    done: Vec<Done>,
    report: &mut CompactionReport,
) -> Result<(Vec<Done>, Vec<(PartitionId, CompactionError)>), CompactionError> {
    let (failed, done): (Vec<_>, Vec<_>) = done.into_iter().partition(|done| done.failure.is_some());
    if failed.is_empty() {
        return Ok((done, Vec::new()));
    }
    let newest = log.refresh(base).await?;
    let mut failures = Vec::new();
    for mut failed in failed {
        failed.discard(log).await;
        match failed.failure.take().filter(|_| failed.is_there(&newest)) {
            Some(error) => failures.push((failed.partition, error)),
            None => report.partitions_lost += 1,
        }
    }
    Ok((done, failures))
}

/// Commits the finished work, without partitions whose portions no longer exist, and without those
/// that dropped rows by a time to live that has changed since. Returns the newest snapshot.
async fn commit(
    log: &TableLog,
    mut base: Snapshot,
    mut done: Vec<Done>,
    report: &mut CompactionReport,
) -> Result<Snapshot, CompactionError> {
    let ttl = base.spec().definition().ttl.clone();
    while !done.is_empty() {
        let removed = done.iter().flat_map(Done::removed).map(|portion| portion.path.clone()).collect();
        let merged = done.iter().flat_map(|done| done.merged.iter().cloned()).collect();
        let draft = CommitDraft::compaction(removed, merged);
        match log.try_commit(&base, &draft).await {
            Ok(CommitOutcome::Committed(snapshot)) => {
                report.versions.push(snapshot.version_of(draft.id()).unwrap_or(snapshot.version()));
                done.iter().for_each(|done| count(done, report));
                return Ok(snapshot);
            }
            Ok(CommitOutcome::Lost(newest)) => {
                let same_ttl = newest.spec().definition().ttl == ttl;
                let stands = |done: &Done| done.is_there(&newest) && (same_ttl || !done.expires());
                let (kept, given_up): (Vec<_>, Vec<_>) = done.into_iter().partition(stands);
                for done in &given_up {
                    done.discard(log).await;
                }
                report.partitions_lost += given_up.len() as u64;
                done = kept;
                base = newest;
            }
            Err(error @ LogError::Swept { .. }) => {
                for done in &done {
                    done.discard(log).await;
                }
                return Err(error.into());
            }
            // It is unknown whether the commit exists, so its portions stay.
            Err(error) => return Err(error.into()),
        }
    }
    log.refresh(&base).await.map_err(CompactionError::from)
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
