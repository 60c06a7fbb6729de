//! Compacts a table round by round.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::compact::error::CompactionError;
use crate::compact::options::CompactionOptions;
use crate::compact::policy::Merge;
use crate::compact::report::{CompactionProgress, CompactionReport};
use crate::compact::round::{Done, Round};
use evenkeel_model::remark::Remark;
use evenkeel_model::units::PartitionId;
use evenkeel_store::log::{CommitDraft, CommitOutcome, LogError, Snapshot, TableLog};

/// Consecutive rounds that another compaction may spoil before this one gives up.
const PATIENCE: u32 = 5;

/// Compacts the table, starting from its newest version, until there is nothing left to do. Returns
/// the report and the snapshot after it.
///
/// # Errors
/// [`CompactionError`]; work that succeeded for other partitions is committed nevertheless, and
/// files that no commit names are deleted.
pub(crate) async fn compact(
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
        if round.is_empty() {
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
            let text = "another compaction is already merging the same portions";
            report.notes.push(Remark::new("other_compaction", text));
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

/// Commits the finished work, without partitions whose portions no longer exist, and without
/// partitions that dropped rows by a time to live that has changed since. Returns the newest
/// snapshot.
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
    let rows_written: u64 = done.merged.iter().map(|portion| portion.data_rows()).sum();
    let rows_dropped: u64 = done.decision.expired.iter().map(|portion| portion.data_rows()).sum();
    let dropped = done.removed().map(|portion| portion.deleted_keys()).sum::<u64>();
    let kept = done.merged.iter().map(|portion| portion.deleted_keys()).sum::<u64>();
    report.deletes_dropped += dropped.saturating_sub(kept);
    report.portions_merged += merges.iter().map(|merge| merge.portions.len() as u64).sum::<u64>();
    report.portions_expired += done.decision.expired.iter().filter(|portion| !portion.deletes).count() as u64;
    report.rows_read += rows_read;
    report.rows_written += rows_written;
    report.rows_superseded += rows_read - done.counts.came;
    report.rows_expired += done.counts.expired + rows_dropped;
    report.bytes_read += merges.iter().map(Merge::bytes).sum::<u64>();
    report.bytes_written += done.merged.iter().map(|portion| portion.bytes).sum::<u64>();
}
