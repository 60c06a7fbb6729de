//! A snapshot as a table of DataFusion.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, DFSchema, Statistics};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::utils::{collect_columns, conjunction_opt, split_conjunction};
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use serde::Serialize;

use crate::query::newest_wins::{Inputs, NewestWinsExec, Overlapping, Piece, RankedInput, key_ordering};
use crate::query::ordered_scan::OrderedScan;
use crate::query::overlap::{group_by_overlap, pack_into_runs};
use crate::query::portion_readers::PortionReaders;
use crate::query::pruning::{matching_partitions, matching_portions, scalar};
use evenkeel_model::table::{KeyValue, view_schema};
use evenkeel_model::units::PartitionId;
use evenkeel_storage::TableStorage;
use evenkeel_store::log::{PortionEntry, Snapshot};

/// Summary of what one scan of a table reads, and out of how much.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ScanSummary {
    /// Name of the table.
    pub table: String,
    /// Partitions that the scan reads.
    pub partitions_read: usize,
    /// Partitions of the table.
    pub partitions: usize,
    /// Portions that the scan reads.
    pub portions_read: usize,
    /// Portions of the table.
    pub portions: usize,
    /// Portions read that are merged because their key ranges overlap.
    pub portions_merged: usize,
    /// Rows in the portions read.
    pub rows_in_portions: u64,
    /// Reasons for what the scan reads, one sentence each.
    pub reasons: Vec<String>,
}

impl ScanSummary {
    /// Counts the portions that are read, given in groups of overlapping ones.
    fn count(&mut self, groups: &[Vec<Vec<Arc<PortionEntry>>>]) {
        let portions = groups.iter().flatten().flatten();
        self.portions_read = portions.clone().count();
        self.rows_in_portions = portions.map(|portion| portion.rows).sum();
        let merged = groups.iter().flatten().filter(|group| group.len() > 1);
        self.portions_merged = merged.map(Vec::len).sum();
    }
}

/// Groups the overlapping portions of each partition, in key order. `portions` is ordered by
/// partition.
fn groups_of(portions: &[Arc<PortionEntry>]) -> Vec<Vec<Vec<Arc<PortionEntry>>>> {
    portions.chunk_by(|a, b| a.partition == b.partition).map(group_by_overlap).collect()
}

/// Freedom that DataFusion has with the file groups of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    /// DataFusion may cut and shuffle them between cores.
    MayBeCut,
    /// DataFusion may not change them: each group is an input of [`NewestWinsExec`]. A declared
    /// partitioning, even an unknown one, pins them.
    ArePinned,
}

/// A snapshot of a table that DataFusion queries. Text columns are returned as views.
#[derive(Debug)]
pub struct SnapshotTable {
    storage: TableStorage,
    snapshot: Snapshot,
    /// Visible portions by partition and age.
    portions: Vec<Arc<PortionEntry>>,
    schema: SchemaRef,
    store_url: ObjectStoreUrl,
    scans: Mutex<Vec<ScanSummary>>,
}

impl SnapshotTable {
    /// Creates the table at `snapshot`, whose files are in `storage`.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn try_new(storage: TableStorage, snapshot: Snapshot) -> Result<Self> {
        let schema = view_schema(snapshot.spec().schema());
        Self::of_schema(storage, snapshot, schema)
    }

    /// Creates the table so that it returns text and bytes as declared. Rows sent between machines
    /// must not hold views, which would carry along the buffers that they refer to.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn with_declared_text(storage: TableStorage, snapshot: Snapshot) -> Result<Self> {
        let schema = Arc::clone(snapshot.spec().schema());
        Self::of_schema(storage, snapshot, schema)
    }

    fn of_schema(storage: TableStorage, snapshot: Snapshot, schema: SchemaRef) -> Result<Self> {
        let store_url = ObjectStoreUrl::parse(format!("evenkeel://{}", storage.id().simple()))?;
        let portions = snapshot.portions();
        Ok(Self { storage, snapshot, portions, schema, store_url, scans: Mutex::new(Vec::new()) })
    }

    /// Files of the table.
    #[must_use]
    pub fn storage(&self) -> &TableStorage {
        &self.storage
    }

    /// Snapshot of the table.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// URL under which DataFusion finds the files.
    pub(super) fn store_url(&self) -> &ObjectStoreUrl {
        &self.store_url
    }

    /// Schema that queries see.
    pub(super) fn schema_ref(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the summaries of the scans planned so far, and forgets them.
    #[must_use]
    pub fn take_scans(&self) -> Vec<ScanSummary> {
        std::mem::take(&mut *self.scans.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a plan of the visible rows of one partition, with the columns `projection` of the
    /// table.
    ///
    /// # Errors
    /// [`DataFusionError`] if the plan cannot be made.
    pub fn scan_partition(
        &self,
        state: &dyn Session,
        partition: PartitionId,
        projection: &[usize],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.scan_where(state, self.portions_of(partition), projection, None)
    }

    /// Returns a plan of the rows that would be visible if the table had only these portions, with
    /// the columns `projection` of the table and one output partition for each of their partitions.
    /// `predicate`, on the columns of the table, avoids reading portions if possible; the plan may
    /// still return rows that do not match it.
    ///
    /// # Errors
    /// [`DataFusionError`] if the plan cannot be made.
    pub fn scan_where(
        &self,
        state: &dyn Session,
        portions: &[Arc<PortionEntry>],
        projection: &[usize],
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let narrowed = Narrowed { predicate: predicate.cloned() };
        self.plan(state, groups_of(portions), projection, None, &narrowed)
    }

    /// Returns the portions that can hold rows matching `predicate`, which is on the columns of the
    /// table: for each partition that has any, groups of those whose keys overlap, in key order.
    ///
    /// # Errors
    /// [`DataFusionError`] if the predicate cannot be evaluated.
    pub fn groups_where(
        &self,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Vec<Vec<Vec<Arc<PortionEntry>>>>> {
        let mut summary = ScanSummary::default();
        let groups = groups_of(&self.matching(predicate, &mut summary)?);
        summary.count(&groups);
        self.scans.lock().unwrap_or_else(PoisonError::into_inner).push(summary);
        Ok(groups)
    }

    /// Combines the filters of a scan into one condition on the columns of the table; `None` if
    /// there are no filters.
    ///
    /// # Errors
    /// [`DataFusionError`] if they cannot be planned.
    pub fn predicate(&self, state: &dyn Session, filters: &[Expr]) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let Some(filter) = conjunction(filters.to_vec()) else { return Ok(None) };
        let schema = DFSchema::try_from(Arc::clone(&self.schema))?;
        state.create_physical_expr(filter, &schema).map(Some)
    }

    /// Returns a plan of all columns of the rows that would be visible if the table had only these
    /// portions of one partition, in key order.
    ///
    /// # Errors
    /// [`DataFusionError`] if the plan cannot be made.
    pub fn scan_portions(
        &self,
        state: &dyn Session,
        portions: &[Arc<PortionEntry>],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.scan_where(state, portions, &self.all_columns(), None)
    }

    /// Returns the visible portions of one partition by age, oldest first.
    #[must_use]
    pub fn portions_of(&self, partition: PartitionId) -> &[Arc<PortionEntry>] {
        let start = self.portions.partition_point(|portion| portion.partition < partition);
        let end = self.portions.partition_point(|portion| portion.partition <= partition);
        self.portions.get(start..end).unwrap_or_default()
    }

    /// Returns the portions that can hold rows matching `predicate`.
    fn matching(
        &self,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
        summary: &mut ScanSummary,
    ) -> Result<Vec<Arc<PortionEntry>>> {
        let spec = self.snapshot.spec();
        let all = self.portions.clone();
        summary.table = spec.name().to_owned();
        summary.partitions = spec.partitions().len();
        summary.portions = all.len();
        let key = spec.definition().partition_key.join(", ");
        let Some(predicate) = predicate else {
            summary.partitions_read = summary.partitions;
            summary.reasons.push("no condition narrows the scan".to_owned());
            return Ok(all);
        };
        let partitions = matching_partitions(spec, &self.schema, predicate);
        summary.partitions_read = partitions.as_ref().map_or(summary.partitions, BTreeSet::len);
        summary.reasons.push(match &partitions {
            Some(found) => {
                format!("the condition fixes the partition key ({key}): {} of the partitions", found.len())
            }
            None => format!(
                "the condition does not fix every column of the partition key ({key}): all partitions"
            ),
        });
        let in_partitions: Vec<_> = all
            .into_iter()
            .filter(|portion| partitions.as_ref().is_none_or(|found| found.contains(&portion.partition)))
            .collect();
        let keep = matching_portions(spec, &self.schema, predicate, &in_partitions)?;
        let dropped = keep.iter().filter(|keep| !**keep).count();
        if dropped > 0 {
            summary.reasons.push(format!("ranges of the primary key exclude {dropped} of their portions"));
        }
        Ok(in_partitions
            .into_iter()
            .zip(keep)
            .filter_map(|(portion, keep)| keep.then_some(portion))
            .collect())
    }

    /// Returns a plan that reads the visible rows of `groups`: for each partition its portions in
    /// key order, with overlapping ones grouped together.
    fn plan(
        &self,
        state: &dyn Session,
        groups: Vec<Vec<Vec<Arc<PortionEntry>>>>,
        projection: &[usize],
        limit: Option<usize>,
        narrowed: &Narrowed,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let store = Arc::clone(self.storage.store());
        state.runtime_env().register_object_store(self.store_url.as_ref(), store);
        if groups.is_empty() {
            return Ok(Arc::new(EmptyExec::new(Arc::new(self.schema.project(projection)?))));
        }
        if groups.iter().flatten().all(|group| group.len() == 1) {
            let stretches: Vec<Vec<_>> =
                groups.iter().map(|groups| groups.iter().flatten().cloned().collect()).collect();
            if stretches.iter().all(|stretch| self.datafusion_sees_order(stretch)) {
                return self.scan_files(state, &stretches, projection, limit, Files::MayBeCut, narrowed);
            }
        }
        self.scan_pieces(state, groups, projection, narrowed)
    }

    fn all_columns(&self) -> Vec<usize> {
        (0..self.schema.fields().len()).collect()
    }

    /// Whether DataFusion can tell that portions without overlap are in order. It compares the
    /// ranges of each column on its own, and so can only be sure if the leading column differs.
    fn datafusion_sees_order(&self, stretch: &[Arc<PortionEntry>]) -> bool {
        stretch.windows(2).all(|pair| match pair {
            [a, b] => a.key_range.max.first() < b.key_range.min.first(),
            _ => true,
        })
    }

    /// Returns a plain scan with one file group per entry of `groups`, each in key order.
    fn scan_files(
        &self,
        state: &dyn Session,
        groups: &[Vec<Arc<PortionEntry>>],
        projection: &[usize],
        limit: Option<usize>,
        files: Files,
        narrowed: &Narrowed,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = TableParquetOptions {
            global: state.config_options().execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
        let readers = PortionReaders::new(Arc::clone(self.storage.store()), cache);
        let source = ParquetSource::new(TableSchema::from(Arc::clone(&self.schema)))
            .with_table_parquet_options(options)
            .with_pushdown_filters(true)
            .with_reorder_filters(true)
            .with_enable_page_index(true)
            .with_bloom_filter_on_read(true)
            .with_parquet_file_reader_factory(Arc::new(readers));
        let source = match &narrowed.predicate {
            Some(predicate) => source.with_predicate(Arc::clone(predicate)),
            None => source,
        };
        let partitioning =
            (files == Files::ArePinned).then(|| Partitioning::UnknownPartitioning(groups.len()));
        let file_groups = groups
            .iter()
            .map(|group| {
                Ok(FileGroup::new(group.iter().map(|portion| self.file(portion)).collect::<Result<_>>()?))
            })
            .collect::<Result<Vec<_>>>()?;
        let ordering = key_ordering(&self.schema, self.snapshot.spec().primary_key());
        let config = FileScanConfigBuilder::new(self.store_url.clone(), Arc::new(source))
            .with_file_groups(file_groups)
            .with_output_partitioning(partitioning)
            .with_output_ordering(ordering.into_iter().collect())
            .with_statistics(self.statistics_of(groups.iter().flatten()))
            .with_projection_indices(Some(projection.to_vec()))?
            .with_limit(limit)
            .build();
        Ok(OrderedScan::plan(config))
    }

    /// Returns a scan that chains portions without overlap and merges overlapping ones, with one
    /// output partition per entry of `partitions`. An entry has the groups of overlapping portions
    /// in key order.
    fn scan_pieces(
        &self,
        state: &dyn Session,
        partitions: Vec<Vec<Vec<Arc<PortionEntry>>>>,
        projection: &[usize],
        narrowed: &Narrowed,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut plain: Vec<Vec<Arc<PortionEntry>>> = Vec::new();
        let mut overlapping: Vec<Vec<Arc<PortionEntry>>> = Vec::new();
        let mut pieces = Vec::with_capacity(partitions.len());
        for groups in partitions {
            let mut of_partition = Vec::new();
            for stretch in groups.chunk_by(|a, b| a.len() == 1 && b.len() == 1) {
                match stretch {
                    [group] if group.len() > 1 => {
                        of_partition.push(Piece::Merged(ranked_runs(group, &mut overlapping)));
                    }
                    alone => {
                        of_partition.push(Piece::Plain(plain.len()));
                        plain.push(alone.iter().flatten().cloned().collect());
                    }
                }
            }
            pieces.push(of_partition);
        }
        let inputs = Inputs {
            plain: match plain.is_empty() {
                true => None,
                false => {
                    Some(self.scan_files(state, &plain, projection, None, Files::ArePinned, narrowed)?)
                }
            },
            overlapping: match overlapping.is_empty() {
                true => None,
                false => Some(self.scan_overlapping(state, &overlapping, projection, narrowed)?),
            },
        };
        let position = |index: &usize| projection.iter().position(|column| column == index);
        let key: Vec<Option<usize>> = self.snapshot.spec().primary_key().iter().map(position).collect();
        let schema = Arc::new(self.schema.project(projection)?);
        Ok(Arc::new(NewestWinsExec::try_new(schema, &key, inputs, Arc::new(pieces))?))
    }

    /// Returns a scan of the portions to merge, one per partition, with the columns that merging
    /// needs.
    fn scan_overlapping(
        &self,
        state: &dyn Session,
        portions: &[Vec<Arc<PortionEntry>>],
        projection: &[usize],
        narrowed: &Narrowed,
    ) -> Result<Overlapping> {
        let primary_key = self.snapshot.spec().primary_key();
        let narrowed = narrowed.to_columns(primary_key);
        let mut columns: Vec<usize> = projection.iter().chain(primary_key).copied().collect();
        columns.sort_unstable();
        columns.dedup();
        let position = |index: &usize| columns.iter().position(|column| column == index);
        Ok(Overlapping {
            plan: self.scan_files(state, portions, &columns, None, Files::ArePinned, &narrowed)?,
            key: primary_key.iter().filter_map(position).collect(),
            output: projection.iter().filter_map(position).collect(),
        })
    }

    fn file(&self, portion: &PortionEntry) -> Result<PartitionedFile> {
        let path =
            self.storage.path(&portion.path).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let file = PartitionedFile::new(path.to_string(), portion.bytes);
        Ok(file.with_statistics(Arc::new(self.statistics(portion))))
    }

    fn statistics(&self, portion: &PortionEntry) -> Statistics {
        let ranges: Vec<_> = portion.column_ranges.iter().map(|r| (r.min.first(), r.max.first())).collect();
        self.statistics_from(portion.rows, &ranges)
    }

    /// Statistics of all the portions together: their rows, and the ranges of their key columns.
    fn statistics_of<'a>(&self, portions: impl Iterator<Item = &'a Arc<PortionEntry>>) -> Statistics {
        let mut rows = 0;
        let mut ranges: Vec<(Option<&KeyValue>, Option<&KeyValue>)> = Vec::new();
        for portion in portions {
            if rows == 0 {
                ranges = portion.column_ranges.iter().map(|r| (r.min.first(), r.max.first())).collect();
            }
            rows += portion.rows;
            for ((min, max), range) in ranges.iter_mut().zip(&portion.column_ranges) {
                *min = (*min).min(range.min.first());
                *max = (*max).max(range.max.first());
            }
        }
        self.statistics_from(rows, &ranges)
    }

    /// Statistics of `rows` rows, with the smallest and largest value of each primary-key column.
    fn statistics_from(&self, rows: u64, ranges: &[(Option<&KeyValue>, Option<&KeyValue>)]) -> Statistics {
        let spec = self.snapshot.spec();
        let mut columns = vec![ColumnStatistics::new_unknown(); spec.columns().len()];
        for (index, (min, max)) in spec.primary_key().iter().zip(ranges) {
            let data_type = self.schema.field(*index).data_type();
            let exact = |value: Option<&KeyValue>| {
                value.and_then(|value| scalar(value, data_type)).map_or(Precision::Absent, Precision::Exact)
            };
            if let Some(column) = columns.get_mut(*index) {
                column.null_count = Precision::Exact(0);
                column.min_value = exact(*min);
                column.max_value = exact(*max);
            }
        }
        Statistics {
            num_rows: usize::try_from(rows).map_or(Precision::Absent, Precision::Exact),
            total_byte_size: Precision::Absent,
            column_statistics: columns,
        }
    }
}

/// Known condition on the requested rows, for scans to which DataFusion pushes no filters.
#[derive(Debug, Default)]
struct Narrowed {
    predicate: Option<Arc<dyn PhysicalExpr>>,
}

impl Narrowed {
    /// Returns the parts of the condition that refer only to these columns.
    fn to_columns(&self, columns: &[usize]) -> Self {
        let Some(predicate) = &self.predicate else { return Self::default() };
        let parts = split_conjunction(predicate)
            .into_iter()
            .filter(|part| collect_columns(part).iter().all(|column| columns.contains(&column.index())));
        Self { predicate: conjunction_opt(parts.cloned()) }
    }
}

/// Packs a group of overlapping portions, which is ordered newest first, into runs; the portions
/// are appended to `inputs`.
fn ranked_runs(
    group: &[Arc<PortionEntry>],
    inputs: &mut Vec<Vec<Arc<PortionEntry>>>,
) -> Vec<Vec<RankedInput>> {
    let ranks: HashMap<&str, u32> = group.iter().map(|portion| portion.path.as_str()).zip(0..).collect();
    let mut ranked = |portion: Arc<PortionEntry>| {
        let rank = ranks.get(portion.path.as_str()).copied().unwrap_or(0);
        inputs.push(vec![portion]);
        RankedInput { input: inputs.len() - 1, rank }
    };
    pack_into_runs(group).into_iter().map(|run| run.into_iter().map(&mut ranked).collect()).collect()
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
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
        let groups = self.groups_where(predicate.as_ref())?;
        let projection = projection.cloned().unwrap_or_else(|| self.all_columns());
        self.plan(state, groups, &projection, limit, &Narrowed::default())
    }
}
