//! Queries on a table, and facts about it.

use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::prelude::SessionContext;

use crate::inspect::{self, TableFiles, TableHistory, TableOverview, TableSkew};
use crate::query::{Database, QueryError, QueryLimits, SnapshotTable, TableSession, runtime_within};
use crate::table::{Table, TableError};

impl Table {
    /// Returns the table as a `TableProvider` of DataFusion.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn provider(&self) -> Result<Arc<SnapshotTable>, TableError> {
        let provider = SnapshotTable::try_new(self.log.storage().clone(), self.snapshot.clone());
        Ok(Arc::new(provider.map_err(QueryError::from)?))
    }

    /// Returns the table as a provider for DataFusion whose every query fails for `reason`, because
    /// the newest version cannot be read. Queries on other tables of the session are not affected.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn unreadable_provider(&self, reason: &str) -> Result<Arc<SnapshotTable>, TableError> {
        let provider = SnapshotTable::try_new(self.log.storage().clone(), self.snapshot.clone());
        Ok(Arc::new(provider.map_err(QueryError::from)?.without_rows(reason)))
    }

    /// Registers the table in a session of DataFusion. Grouping by the partition key repartitions
    /// the rows there, unless [`crate::query::PartitionAware`] is the first physical rule of the
    /// session, as in [`Table::session`].
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

    /// Returns a session with its own limits. Without them, all sessions of this handle share the
    /// memory of [`default_memory`](crate::query::default_memory).
    ///
    /// # Errors
    /// [`TableError`] if the directory to spill to cannot be used.
    pub fn session_with(&self, limits: &QueryLimits) -> Result<TableSession, TableError> {
        let runtime = runtime_within(&self.runtime, limits)?;
        Ok(TableSession::on(self.provider()?, runtime)?.with_timeout(limits.timeout))
    }

    /// Returns a session on this table, other tables and exports.
    pub(in crate::table) fn session_beside(
        &self,
        others: &Database,
        limits: &QueryLimits,
    ) -> Result<TableSession, TableError> {
        Ok(others.session_beside(self.provider()?, &self.runtime, limits)?)
    }

    /// Returns an overview of the table: its declaration, size and partitions.
    ///
    /// # Errors
    /// [`TableError`] if a portion cannot be read.
    pub async fn inspect(&self) -> Result<TableOverview, TableError> {
        Ok(inspect::overview(self.provider()?.as_ref()).await?)
    }

    /// Returns the files of this version, by partition and age.
    #[must_use]
    pub fn files(&self) -> TableFiles {
        inspect::files(&self.snapshot)
    }

    /// Returns the commits that led to this version, oldest first.
    #[must_use]
    pub fn history(&self) -> TableHistory {
        inspect::history(&self.snapshot)
    }

    /// Measures how even the table is, with the noise floor of its partition keys.
    ///
    /// # Errors
    /// [`TableError`] if a portion cannot be read.
    pub async fn skew(&self) -> Result<TableSkew, TableError> {
        Ok(inspect::skew(self.provider()?.as_ref()).await?)
    }

    /// Number of rows in portions whose rows have all expired by now.
    #[must_use]
    pub fn expired_rows(&self) -> u64 {
        self.snapshot.expired_rows(chrono::Utc::now().timestamp_micros())
    }
}
