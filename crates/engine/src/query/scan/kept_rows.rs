//! Rows of a batch that conditions keep, one condition after another.

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::error::ArrowError;
use arrow::util::bit_util::set_bit;

/// What it costs to evaluate a condition on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// Numbers are compared, several at a time, or codes of dictionaries looked up in an array.
    Low,
    /// Texts of rows are compared, or values looked up.
    High,
}

impl Cost {
    /// Time for a row, as a multiple of the lowest.
    pub(super) fn of_row(self) -> f64 {
        match self {
            Self::Low => 1.0,
            Self::High => 8.0,
        }
    }

    /// Whether taking out the rows kept so far is cheaper than evaluating the condition on all.
    fn pays_for_selection(self, kept: usize, rows: usize) -> bool {
        match self {
            Self::Low => kept * 4 < rows,
            Self::High => kept * 5 < rows * 4,
        }
    }
}

/// Rows of a batch that all conditions so far keep.
#[derive(Debug)]
pub(super) struct KeptRows {
    rows: usize,
    /// `None` before the first condition.
    kept: Option<BooleanBuffer>,
}

impl KeptRows {
    /// All rows.
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, kept: None }
    }

    fn count(&self) -> usize {
        self.kept.as_ref().map_or(self.rows, BooleanBuffer::count_set_bits)
    }

    /// Keeps the rows that another condition keeps, too. It may be evaluated on all rows.
    ///
    /// # Errors
    /// Those of `evaluate`.
    pub(super) fn retain<E: From<ArrowError>>(
        &mut self,
        rows: RecordBatch,
        cost: Cost,
        evaluate: impl FnOnce(&RecordBatch) -> Result<BooleanArray, E>,
    ) -> Result<(), E> {
        let count = self.count();
        if count == 0 {
            return Ok(());
        }
        match &self.kept {
            Some(kept) if !cost.pays_for_selection(count, self.rows) => {
                self.kept = Some(kept & &true_rows(&evaluate(&rows)?));
                Ok(())
            }
            None | Some(_) => self.retain_of_kept(rows, evaluate),
        }
    }

    /// Keeps the rows that another condition keeps, too, which is evaluated on no other rows than
    /// those kept so far.
    ///
    /// # Errors
    /// Those of `evaluate`.
    pub(super) fn retain_of_kept<E: From<ArrowError>>(
        &mut self,
        rows: RecordBatch,
        evaluate: impl FnOnce(&RecordBatch) -> Result<BooleanArray, E>,
    ) -> Result<(), E> {
        self.kept = Some(match &self.kept {
            None => true_rows(&evaluate(&rows)?),
            Some(kept) => {
                let few = filter_record_batch(&rows, &BooleanArray::new(kept.clone(), None))?;
                selected_of(kept, &true_rows(&evaluate(&few)?))
            }
        });
        Ok(())
    }

    pub(super) fn finish(self) -> BooleanArray {
        BooleanArray::new(self.kept.unwrap_or_else(|| BooleanBuffer::new_set(self.rows)), None)
    }
}

/// Rows for which a condition is neither false nor NULL.
pub(super) fn true_rows(values: &BooleanArray) -> BooleanBuffer {
    match values.null_count() {
        0 => values.values().clone(),
        _ => prep_null_mask_filter(values).values().clone(),
    }
}

/// Returns the rows that are in `kept`, and whose position among these is in `selected`.
fn selected_of(kept: &BooleanBuffer, selected: &BooleanBuffer) -> BooleanBuffer {
    let mut bits = vec![0; kept.len().div_ceil(8)];
    for (position, row) in kept.set_indices().enumerate() {
        if selected.value(position) {
            set_bit(&mut bits, row);
        }
    }
    BooleanBuffer::new(bits.into(), 0, kept.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int32Array};
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn rows_are_kept_that_all_conditions_keep() {
        let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..1_000));
        let rows = RecordBatch::try_from_iter([("value", values)]).unwrap();
        for cost in [Cost::Low, Cost::High] {
            for divisors in
                [vec![], vec![1], vec![2], vec![2, 3, 5], vec![7, 7], vec![900, 3], vec![1, 1_000, 2]]
            {
                let mut kept = KeptRows::new(1_000);
                for divisor in &divisors {
                    let divides = |rows: &RecordBatch| {
                        let values = rows.column(0).as_primitive::<Int32Type>();
                        // NULL keeps no row.
                        let result = |value: Option<i32>| {
                            let value = value?;
                            (value % 11 != 10).then_some(value % divisor == 0)
                        };
                        Ok::<_, ArrowError>(values.iter().map(result).collect())
                    };
                    kept.retain(rows.clone(), cost, divides).unwrap();
                }
                let is_kept =
                    |value: i32| divisors.iter().all(|divisor| value % divisor == 0 && value % 11 != 10);
                let expected: BooleanArray = (0..1_000).map(|value| Some(is_kept(value))).collect();
                assert_eq!(kept.finish(), expected, "{divisors:?} {cost:?}");
            }
        }
    }

    #[test]
    fn a_condition_on_the_rows_kept_sees_no_others() {
        let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..1_000));
        let rows = RecordBatch::try_from_iter([("value", values)]).unwrap();
        let even = |rows: &RecordBatch| {
            let values = rows.column(0).as_primitive::<Int32Type>();
            Ok::<_, ArrowError>(values.iter().map(|value| Some(value? % 2 == 0)).collect())
        };
        let mut kept = KeptRows::new(1_000);
        kept.retain(rows.clone(), Cost::Low, even).unwrap();
        let mut seen = 0;
        kept.retain_of_kept(rows, |few| {
            seen = few.num_rows();
            let values = few.column(0).as_primitive::<Int32Type>();
            Ok::<_, ArrowError>(values.iter().map(|value| Some(value? < 10)).collect())
        })
        .unwrap();
        assert_eq!((seen, kept.finish().true_count()), (500, 5));
    }
}
