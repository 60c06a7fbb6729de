//! Everything that reading a file needs except the file: conditions and projection in terms of its
//! columns, and the predicates that exclude row groups and pages.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::datasource::physical_plan::parquet::{
    PagePruningAccessPlanFilter, ParquetAccessPlan, ParquetFileMetrics,
};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::{ProjectionExprs, Projector};
use datafusion::physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapterFactory, replace_columns_with_literals,
};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use datafusion::physical_plan::metrics::PruningMetrics;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::SchemaDescriptor;

use crate::query::scan::late_filter::LateFilter;
use crate::query::scan::scan_filters::{evaluated_parts, may_see_all_rows};

/// A scan, in terms of the columns of the table.
#[derive(Debug)]
pub(super) struct TableScan {
    /// Columns of the table.
    pub(super) columns: SchemaRef,
    pub(super) projection: ProjectionExprs,
    /// Schema of the rows that the scan returns.
    pub(super) output: SchemaRef,
    pub(super) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// Columns of the projection and of the conditions.
    read: HashSet<Column>,
    /// Whether the conditions may be evaluated in another order.
    may_be_reordered: bool,
    /// Maximum number of values of a list by which row groups are excluded.
    pub(super) max_in_list_size: usize,
}

impl TableScan {
    /// Prepares a scan of the columns of a table.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the table does not have the
    /// columns of the projection.
    pub(super) fn new(
        columns: SchemaRef,
        projection: ProjectionExprs,
        predicate: Option<Arc<dyn PhysicalExpr>>,
        may_be_reordered: bool,
        max_in_list_size: usize,
    ) -> Result<Self> {
        let output = Arc::new(projection.project_schema(&columns)?);
        let parts = projection.expr_iter().chain(predicate.clone());
        let read = parts.flat_map(|part| collect_columns(&part)).collect();
        Ok(Self { columns, projection, output, predicate, read, may_be_reordered, max_in_list_size })
    }

    /// Returns the columns of a file that the scan reads and that have one value in all of its
    /// rows: they need not be decoded.
    pub(super) fn constants(&self, file: &Statistics) -> Constants {
        let value = |column: &Column| {
            let known = file.column_statistics.get(column.index())?;
            let field = self.columns.fields().get(column.index())?;
            match (&known.min_value, &known.max_value, &known.null_count) {
                (Precision::Exact(min), Precision::Exact(max), Precision::Exact(0))
                    if min == max && !min.is_null() =>
                {
                    min.cast_to(field.data_type()).ok()
                }
                _ => None,
            }
        };
        self.read.iter().filter_map(|column| Some((column.name().to_owned(), value(column)?))).collect()
    }
}

/// Values of columns that have the same value in all rows of a file.
pub(super) type Constants = HashMap<String, ScalarValue>;

/// A scan, in terms of the columns of files with one schema.
#[derive(Debug)]
pub(super) struct FilePlan {
    /// Columns of the files, with the types that the scan reads them as.
    pub(super) columns: SchemaRef,
    /// Conditions that are evaluated on rows, in their order.
    pub(super) predicate: Option<Arc<dyn PhysicalExpr>>,
    row_groups: Option<Arc<PruningPredicate>>,
    pages: Option<PagePruningAccessPlanFilter>,
    /// The conditions on decoded rows; `None` if one can fail, or if there are none.
    pub(super) late: Option<Arc<LateFilter>>,
    /// Positions of the columns that are decoded for the output.
    decoded: Vec<usize>,
    projector: Projector,
    /// Schema of the output, if that of the projected rows differs, such as in what may be NULL.
    returned_as: Option<SchemaRef>,
}

impl FilePlan {
    /// Prepares a scan of files with the columns of one, whose metadata is given, and with these
    /// constants. They may lack columns that were added to the table later.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if a condition or the projection
    /// cannot be adapted.
    pub(super) fn new(
        scan: &TableScan,
        columns: SchemaRef,
        file: &ParquetMetaData,
        constants: &Constants,
    ) -> Result<Self> {
        let adapter =
            DefaultPhysicalExprAdapterFactory.create(Arc::clone(&scan.columns), Arc::clone(&columns))?;
        let simplifier = PhysicalExprSimplifier::new(&columns);
        let adapted = |part: Arc<dyn PhysicalExpr>| {
            let part =
                if constants.is_empty() { part } else { replace_columns_with_literals(part, constants)? };
            simplifier.simplify(adapter.rewrite(part)?)
        };
        let predicate = scan.predicate.clone().map(adapted).transpose()?;
        let projection = scan.projection.clone().try_map_exprs(adapted)?;
        let row_groups = predicate.as_ref().and_then(|predicate| {
            let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(&columns));
            builder.with_max_in_list_size(scan.max_in_list_size).build(Arc::clone(predicate))
        });
        let pages = predicate
            .as_ref()
            .map(|predicate| PagePruningAccessPlanFilter::new(predicate, Arc::clone(&columns)))
            .filter(|pages| pages.filter_number() > 0);
        let mut decoded: Vec<usize> = projection
            .expr_iter()
            .flat_map(|part| collect_columns(&part))
            .map(|column| column.index())
            .collect();
        decoded.sort_unstable();
        decoded.dedup();
        let stream = Arc::new(columns.project(&decoded)?);
        let projector =
            projection.try_map_exprs(|part| reassign_expr_columns(part, &stream))?.make_projector(&stream)?;
        let returned_as = (*projector.output_schema() != scan.output).then(|| Arc::clone(&scan.output));
        let mut conditions = predicate.as_ref().map(evaluated_parts).unwrap_or_default();
        if scan.may_be_reordered {
            conditions.sort_by_cached_key(|condition| bytes_read(condition, file));
        }
        let can_be_late = !conditions.is_empty() && may_see_all_rows(&conditions);
        let late = can_be_late.then(|| LateFilter::new(&conditions, &decoded, &columns)).transpose()?;
        Ok(Self {
            late: late.map(Arc::new),
            columns,
            predicate: (!conditions.is_empty()).then(|| conjunction(conditions)),
            row_groups,
            pages,
            decoded,
            projector,
            returned_as,
        })
    }

    /// Columns to decode: for the output, and for conditions on decoded rows, if any.
    pub(super) fn mask(&self, late: Option<&LateFilter>, file: &SchemaDescriptor) -> ProjectionMask {
        let decoded = late.map_or(&self.decoded, |late| &late.decoded);
        ProjectionMask::roots(file, decoded.iter().copied())
    }

    /// Returns the decoded rows as the scan returns them.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the projection fails.
    pub(super) fn output(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let projected = self.projector.project_batch(rows)?;
        let Some(schema) = &self.returned_as else { return Ok(projected) };
        let (_, arrays, count) = projected.into_parts();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
    }

    /// Leaves out the row groups that have no matching row, by their statistics. A predicate that
    /// cannot be evaluated leaves out none.
    pub(super) fn exclude_row_groups(
        &self,
        access: &mut ParquetAccessPlan,
        file: &ParquetMetaData,
        metrics: &ParquetFileMetrics,
    ) {
        let Some(predicate) = &self.row_groups else { return };
        let positions = access.row_group_indexes();
        let groups: Vec<&RowGroupMetaData> =
            positions.iter().filter_map(|at| file.row_groups().get(*at)).collect();
        let statistics =
            RowGroupStatistics { columns: &self.columns, file: file.file_metadata().schema_descr(), groups };
        let _timer = metrics.statistics_eval_time.timer();
        exclude(access, &positions, predicate.prune(&statistics), &metrics.row_groups_pruned_statistics);
    }

    /// Columns that conditions compare with values, which Bloom filters may not have.
    pub(super) fn compared_columns(&self) -> Vec<String> {
        self.row_groups.as_ref().map(|predicate| predicate.literal_columns()).unwrap_or_default()
    }

    /// Leaves out a row group if its Bloom filters do not have a value that a matching row needs.
    pub(super) fn exclude_by_values(
        &self,
        access: &mut ParquetAccessPlan,
        row_group: usize,
        filters: &dyn PruningStatistics,
        metrics: &ParquetFileMetrics,
    ) {
        if let Some(predicate) = &self.row_groups {
            let _timer = metrics.bloom_filter_eval_time.timer();
            exclude(access, &[row_group], predicate.prune(filters), &metrics.row_groups_pruned_bloom_filter);
        }
    }

    /// Leaves out the pages that have no matching row.
    pub(super) fn exclude_pages(
        &self,
        access: ParquetAccessPlan,
        file: &ParquetMetaData,
        metrics: &ParquetFileMetrics,
    ) -> ParquetAccessPlan {
        match &self.pages {
            Some(pages) => pages.prune_plan_with_page_index(
                access,
                &self.columns,
                file.file_metadata().schema_descr(),
                file,
                metrics,
            ),
            None => access,
        }
    }
}

/// Bytes of the columns of a file that a condition reads.
fn bytes_read(condition: &Arc<dyn PhysicalExpr>, file: &ParquetMetaData) -> i64 {
    let read: HashSet<String> =
        collect_columns(condition).iter().map(|column| column.name().to_owned()).collect();
    let columns = file.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let is_read = |name: Option<&String>| name.is_some_and(|name| read.contains(name));
    let own = columns.filter(|column| is_read(column.column_path().parts().first()));
    own.map(|column| column.compressed_size()).sum()
}

/// Leaves out the row groups for which `keep` is false.
fn exclude(
    access: &mut ParquetAccessPlan,
    row_groups: &[usize],
    keep: Result<Vec<bool>>,
    metrics: &PruningMetrics,
) {
    for (row_group, keep) in row_groups.iter().zip(keep.unwrap_or_default()) {
        if keep {
            metrics.add_matched(1);
        } else {
            metrics.add_pruned(1);
            access.skip(*row_group);
        }
    }
}

/// Statistics of row groups in the form that DataFusion's pruning reads.
struct RowGroupStatistics<'a> {
    columns: &'a Schema,
    file: &'a SchemaDescriptor,
    groups: Vec<&'a RowGroupMetaData>,
}

impl RowGroupStatistics<'_> {
    fn converter(&self, column: &common::Column) -> Option<StatisticsConverter<'_>> {
        StatisticsConverter::try_new(&column.name, self.columns, self.file).ok()
    }
}

impl PruningStatistics for RowGroupStatistics<'_> {
    fn min_values(&self, column: &common::Column) -> Option<ArrayRef> {
        self.converter(column)?.row_group_mins(self.groups.iter().copied()).ok()
    }

    fn max_values(&self, column: &common::Column) -> Option<ArrayRef> {
        self.converter(column)?.row_group_maxes(self.groups.iter().copied()).ok()
    }

    fn num_containers(&self) -> usize {
        self.groups.len()
    }

    fn null_counts(&self, column: &common::Column) -> Option<ArrayRef> {
        let counts = self.converter(column)?.row_group_null_counts(self.groups.iter().copied()).ok()?;
        Some(Arc::new(counts))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let counts = self.groups.iter().map(|group| u64::try_from(group.num_rows()).ok());
        Some(Arc::new(counts.collect::<UInt64Array>()))
    }

    fn contained(&self, _column: &common::Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
