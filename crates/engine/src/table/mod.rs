//! Handle of a table: the entry point for programs that embed evenkeel.

mod error;
mod maintenance;
mod reading;
mod writing;

use std::path::Path;
use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;

pub use crate::table::error::TableError;

use crate::query::shared_runtime;
use evenkeel_model::table::TableSpec;
use evenkeel_model::units::Version;
use evenkeel_placement::placement::Placement;
use evenkeel_storage::TableStorage;
use evenkeel_store::log::{Snapshot, TableLog};

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
        Placement::for_table(self.spec())
    }

    /// Returns the table without some portions, so that the rest can be read if their files are
    /// damaged. Nothing is written.
    #[must_use]
    pub fn without(&self, files: &[String]) -> Self {
        Self { snapshot: self.snapshot.without(files), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use evenkeel_model::table::{Column, ColumnType, SpecError};
    use evenkeel_store::ingest::{IngestError, IngestOptions};

    use super::*;
    use crate::query::Params;
    use crate::testing::{Score, batch, ingest, latest, overlapping_commits, rows, scores};

    async fn read(table: &Table) -> Vec<Score> {
        let sql = "SELECT player, game, points FROM t ORDER BY player, game";
        rows(&table.session().unwrap().collect(sql, &Params::default()).await.unwrap())
    }

    #[tokio::test]
    async fn a_handle_stays_at_its_version_until_it_is_refreshed() {
        let commits = overlapping_commits();
        let (folder, mut writer) = scores(&commits[..1]).await;
        let mut reader = Table::open(folder.path().join("table")).await.unwrap();
        let first = reader.snapshot().version();
        ingest(&mut writer, batch(&commits[1])).await;
        assert_eq!(read(&reader).await, latest(&commits[..1]));
        assert_eq!(read(&writer).await, latest(&commits[..2]));
        reader.refresh().await.unwrap();
        assert_eq!(read(&reader).await, latest(&commits[..2]));
        let earlier = Table::open_version(folder.path().join("table"), first).await.unwrap();
        assert_eq!(read(&earlier).await, latest(&commits[..1]));
        assert!(Table::open_version(folder.path().join("table"), Version(99)).await.is_err());
    }

    #[tokio::test]
    async fn a_place_holds_at_most_one_table() {
        let (folder, table) = scores(&[]).await;
        assert!(Table::create(folder.path().join("table"), table.spec()).await.is_err());
        assert!(Table::open(folder.path().join("elsewhere")).await.is_err());
    }

    #[tokio::test]
    async fn a_rejected_row_leaves_the_table_as_it_was() {
        let commits = overlapping_commits();
        let (_folder, mut table) = scores(&commits[..1]).await;
        let numbers = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let bad = RecordBatch::try_from_iter([
            ("player", numbers(vec![Some(1), None])),
            ("game", numbers(vec![Some(1), Some(2)])),
            ("points", numbers(vec![Some(1), Some(2)])),
        ])
        .unwrap();
        let batches = [Ok(batch(&commits[1])), Ok::<_, std::io::Error>(bad)];
        let error = table.ingest(futures::stream::iter(batches), &IngestOptions::default()).await;
        assert!(matches!(error, Err(TableError::Ingest(IngestError::Row { .. }))), "{error:?}");
        let failing = [Ok(batch(&commits[1])), Err(std::io::Error::other("the source is gone"))];
        let error = table.ingest(futures::stream::iter(failing), &IngestOptions::default()).await;
        assert!(matches!(error, Err(TableError::Stream(_))), "{error:?}");
        table.refresh().await.unwrap();
        assert_eq!(read(&table).await, latest(&commits[..1]));
    }

    #[tokio::test]
    async fn an_alteration_adds_columns_and_nothing_else() {
        let commits = overlapping_commits();
        let (folder, mut table) = scores(&commits).await;
        let column = Column { name: "bonus".to_owned(), column_type: ColumnType::Int64, nullable: true };
        let before = table.snapshot().version();
        table.alter(|definition| definition.columns.push(column.clone())).await.unwrap();
        assert!(table.snapshot().version() > before);
        let opened = Table::open(folder.path().join("table")).await.unwrap();
        assert_eq!(opened.spec().columns().last(), Some(&column));
        assert_eq!(read(&opened).await, latest(&commits));
        let nulls = opened.session().unwrap();
        let nulls = nulls.collect("SELECT count(bonus) FROM t", &Params::default()).await.unwrap();
        assert_eq!(nulls[0].column(0).as_ref(), &Int64Array::from(vec![0]));
        let version = table.snapshot().version();
        table.alter(|_| ()).await.unwrap();
        assert_eq!(table.snapshot().version(), version);
        let refused = table.alter(|definition| definition.primary_key.reverse()).await;
        assert!(matches!(refused, Err(TableError::Spec(SpecError::Fixed { .. }))), "{refused:?}");
    }

    #[tokio::test]
    async fn rows_of_excluded_files_are_not_read() {
        let commits = overlapping_commits();
        let (_folder, table) = scores(&commits).await;
        let newest = table.snapshot().version();
        let portions = table.snapshot().portions();
        let last = portions.iter().filter(|portion| portion.sequence.version == newest);
        let last: Vec<String> = last.map(|portion| portion.path.clone()).collect();
        assert_eq!(read(&table.without(&last)).await, latest(&commits[..commits.len() - 1]));
        assert_eq!(read(&table.without(&["nothing".to_owned()])).await, latest(&commits));
    }
}
