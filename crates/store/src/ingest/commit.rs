//! Commits the collected portions, and reports on them.

use std::time::Instant;

use crate::ingest::collected::Collected;
use crate::ingest::error::IngestError;
use crate::ingest::options::IngestMode;
use crate::ingest::report::{IngestReport, SourceReport, no_commit, report};
use crate::ingest::writer::Ingest;
use crate::log::{LogError, Snapshot, TableLog};
use evenkeel_model::remark::Remark;
use evenkeel_storage::TableStorage;

/// Makes the one commit, if there is anything to commit, and the report.
pub(super) async fn commit_collected(
    log: &TableLog,
    base: Snapshot,
    ingest: Ingest,
    mut collected: Collected,
    mode: IngestMode,
    started: Instant,
) -> Result<(IngestReport, Snapshot), IngestError> {
    if collected.entries.is_empty() {
        let mut report = no_commit(&base, mode, collected.sources, started);
        report.notes = collected.notes;
        return Ok((report, base));
    }
    // Inputs of deletes are not recorded: their rows may be inserted and deleted again.
    let sources = if mode == IngestMode::Delete { Vec::new() } else { collected.entries.clone() };
    if mode == IngestMode::Delete && ingest.rows() == 0 {
        ingest.abandon().await;
        let mut report = no_commit(&base, mode, collected.sources, started);
        report.notes = collected.notes;
        report.notes.push(Remark::new("no_keys", "the inputs have no keys; nothing was committed"));
        return Ok((report, base));
    }
    let committed = match ingest.finish(sources).await {
        Ok(committed) => committed,
        Err(error) => {
            // If the commit may exist, the rows that it left out must be kept as well.
            if !matches!(error, IngestError::Log(LogError::Unknown { .. } | LogError::Forgotten { .. })) {
                collected.remove_rejects();
            }
            return taken_by_others(log, &base, error, &collected, mode, started).await;
        }
    };
    let (rejected, rejects_file) = collected.finish_rejects();
    let snapshot = committed.snapshot.clone();
    let report = report(Some(committed), base.spec().partitions().len(), started.elapsed().as_secs_f64());
    let report = IngestReport {
        mode,
        bytes_read: collected.sources.iter().filter(|s| s.skipped_since.is_none()).map(|s| s.bytes).sum(),
        sources: collected.sources,
        rejected,
        rejects_file,
        notes: collected.notes,
        ..report
    };
    Ok((report, snapshot))
}

/// Handles inputs that another process may have committed in the meantime. If it committed all of
/// them, nothing is left to do.
async fn taken_by_others(
    log: &TableLog,
    base: &Snapshot,
    error: IngestError,
    collected: &Collected,
    mode: IngestMode,
    started: Instant,
) -> Result<(IngestReport, Snapshot), IngestError> {
    if !matches!(error, IngestError::TakenMeanwhile { .. }) {
        return Err(error);
    }
    let newest = log.refresh(base).await?;
    let taken = collected.entries.iter().map(|entry| {
        newest.source_version(&entry.xxh3).map(|version| SourceReport {
            name: entry.name.clone(),
            bytes: entry.bytes,
            rows: 0,
            rejected: entry.rejected,
            skipped_since: Some(version),
        })
    });
    match taken.collect::<Option<Vec<_>>>() {
        Some(sources) => Ok((no_commit(base, mode, sources, started), newest)),
        None => Err(error),
    }
}

/// Syncs the log if inputs were skipped: the commit with their rows may come from a process that
/// died before it synced the log.
pub(super) async fn sync_skipped(storage: &TableStorage, report: &IngestReport) -> Result<(), IngestError> {
    if report.sources.iter().any(|source| source.skipped_since.is_some()) {
        storage.make_lasting("_log").await.map_err(LogError::from)?;
    }
    Ok(())
}
