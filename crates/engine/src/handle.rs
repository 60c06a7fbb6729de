//! Handle of a table: the entry point for programs that embed evenkeel.

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::TableReference;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionContext;
use futures::{Stream, TryStreamExt};
use thiserror::Error;
use tokio::sync::Notify;

use crate::compact::{CompactionError, CompactionOptions, CompactionProgress, CompactionReport, compact};
use crate::overview::{self, TableFiles, TableHistory, TableOverview, TableSkew};
use crate::query::{
    PartitionKeys, QueryError, QueryLimits, SnapshotTable, TableSession, runtime_within, shared_runtime,
};
use crate::repartition::{self, RepartitionError, RepartitionPlan};
use evenkeel_input::source::{Conform, InputOptions};
use evenkeel_model::table::{SpecError, TableDefinition, TableSpec};
use evenkeel_model::units::{ByteSize, Version};
use evenkeel_placement::placement::Placement;
use evenkeel_storage::{StorageError, TableStorage};
use evenkeel_store::delta::DeltaError;
use evenkeel_store::delta::{self, DeltaExport, DeltaOptions};
use evenkeel_store::ingest::{
    Committed, Ingest, IngestError, IngestFiles, IngestOptions, IngestProgress, IngestReport, ingest_files,
};
use evenkeel_store::log::{CommitDraft, CommitOutcome, LogError, Snapshot, TableLog};
use evenkeel_store::maintenance::{self, CheckScope, CleanError, CleanOptions, CleanReport, TableCheck};

/// Error of an operation on a table.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the variants say what failed")]
pub enum TableError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Ingest(#[from] IngestError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Compaction(#[from] CompactionError),
    #[error(transparent)]
    Repartition(#[from] RepartitionError),
    #[error(transparent)]
    Clean(#[from] CleanError),
    #[error(transparent)]
    Delta(#[from] DeltaError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error("the stream of batches failed: {0}")]
    Stream(Box<dyn std::error::Error + Send + Sync>),
}

/// A table at one version. Reads see that version until [`Table::refresh`] or a write through this
/// handle advances it.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
/// use evenkeel_engine::{Table, query::Params};
/// use evenkeel_model::table::{TableSpec, parse_create_table};
/// use evenkeel_store::ingest::IngestOptions;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let create = parse_create_table(
///     "CREATE TABLE scores (
///          player Utf8 NOT NULL, game Int64 NOT NULL, points Int64, PRIMARY KEY (player, game)
///      ) PARTITION BY HASH(player)
///      WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 4)",
/// )?;
/// let directory = tempfile::tempdir()?;
/// let spec = TableSpec::new(create.definition)?;
/// let mut table = Table::create(directory.path().join("scores"), &spec).await?;
///
/// let batch = RecordBatch::try_from_iter([
///     ("player", Arc::new(StringArray::from(vec!["ada", "bob", "ada"])) as ArrayRef),
///     ("game", Arc::new(Int64Array::from(vec![1, 1, 1]))),
///     ("points", Arc::new(Int64Array::from(vec![10, 20, 30]))),
/// ])?;
/// let batches = futures::stream::iter([Ok::<_, std::io::Error>(batch)]);
/// table.ingest(batches, &IngestOptions::default()).await?;
///
/// // Of two rows with the same primary key, only the later one is visible.
/// let sql = "SELECT sum(points) AS points FROM scores";
/// let rows = table.session()?.collect(sql, &Params::default()).await?;
/// assert_eq!(rows[0].column(0).as_ref(), &Int64Array::from(vec![50]));
/// assert_eq!(table.skew().await?.figures.rows, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Table {
    log: TableLog,
    snapshot: Snapshot,
    /// Shared by the sessions of this handle, so that file footers are read only once.
    runtime: Arc<RuntimeEnv>,
}

impl Table {
    /// Declares a table in a directory, which is created if needed and must be empty, or at the URL
    /// of a prefix in an object store.
    ///
    /// # Errors
    /// [`TableError`] if the location is not empty or cannot be written.
    pub async fn create(directory: impl AsRef<Path>, spec: &TableSpec) -> Result<Self, TableError> {
        Self::create_at(TableStorage::create(directory.as_ref())?, spec).await
    }

    /// Declares a table in an object store.
    ///
    /// # Errors
    /// As for [`Table::create`].
    pub async fn create_at(storage: TableStorage, spec: &TableSpec) -> Result<Self, TableError> {
        let (log, snapshot) = TableLog::create(storage, spec).await?;
        Self::at(log, snapshot)
    }

    /// Opens the table in a directory, or at a URL, at its newest version.
    ///
    /// # Errors
    /// [`TableError`] if there is no table, or its log cannot be read.
    pub async fn open(directory: impl AsRef<Path>) -> Result<Self, TableError> {
        Self::open_at(TableStorage::open(directory.as_ref())?).await
    }

    /// Opens the table in a directory, or at a URL, as it was at a version.
    ///
    /// # Errors
    /// As for [`Table::open`], and if the table has no such version.
    pub async fn open_version(directory: impl AsRef<Path>, version: Version) -> Result<Self, TableError> {
        let (log, snapshot) =
            TableLog::open_version(TableStorage::open(directory.as_ref())?, version).await?;
        Self::at(log, snapshot)
    }

    /// Opens the table in an object store at its newest version.
    ///
    /// # Errors
    /// As for [`Table::open`].
    pub async fn open_at(storage: TableStorage) -> Result<Self, TableError> {
        let (log, snapshot) = TableLog::open(storage).await?;
        Self::at(log, snapshot)
    }

    fn at(log: TableLog, snapshot: Snapshot) -> Result<Self, TableError> {
        Ok(Self { log, snapshot, runtime: shared_runtime()? })
    }

    /// Moves this handle to the newest version.
    ///
    /// # Errors
    /// [`TableError`] if the log cannot be read.
    pub async fn refresh(&mut self) -> Result<(), TableError> {
        self.snapshot = self.log.refresh(&self.snapshot).await?;
        Ok(())
    }

    /// Declaration of the table.
    #[must_use]
    pub fn spec(&self) -> &Arc<TableSpec> {
        self.snapshot.spec()
    }

    /// Version that this handle sees.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Files of the table.
    #[must_use]
    pub fn storage(&self) -> &TableStorage {
        self.log.storage()
    }

    /// Log of the table.
    #[must_use]
    pub fn log(&self) -> &TableLog {
        &self.log
    }

    /// Moves this handle to a later snapshot of its table.
    pub fn move_to(&mut self, snapshot: Snapshot) {
        self.snapshot = snapshot;
    }

    /// Function that places the rows of the table.
    #[must_use]
    pub fn placement(&self) -> Placement {
        Placement::of_table(self.spec())
    }

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

    /// Merges portions if that is worthwhile, starting from the newest version, and drops expired
    /// rows. `progress` is called after each merge.
    ///
    /// # Errors
    /// [`TableError`]; commits made until then stay.
    pub async fn compact(
        &mut self,
        options: &CompactionOptions,
        progress: &(dyn Fn(&CompactionProgress) + Sync),
    ) -> Result<CompactionReport, TableError> {
        let (report, snapshot) = compact(&self.log, &self.snapshot, options, progress).await?;
        self.snapshot = snapshot;
        // There may be nothing to do because of a commit whose writer died before the name of the
        // commit was synced to disk.
        self.log.storage().make_lasting("_log").await?;
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

    /// Number of rows in portions whose rows have all expired by the clock.
    #[must_use]
    pub fn expired_rows(&self) -> u64 {
        self.snapshot.expired_rows(chrono::Utc::now().timestamp_micros())
    }

    /// Writes the newest version as the next version of a Delta log beside the files, so that Delta
    /// readers read the files in place. No two portions of a partition may overlap in keys, as
    /// after a compaction.
    ///
    /// # Errors
    /// [`TableError::Delta`] if they do, if Delta cannot represent a column, or if the log cannot
    /// be read or written.
    pub async fn export_delta(&mut self, options: &DeltaOptions) -> Result<DeltaExport, TableError> {
        let (report, snapshot) = delta::export(&self.log, &self.snapshot, options).await?;
        self.snapshot = snapshot;
        self.log.storage().make_lasting("_delta_log").await?;
        Ok(report)
    }

    /// Deletes old versions and files that no commit names. Files that the newest version of a
    /// Delta log names stay.
    ///
    /// # Errors
    /// [`TableError`]; the table is intact then too.
    pub async fn clean(&self, options: &CleanOptions) -> Result<CleanReport, TableError> {
        Ok(maintenance::clean(&self.log, &self.snapshot, options).await?)
    }

    /// Reads the log and the portions of this version, or of every version up to it, and compares
    /// their checksums. `progress` receives the number of bytes checked so far.
    ///
    /// # Errors
    /// [`TableError`] if the log cannot be listed.
    pub async fn check(
        &self,
        scope: CheckScope,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<TableCheck, TableError> {
        Ok(maintenance::check(&self.log, &self.snapshot, scope, progress).await?)
    }

    /// Returns the table without some portions, so that the rest can be read if their files are
    /// damaged. Nothing is written.
    #[must_use]
    pub fn without(&self, files: &[String]) -> Self {
        Self { snapshot: self.snapshot.without(files), ..self.clone() }
    }

    /// Plans another partition key, number of partitions or placement function: shows how even the
    /// table would be, and what moves.
    ///
    /// # Errors
    /// [`TableError`] if nothing changes, the declaration is wrong, or a portion cannot be read.
    pub async fn plan_repartition(
        &self,
        change: impl FnOnce(&mut TableDefinition),
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<RepartitionPlan, TableError> {
        let mut definition = self.spec().definition().clone();
        change(&mut definition);
        let to = TableSpec::new(definition)?;
        if to == **self.spec() {
            return Err(RepartitionError::Nothing { table: self.storage().name().to_owned() }.into());
        }
        Ok(repartition::plan(self.provider()?.as_ref(), &to, progress).await?)
    }

    /// Writes the visible rows into a new table, as planned. `progress` receives the number of rows
    /// written so far.
    ///
    /// # Errors
    /// [`TableError`]; the new table has no rows then. This table is unchanged in any case.
    pub async fn repartition(
        &self,
        plan: &RepartitionPlan,
        into: TableStorage,
        memory: ByteSize,
        interrupt: &Arc<Notify>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Self, TableError> {
        let to = TableSpec::new(plan.to.clone())?;
        let provider = self.provider()?;
        let written = repartition::rewrite(&provider, &to, into, memory, interrupt, progress).await?;
        Self::at(written.log, written.committed.snapshot)
    }

    /// Returns the table as a `TableProvider` of DataFusion.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn provider(&self) -> Result<Arc<SnapshotTable>, TableError> {
        let provider = SnapshotTable::try_new(self.log.storage().clone(), self.snapshot.clone());
        Ok(Arc::new(provider.map_err(QueryError::from)?))
    }

    /// Registers the table in a session of DataFusion. Grouping by the partition key repartitions
    /// the rows there, unless [`crate::query::PartitionAware`] is the first physical rule of the
    /// session, as it is in [`Table::session`].
    ///
    /// ```
    /// use datafusion::prelude::SessionContext;
    /// use evenkeel_engine::Table;
    /// use evenkeel_testkit::ad_events_definition;
    /// use evenkeel_model::table::TableSpec;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("events");
    /// # Table::create(&path, &TableSpec::new(ad_events_definition()?)?).await?;
    /// let table = Table::open(&path).await?;
    /// let context = SessionContext::new();
    /// table.register(&context, "events")?;
    /// assert_eq!(context.sql("SELECT user_id FROM events").await?.count().await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`TableError`] if the name is taken.
    pub fn register(&self, context: &SessionContext, name: &str) -> Result<(), TableError> {
        let registered = context.register_table(TableReference::bare(name), self.provider()?);
        registered.map_err(QueryError::from)?;
        Ok(())
    }

    /// Returns a session with this table, its system tables and parameters.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn session(&self) -> Result<TableSession, TableError> {
        Ok(TableSession::on(self.provider()?, Arc::clone(&self.runtime))?)
    }

    /// Returns a session with limits of its own. Without them, all sessions of this handle share
    /// the memory of [`default_memory`](crate::query::default_memory).
    ///
    /// # Errors
    /// [`TableError`] if the directory to spill to cannot be used.
    pub fn session_with(&self, limits: &QueryLimits) -> Result<TableSession, TableError> {
        let runtime = runtime_within(&self.runtime, limits)?;
        Ok(TableSession::on(self.provider()?, runtime)?.with_timeout(limits.timeout))
    }

    /// Returns an overview of the table: its declaration, size and partitions.
    ///
    /// # Errors
    /// [`TableError`] if a portion cannot be read.
    pub async fn inspect(&self) -> Result<TableOverview, TableError> {
        Ok(overview::inspect(self.provider()?.as_ref()).await?)
    }

    /// Returns the files of this version, by partition and age.
    #[must_use]
    pub fn files(&self) -> TableFiles {
        overview::files(&self.snapshot)
    }

    /// Returns the commits that led to this version, oldest first.
    #[must_use]
    pub fn history(&self) -> TableHistory {
        overview::history(&self.snapshot)
    }

    /// Measures how even the table is, with the noise floor of its partition keys.
    ///
    /// # Errors
    /// [`TableError`] if a portion cannot be read.
    pub async fn skew(&self) -> Result<TableSkew, TableError> {
        Ok(overview::skew(self.provider()?.as_ref(), PartitionKeys::Count).await?)
    }
}

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
