//! Opens portions by a plan that is prepared once for all of them.
//!
//! DataFusion 55 adapts conditions and projection to each file, and derives the predicates that
//! exclude row groups and pages from them, again for each file. With many small files that takes
//! longer than reading them. Portions of a table have the same columns, unless one was added in the
//! meantime, so that one [`FilePlan`] serves nearly all of them.
//!
//! ```text
//! OrderedScan ── opened ──► FileScanConfig with a PortionSource
//!                             └─ PortionOpener, one for each partition of the scan
//!                                  footer (cached) ─► FilePlan of its columns ─► row groups ─►
//!                                  Bloom filters ─► pages ─► reader with the conditions
//! ```
//! DataFusion opens the scan itself if a condition may still change when the first row is
//! requested, as that of a sort with a limit does, if a value in it is not known by then, or if row
//! groups are read in another order. Joins that are computed partition by partition have a scan, and so
//! plans, for each partition.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{
    BloomFilterStatistics, ParquetAccessPlan, ParquetFileMetrics, RowGroupAccessPlanFilter,
    apply_file_schema_type_coercions, build_row_filter,
};
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource, ParquetFileReaderFactory, ParquetSource,
};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::ObjectStore;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};

use crate::query::scan::density::{Density, Place, in_reader};
use crate::query::scan::file_plan::{Constants, FilePlan, TableScan};
use crate::query::scan::late_filter::LateFilter;
use crate::query::scan::portion_readers::PortionReaders;
use crate::query::scan::scan_filters::{Conditions, settled};

type Builder = ParquetRecordBatchStreamBuilder<Box<dyn AsyncFileReader>>;

/// Source of rows of portions, whose plans are shared by all streams of a scan.
#[derive(Clone)]
pub(in crate::query) struct PortionSource {
    source: ParquetSource,
    readers: PortionReaders,
    plans: Arc<FilePlans>,
    density: Arc<Density>,
    batch_size: Option<usize>,
}

impl PortionSource {
    /// Returns the source for a scan; `None` if the scan is left to DataFusion. `density` is that
    /// of all scans that are parts of the same.
    pub(in crate::query) fn new(
        config: &FileScanConfig,
        readers: &PortionReaders,
        density: &Arc<Density>,
    ) -> Option<Self> {
        let source = config.file_source().downcast_ref::<ParquetSource>()?;
        let table = source.table_schema();
        let projection = source.projection()?.clone();
        let is_plain = source.table_parquet_options().global.pushdown_filters
            && table.table_partition_cols().is_empty()
            && table.virtual_columns().is_empty()
            && config.expr_adapter_factory.is_none()
            && !projection.expr_iter().any(|part| is_about_files(&part));
        if !is_plain {
            return None;
        }
        let columns = Arc::clone(table.file_schema());
        let is_reordered = source.table_parquet_options().global.reorder_filters;
        let predicate = match source.filter() {
            Some(predicate) => match settled(&predicate, &columns).ok()? {
                Conditions::Settled(predicate) => predicate,
                Conditions::Open => return None,
            },
            None => None,
        };
        if predicate.as_ref().is_some_and(has_unknown_value) {
            return None;
        }
        let readers = if predicate.is_some() { readers.clone().with_pages() } else { readers.clone() };
        let scan =
            TableScan::new(columns, projection, predicate, is_reordered, source.max_in_list_size()).ok()?;
        let plans = Arc::new(FilePlans { scan, known: Mutex::default() });
        Some(Self { source: source.clone(), readers, plans, density: Arc::clone(density), batch_size: None })
    }
}

/// Whether a condition has a value that is known only when the query runs, as that of a scalar
/// subquery. Files are then excluded by their statistics, which happened for all other conditions
/// when the scan was planned.
fn has_unknown_value(predicate: &Arc<dyn PhysicalExpr>) -> bool {
    let is_unknown = |node: &Arc<dyn PhysicalExpr>| {
        let is_known = node.is::<Column>() || node.is::<Literal>() || node.is::<ScalarFunctionExpr>();
        Ok(node.children().is_empty() && !is_known)
    };
    predicate.exists(is_unknown).unwrap_or(true)
}

/// Whether an expression calls a function about the file that is read.
fn is_about_files(part: &Arc<dyn PhysicalExpr>) -> bool {
    let is_about_file = |node: &Arc<dyn PhysicalExpr>| {
        let function = node.downcast_ref::<ScalarFunctionExpr>();
        Ok(function.is_some_and(|function| ["input_file_name", "file_row_index"].contains(&function.name())))
    };
    part.exists(is_about_file).unwrap_or(true)
}

impl fmt::Debug for PortionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortionSource").finish_non_exhaustive()
    }
}

impl FileSource for PortionSource {
    fn create_file_opener(
        &self,
        _object_store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let Some(batch_size) = self.batch_size.or(config.batch_size) else {
            return Err(DataFusionError::Internal("a scan has no batch size".to_owned()));
        };
        let metrics = self.source.metrics().clone();
        Ok(Arc::new(PortionOpener(Arc::new(Opening {
            readers: self.readers.clone(),
            plans: Arc::clone(&self.plans),
            density: Arc::clone(&self.density),
            batch_size,
            limit: config.limit,
            max_predicate_cache_size: self.source.max_predicate_cache_size(),
            partition,
            file_metrics: ParquetFileMetrics::new(partition, "portions", &metrics),
            metrics,
        }))))
    }

    fn table_schema(&self) -> &TableSchema {
        self.source.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_size: Some(batch_size), ..self.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.source.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.source.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.source.metrics()
    }

    fn file_type(&self) -> &str {
        self.source.file_type()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.source.apply_expressions(f)
    }

    /// Accepts none: conditions are pushed down before a scan is opened.
    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let none = vec![PushedDown::No; filters.len()];
        Ok(FilterPushdownPropagation::with_parent_pushdown_result(none))
    }
}

/// Plans of a scan for the columns of its files.
struct FilePlans {
    scan: TableScan,
    known: Mutex<Vec<Arc<FilePlan>>>,
}

impl FilePlans {
    /// Returns the metadata of a file with the types that the scan reads it as, and the plan for
    /// its columns and constants. Plans with constants fit few other files, and are not kept.
    fn of_file(
        &self,
        footer: Arc<ParquetMetaData>,
        constants: &Constants,
    ) -> Result<(ArrowReaderMetadata, Arc<FilePlan>)> {
        let read_as = |columns: &SchemaRef| {
            let options = ArrowReaderOptions::new().with_schema(Arc::clone(columns));
            ArrowReaderMetadata::try_new(Arc::clone(&footer), options)
        };
        let is_known = |plan: &&Arc<FilePlan>| has_names(&footer, &plan.columns);
        let known = self.known().iter().find(is_known).cloned().filter(|_| constants.is_empty());
        if let Some(plan) = known
            && let Ok(metadata) = read_as(&plan.columns)
        {
            return Ok((metadata, plan));
        }
        let metadata = match self.expected_columns(&footer).as_ref().map(read_as) {
            Some(Ok(metadata)) => metadata,
            // The file has other columns or types than the table, and is read as DataFusion does.
            Some(Err(_)) | None => {
                let own = ArrowReaderMetadata::try_new(Arc::clone(&footer), ArrowReaderOptions::new())?;
                match apply_file_schema_type_coercions(&self.scan.columns, own.schema()) {
                    Some(columns) => read_as(&Arc::new(columns))?,
                    None => own,
                }
            }
        };
        let columns = Arc::clone(metadata.schema());
        if !constants.is_empty() {
            return Ok((metadata, Arc::new(FilePlan::new(&self.scan, columns, &footer, constants)?)));
        }
        let mut known = self.known();
        if let Some(plan) = known.iter().find(|plan| plan.columns == columns) {
            return Ok((metadata, Arc::clone(plan)));
        }
        let plan = Arc::new(FilePlan::new(&self.scan, columns, &footer, constants)?);
        known.push(Arc::clone(&plan));
        Ok((metadata, plan))
    }

    fn known(&self) -> MutexGuard<'_, Vec<Arc<FilePlan>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Columns of a file with the types of the table; `None` if the table does not have all.
    fn expected_columns(&self, footer: &ParquetMetaData) -> Option<SchemaRef> {
        let columns = footer.file_metadata().schema_descr().root_schema().get_fields();
        let fields =
            columns.iter().map(|column| self.scan.columns.field_with_name(column.name()).cloned().ok());
        Some(Arc::new(Schema::new(fields.collect::<Option<Vec<_>>>()?)))
    }
}

/// Whether a file has the columns, as far as their names tell.
fn has_names(footer: &ParquetMetaData, columns: &Schema) -> bool {
    let own = footer.file_metadata().schema_descr().root_schema().get_fields();
    own.len() == columns.fields().len()
        && own.iter().zip(columns.fields()).all(|(own, field)| own.name() == field.name())
}

/// Opens the files of one partition of a scan.
struct PortionOpener(Arc<Opening>);

impl FileOpener for PortionOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opening = Arc::clone(&self.0);
        Ok(async move { opening.open(file).await }.boxed())
    }
}

struct Opening {
    readers: PortionReaders,
    plans: Arc<FilePlans>,
    density: Arc<Density>,
    batch_size: usize,
    limit: Option<usize>,
    max_predicate_cache_size: Option<usize>,
    partition: usize,
    metrics: ExecutionPlanMetricsSet,
    /// Metrics of all files together.
    file_metrics: ParquetFileMetrics,
}

impl Opening {
    async fn open(
        &self,
        file: PartitionedFile,
    ) -> Result<BoxStream<'static, Result<arrow::array::RecordBatch>>> {
        let range = file.range.clone();
        let constants = file.statistics.as_ref().map(|known| self.plans.scan.constants(known));
        let mut reader: Box<dyn AsyncFileReader> =
            self.readers.create_reader(self.partition, file, None, &self.metrics)?;
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Skip);
        let footer = reader.get_metadata(Some(&options)).await?;
        let (metadata, plan) = self.plans.of_file(footer, &constants.unwrap_or_default())?;
        let footer = Arc::clone(metadata.metadata());
        let row_groups = footer.row_groups();
        let mut access = RowGroupAccessPlanFilter::new(ParquetAccessPlan::new_all(row_groups.len()));
        if let Some(range) = &range {
            access.prune_by_range(row_groups, range);
        }
        let mut access = access.build();
        plan.exclude_row_groups(&mut access, &footer, &self.file_metrics);
        let mut builder = Builder::new_with_metadata(reader, metadata);
        self.exclude_by_values(&plan, &mut access, &mut builder).await;
        let access = plan.exclude_pages(access, &footer, &self.file_metrics);
        let positions = access.row_group_indexes();
        if positions.is_empty() {
            return Ok(futures::stream::empty().boxed());
        }
        let late = plan.late.clone().filter(|_| self.density.place() == Place::Decoded);
        let mask = plan.mask(late.as_deref(), builder.parquet_schema());
        builder = builder.with_projection(mask).with_batch_size(self.batch_size).with_row_groups(positions);
        if let Some(rows) = access.into_overall_row_selection(row_groups)? {
            builder = builder.with_row_selection(rows);
        }
        if let Some(late) = late {
            let rows = builder.build()?.map_err(DataFusionError::from);
            let kept = late.filtered(rows, &self.density, self.batch_size);
            return Ok(kept.map(move |rows| plan.output(&rows?)).boxed());
        }
        if let Some(predicate) = &plan.predicate {
            // Conditions are not evaluated again above the scan, so an error must not be ignored.
            let filter = build_row_filter(predicate, &plan.columns, &footer, false, &self.file_metrics)?;
            if let Some(filter) = filter {
                let costs = plan.late.as_deref().map(LateFilter::costs);
                let filter = in_reader(filter, costs.as_deref(), &self.density, builder.parquet_schema());
                builder = builder.with_row_filter(filter);
            }
            if let Some(bytes) = self.max_predicate_cache_size {
                builder = builder.with_max_predicate_cache_size(bytes);
            }
        }
        if let Some(limit) = self.limit {
            builder = builder.with_limit(limit);
        }
        let rows = builder.build()?.map_err(DataFusionError::from);
        Ok(rows.map(move |rows| plan.output(&rows?)).boxed())
    }

    /// Leaves out the row groups whose Bloom filters do not have a value that conditions need. A
    /// filter that cannot be read leaves out none.
    async fn exclude_by_values(
        &self,
        plan: &FilePlan,
        access: &mut ParquetAccessPlan,
        builder: &mut Builder,
    ) {
        let leaf = |name: String| Some((leaf_of(builder, &name)?, name));
        let compared: Vec<(usize, String)> = plan.compared_columns().into_iter().filter_map(leaf).collect();
        if compared.is_empty() {
            return;
        }
        for row_group in access.row_group_indexes() {
            let mut filters = BloomFilterStatistics::new();
            let mut has_any = false;
            for (leaf, name) in &compared {
                let (physical_type, length) = {
                    let column = builder.parquet_schema().column(*leaf);
                    (column.physical_type(), column.type_length())
                };
                if let Ok(Some(filter)) = builder.get_row_group_column_bloom_filter(row_group, *leaf).await {
                    filters.insert(name, filter, physical_type, length);
                    has_any = true;
                }
            }
            if has_any {
                plan.exclude_by_values(access, row_group, &filters, &self.file_metrics);
            }
        }
    }
}

/// Position of a column that is no group among the leaves of a file.
fn leaf_of(builder: &Builder, name: &str) -> Option<usize> {
    let columns = builder.parquet_schema().columns();
    columns.iter().position(|column| column.path().parts() == [name])
}

#[cfg(test)]
#[path = "portion_source_tests.rs"]
mod tests;
