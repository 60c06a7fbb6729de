//! Changes of the rows and the declaration of a table.

use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::{Stream, TryStreamExt};
use tokio::sync::Notify;

use crate::query::{Database, Params, QueryError, QueryLimits};
use crate::table::{Table, TableError};
use evenkeel_input::source::{Conform, Deletes, InputOptions};
use evenkeel_model::table::TableDefinition;
use evenkeel_sql::{check_condition, names_table, quoted_name};
use evenkeel_store::ingest::{
    Committed, Ingest, IngestError, IngestFiles, IngestMode, IngestOptions, IngestProgress, IngestReport,
    WritePortions, ingest_files, ingest_files_with,
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
        let ingest = self.take_all(batches, Deletes::None, options, None).await?;
        let committed = ingest.finish(Vec::new()).await?;
        self.snapshot = committed.snapshot.clone();
        Ok(committed)
    }

    /// Like [`Table::ingest`], but rows that `deletes` marks delete the row with their primary key,
    /// nothing is committed without rows, and the ingest fails with
    /// [`IngestError::Interrupted`] when `interrupt` is notified.
    ///
    /// # Errors
    /// As for [`Table::ingest`].
    pub async fn ingest_changes<S, E>(
        &mut self,
        batches: S,
        deletes: Deletes,
        options: &IngestOptions,
        interrupt: Arc<Notify>,
    ) -> Result<Option<Committed>, TableError>
    where
        S: Stream<Item = Result<RecordBatch, E>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let ingest = self.take_all(batches, deletes, options, Some(interrupt)).await?;
        self.finish_if_any(ingest).await
    }

    /// Deletes the rows with the primary keys of a stream of batches, with one commit. Columns are
    /// matched by name; columns outside the key are ignored. Nothing is committed without keys.
    ///
    /// # Errors
    /// As for [`Table::ingest`].
    pub async fn delete<S, E>(
        &mut self,
        batches: S,
        options: &IngestOptions,
    ) -> Result<Option<Committed>, TableError>
    where
        S: Stream<Item = Result<RecordBatch, E>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let options = IngestOptions { mode: IngestMode::Delete, ..options.clone() };
        let ingest = self.take_all(batches, Deletes::All, &options, None).await?;
        self.finish_if_any(ingest).await
    }

    /// Starts an ingest and gives it all batches of a stream.
    async fn take_all<S, E>(
        &self,
        batches: S,
        deletes: Deletes,
        options: &IngestOptions,
        interrupt: Option<Arc<Notify>>,
    ) -> Result<Ingest, TableError>
    where
        S: Stream<Item = Result<RecordBatch, E>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let takes_deletes = deletes != Deletes::None;
        let input = InputOptions { deletes, ..InputOptions::default() };
        let conform = Conform::new("stream", self.spec(), &input);
        let mut ingest = Ingest::new(self.log.clone(), self.snapshot.clone(), options)?;
        if takes_deletes {
            ingest = ingest.with_deletes();
        }
        if let Some(interrupt) = interrupt {
            ingest.stop_on(interrupt);
        }
        if let Err(error) = push_all(batches, &conform, &mut ingest).await {
            ingest.abandon().await;
            return Err(error);
        }
        Ok(ingest)
    }

    /// Deletes the visible rows of the newest version that meet a condition of SQL, with one
    /// commit; returns `None` if no row does. If other writers change rows in the meantime, the
    /// rows are searched again.
    ///
    /// # Errors
    /// [`TableError`] if the condition cannot be run, and as for [`Table::ingest`].
    pub async fn delete_where(
        &mut self,
        condition: &str,
        params: &Params,
        limits: &QueryLimits,
        options: &IngestOptions,
    ) -> Result<Option<Committed>, TableError> {
        self.delete_where_beside(&Database::default(), condition, params, limits, options).await
    }

    /// Like [`Table::delete_where`], with a condition that may read other tables and exports.
    ///
    /// # Errors
    /// As for [`Table::delete_where`].
    pub async fn delete_where_beside(
        &mut self,
        others: &Database,
        condition: &str,
        params: &Params,
        limits: &QueryLimits,
        options: &IngestOptions,
    ) -> Result<Option<Committed>, TableError> {
        let sql = self.keys_where(condition)?;
        let options = IngestOptions { mode: IngestMode::Delete, ..options.clone() };
        loop {
            self.refresh().await?;
            let session = self.session_beside(others, limits)?;
            let mut rows = session.query(&sql, params).await?;
            let ingest = Ingest::new(self.log.clone(), self.snapshot.clone(), &options)?;
            let mut ingest = ingest.only_on_base();
            let pushed = async {
                while let Some(keys) = rows.batches.try_next().await.map_err(QueryError::from)? {
                    ingest.delete(&keys).await?;
                }
                Ok::<_, TableError>(())
            };
            if let Err(error) = pushed.await {
                ingest.abandon().await;
                return Err(error);
            }
            match self.finish_if_any(ingest).await {
                Err(TableError::Ingest(IngestError::ChangedMeanwhile { .. })) => {}
                done => return done,
            }
        }
    }

    /// Returns the query of the keys of the rows that meet a condition.
    fn keys_where(&self, condition: &str) -> Result<String, TableError> {
        check_condition::<QueryError>(condition)?;
        let key: Vec<String> =
            self.spec().definition().primary_key.iter().map(|name| quoted_name(name)).collect();
        let own = self.spec().name();
        let is_named = names_table(condition, own) && !names_table(condition, "t");
        let name = if is_named { quoted_name(own) } else { "t".to_owned() };
        // A comment at the end of the condition ends with its line.
        Ok(format!("SELECT {} FROM {name} WHERE (\n{condition}\n)", key.join(", ")))
    }

    /// Counts the visible rows that meet a condition of SQL, which may read other tables and
    /// exports.
    ///
    /// # Errors
    /// [`TableError`] if the condition cannot be run.
    pub async fn count_where(
        &self,
        others: &Database,
        condition: &str,
        params: &Params,
        limits: &QueryLimits,
    ) -> Result<u64, TableError> {
        let session = self.session_beside(others, limits)?;
        let mut rows = session.query(&self.keys_where(condition)?, params).await?;
        let mut count = 0;
        while let Some(keys) = rows.batches.try_next().await.map_err(QueryError::from)? {
            count += keys.num_rows() as u64;
        }
        Ok(count)
    }

    async fn finish_if_any(&mut self, ingest: Ingest) -> Result<Option<Committed>, TableError> {
        if ingest.rows() == 0 {
            ingest.abandon().await;
            // The commit that leaves nothing to change may not have been synced by its writer.
            self.log.storage().make_lasting("_log").await?;
            return Ok(None);
        }
        let committed = ingest.finish(Vec::new()).await?;
        self.snapshot = committed.snapshot.clone();
        Ok(Some(committed))
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

    /// Like [`Table::ingest_files`], but other machines read the inputs and write the portions.
    ///
    /// # Errors
    /// As for [`Table::ingest_files`], and the errors of `writer`.
    pub async fn ingest_files_with(
        &mut self,
        plan: &IngestFiles,
        writer: &dyn WritePortions,
    ) -> Result<IngestReport, TableError> {
        let (report, snapshot) =
            ingest_files_with(self.log.clone(), self.snapshot.clone(), plan, writer).await?;
        self.snapshot = snapshot;
        Ok(report)
    }

    /// Changes the declaration: adds nullable columns, or sets the time to live. `change` is
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
        ingest.push_marked(conformed.batch, conformed.deletes).await?;
        first_row += rows;
    }
    Ok(())
}
