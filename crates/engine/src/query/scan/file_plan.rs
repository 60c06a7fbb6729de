//! Everything that reading a file needs except the file: conditions and projection in terms of its
//! columns, and the predicates that exclude row groups and pages.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::datasource::physical_plan::parquet::{
    PagePruningAccessPlanFilter, ParquetAccessPlan, ParquetFileMetrics,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::{ProjectionExprs, Projector};
use datafusion::physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapterFactory, replace_columns_with_literals,
};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use parquet::arrow::ProjectionMask;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::SchemaDescriptor;

use crate::query::scan::dictionaries::{
    Dictionaries, coded_as, read_with_dictionary, returned_schema, used_once, with_coded_constants,
};
use crate::query::scan::first_rows::{Wanted, WantedOfFile, best_first, up_to};
use crate::query::scan::late_filter::LateFilter;
use crate::query::scan::row_group_statistics::{RowGroupStatistics, exclude};
use crate::query::scan::scan_filters::{evaluated_parts, may_see_all_rows};

/// A scan, in terms of the columns of the table.
#[derive(Debug)]
pub(super) struct TableScan {
    /// Columns of the table.
    pub(super) columns: SchemaRef,
    pub(super) projection: ProjectionExprs,
    /// Schema of the rows that the scan returns.
    pub(super) output: SchemaRef,
    /// Positions of the columns that it returns with dictionaries.
    pub(super) dictionaries: Arc<[usize]>,
    /// Names of the columns that are read with dictionaries.
    coded: Vec<String>,
    pub(super) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// Columns of the projection and of the conditions.
    read: HashSet<Column>,
    /// Whether the conditions may be evaluated in another order.
    may_be_reordered: bool,
    /// Maximum number of values of a list by which row groups are excluded.
    pub(super) max_in_list_size: usize,
    /// The first rows, if only these are needed.
    wanted: Option<Wanted>,
}

impl TableScan {
    /// Prepares a scan of the columns of a table.
    ///
    /// # Errors
    /// [`DataFusionError`] if the table does not have the
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
        let wanted = None;
        let dictionaries = Arc::default();
        Ok(Self {
            columns,
            projection,
            output,
            dictionaries,
            coded: Vec::new(),
            predicate,
            read,
            may_be_reordered,
            max_in_list_size,
            wanted,
        })
    }

    /// The same scan, returning columns at some positions with dictionaries. If something else uses
    /// such a column, too, it is read without.
    pub(super) fn with_dictionaries(mut self, dictionaries: &Arc<[usize]>) -> Self {
        self.output = returned_schema(&self.output, dictionaries);
        self.dictionaries = Arc::clone(dictionaries);
        let read = used_once(self.projection.expr_iter().chain(self.predicate.clone()));
        let parts = dictionaries.iter().filter_map(|position| self.projection.as_ref().get(*position));
        let columns = parts.filter_map(|part| part.expr.downcast_ref::<Column>());
        self.coded =
            columns.filter(|column| read.contains(column)).map(|column| column.name().to_owned()).collect();
        self
    }

    /// Returns a column of the table as it is read from a file; `None` if the table does not have
    /// it.
    pub(super) fn read_as(&self, name: &str, file: &ParquetMetaData) -> Option<Field> {
        let field = self.columns.field_with_name(name).ok()?;
        let has_dictionary = self.coded.iter().any(|coded| coded == name);
        let coded = has_dictionary.then(|| read_with_dictionary(field, file)).flatten();
        Some(coded.unwrap_or_else(|| field.clone()))
    }

    /// Whether the columns that are returned with dictionaries are read from a file as from others.
    pub(super) fn has_same_dictionaries(&self, file: &ParquetMetaData, others: &Schema) -> bool {
        self.coded.iter().all(|name| {
            let Ok(other) = others.field_with_name(name) else { return true };
            self.read_as(name, file).is_some_and(|read| read.data_type() == other.data_type())
        })
    }

    /// The same scan, looking for the first rows.
    pub(super) fn with_first_rows(mut self, wanted: Wanted) -> Self {
        let parts = wanted.condition.iter().chain([&wanted.first.key]);
        self.read.extend(parts.flat_map(collect_columns));
        self.wanted = Some(wanted);
        self
    }

    /// Position of the column by which only the first rows are needed, if it is a column.
    pub(super) fn first_column(&self) -> Option<usize> {
        Some(self.wanted.as_ref()?.first.key.downcast_ref::<Column>()?.index())
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
    /// The first rows, if only these are needed.
    pub(super) first: Option<WantedOfFile>,
    /// Positions of the columns that are decoded for the output.
    decoded: Vec<usize>,
    projector: Projector,
    /// Schema of the output, if that of the projected rows differs, such as in what may be NULL, or
    /// if columns are returned with dictionaries.
    returned_as: Option<SchemaRef>,
}

impl FilePlan {
    /// Prepares a scan of files with the columns of one, whose metadata is given, and with these
    /// constants. They may lack columns that were added to the table later.
    ///
    /// # Errors
    /// [`DataFusionError`] if a condition or the projection
    /// cannot be adapted.
    pub(super) fn new(
        scan: &TableScan,
        columns: SchemaRef,
        file: &ParquetMetaData,
        constants: &Constants,
    ) -> Result<Self> {
        let adapter = DefaultPhysicalExprAdapterFactory
            .create(coded_as(&scan.columns, &columns), Arc::clone(&columns))?;
        let simplifier = PhysicalExprSimplifier::new(&columns);
        let adapted = |part: Arc<dyn PhysicalExpr>| {
            let part =
                if constants.is_empty() { part } else { replace_columns_with_literals(part, constants)? };
            simplifier.simplify(adapter.rewrite(part)?)
        };
        let predicate = scan.predicate.clone().map(adapted).transpose()?;
        let mut projection = scan.projection.clone().try_map_exprs(adapted)?;
        if !scan.dictionaries.is_empty() {
            projection = with_coded_constants(&projection, &scan.dictionaries);
        }
        let first = scan.wanted.as_ref().map(|wanted| {
            let condition = wanted.condition.clone().map(adapted).transpose()?;
            Ok::<_, DataFusionError>(WantedOfFile { key: adapted(Arc::clone(&wanted.first.key))?, condition })
        });
        let first = first.transpose()?;
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
        let is_other = *projector.output_schema() != scan.output || !scan.dictionaries.is_empty();
        let returned_as = is_other.then(|| Arc::clone(&scan.output));
        let mut conditions = predicate.as_ref().map(evaluated_parts).unwrap_or_default();
        if scan.may_be_reordered {
            conditions.sort_by_cached_key(|condition| bytes_read(condition, file));
        }
        let can_be_late = !conditions.is_empty() && may_see_all_rows(&conditions);
        let late = can_be_late.then(|| LateFilter::new(&conditions, &decoded, &columns)).transpose()?;
        Ok(Self {
            late: late.map(Arc::new),
            first,
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
    /// [`DataFusionError`] if the projection fails.
    pub(super) fn output(&self, rows: &RecordBatch, dictionaries: &mut Dictionaries) -> Result<RecordBatch> {
        let projected = self.projector.project_batch(rows)?;
        match &self.returned_as {
            Some(schema) => dictionaries.returned(projected, schema),
            None => Ok(projected),
        }
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
        let statistics = self.statistics(&positions, file);
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

impl FilePlan {
    /// Returns row groups in the order in which they are best read for the first rows.
    ///
    /// # Errors
    /// [`DataFusionError`] if statistics cannot be sorted.
    pub(super) fn row_groups_in_order(
        &self,
        access: &ParquetAccessPlan,
        file: &ParquetMetaData,
        scan: &TableScan,
    ) -> Result<Vec<usize>> {
        let positions = access.row_group_indexes();
        let wanted = scan.wanted.as_ref().filter(|wanted| wanted.in_any_order);
        let column = self.first.as_ref().and_then(|first| first.key.downcast_ref::<Column>());
        match wanted.zip(column) {
            Some((wanted, column)) => {
                let statistics = self.statistics(&positions, file);
                best_first(positions, &statistics, column.name(), wanted.first.order)
            }
            None => Ok(positions),
        }
    }

    /// Leaves out the row groups and pages that have no row up to the bound of the first rows, or
    /// none for which the condition of the sort is true.
    ///
    /// # Errors
    /// [`DataFusionError`] if the bound cannot be compared with the key.
    pub(super) fn exclude_beyond(
        &self,
        mut access: ParquetAccessPlan,
        file: &ParquetMetaData,
        bound: &ScalarValue,
        scan: &TableScan,
    ) -> Result<ParquetAccessPlan> {
        let Some((first, wanted)) = self.first.as_ref().zip(scan.wanted.as_ref()) else { return Ok(access) };
        let within = up_to(&first.key, bound, wanted.first.order)?;
        let is_constant = collect_columns(&first.key).is_empty();
        if let Some(within) = within.as_ref().filter(|_| is_constant)
            && !holds(within)?
        {
            return Ok(ParquetAccessPlan::new_none(access.len()));
        }
        // The figures of conditions do not include these rows.
        let metrics = ParquetFileMetrics::new(0, "first rows", &ExecutionPlanMetricsSet::new());
        let conditions = within.iter().chain(&first.condition).cloned();
        let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(&self.columns));
        if let Some(predicate) = builder.build(conjunction(conditions)) {
            let positions = access.row_group_indexes();
            let kept = predicate.prune(&self.statistics(&positions, file));
            exclude(&mut access, &positions, kept, &metrics.row_groups_pruned_statistics);
        }
        let Some(within) = within.filter(|_| first.key.is::<Column>()) else { return Ok(access) };
        let pages = PagePruningAccessPlanFilter::new(&within, Arc::clone(&self.columns));
        Ok(pages.prune_plan_with_page_index(
            access,
            &self.columns,
            file.file_metadata().schema_descr(),
            file,
            &metrics,
        ))
    }

    /// Statistics of some row groups of a file.
    fn statistics<'a>(&'a self, positions: &[usize], file: &'a ParquetMetaData) -> RowGroupStatistics<'a> {
        RowGroupStatistics::new(&self.columns, positions, file)
    }
}

/// Whether a condition without columns is true.
fn holds(condition: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
    let values = condition.evaluate(&row)?.into_array(1)?;
    let values = as_boolean_array(&values)?;
    Ok(values.is_valid(0) && values.value(0))
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
