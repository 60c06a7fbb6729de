//! A snapshot as a table of DataFusion.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{DFSchema, Statistics};
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;

use crate::query::scan::overlap::{OverlapGroup, group_all_by_overlap, group_by_overlap};
use crate::query::scan::portion_files::PortionFiles;
use crate::query::scan::pruning::{matching_partitions, matching_portions};
use crate::query::scan::scan_summary::ScanSummary;
use crate::query::scan::visible_scan::VisibleScan;
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
    /// Reason why its rows must not be read, if so: the newest ones may be unknown.
    unreadable: Option<String>,
}

impl SnapshotTable {
    /// Creates the table at `snapshot`, whose files are in `storage`.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub(crate) fn try_new(storage: TableStorage, snapshot: Snapshot) -> Result<Self> {
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
        Ok(Self { snapshot, files, portions, scans: Mutex::default(), unreadable: None })
    }

    /// Returns the table so that each query on it fails for the reason.
    #[must_use]
    pub(crate) fn without_rows(self, reason: &str) -> Self {
        Self { unreadable: Some(reason.to_owned()), ..self }
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

    /// URL of the files for DataFusion.
    pub(in crate::query) fn store_url(&self) -> &ObjectStoreUrl {
        self.files.url()
    }

    /// Files of the portions.
    pub(in crate::query) fn files(&self) -> &PortionFiles {
        &self.files
    }

    /// Schema that queries see.
    pub(in crate::query) fn schema_ref(&self) -> &SchemaRef {
        self.files.schema()
    }

    /// Returns the summaries of the scans planned so far, and forgets them.
    #[must_use]
    pub(in crate::query) fn take_scans(&self) -> Vec<ScanSummary> {
        std::mem::take(&mut *self.scans.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the visible portions of one partition by age, oldest first.
    pub(in crate::query) fn portions_of(&self, partition: PartitionId) -> &[Arc<PortionEntry>] {
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

    /// Returns a scan of visible rows without a limit and a condition.
    fn visible_scan<'a>(&'a self, state: &'a dyn Session, projection: &'a [usize]) -> VisibleScan<'a> {
        let (limit, predicate, keeps_deletes) = (None, None, false);
        VisibleScan { files: &self.files, state, projection, limit, predicate, keeps_deletes }
    }

    /// Returns a plan of all columns of the rows that would be visible if the table had only these
    /// portions of one partition, in key order. With `keeps_deletes`, deletes that no newer row
    /// hides are among them, and a last column marks them.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the plan cannot be made.
    pub(crate) fn scan_portions(
        &self,
        state: &dyn Session,
        portions: &[Arc<PortionEntry>],
        keeps_deletes: bool,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = self.all_columns();
        if !keeps_deletes {
            return self.scan_where(state, portions, &projection, None);
        }
        let scan = VisibleScan { keeps_deletes, ..self.visible_scan(state, &projection) };
        scan.plan(&[group_all_by_overlap(portions)])
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
        let scan = VisibleScan { predicate, ..self.visible_scan(state, projection) };
        scan.plan(&group_by_partition(portions))
    }

    /// Returns the portions that can hold rows matching `predicate`, which is on the columns of the
    /// table: for each partition with such portions, groups of overlapping ones in key order.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the predicate cannot be
    /// evaluated.
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
    let groups = portions.chunk_by(|a, b| a.partition == b.partition).map(group_by_overlap);
    groups.filter(|groups| !groups.is_empty()).collect()
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

    /// Rows of all visible portions, some of which may be superseded.
    fn statistics(&self) -> Option<Statistics> {
        let rows: u64 = self.portions.iter().map(|portion| portion.rows).sum();
        let rows = usize::try_from(rows).map_or(Precision::Absent, Precision::Inexact);
        Some(Statistics::new_unknown(&self.schema()).with_num_rows(rows))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(reason) = &self.unreadable {
            return Err(DataFusionError::IoError(io::Error::other(reason.clone())));
        }
        let predicate = self.predicate(state, filters)?;
        let partitions = self.groups_where(predicate.as_ref())?;
        let projection = projection.cloned().unwrap_or_else(|| self.all_columns());
        let scan = VisibleScan { limit, ..self.visible_scan(state, &projection) };
        scan.plan(&partitions)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};
    use datafusion::physical_plan::collect;
    use datafusion::prelude::SessionContext;
    use evenkeel_placement::placement::Placement;

    use super::*;
    use crate::testing::{Score, batch, latest, overlapping_commits, rows, scores};

    type Matches = fn(&Score) -> bool;

    async fn read(context: &SessionContext, plan: Arc<dyn ExecutionPlan>) -> Vec<Score> {
        rows(&collect(plan, context.task_ctx()).await.unwrap())
    }

    #[tokio::test]
    async fn partitions_return_their_newest_rows_in_key_order() {
        for commits in [overlapping_commits(), vec![overlapping_commits().remove(0)], vec![]] {
            let (_folder, table) = scores(&commits).await;
            let provider = table.provider().unwrap();
            let context = SessionContext::new();
            let state = context.state();
            let mut expected: Vec<Vec<Score>> = vec![Vec::new(); 4];
            for score in latest(&commits) {
                let key = batch(&[score]).column(0).clone();
                expected[Placement::for_table(table.spec()).assign(&[key]).unwrap()[0].index()].push(score);
            }
            for partition in table.spec().partitions().ids() {
                let plan = provider.scan_partition(&state, partition, &[0, 1, 2]).unwrap();
                assert_eq!(read(&context, plan).await, expected[partition.index()], "{partition}");
            }
        }
    }

    #[tokio::test]
    async fn a_scan_of_some_portions_ignores_the_others() {
        let commits = overlapping_commits();
        let (_folder, table) = scores(&commits).await;
        let provider = table.provider().unwrap();
        let context = SessionContext::new();
        let versions: Vec<_> = table.snapshot().commits().iter().map(|c| c.info.version).collect();
        let third = versions[versions.len() - 3];
        let old: Vec<_> =
            table.snapshot().portions().into_iter().filter(|p| p.sequence.version <= third).collect();
        let plan = provider.scan_where(&context.state(), &old, &[0, 1, 2], None).unwrap();
        let mut read = read(&context, plan).await;
        read.sort_unstable();
        assert_eq!(read, latest(&commits[..3]));
    }

    #[tokio::test]
    async fn no_portion_with_a_matching_row_is_left_out() {
        let (_folder, table) = scores(&overlapping_commits()).await;
        let provider = table.provider().unwrap();
        let context = SessionContext::new();
        let state = context.state();
        let number = |name: &str, value: i64| col(name).eq(lit(value));
        let cases: Vec<(Expr, Matches)> = vec![
            (number("player", 3), |s| s.0 == 3),
            (col("player").in_list(vec![lit(1i64), lit(2i64)], false), |s| s.0 == 1 || s.0 == 2),
            (col("game").gt(lit(9i64)), |s| s.1 > 9),
            (col("game").lt(lit(0i64)), |s| s.1 < 0),
            (number("player", 3).and(number("game", 4)), |s| s.0 == 3 && s.1 == 4),
            (number("player", 3).or(number("game", 4)), |s| s.0 == 3 || s.1 == 4),
            (number("points", 1007), |s| s.2 == 1007),
        ];
        for (condition, matches) in cases {
            let predicate = provider.predicate(&state, std::slice::from_ref(&condition)).unwrap();
            let groups = provider.groups_where(predicate.as_ref()).unwrap();
            let kept: Vec<&str> = groups.iter().flatten().flatten().map(|p| p.path.as_str()).collect();
            for portion in table.snapshot().portions() {
                let plan = provider.scan_portions(&state, std::slice::from_ref(&portion), false).unwrap();
                let needed = read(&context, plan).await.iter().any(matches);
                assert!(!needed || kept.contains(&portion.path.as_str()), "{condition}: {}", portion.path);
            }
        }
        assert!(provider.predicate(&state, &[number("nothing", 1)]).is_err());
    }

    #[tokio::test]
    async fn a_scan_reports_what_it_reads() {
        let (_folder, table) = scores(&overlapping_commits()).await;
        let provider = table.provider().unwrap();
        let context = SessionContext::new();
        let state = context.state();
        let portions = table.snapshot().portions();
        for filters in [vec![], vec![col("player").eq(lit(3i64))], vec![col("game").lt(lit(0i64))]] {
            let predicate = provider.predicate(&state, &filters).unwrap();
            provider.groups_where(predicate.as_ref()).unwrap();
        }
        let [all, one_player, nothing] = provider.take_scans().try_into().unwrap();
        assert!(provider.take_scans().is_empty());
        assert_eq!((all.partitions_read, all.partitions), (4, 4));
        assert_eq!((all.portions_read, all.portions), (portions.len(), portions.len()));
        assert_eq!(all.rows_in_portions, portions.iter().map(|portion| portion.rows).sum::<u64>());
        assert_eq!(all.reasons, ["no condition narrows the scan"]);
        assert_eq!(one_player.partitions_read, 1);
        assert!(one_player.portions_read <= 5, "{one_player:?}");
        assert_eq!((nothing.partitions_read, nothing.portions_read, nothing.rows_in_portions), (4, 0, 0));
        assert!(nothing.reasons[1].contains(&format!("exclude {}", portions.len())), "{nothing:?}");
    }
}
