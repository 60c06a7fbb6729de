//! Statistics of row groups, by which conditions exclude them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::datasource::physical_plan::parquet::{
    PagePruningAccessPlanFilter, ParquetAccessPlan, ParquetFileMetrics,
};
use datafusion::error::Result;
use datafusion::physical_optimizer::pruning::PruningPredicate;
use datafusion::physical_plan::metrics::PruningMetrics;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::SchemaDescriptor;

/// Leaves out the row groups for which `keep` is false.
pub(super) fn exclude(
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

/// Leaves out the row groups of a file with these columns that have no row for which a predicate can
/// be true, by their statistics. A predicate that cannot be evaluated leaves out none.
pub(super) fn exclude_row_groups(
    access: &mut ParquetAccessPlan,
    predicate: &PruningPredicate,
    columns: &Schema,
    file: &ParquetMetaData,
    metrics: &PruningMetrics,
) {
    let positions = access.row_group_indexes();
    let kept = predicate.prune(&RowGroupStatistics::new(columns, &positions, file));
    exclude(access, &positions, kept, metrics);
}

/// Leaves out the pages of a file that have no matching row. The statistics of a single page are
/// those of its row group, which are not tried again.
pub(super) fn exclude_pages(
    access: ParquetAccessPlan,
    pages: &PagePruningAccessPlanFilter,
    columns: &SchemaRef,
    file: &ParquetMetaData,
    metrics: &ParquetFileMetrics,
) -> ParquetAccessPlan {
    if !has_several_pages(&access, file) {
        return access;
    }
    pages.prune_plan_with_page_index(access, columns, file.file_metadata().schema_descr(), file, metrics)
}

/// Whether a selected row group has a column of several pages.
fn has_several_pages(access: &ParquetAccessPlan, file: &ParquetMetaData) -> bool {
    let Some(pages) = file.offset_index() else { return false };
    let mut columns = access.row_group_index_iter().filter_map(|row_group| pages.get(row_group)).flatten();
    columns.any(|column| column.page_locations.len() > 1)
}

/// Statistics of row groups in the form that DataFusion's pruning reads.
pub(super) struct RowGroupStatistics<'a> {
    columns: &'a Schema,
    file: &'a SchemaDescriptor,
    groups: Vec<&'a RowGroupMetaData>,
}

impl<'a> RowGroupStatistics<'a> {
    /// Statistics of the row groups at some positions in a file with these columns.
    pub(super) fn new(columns: &'a Schema, positions: &[usize], file: &'a ParquetMetaData) -> Self {
        let groups = positions.iter().filter_map(|at| file.row_groups().get(*at)).collect();
        Self { columns, file: file.file_metadata().schema_descr(), groups }
    }

    fn converter(&self, column: &Column) -> Option<StatisticsConverter<'_>> {
        StatisticsConverter::try_new(&column.name, self.columns, self.file).ok()
    }
}

impl PruningStatistics for RowGroupStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.converter(column)?.row_group_mins(self.groups.iter().copied()).ok()
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.converter(column)?.row_group_maxes(self.groups.iter().copied()).ok()
    }

    fn num_containers(&self) -> usize {
        self.groups.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let counts = self.converter(column)?.row_group_null_counts(self.groups.iter().copied()).ok()?;
        Some(Arc::new(counts))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let counts = self.groups.iter().map(|group| u64::try_from(group.num_rows()).ok());
        Some(Arc::new(counts.collect::<UInt64Array>()))
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
