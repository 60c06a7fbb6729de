//! A snapshot as a table of DataFusion.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DFSchema;
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;

use crate::query::overlap::{OverlapGroup, group_by_overlap};
use crate::query::portion_files::PortionFiles;
use crate::query::pruning::{matching_partitions, matching_portions};
use crate::query::scan_summary::ScanSummary;
use crate::query::visible_scan::VisibleScan;
use evenkeel_model::table::view_schema;
use evenkeel_model::units::PartitionId;
use evenkeel_storage::TableStorage;
use evenkeel_store::log::{PortionEntry, Snapshot};

/// A snapshot of a table that DataFusion queries. Text columns are returned as views.
#[derive(Debug)]
pub struct SnapshotTable {
    snapshot: Snapshot,
    files: PortionFiles,
    /// Visible portions by partition and age.
    portions: Vec<Arc<PortionEntry>>,
    scans: Mutex<Vec<ScanSummary>>,
}

impl SnapshotTable {
    /// Creates the table at `snapshot`, whose files are in `storage`.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn try_new(storage: TableStorage, snapshot: Snapshot) -> Result<Self> {
        let schema = view_schema(snapshot.spec().schema());
        Self::with_schema(storage, snapshot, schema)
    }

    /// Creates the table so that it returns text and bytes as declared. Rows sent between machines
    /// must not hold views, which would carry along the buffers that they refer to.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn with_declared_text(storage: TableStorage, snapshot: Snapshot) -> Result<Self> {
        let schema = Arc::clone(snapshot.spec().schema());
        Self::with_schema(storage, snapshot, schema)
    }

    fn with_schema(storage: TableStorage, snapshot: Snapshot, schema: SchemaRef) -> Result<Self> {
        let files = PortionFiles::try_new(storage, Arc::clone(snapshot.spec()), schema)?;
        let portions = snapshot.portions();
        Ok(Self { snapshot, files, portions, scans: Mutex::default() })
    }

    /// Files of the table.
    #[must_use]
    pub fn storage(&self) -> &TableStorage {
        self.files.storage()
    }

    /// Snapshot of the table.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// URL under which DataFusion finds the files.
    pub(super) fn store_url(&self) -> &ObjectStoreUrl {
        self.files.url()
    }

    /// Schema that queries see.
    pub(super) fn schema_ref(&self) -> &SchemaRef {
        self.files.schema()
    }

    /// Returns the summaries of the scans planned so far, and forgets them.
    #[must_use]
    pub fn take_scans(&self) -> Vec<ScanSummary> {
        std::mem::take(&mut *self.scans.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the visible portions of one partition by age, oldest first.
    pub(super) fn portions_of(&self, partition: PartitionId) -> &[Arc<PortionEntry>] {
        let start = self.portions.partition_point(|portion| portion.partition < partition);
        let end = self.portions.partition_point(|portion| portion.partition <= partition);
        self.portions.get(start..end).unwrap_or_default()
    }

    /// Returns a plan of the visible rows of one partition, with the columns `projection` of the
    /// table.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the plan cannot be made.
    pub(crate) fn scan_partition(
        &self,
        state: &dyn Session,
        partition: PartitionId,
        projection: &[usize],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.scan_where(state, self.portions_of(partition), projection, None)
    }

    /// Returns a plan of all columns of the rows that would be visible if the table had only these
    /// portions of one partition, in key order.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the plan cannot be made.
    pub(crate) fn scan_portions(
        &self,
        state: &dyn Session,
        portions: &[Arc<PortionEntry>],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.scan_where(state, portions, &self.all_columns(), None)
    }

    /// Returns a plan of the rows that would be visible if the table had only these portions, with
    /// the columns `projection` of the table and one output partition for each of their partitions.
    /// `predicate`, on the columns of the table, avoids reading portions if possible; the plan may
    /// still return rows that do not match it.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the plan cannot be made.
    pub fn scan_where(
        &self,
        state: &dyn Session,
        portions: &[Arc<PortionEntry>],
        projection: &[usize],
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = VisibleScan { files: &self.files, state, projection, limit: None, predicate };
        scan.plan(&group_by_partition(portions))
    }

    /// Returns the portions that can hold rows matching `predicate`, which is on the columns of the
    /// table: for each partition that has any, groups of those whose keys overlap, in key order.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the predicate cannot be evaluated.
    pub fn groups_where(&self, predicate: Option<&Arc<dyn PhysicalExpr>>) -> Result<Vec<Vec<OverlapGroup>>> {
        let mut summary = ScanSummary::new(&self.snapshot);
        let partitions = group_by_partition(&self.portions_where(predicate, &mut summary)?);
        summary.count(&partitions);
        self.scans.lock().unwrap_or_else(PoisonError::into_inner).push(summary);
        Ok(partitions)
    }

    /// Combines the filters of a scan into one condition on the columns of the table; `None` if
    /// there are no filters.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if they cannot be planned.
    pub fn predicate(&self, state: &dyn Session, filters: &[Expr]) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let Some(filter) = conjunction(filters.to_vec()) else { return Ok(None) };
        let schema = DFSchema::try_from(Arc::clone(self.schema_ref()))?;
        state.create_physical_expr(filter, &schema).map(Some)
    }

    /// Returns the portions that can hold rows matching `predicate`.
    fn portions_where(
        &self,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
        summary: &mut ScanSummary,
    ) -> Result<Vec<Arc<PortionEntry>>> {
        let Some(predicate) = predicate else {
            summary.reads_everything();
            return Ok(self.portions.clone());
        };
        let spec = self.snapshot.spec();
        let partitions = matching_partitions(spec, self.schema_ref(), predicate);
        summary.reads_partitions(partitions.as_ref(), &spec.definition().partition_key);
        let mut portions = self.portions.clone();
        portions.retain(|portion| partitions.as_ref().is_none_or(|some| some.contains(&portion.partition)));
        let keep = matching_portions(spec, self.schema_ref(), predicate, &portions)?;
        summary.excludes_portions(keep.iter().filter(|keep| !**keep).count());
        let kept = portions.into_iter().zip(keep).filter_map(|(portion, keep)| keep.then_some(portion));
        Ok(kept.collect())
    }

    fn all_columns(&self) -> Vec<usize> {
        (0..self.schema_ref().fields().len()).collect()
    }
}

/// Groups the overlapping portions of each partition, in key order. `portions` is ordered by
/// partition.
fn group_by_partition(portions: &[Arc<PortionEntry>]) -> Vec<Vec<OverlapGroup>> {
    portions.chunk_by(|a, b| a.partition == b.partition).map(group_by_overlap).collect()
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema_ref())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Every filter narrows the scan if it can; DataFusion applies it again above.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let predicate = self.predicate(state, filters)?;
        let partitions = self.groups_where(predicate.as_ref())?;
        let projection = projection.cloned().unwrap_or_else(|| self.all_columns());
        let scan = VisibleScan { files: &self.files, state, projection: &projection, limit, predicate: None };
        scan.plan(&partitions)
    }
}
