//! The parts of a file that are read one after another until the first rows are known.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::UInt32Array;
use arrow::compute::{SortOptions, sort_to_indices};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, Result};
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use parquet::arrow::arrow_reader::RowSelection;
use parquet::file::metadata::RowGroupMetaData;

/// Rows of the first slice that a stream reads.
const FIRST_SLICE: usize = 1 << 14;

/// Row groups that are left to read, in their order.
#[derive(Debug)]
pub(in crate::query::scan) struct Slices {
    row_groups: VecDeque<(usize, RowGroupAccess)>,
    number_of_row_groups: usize,
    /// Rows of the first row group that earlier slices had.
    done: usize,
}

impl Slices {
    /// Prepares to read row groups in an order.
    pub(in crate::query::scan) fn new(access: ParquetAccessPlan, order: Vec<usize>) -> Self {
        let number_of_row_groups = access.len();
        let inner = access.into_inner();
        let row_groups = order.into_iter().filter_map(|group| Some((group, inner.get(group)?.clone())));
        let row_groups = row_groups.filter(|(_, access)| access.should_scan()).collect();
        Self { row_groups, number_of_row_groups, done: 0 }
    }

    /// Returns the next slice: at most `at_most` rows of one row group.
    pub(in crate::query::scan) fn next(
        &mut self,
        row_groups: &[RowGroupMetaData],
        at_most: usize,
    ) -> Option<ParquetAccessPlan> {
        let (group, access) = self.row_groups.front()?.clone();
        let rows = row_groups.get(group).and_then(|group| usize::try_from(group.num_rows()).ok())?;
        let end = self.done.saturating_add(at_most).min(rows);
        let mut plan = ParquetAccessPlan::new_none(self.number_of_row_groups);
        plan.set(group, access);
        if self.done > 0 || end < rows {
            let slice = std::iter::once(self.done..end);
            plan.scan_selection(group, RowSelection::from_consecutive_ranges(slice, rows));
        }
        self.done = end;
        if end == rows {
            self.row_groups.pop_front();
            self.done = 0;
        }
        Some(plan)
    }
}

/// Sizes of the slices that a stream reads: each is twice as large as the one before it.
#[derive(Debug)]
pub(in crate::query::scan) struct SliceSizes(AtomicUsize);

impl Default for SliceSizes {
    fn default() -> Self {
        Self(AtomicUsize::new(FIRST_SLICE))
    }
}

impl SliceSizes {
    pub(in crate::query::scan) fn next(&self) -> usize {
        let size = self.0.load(Ordering::Relaxed);
        self.0.store(size.saturating_mul(2), Ordering::Relaxed);
        size
    }
}

/// Returns row groups in the order of their best values, so that the bound is soon close.
pub(in crate::query::scan) fn best_first(
    row_groups: Vec<usize>,
    statistics: &dyn PruningStatistics,
    column: &str,
    order: SortOptions,
) -> Result<Vec<usize>> {
    let column = Column::from_name(column);
    let best = if order.descending { statistics.max_values(&column) } else { statistics.min_values(&column) };
    let Some(best) = best.filter(|best| best.len() == row_groups.len()) else { return Ok(row_groups) };
    let order = SortOptions { nulls_first: true, ..order };
    let positions: UInt32Array = sort_to_indices(&best, Some(order), None)?;
    Ok(positions.values().iter().filter_map(|at| row_groups.get(*at as usize).copied()).collect())
}
