//! Dropping superseded rows from a stream that is sorted by the primary key.

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::{filter_record_batch, partition};
use arrow::error::ArrowError;
use arrow::row::{OwnedRow, RowConverter, SortField};

/// Keeps the first row of every key.
///
/// Input: batches sorted by the key columns, rows with equal keys next to each other and the newest
/// first, as produced by a merge of runs ordered newest first. Output: the batches without the
/// other rows of each key.
/// `(1, new) (1, old) | (1, older) (2, x)` becomes `(1, new) | (2, x)`; `|` separates the batches.
#[derive(Debug)]
pub struct NewestWins {
    keys: RowKeys,
    last: Option<OwnedRow>,
}

impl NewestWins {
    /// Creates a filter for batches whose key columns are `key`, in key order.
    #[must_use]
    pub fn new(key: Vec<usize>) -> Self {
        Self { keys: RowKeys::new(key), last: None }
    }

    /// Filters the next batch: returns its rows to keep, possibly none.
    ///
    /// # Errors
    /// [`ArrowError`] if a key column is missing or cannot be compared.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let Some(last_row) = batch.num_rows().checked_sub(1) else { return Ok(batch.clone()) };
        let columns: Vec<ArrayRef> = batch.project(&self.keys.key)?.columns().to_vec();
        let ranges = partition(&columns)?.ranges();
        let first = self.keys.encode(&columns, 0)?;
        let continues = self.last.as_ref() == Some(&first);
        self.last = Some(self.keys.encode(&columns, last_row)?);
        if ranges.len() == batch.num_rows() && !continues {
            return Ok(batch.clone());
        }
        let mut keep = vec![false; batch.num_rows()];
        for range in ranges.iter().skip(usize::from(continues)) {
            if let Some(row) = keep.get_mut(range.start) {
                *row = true;
            }
        }
        filter_record_batch(batch, &BooleanArray::from(keep))
    }
}

/// Keys of single rows, in a form that compares as they do.
#[derive(Debug)]
pub struct RowKeys {
    key: Vec<usize>,
    converter: Option<RowConverter>,
}

impl RowKeys {
    /// Prepares for batches whose key columns are `key`, in key order.
    #[must_use]
    pub fn new(key: Vec<usize>) -> Self {
        Self { key, converter: None }
    }

    /// Returns the key of a row.
    ///
    /// # Errors
    /// [`ArrowError`] if a key column is missing or cannot be compared.
    pub fn of_row(&mut self, batch: &RecordBatch, row: usize) -> Result<OwnedRow, ArrowError> {
        let columns = batch.project(&self.key)?;
        self.encode(columns.columns(), row)
    }

    fn encode(&mut self, columns: &[ArrayRef], row: usize) -> Result<OwnedRow, ArrowError> {
        if self.converter.is_none() {
            let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
            self.converter = Some(RowConverter::new(fields)?);
        }
        let converter =
            self.converter.as_ref().ok_or_else(|| ArrowError::ComputeError("no converter".into()))?;
        let slices: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
        Ok(converter.convert_columns(&slices)?.row(0).owned())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    fn batch(rows: &[(i64, i64)]) -> RecordBatch {
        let key: Int64Array = rows.iter().map(|r| Some(r.0)).collect();
        let value: Int64Array = rows.iter().map(|r| Some(r.1)).collect();
        RecordBatch::try_from_iter([("k", Arc::new(key) as ArrayRef), ("v", Arc::new(value) as ArrayRef)])
            .unwrap()
    }

    proptest! {
        #[test]
        fn the_first_row_of_each_key_stays_however_the_stream_is_cut(
            keys in proptest::collection::vec(0i64..12, 0..60), size in 1usize..9,
        ) {
            let mut keys = keys;
            keys.sort_unstable();
            let rows: Vec<(i64, i64)> = keys.into_iter().zip(0..).collect();
            let mut newest_wins = NewestWins::new(vec![0]);
            let mut found = Vec::new();
            for chunk in rows.chunks(size) {
                let kept = newest_wins.push(&batch(chunk)).unwrap();
                found.extend(kept.column(1).as_primitive::<Int64Type>().values().iter().copied());
            }
            let mut expected = rows;
            expected.dedup_by_key(|row| row.0);
            prop_assert_eq!(found, expected.into_iter().map(|row| row.1).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_empty_batch_changes_nothing() {
        let mut newest_wins = NewestWins::new(vec![0]);
        assert_eq!(newest_wins.push(&batch(&[(1, 0)])).unwrap().num_rows(), 1);
        assert_eq!(newest_wins.push(&batch(&[])).unwrap().num_rows(), 0);
        assert_eq!(newest_wins.push(&batch(&[(1, 1)])).unwrap().num_rows(), 0);
    }
}
