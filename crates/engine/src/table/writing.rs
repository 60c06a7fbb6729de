//! Changes of the rows and the declaration of a table.

use arrow::array::RecordBatch;
use futures::{Stream, TryStreamExt};

use crate::table::{Table, TableError};
use evenkeel_input::source::{Conform, InputOptions};
use evenkeel_model::table::TableDefinition;
use evenkeel_store::ingest::{
    Committed, Ingest, IngestError, IngestFiles, IngestOptions, IngestProgress, IngestReport, ingest_files,
};
use evenkeel_store::log::{CommitDraft, CommitOutcome};

impl Table {
    /// Ingests a stream of batches with one commit. Columns are matched by name and cast without
    /// loss; of rows with the same primary key, the latest wins.
    ///
    /// # Errors
    /// [`TableError`]; nothing is visible then. A row that is rejected is reported with its number
    /// in the stream.
    pub async fn ingest<S, E>(&mut self, batches: S, options: &IngestOptions) -> Result<Committed, TableError>
    where
        S: Stream<Item = Result<RecordBatch, E>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let conform = Conform::new("stream", self.spec(), &InputOptions::default());
        let mut ingest = Ingest::new(self.log.clone(), self.snapshot.clone(), options)?;
        let pushed = push_all(batches, &conform, &mut ingest).await;
        if let Err(error) = pushed {
            ingest.abandon().await;
            return Err(error);
        }
        let committed = ingest.finish(Vec::new()).await?;
        self.snapshot = committed.snapshot.clone();
        Ok(committed)
    }

    /// Ingests files with one commit. `progress` is called after each batch.
    ///
    /// # Errors
    /// [`TableError`]; nothing is visible then.
    pub async fn ingest_files(
        &mut self,
        plan: IngestFiles,
        progress: &(dyn Fn(&IngestProgress) + Sync),
    ) -> Result<IngestReport, TableError> {
        let (report, snapshot) =
            ingest_files(self.log.clone(), self.snapshot.clone(), plan, progress).await?;
        self.snapshot = snapshot;
        Ok(report)
    }

    /// Changes the declaration: adds columns that take NULL, or sets the time to live. `change` is
    /// applied to the newest declaration, and again if another writer commits in between.
    ///
    /// # Errors
    /// [`TableError::Spec`] for any other change.
    pub async fn alter(&mut self, change: impl Fn(&mut TableDefinition)) -> Result<(), TableError> {
        let mut base = self.log.refresh(&self.snapshot).await?;
        loop {
            let mut definition = base.spec().definition().clone();
            change(&mut definition);
            let altered = base.spec().altered(definition)?;
            if altered == **base.spec() {
                self.snapshot = base;
                return Ok(self.log.storage().make_lasting("_log").await?);
            }
            match self.log.try_commit(&base, &CommitDraft::alter(&altered)).await? {
                CommitOutcome::Committed(snapshot) => {
                    self.snapshot = snapshot;
                    return Ok(());
                }
                CommitOutcome::Lost(newest) => base = newest,
            }
        }
    }
}

/// Conforms the batches to the table and pushes them, until a row is rejected.
async fn push_all<S, E>(batches: S, conform: &Conform, ingest: &mut Ingest) -> Result<(), TableError>
where
    S: Stream<Item = Result<RecordBatch, E>>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut batches = std::pin::pin!(batches);
    let mut first_row = 1;
    while let Some(batch) = batches.try_next().await.map_err(|error| TableError::Stream(error.into()))? {
        let rows = batch.num_rows() as u64;
        let conformed = conform.conform((batch, first_row).into()).map_err(IngestError::from)?;
        if let Some(reject) = conformed.rejects.into_iter().next() {
            return Err(IngestError::Row { reject: Box::new(reject) }.into());
        }
        ingest.push(conformed.batch).await?;
        first_row += rows;
    }
    Ok(())
}
