//! Statistics of row groups, by which conditions exclude them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::datatypes::Schema;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::datasource::physical_plan::parquet::ParquetAccessPlan;
use datafusion::error::Result;
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
