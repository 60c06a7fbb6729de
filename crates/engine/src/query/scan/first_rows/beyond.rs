//! Excludes the row groups and pages beyond a bound.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::physical_plan::parquet::{
    PagePruningAccessPlanFilter, ParquetAccessPlan, ParquetFileMetrics,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::snapshot_generation;
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use parquet::file::metadata::ParquetMetaData;

use super::{FirstRows, WantedOfFile, up_to};
use crate::query::scan::row_group_statistics::{exclude_pages, exclude_row_groups};

/// Excludes what is beyond the bound of the first rows from files with the same columns. What that
/// needs is prepared once for each bound, and once for each state of the condition of the sort:
/// preparing takes longer than reading a small file.
pub(in crate::query::scan) struct Beyond {
    first: FirstRows,
    of_file: WantedOfFile,
    columns: SchemaRef,
    known: Mutex<Known>,
    /// Counts what is excluded. The figures of conditions do not include these rows.
    metrics: ParquetFileMetrics,
}

#[derive(Default)]
struct Known {
    bound: Option<Arc<Bound>>,
    of_sort: Option<OfSort>,
}

/// Predicates that exclude rows beyond a bound.
struct Bound {
    bound: ScalarValue,
    /// Whether no row of these files is up to the bound, because the key is the same in all.
    excludes_all: bool,
    row_groups: Option<Arc<PruningPredicate>>,
    pages: Option<PagePruningAccessPlanFilter>,
}

/// The predicate that excludes rows for which the condition of the sort, in one of its states, is
/// not true.
#[derive(Clone)]
struct OfSort {
    generation: u64,
    row_groups: Option<Arc<PruningPredicate>>,
}

impl fmt::Debug for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beyond").field("first", &self.first).finish_non_exhaustive()
    }
}

impl Beyond {
    /// Prepares for files with these columns.
    pub(in crate::query::scan) fn new(first: FirstRows, of_file: WantedOfFile, columns: SchemaRef) -> Self {
        let metrics = ParquetFileMetrics::new(0, "first rows", &ExecutionPlanMetricsSet::new());
        Self { first, of_file, columns, known: Mutex::default(), metrics }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves out the row groups and pages of a file that have no row up to the bound, or none for
    /// which the condition of the sort is true. The condition is not tried on what is `small`.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the bound cannot be compared with
    /// the key.
    pub(in crate::query::scan) fn exclude(
        &self,
        mut access: ParquetAccessPlan,
        file: &ParquetMetaData,
        bound: &ScalarValue,
        is_small: impl Fn(&ParquetAccessPlan) -> bool,
    ) -> Result<ParquetAccessPlan> {
        let within = self.bound(bound)?;
        if within.excludes_all {
            return Ok(ParquetAccessPlan::new_none(access.len()));
        }
        self.exclude_row_groups(&mut access, file, within.row_groups.as_deref());
        if let Some(pages) = &within.pages {
            access = exclude_pages(access, pages, &self.columns, file, &self.metrics);
        }
        if access.row_group_index_iter().next().is_some() && !is_small(&access) {
            self.exclude_row_groups(&mut access, file, self.of_sort().as_deref());
        }
        Ok(access)
    }

    fn exclude_row_groups(
        &self,
        access: &mut ParquetAccessPlan,
        file: &ParquetMetaData,
        predicate: Option<&PruningPredicate>,
    ) {
        if let Some(predicate) = predicate {
            let metrics = &self.metrics.row_groups_pruned_statistics;
            exclude_row_groups(access, predicate, &self.columns, file, metrics);
        }
    }

    fn bound(&self, bound: &ScalarValue) -> Result<Arc<Bound>> {
        if let Some(known) = self.known().bound.clone().filter(|known| known.bound == *bound) {
            return Ok(known);
        }
        let within = up_to(&self.of_file.key, bound, self.first.order)?;
        let is_constant = collect_columns(&self.of_file.key).is_empty();
        let excludes_all = match within.as_ref().filter(|_| is_constant) {
            Some(within) => !holds(within)?,
            None => false,
        };
        let row_groups = within.clone().and_then(|within| self.predicate(within));
        let on_column = within.filter(|_| self.of_file.key.is::<Column>());
        let pages =
            on_column.map(|within| PagePruningAccessPlanFilter::new(&within, Arc::clone(&self.columns)));
        let within = Arc::new(Bound { bound: bound.clone(), excludes_all, row_groups, pages });
        self.known().bound = Some(Arc::clone(&within));
        Ok(within)
    }

    fn of_sort(&self) -> Option<Arc<PruningPredicate>> {
        let condition = self.of_file.condition.as_ref()?;
        let generation = snapshot_generation(condition);
        if let Some(known) = self.known().of_sort.clone().filter(|known| known.generation == generation) {
            return known.row_groups;
        }
        let row_groups = self.predicate(Arc::clone(condition));
        self.known().of_sort = Some(OfSort { generation, row_groups: row_groups.clone() });
        row_groups
    }

    fn predicate(&self, condition: Arc<dyn PhysicalExpr>) -> Option<Arc<PruningPredicate>> {
        PruningPredicateBuilder::new().with_file_schema(Arc::clone(&self.columns)).build(condition)
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

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use arrow::compute::SortOptions;
    use bytes::Bytes;
    use datafusion::physical_expr::expressions::{DynamicFilterPhysicalExpr, binary, col, lit};
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::properties::WriterProperties;

    use super::*;

    /// A file of four row groups of ten rows each: the key is 0 in the first two and 1 in the
    /// others, and `n` rises.
    fn file() -> (SchemaRef, Arc<ParquetMetaData>) {
        let key: ArrayRef = Arc::new(Int64Array::from_iter_values((0..40).map(|row| row / 20)));
        let n: ArrayRef = Arc::new(Int64Array::from_iter_values(0..40));
        let rows = RecordBatch::try_from_iter([("key", key), ("n", n)]).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(10)).build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let file = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
        (rows.schema(), Arc::clone(file.metadata()))
    }

    #[test]
    fn a_new_bound_and_a_new_condition_of_the_sort_exclude_more() {
        let (schema, file) = file();
        let (key, n) = (col("key", &schema).unwrap(), col("n", &schema).unwrap());
        let of_sort = Arc::new(DynamicFilterPhysicalExpr::new(vec![Arc::clone(&n)], lit(true)));
        let condition = Some(Arc::clone(&of_sort) as Arc<dyn PhysicalExpr>);
        let order = SortOptions { descending: false, nulls_first: false };
        let first = FirstRows { key: Arc::clone(&key), order, count: 3, condition: None };
        let beyond = Beyond::new(first, WantedOfFile { key, condition }, Arc::clone(&schema));
        let kept = |bound: i64, is_small: bool| {
            let (all, bound) = (ParquetAccessPlan::new_all(4), ScalarValue::from(bound));
            beyond.exclude(all, &file, &bound, |_| is_small).unwrap().row_group_indexes()
        };
        let below = |most: i64| {
            let below = binary(Arc::clone(&n), datafusion::logical_expr::Operator::Lt, lit(most), &schema);
            of_sort.update(below.unwrap()).unwrap();
        };
        assert_eq!(kept(1, false), [0, 1, 2, 3]);
        assert_eq!(kept(0, false), [0, 1]);
        below(10);
        assert_eq!(kept(0, false), [0]);
        assert_eq!(kept(1, false), [0]);
        assert_eq!(kept(1, true), [0, 1, 2, 3]);
        below(0);
        assert!(kept(0, false).is_empty());
        assert!(kept(-1, true).is_empty());
    }
}
