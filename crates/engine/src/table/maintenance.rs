//! Maintenance of the files of a table.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::compact::{CompactionOptions, CompactionProgress, CompactionReport, compact};
use crate::repartition::{self, RepartitionError, RepartitionPlan};
use crate::table::{Table, TableError};
use evenkeel_model::table::{TableDefinition, TableSpec};
use evenkeel_model::units::ByteSize;
use evenkeel_storage::TableStorage;
use evenkeel_store::delta::{self, DeltaExport, DeltaOptions};
use evenkeel_store::maintenance::{self, CheckScope, CleanOptions, CleanReport, TableCheck};

impl Table {
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

    /// Writes the newest version as the next version of a Delta log next to the files, so that
    /// Delta readers read the files in place. No two portions of a partition may overlap in keys,
    /// as after a compaction.
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

    /// Plans another partition key, number of partitions or placement function: shows the evenness
    /// of the new table, and the rows that move.
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
}
