//! The best keys that the streams of a scan have found.

use std::collections::{BinaryHeap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::{SortOptions, filter, prep_null_mask_filter};
use arrow::datatypes::DataType;
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;

use super::up_to;

/// The best keys of the rows that a scan has returned.
#[derive(Debug)]
pub(in crate::query::scan) struct Best {
    order: SortOptions,
    count: usize,
    converter: Arc<RowConverter>,
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    /// The best keys, of which the top is the last in order.
    keys: BinaryHeap<OwnedRow>,
    /// The last of the best keys, once there are as many as rows are needed.
    bound: Option<ScalarValue>,
}

impl Best {
    /// Prepares to look for the best `count` keys of a type.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if values of the type have no order.
    pub(super) fn new(data_type: DataType, order: SortOptions, count: usize) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new_with_options(data_type, order)])?;
        Ok(Self { order, count, converter: Arc::new(converter), found: Mutex::default() })
    }

    fn of_next_execution(&self) -> Self {
        let converter = Arc::clone(&self.converter);
        Self { order: self.order, count: self.count, converter, found: Mutex::default() }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key beyond which no row is among the first; `None` if it is not known yet.
    pub(in crate::query::scan) fn bound(&self) -> Option<ScalarValue> {
        self.found().bound.clone()
    }

    /// Returns for each of these keys whether its row can be among the first. All rows for which
    /// that is so must be returned, or be excluded by the condition of the sort, and none of them
    /// may be passed twice.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the keys have another type.
    pub(in crate::query::scan) fn keep(&self, keys: &ArrayRef) -> Result<BooleanArray> {
        let kept = self.within(keys, self.bound().as_ref())?;
        if !kept.has_true() {
            return Ok(kept);
        }
        let candidates = filter(keys, &kept)?;
        match self.add(&candidates)? {
            Some(bound) => self.within(keys, Some(&bound)),
            None => Ok(kept),
        }
    }

    /// Adds keys, and returns the bound if it has changed.
    fn add(&self, keys: &ArrayRef) -> Result<Option<ScalarValue>> {
        let keys = self.converter.convert_columns(&[Arc::clone(keys)])?;
        let mut found = self.found();
        let mut is_changed = false;
        for key in &keys {
            if found.keys.len() < self.count {
                found.keys.push(key.owned());
                is_changed = true;
            } else if let Some(mut last) = found.keys.peek_mut()
                && key < last.row()
            {
                *last = key.owned();
                is_changed = true;
            }
        }
        if !is_changed || found.keys.len() < self.count {
            return Ok(None);
        }
        let last = found.keys.peek().map(|last| self.converter.convert_rows([last.row()])).transpose()?;
        let last = last.and_then(|columns| columns.into_iter().next());
        found.bound = last.map(|last| ScalarValue::try_from_array(&last, 0)).transpose()?;
        Ok(found.bound.clone())
    }

    /// Whether each of some keys is not beyond a bound.
    fn within(&self, keys: &ArrayRef, bound: Option<&ScalarValue>) -> Result<BooleanArray> {
        let key: Arc<dyn PhysicalExpr> = Arc::new(Column::new("key", 0));
        let within = bound.map(|bound| up_to(&key, bound, self.order)).transpose()?.flatten();
        let Some(within) = within else { return Ok(BooleanArray::from(vec![true; keys.len()])) };
        let keys = RecordBatch::try_from_iter_with_nullable([("key", Arc::clone(keys), true)])?;
        let values = within.evaluate(&keys)?.into_array(keys.num_rows())?;
        let values = as_boolean_array(&values)?;
        Ok(if values.null_count() == 0 { values.clone() } else { prep_null_mask_filter(values) })
    }

    /// Whether all rows of a file are beyond the bound, by what is known of their keys.
    pub(in crate::query::scan) fn excludes(&self, known: &ColumnStatistics) -> bool {
        let Some(bound) = self.bound().filter(|bound| !bound.is_null()) else { return false };
        if bound.data_type().is_floating() {
            // Statistics leave out NaN.
            return false;
        }
        let has_nulls = !matches!(known.null_count, Precision::Exact(0));
        let best = if self.order.descending { &known.max_value } else { &known.min_value };
        let Precision::Exact(best) = best else { return false };
        if best.is_null() || (self.order.nulls_first && has_nulls) {
            return false;
        }
        let best = best.cast_to(&bound.data_type()).and_then(|best| best.to_array());
        best.and_then(|best| self.within(&best, Some(&bound))).is_ok_and(|within| !within.has_true())
    }
}

/// The best keys of each execution of a scan. Streams of one execution share them; a stream that is
/// opened a second time, as in recursive queries, belongs to another.
#[derive(Debug)]
pub(in crate::query::scan) struct Executions(Mutex<(HashSet<usize>, Arc<Best>)>);

impl Executions {
    /// Prepares to look for the best `count` keys of a type in each execution.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if values of the type have no order.
    pub(in crate::query::scan) fn new(data_type: DataType, order: SortOptions, count: usize) -> Result<Self> {
        let first = Best::new(data_type, order, count)?;
        Ok(Self(Mutex::new((HashSet::new(), Arc::new(first)))))
    }

    /// Returns the best keys of the execution that a stream, which is being opened, belongs to.
    pub(in crate::query::scan) fn of_stream(&self, stream: usize) -> Arc<Best> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (streams, best) = &mut *last;
        if !streams.insert(stream) {
            *streams = HashSet::from([stream]);
            *best = Arc::new(best.of_next_execution());
        }
        Arc::clone(best)
    }
}

#[cfg(test)]
#[path = "best_tests.rs"]
mod tests;
