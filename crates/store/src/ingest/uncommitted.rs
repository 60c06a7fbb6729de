//! Ingest whose portions are written by other machines, and committed here.

use std::time::Instant;

use futures::future::BoxFuture;

use crate::ingest::collected::Collected;
use crate::ingest::commit::{commit_collected, sync_skipped};
use crate::ingest::error::IngestError;
use crate::ingest::plan::IngestFiles;
use crate::ingest::rejects::RejectsFile;
use crate::ingest::report::{IngestReport, SourceReport};
use crate::ingest::writer::Ingest;
use crate::log::{PortionEntry, Snapshot, SourceEntry, TableLog};
use evenkeel_input::source::Reject;
use evenkeel_model::remark::Remark;
use evenkeel_storage::TableStorage;

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
    pub notes: Vec<Remark>,
}

/// Machines that read the inputs of an ingest and write its portions in place of this process.
pub trait WritePortions: Send + Sync {
    /// Reads the inputs that the table at `base` does not have yet, and writes their rows as
    /// portions into `storage`, without a commit.
    ///
    /// # Errors
    /// [`IngestError::Elsewhere`] if the machines fail, else the errors of an ingest. Their files
    /// remain until the table is cleaned.
    fn write_portions<'a>(
        &'a self,
        storage: &'a TableStorage,
        base: &'a Snapshot,
        plan: &'a IngestFiles,
    ) -> BoxFuture<'a, Result<UncommittedIngest, IngestError>>;
}

/// Like [`crate::ingest::ingest_files`], but other machines read the inputs and write the portions.
///
/// # Errors
/// As for [`crate::ingest::ingest_files`], and the errors of `writer`. After an error, the files
/// that `writer` reported are deleted, except after [`crate::log::LogError::Unknown`].
pub async fn ingest_files_with(
    log: TableLog,
    base: Snapshot,
    plan: &IngestFiles,
    writer: &dyn WritePortions,
) -> Result<(IngestReport, Snapshot), IngestError> {
    let started = Instant::now();
    plan.check_rejects()?;
    let written = writer.write_portions(log.storage(), &base, plan).await?;
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
