//! Commits an ingest whose portions were written elsewhere.

use std::time::Instant;

use crate::ingest::collected::Collected;
use crate::ingest::commit::{commit_collected, sync_skipped};
use crate::ingest::error::IngestError;
use crate::ingest::plan::IngestFiles;
use crate::ingest::rejects::RejectsFile;
use crate::ingest::report::{IngestReport, SourceReport};
use crate::ingest::writer::Ingest;
use crate::log::{PortionEntry, Snapshot, SourceEntry, TableLog};
use evenkeel_input::source::Reject;

/// Rejected rows in order, as they are read back.
type Rejects = Box<dyn Iterator<Item = std::io::Result<Reject>> + Send>;

/// Inputs that were read and portions that were written elsewhere, to be committed.
pub struct UncommittedIngest {
    /// Stored portions.
    pub portions: Vec<PortionEntry>,
    /// Inputs that were ingested, in order.
    pub entries: Vec<SourceEntry>,
    /// Reports on all inputs, in order.
    pub sources: Vec<SourceReport>,
    /// Rows that could not be taken, in order.
    pub rejects: Rejects,
    /// Number of rows taken.
    pub rows: u64,
    /// Of those, rows that later ones replaced.
    pub replaced: u64,
    /// Further notes, one sentence each.
    pub notes: Vec<String>,
}

/// Commits what was written elsewhere, under the rules of [`crate::ingest::ingest_files`].
///
/// # Errors
/// As for [`crate::ingest::ingest_files`]. The files are deleted, except after
/// [`crate::log::LogError::Unknown`].
pub async fn finish_written(
    log: TableLog,
    base: Snapshot,
    plan: &IngestFiles,
    written: UncommittedIngest,
    started: Instant,
) -> Result<(IngestReport, Snapshot), IngestError> {
    let mode = plan.ingest.mode;
    let mut collected = Collected::new(written.sources, written.entries, written.notes);
    let mut ingest = Ingest::new(log.clone(), base.clone(), &plan.ingest)?;
    if plan.again {
        ingest.take_again();
    }
    ingest.adopt(written.portions, written.rows, written.replaced);
    if let Err(error) = set_rejects_aside(&mut collected, plan, written.rejects, ingest.rows()) {
        ingest.abandon().await;
        collected.remove_rejects();
        return Err(error);
    }
    let (report, snapshot) = commit_collected(&log, base, ingest, collected, mode, started).await?;
    sync_skipped(log.storage(), &report).await?;
    Ok((report, snapshot))
}

/// Writes rejected rows to the file for them.
fn set_rejects_aside(
    collected: &mut Collected,
    plan: &IngestFiles,
    mut rejects: Rejects,
    rows: u64,
) -> Result<(), IngestError> {
    if let Some(path) = &plan.rejects {
        let file = collected.rejects.insert(RejectsFile::new(path)?);
        let failed = |source| IngestError::Rejects { path: path.clone(), source };
        rejects.try_for_each(|reject| file.add(&reject.map_err(failed)?))?;
    }
    collected.sync_rejects(rows)
}
