//! Ingests files: each input is read once, and all of them become visible with one commit.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use crate::ingest::collected::Collected;
use crate::ingest::commit::{commit_collected, sync_skipped};
use crate::ingest::error::IngestError;
use crate::ingest::memory::threads;
use crate::ingest::plan::{IngestFiles, IngestProgress};
use crate::ingest::reading::{Message, read_all};
use crate::ingest::rejects::RejectsFile;
use crate::ingest::report::{IngestReport, SourceReport, no_commit};
use crate::ingest::writer::Ingest;
use crate::log::{Snapshot, TableLog};
use evenkeel_input::source::Deletes;

/// Batches read ahead.
const BATCHES_AHEAD: usize = 2;

/// Ingests files into the table at `base`, with one commit, or without a commit if every input was
/// ingested before. Returns the report and the resulting table. `progress` is called after each
/// batch.
///
/// # Errors
/// [`IngestError`]; nothing is visible then and the file of rejected rows is removed, except after
/// [`crate::log::LogError::Unknown`].
pub async fn ingest_files(
    log: TableLog,
    base: Snapshot,
    plan: IngestFiles,
    progress: &(dyn Fn(&IngestProgress) + Sync),
) -> Result<(IngestReport, Snapshot), IngestError> {
    let storage = log.storage().clone();
    let (report, snapshot) = ingest_unknown(log, base, plan, progress).await?;
    sync_skipped(&storage, &report).await?;
    Ok((report, snapshot))
}

/// Ingests the inputs whose content is not in the table yet.
async fn ingest_unknown(
    log: TableLog,
    base: Snapshot,
    mut plan: IngestFiles,
    progress: &(dyn Fn(&IngestProgress) + Sync),
) -> Result<(IngestReport, Snapshot), IngestError> {
    plan.input.views = true;
    plan.input.threads = Some(threads(plan.ingest.memory));
    let started = Instant::now();
    let mode = plan.ingest.mode;
    let only_one = plan.inputs.len() == 1;
    let mut collected = Collected::default();
    if let Some(path) = &plan.rejects {
        collected.rejects = Some(RejectsFile::new(path)?);
    }
    let mut ingest = Ingest::new(log.clone(), base.clone(), &plan.ingest)?;
    if plan.again {
        ingest.take_again();
    }
    if plan.input.deletes != Deletes::None {
        ingest = ingest.with_deletes();
    }
    ingest.stop_on(Arc::clone(&plan.interrupt));
    if let Err(error) = read_into(&mut ingest, &mut collected, &base, plan, progress).await {
        ingest.abandon().await;
        collected.remove_rejects();
        return match error {
            // A single pipe whose content turned out to be known: nothing to do, as for a file.
            IngestError::AlreadyIngested { name, bytes, version } if only_one => {
                let source = SourceReport { name, bytes, rows: 0, rejected: 0, skipped_since: Some(version) };
                Ok((no_commit(&base, mode, vec![source], started), base))
            }
            error => Err(error),
        };
    }
    commit_collected(&log, base, ingest, collected, mode, started).await
}

/// Reads all inputs into `ingest`, and collects facts about them in `collected`.
async fn read_into(
    ingest: &mut Ingest,
    collected: &mut Collected,
    base: &Snapshot,
    plan: IngestFiles,
    progress: &(dyn Fn(&IngestProgress) + Sync),
) -> Result<(), IngestError> {
    let (sender, mut messages) = mpsc::channel(BATCHES_AHEAD);
    let known = base.clone();
    let mut place = IngestProgress { input: String::new(), number: 0, inputs: plan.inputs.len(), rows: 0 };
    let interrupt = Arc::clone(&plan.interrupt);
    let reading = tokio::task::spawn_blocking(move || read_all(&known, &plan, &sender));
    loop {
        let message = tokio::select! {
            biased;
            () = interrupt.notified() => return Err(IngestError::Interrupted),
            message = messages.recv() => message,
        };
        let Some(message) = message else { break };
        if let Message::Started { name, number } = &message {
            place = IngestProgress { input: name.clone(), number: *number, ..place };
        }
        // On an error the channel closes, and the reader stops at its next batch.
        collected.take(message, ingest).await?;
        place.rows = ingest.rows();
        progress(&place);
    }
    reading.await.map_err(|error| IngestError::Worker { reason: error.to_string() })??;
    place.input = "writing".to_owned();
    progress(&place);
    collected.sync_rejects(ingest.rows())
}
