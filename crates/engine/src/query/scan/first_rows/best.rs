//! The best keys that the streams of a scan have found.

use std::collections::{BinaryHeap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::kernels::cmp::{gt_eq, lt_eq};
use arrow::compute::{SortOptions, filter, is_null, or, prep_null_mask_filter};
use arrow::datatypes::DataType;
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result, ScalarValue};

/// The best keys of the rows that a scan has returned.
#[derive(Debug)]
pub(in crate::query::scan) struct Best {
    pub(super) order: SortOptions,
    count: usize,
    converter: RowConverter,
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
        Ok(Self { order, count, converter, found: Mutex::default() })
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
    pub(super) fn keep(&self, keys: &ArrayRef) -> Result<BooleanArray> {
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
    pub(super) fn within(&self, keys: &ArrayRef, bound: Option<&ScalarValue>) -> Result<BooleanArray> {
        let Some(bound) = bound else { return Ok(all(keys.len())) };
        if bound.is_null() {
            return if self.order.nulls_first { Ok(is_null(keys)?) } else { Ok(all(keys.len())) };
        }
        let bound = bound.to_scalar()?;
        let compared = if self.order.descending { gt_eq(keys, &bound)? } else { lt_eq(keys, &bound)? };
        if compared.null_count() == 0 {
            return Ok(compared);
        }
        let compared = prep_null_mask_filter(&compared);
        if self.order.nulls_first { Ok(or(&compared, &is_null(keys)?)?) } else { Ok(compared) }
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
        let Ok(best) = best.cast_to(&bound.data_type()) else { return false };
        match best.partial_cmp(&bound) {
            Some(order) if self.order.descending => order.is_lt(),
            Some(order) => order.is_gt(),
            None => false,
        }
    }
}

fn all(rows: usize) -> BooleanArray {
    BooleanArray::from(vec![true; rows])
}

/// The best keys of each execution of a scan. Streams of one execution share them; a stream that is
/// opened a second time, as in recursive queries, belongs to another.
#[derive(Debug)]
pub(in crate::query::scan) struct Executions {
    data_type: DataType,
    order: SortOptions,
    count: usize,
    last: Mutex<(HashSet<usize>, Arc<Best>)>,
}

impl Executions {
    /// Prepares to look for the best `count` keys of a type in each execution.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if values of the type have no order.
    pub(in crate::query::scan) fn new(data_type: DataType, order: SortOptions, count: usize) -> Result<Self> {
        let first = Arc::new(Best::new(data_type.clone(), order, count)?);
        Ok(Self { data_type, order, count, last: Mutex::new((HashSet::new(), first)) })
    }

    /// Returns the best keys of the execution that a stream, which is being opened, belongs to.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if values of the type have no order.
    pub(in crate::query::scan) fn of_stream(&self, stream: usize) -> Result<Arc<Best>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (streams, best) = &mut *last;
        if !streams.insert(stream) {
            streams.clear();
            streams.insert(stream);
            *best = Arc::new(Best::new(self.data_type.clone(), self.order, self.count)?);
        }
        Ok(Arc::clone(best))
    }
}

#[cfg(test)]
#[path = "best_tests.rs"]
mod tests;
