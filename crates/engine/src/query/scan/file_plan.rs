//! Everything that reading a file needs except the file: conditions and projection in terms of its
//! columns, and the predicates that exclude row groups and pages.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::pruning::PruningStatistics;
use datafusion::datasource::physical_plan::parquet::{
    PagePruningAccessPlanFilter, ParquetAccessPlan, ParquetFileMetrics,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::Projector;
use datafusion::physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapterFactory, replace_columns_with_literals,
};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use parquet::arrow::ProjectionMask;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::SchemaDescriptor;

use crate::query::scan::dictionaries::{Dictionaries, coded_as, with_coded_constants, without_dictionaries};
use crate::query::scan::dictionary_conditions::DictionaryCondition;
use crate::query::scan::first_rows::{Beyond, WantedOfFile, best_first};
use crate::query::scan::late_filter::LateFilter;
use crate::query::scan::row_group_statistics::{
    RowGroupStatistics, exclude, exclude_pages, exclude_row_groups,
};
use crate::query::scan::scan_filters::{evaluated_parts, may_see_all_rows};
use crate::query::scan::small_reads::is_small;
use crate::query::scan::table_scan::{Constants, TableScan};

/// A scan, in terms of the columns of files with one schema.
#[derive(Debug)]
pub(super) struct FilePlan {
    /// Columns of the files, with the types that the scan reads them as.
    pub(super) columns: SchemaRef,
    /// The same columns without dictionaries.
    plain: SchemaRef,
    /// Conditions that are evaluated on rows, in their order.
    pub(super) predicate: Option<Arc<dyn PhysicalExpr>>,
    row_groups: Option<Arc<PruningPredicate>>,
    pages: Option<PagePruningAccessPlanFilter>,
    /// The conditions on decoded rows, and the key of the first rows; `None` if a condition can
    /// fail, or if there are neither.
    pub(super) late: Option<Arc<LateFilter>>,
    /// The first rows, if only these are needed.
    pub(super) first: Option<WantedOfFile>,
    /// Excludes rows beyond the bound of the first rows.
    beyond: Option<Beyond>,
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
        let plain = without_dictionaries(&columns);
        let adapted = |part, of_table: &SchemaRef, of_file: &SchemaRef| {
            let adapter =
                DefaultPhysicalExprAdapterFactory.create(Arc::clone(of_table), Arc::clone(of_file))?;
            let part =
                if constants.is_empty() { part } else { replace_columns_with_literals(part, constants)? };
            PhysicalExprSimplifier::new(of_file).simplify(adapter.rewrite(part)?)
        };
        let on_rows = |part| adapted(part, &scan.columns, &plain);
        let predicate = scan.predicate.clone().map(on_rows).transpose()?;
        let read = coded_as(&scan.columns, &columns);
        let mut projection = scan.projection.clone().try_map_exprs(|part| adapted(part, &read, &columns))?;
        if !scan.dictionaries.is_empty() {
            projection = with_coded_constants(&projection, &scan.dictionaries);
        }
        let first = scan.wanted.as_ref().map(|wanted| {
            let condition = wanted.condition.clone().map(on_rows).transpose()?;
            Ok::<_, DataFusionError>(WantedOfFile { key: on_rows(Arc::clone(&wanted.first.key))?, condition })
        });
        let first = first.transpose()?;
        let beyond = scan.wanted.as_ref().zip(first.clone());
        let beyond =
            beyond.map(|(wanted, first)| Beyond::new(wanted.first.clone(), first, Arc::clone(&plain)));
        let row_groups = predicate.as_ref().and_then(|predicate| {
            let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(&plain));
            builder.with_max_in_list_size(scan.max_in_list_size).build(Arc::clone(predicate))
        });
        let pages = predicate
            .as_ref()
            .map(|predicate| PagePruningAccessPlanFilter::new(predicate, Arc::clone(&plain)))
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
        let is_filtered = !conditions.is_empty() || first.is_some();
        let can_be_late = is_filtered && may_see_all_rows(&conditions);
        let on_dictionaries = |condition| DictionaryCondition::on_dictionaries(condition, &columns);
        let conditions = conditions.into_iter().map(on_dictionaries).collect::<Result<Vec<_>>>()?;
        let on_decoded = || LateFilter::new(&conditions, first.as_ref(), &decoded, &columns);
        let late = can_be_late.then(on_decoded).transpose()?;
        Ok(Self {
            late: late.map(Arc::new),
            first,
            beyond,
            columns,
            plain,
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

    /// Bytes by which the reader overestimates what it keeps of a row group, at most: it counts a
    /// dictionary anew for each batch, which all batches share.
    pub(super) fn counted_dictionaries(&self, file: &ParquetMetaData, batch_size: usize) -> usize {
        if Arc::ptr_eq(&self.columns, &self.plain) {
            return 0;
        }
        let is_coded = |name: Option<&String>| {
            let field = name.and_then(|name| self.columns.field_with_name(name).ok());
            field.is_some_and(|field| matches!(field.data_type(), DataType::Dictionary(..)))
        };
        let of_row_group = |row_group: &RowGroupMetaData| {
            let columns = row_group.columns().iter();
            let coded = columns.filter(|column| is_coded(column.column_path().parts().first()));
            let bytes: usize =
                coded.map(|column| usize::try_from(column.uncompressed_size()).unwrap_or(0)).sum();
            let rows = usize::try_from(row_group.num_rows()).unwrap_or(0);
            bytes.saturating_mul(rows.div_ceil(batch_size.max(1)))
        };
        file.row_groups().iter().map(of_row_group).max().unwrap_or(0)
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
        let _timer = metrics.statistics_eval_time.timer();
        exclude_row_groups(access, predicate, &self.plain, file, &metrics.row_groups_pruned_statistics);
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
            Some(pages) => exclude_pages(access, pages, &self.plain, file, metrics),
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
        access: ParquetAccessPlan,
        file: &ParquetMetaData,
        bound: &ScalarValue,
    ) -> Result<ParquetAccessPlan> {
        let Some(beyond) = &self.beyond else { return Ok(access) };
        let late = self.late.as_ref();
        let is_small =
            |access: &ParquetAccessPlan| late.is_some_and(|late| is_small(access, file, &late.decoded));
        beyond.exclude(access, file, bound, is_small)
    }

    /// Statistics of some row groups of a file.
    fn statistics<'a>(&'a self, positions: &[usize], file: &'a ParquetMetaData) -> RowGroupStatistics<'a> {
        RowGroupStatistics::new(&self.plain, positions, file)
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
