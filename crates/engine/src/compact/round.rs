//! One round of a compaction: work on many partitions that ends in one commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::compact::encode::RowCounts;
use crate::compact::error::CompactionError;
use crate::compact::expiry::Expiry;
use crate::compact::memory::{MemoryPlan, TableShape};
use crate::compact::options::CompactionOptions;
use crate::compact::policy::{CompactionPolicy, Decision};
use crate::compact::report::CompactionProgress;
use crate::compact::worker::{Shared, Worker};
use crate::query::{QueryError, SnapshotTable};
use evenkeel_model::table::{ROW_GROUP_BYTES, ROW_GROUP_ROWS};
use evenkeel_model::units::PartitionId;
use evenkeel_store::log::{PortionEntry, Snapshot, TableLog};

/// Work that ends in one commit.
pub(super) struct Round {
    log: TableLog,
    table: Arc<SnapshotTable>,
    context: Arc<SessionContext>,
    expiry: Option<Expiry>,
    memory: MemoryPlan,
    work: Vec<(PartitionId, Decision)>,
}

/// Work done for one partition. It is committed as a whole or not at all: rows may have been
/// dropped because older ones are removed with them.
pub(super) struct Done {
    pub(super) partition: PartitionId,
    pub(super) decision: Decision,
    pub(super) merged: Vec<PortionEntry>,
    pub(super) counts: RowCounts,
    pub(super) failure: Option<CompactionError>,
}

impl Done {
    fn nothing_yet(partition: PartitionId, decision: Decision) -> Self {
        Self { partition, decision, merged: Vec::new(), counts: RowCounts::default(), failure: None }
    }

    fn add(&mut self, ended: EndedMerge) {
        self.merged.extend(ended.stored);
        match ended.counts {
            Ok(counts) => {
                self.counts.came += counts.came;
                self.counts.expired += counts.expired;
            }
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
    }

    /// Portions that it replaces.
    pub(super) fn removed(&self) -> impl Iterator<Item = &Arc<PortionEntry>> {
        self.decision.expired.iter().chain(self.decision.merges.iter().flat_map(|merge| &merge.portions))
    }

    pub(super) fn is_there(&self, snapshot: &Snapshot) -> bool {
        self.removed().all(|portion| snapshot.portion(&portion.path).is_some())
    }

    /// Whether rows were left out because of the time to live.
    pub(super) fn expires(&self) -> bool {
        self.counts.expired > 0 || !self.decision.expired.is_empty()
    }

    /// Deletes the stored portions. If a file cannot be deleted, it is still not visible in the
    /// table.
    pub(super) async fn discard(&self, log: &TableLog) {
        for portion in &self.merged {
            let _ = log.storage().delete(&portion.path).await;
        }
    }
}

impl Round {
    pub(super) fn plan(
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
        let of_partitions = || portions.chunk_by(|a, b| a.partition == b.partition);
        let shape = TableShape {
            depth: snapshot.max_depth(),
            row_group: portions.iter().map(|portion| row_group_bytes(portion)).max().unwrap_or(0),
            row_bytes: portions.iter().map(|portion| portion.bytes / portion.rows.max(1)).max().unwrap_or(0),
            partition: of_partitions()
                .map(|portions| portions.iter().map(|portion| portion.bytes).sum())
                .max()
                .unwrap_or(0),
        };
        let memory = MemoryPlan::new(options.memory, cores, options.policy.target, shape)?;
        let policy = CompactionPolicy { target: memory.target, ..options.policy };
        let decide = |portions: &[Arc<PortionEntry>]| {
            let partition = portions.first().map(|portion| portion.partition);
            let partition = partition.filter(|partition| !without.contains(partition))?;
            let decision = policy.decide(portions, options.scope, expiry.as_ref(), memory.runs);
            (!decision.is_empty()).then_some((partition, decision))
        };
        let work = of_partitions().filter_map(decide).collect();
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

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// Merges the sets, several at a time within the memory budget. If interrupted, deletes the
    /// stored portions.
    pub(super) async fn carry_out(
        self,
        options: &CompactionOptions,
        progress: &(dyn Fn(&CompactionProgress) + Sync),
    ) -> Result<Vec<Done>, CompactionError> {
        let shared = Arc::new(Shared::default());
        let mut running = self.start(&shared);
        let undone = |(partition, decision)| Done::nothing_yet(partition, decision);
        let mut done: Vec<Done> = self.work.into_iter().map(undone).collect();
        let merges = running.len();
        let mut merged = 0;
        let mut interrupted = false;
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
            let ended = ended.map_err(|error| CompactionError::Worker { reason: error.to_string() })?;
            merged += 1;
            if let Some(done) = done.get_mut(ended.work) {
                done.add(ended);
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

    /// Starts a task for each merge. The tasks wait for each other if memory is short.
    fn start(&self, shared: &Arc<Shared>) -> FuturesUnordered<JoinHandle<EndedMerge>> {
        let permits = Arc::new(Semaphore::new(self.memory.workers));
        let running = FuturesUnordered::new();
        for (work, (partition, decision)) in self.work.iter().enumerate() {
            for merge in decision.merges.clone() {
                let worker = self.worker(*partition, shared);
                let permits = Arc::clone(&permits);
                running.push(tokio::spawn(async move {
                    let _permit = permits.acquire_owned().await;
                    let mut stored = Vec::new();
                    let counts = worker.merge(&merge, &mut stored).await;
                    EndedMerge { work, stored, counts }
                }));
            }
        }
        running
    }

    fn worker(&self, partition: PartitionId, shared: &Arc<Shared>) -> Worker {
        Worker {
            log: self.log.clone(),
            table: Arc::clone(&self.table),
            context: Arc::clone(&self.context),
            shared: Arc::clone(shared),
            partition,
            target: self.memory.target,
            group_memory: self.memory.group,
            expiry: self.expiry.clone(),
        }
    }
}

/// A merge that ended, with or without success.
struct EndedMerge {
    /// Index of the work of its partition.
    work: usize,
    stored: Vec<PortionEntry>,
    counts: Result<RowCounts, CompactionError>,
}

/// Approximate compressed bytes of a row group.
fn row_group_bytes(portion: &PortionEntry) -> u64 {
    let groups = portion.rows.div_ceil(ROW_GROUP_ROWS as u64).max(1);
    (portion.bytes / groups).min(ROW_GROUP_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use crate::compact::{CompactionError, CompactionOptions, Scope};
    use crate::query::Params;
    use crate::testing::{latest, overlapping_commits, rows, scores};

    #[tokio::test]
    async fn a_compaction_leaves_the_newest_rows_and_counts_the_others() {
        let commits = overlapping_commits();
        let (_folder, mut table) = scores(&commits).await;
        let stored: u64 = table.snapshot().portions().iter().map(|portion| portion.rows).sum();
        let options = CompactionOptions { scope: Scope::Everything, ..CompactionOptions::default() };
        let report = table.compact(&options, &|_| ()).await.unwrap();
        let visible = latest(&commits);
        assert_eq!((report.rows_read, report.rows_written), (stored, visible.len() as u64));
        assert_eq!(report.rows_superseded, stored - visible.len() as u64);
        assert_eq!((report.max_depth_after, report.versions.len()), (1, 1));
        let sql = "SELECT player, game, points FROM t ORDER BY player, game";
        let read = table.session().unwrap().collect(sql, &Params::default()).await.unwrap();
        assert_eq!(rows(&read), visible);
        let again = table.compact(&options, &|_| ()).await.unwrap();
        assert_eq!((again.portions_merged, again.versions.len()), (0, 0));
    }

    #[tokio::test]
    async fn an_interrupted_round_leaves_no_files() {
        let (_folder, mut table) = scores(&overlapping_commits()).await;
        let version = table.snapshot().version();
        let options = CompactionOptions { scope: Scope::Everything, ..CompactionOptions::default() };
        options.interrupt.notify_one();
        let ended = table.compact(&options, &|_| ()).await;
        assert!(matches!(ended, Err(crate::TableError::Compaction(CompactionError::Interrupted))));
        table.refresh().await.unwrap();
        assert_eq!(table.snapshot().version(), version);
        assert_eq!(table.inspect().await.unwrap().other_files, 0);
    }
}
