//! Opens portions by a plan that is prepared once for all of them.
//!
//! DataFusion 55 adapts conditions and projection to each file, and derives the predicates that
//! exclude row groups and pages from them, again for each file. With many small files that takes
//! longer than reading them. Portions of a table have the same columns, unless one was added in the
//! meantime, so that one [`FilePlan`] serves nearly all of them.
//!
//! ```text
//! OrderedScan ── opened ──► FileScanConfig with a PortionSource
//!                             └─ PortionOpener, one for each stream of the scan
//!                                  footer (cached) ─► FilePlan of its columns ─► row groups ─►
//!                                  Bloom filters ─► pages ─► reader with the conditions
//! ```
//! DataFusion opens the scan itself if a condition may still change when the first row is
//! requested, if a value in it is not known by then, or if row groups are read in another order,
//! except for the first rows of a sort (`first_rows`). Joins that are computed partition by
//! partition have a scan, and so plans, for each partition.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::parquet::{ParquetFileMetrics, apply_file_schema_type_coercions};
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, conjunction};
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use object_store::ObjectStore;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::ParquetMetaData;

use crate::query::scan::density::Density;
use crate::query::scan::file_plan::FilePlan;
use crate::query::scan::first_rows::{Executions, FirstRows, SliceSizes, Wanted};
use crate::query::scan::opening::{Opening, PortionOpener};
use crate::query::scan::portion_readers::PortionReaders;
use crate::query::scan::scan_filters::{Conditions, settled};
use crate::query::scan::table_scan::{Constants, TableScan};
use crate::query::walk::Walk;

/// Name of the metric that counts reads of few values, which are decoded as a whole.
const SMALL_READS: &str = "small_reads";

/// Source of rows of portions, whose plans are shared by all streams of a scan.
#[derive(Clone)]
pub(in crate::query) struct PortionSource {
    source: ParquetSource,
    readers: PortionReaders,
    plans: Arc<FilePlans>,
    density: Arc<Density>,
    /// The best keys, if the scan looks for the first rows by a key.
    best: Option<Arc<Executions>>,
    batch_size: Option<usize>,
}

impl PortionSource {
    /// Returns the source for a scan; `None` if the scan is left to DataFusion. `density` is that
    /// of all scans that are parts of the same. If `first` is given, only these rows are needed, in
    /// any order if `in_any_order`, and else in that of the files. Columns at the positions
    /// `dictionaries` are returned with their dictionaries.
    pub(in crate::query) fn new(
        config: &FileScanConfig,
        readers: &PortionReaders,
        density: &Arc<Density>,
        first: Option<&FirstRows>,
        in_any_order: bool,
        dictionaries: &Arc<[usize]>,
    ) -> Option<Self> {
        let source = config.file_source().downcast_ref::<ParquetSource>()?;
        let table = source.table_schema();
        let projection = source.projection()?.clone();
        let is_plain = source.table_parquet_options().global.pushdown_filters
            && table.table_partition_cols().is_empty()
            && table.virtual_columns().is_empty()
            && config.expr_adapter_factory.is_none()
            && !projection.expr_iter().any(|part| is_about_files(&part));
        // By a key that is no column, DataFusion reverses the order of row groups.
        let is_reversed = in_any_order && first.is_some_and(|first| !first.key.is::<Column>());
        if !is_plain || is_reversed {
            return None;
        }
        let columns = Arc::clone(table.file_schema());
        let is_reordered = source.table_parquet_options().global.reorder_filters;
        let filter = source.filter();
        let conditions = filter.iter().flat_map(|filter| split_conjunction(filter)).cloned();
        let is_of_sort = |part: &Arc<dyn PhysicalExpr>| first.is_some_and(|first| first.is_condition(part));
        let (of_sort, others): (Vec<_>, Vec<_>) = conditions.partition(is_of_sort);
        let predicate = match others.is_empty() {
            true => None,
            false => match settled(&conjunction(others), &columns).ok()? {
                Conditions::Settled(predicate) => predicate,
                Conditions::Open => return None,
            },
        };
        if predicate.as_ref().is_some_and(has_unknown_value) {
            return None;
        }
        let has_conditions = predicate.is_some() || first.is_some();
        let readers = if has_conditions { readers.clone().with_pages() } else { readers.clone() };
        let mut scan =
            TableScan::new(columns, projection, predicate, is_reordered, source.max_in_list_size()).ok()?;
        if !dictionaries.is_empty() {
            scan = scan.with_dictionaries(dictionaries);
        }
        let mut best = None;
        if let Some(first) = first {
            let data_type = first.key.data_type(&scan.columns).ok()?;
            best = Some(Arc::new(Executions::new(data_type, first.order, first.count).ok()?));
            let condition = (!of_sort.is_empty()).then(|| conjunction(of_sort));
            scan = scan.with_first_rows(Wanted { first: first.clone(), condition, in_any_order });
        }
        let plans = Arc::new(FilePlans { scan, known: Mutex::default() });
        let (source, density) = (source.clone(), Arc::clone(density));
        Some(Self { source, readers, plans, density, best, batch_size: None })
    }
}

#[cfg(test)]
impl PortionSource {
    /// Names of the columns that were read with dictionaries.
    pub(super) fn coded(&self) -> Vec<String> {
        let known = self.plans.known();
        let fields = known.iter().flat_map(|plan| plan.columns.fields());
        let coded =
            fields.filter(|field| matches!(field.data_type(), arrow::datatypes::DataType::Dictionary(..)));
        coded.map(|field| field.name().clone()).collect()
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
    predicate.exists_dyn(is_unknown).unwrap_or(true)
}

/// Whether an expression calls a function about the file that is read.
fn is_about_files(part: &Arc<dyn PhysicalExpr>) -> bool {
    let is_about_file = |node: &Arc<dyn PhysicalExpr>| {
        let function = node.downcast_ref::<ScalarFunctionExpr>();
        Ok(function.is_some_and(|function| ["input_file_name", "file_row_index"].contains(&function.name())))
    };
    part.exists_dyn(is_about_file).unwrap_or(true)
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
            best: self.best.as_ref().map(|best| best.of_stream(partition)),
            sizes: SliceSizes::default(),
            small_reads: MetricBuilder::new(&metrics).counter(SMALL_READS, partition),
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
pub(super) struct FilePlans {
    pub(super) scan: TableScan,
    known: Mutex<Vec<Arc<FilePlan>>>,
}

impl FilePlans {
    /// Returns the metadata of a file with the types that the scan reads it as, and the plan for
    /// its columns and constants. Plans with constants fit few other files, and are not kept.
    pub(super) fn of_file(
        &self,
        footer: Arc<ParquetMetaData>,
        constants: &Constants,
    ) -> Result<(ArrowReaderMetadata, Arc<FilePlan>)> {
        let read_as = |columns: &SchemaRef| {
            let options = ArrowReaderOptions::new().with_schema(Arc::clone(columns));
            ArrowReaderMetadata::try_new(Arc::clone(&footer), options)
        };
        let is_known = |plan: &&Arc<FilePlan>| {
            has_names(&footer, &plan.columns) && self.scan.has_same_dictionaries(&footer, &plan.columns)
        };
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
        let fields = columns.iter().map(|column| self.scan.read_as(column.name(), footer));
        Some(Arc::new(Schema::new(fields.collect::<Option<Vec<_>>>()?)))
    }
}

/// Whether a file has the columns, as far as their names tell.
fn has_names(footer: &ParquetMetaData, columns: &Schema) -> bool {
    let own = footer.file_metadata().schema_descr().root_schema().get_fields();
    own.len() == columns.fields().len()
        && own.iter().zip(columns.fields()).all(|(own, field)| own.name() == field.name())
}

#[cfg(test)]
#[path = "portion_source_tests.rs"]
pub(super) mod tests;
