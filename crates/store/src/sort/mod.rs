//! Sorts the rows of one partition by the primary key; of equal keys, the newest row wins.
//!
//! Rows are not moved; their numbers are sorted. Rows are compared by one 64-bit word of the
//! leading column; the other columns are read only for rows with the same word.

mod late;
mod word;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::error::ArrowError;

use crate::sort::late::{Entry, sort_nearly_sorted};
use crate::sort::word::KeyColumn;

/// Rows in key order, each key once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedRows {
    /// Rows to keep, in key order; `None` if all rows are kept in the order that they have.
    pub order: Option<Vec<u32>>,
    /// For every key with several rows, in key order, the row that is kept.
    pub repeated: Vec<u32>,
    /// Number of rows dropped because a later row has the same key.
    pub replaced: u64,
}

/// Sorts rows by the columns `key`, the leading one first. Rows are in input order; of equal keys,
/// the last is kept.
///
/// Input `(k, v)`: `(2, a) (1, b) (2, c)`; order: `[1, 2]`, because `(2, c)` is newer than
/// `(2, a)`.
///
/// # Errors
/// [`ArrowError`] if a key column cannot be compared.
pub fn sort_newest_wins(key: &[ArrayRef]) -> Result<SortedRows, ArrowError> {
    let rows = key.first().map_or(0, |column| column.len()) as u32;
    let columns: Vec<KeyColumn> = key.iter().map(KeyColumn::new).collect::<Result<_, _>>()?;
    let Some((leading, others)) = columns.split_first() else {
        return Ok(SortedRows { order: None, repeated: Vec::new(), replaced: 0 });
    };
    let mut entries: Vec<Entry> = (0..rows).map(|row| (leading.word(row), row)).collect();
    entries = sort_nearly_sorted(entries);
    let mut equal = EqualKeys::default();
    sort_ties(&mut entries, leading, others, 0, &mut equal);
    Ok(equal.drop_all_but_the_last(entries))
}

/// Sorts runs of equal words by the rest of the key. `start` is the position of `entries` among all
/// entries.
fn sort_ties(
    entries: &mut [Entry],
    column: &KeyColumn,
    others: &[KeyColumn],
    start: usize,
    equal: &mut EqualKeys,
) {
    let mut position = start;
    for run in entries.chunk_by_mut(|a, b| a.0 == b.0) {
        if run.len() > 1 {
            if column.is_exact() {
                sort_by_next(run, others, position, equal);
            } else {
                run.sort_unstable_by(|a, b| column.compare(a.1, b.1).then(a.1.cmp(&b.1)));
                let mut position = position;
                for same in run.chunk_by_mut(|a, b| column.compare(a.1, b.1).is_eq()) {
                    sort_by_next(same, others, position, equal);
                    position += same.len();
                }
            }
        }
        position += run.len();
    }
}

/// Sorts rows that are equal in the columns before `columns`.
fn sort_by_next(entries: &mut [Entry], columns: &[KeyColumn], start: usize, equal: &mut EqualKeys) {
    if entries.len() < 2 {
        return;
    }
    let Some((column, others)) = columns.split_first() else {
        equal.0.push(start..start + entries.len());
        return;
    };
    for entry in entries.iter_mut() {
        entry.0 = column.word(entry.1);
    }
    entries.sort_unstable();
    sort_ties(entries, column, others, start, equal);
}

/// Ranges of rows with the same key in the sorted order, each in order of arrival.
#[derive(Debug, Default)]
struct EqualKeys(Vec<std::ops::Range<usize>>);

impl EqualKeys {
    fn drop_all_but_the_last(self, entries: Vec<Entry>) -> SortedRows {
        let as_they_are = (0u32..).zip(&entries).all(|(position, entry)| position == entry.1);
        if as_they_are && self.0.is_empty() {
            return SortedRows { order: None, repeated: Vec::new(), replaced: 0 };
        }
        let mut order = Vec::with_capacity(entries.len());
        let mut repeated = Vec::with_capacity(self.0.len());
        let mut taken = 0;
        let rows = |range: std::ops::Range<usize>| entries.get(range).unwrap_or_default().iter();
        for range in &self.0 {
            order.extend(rows(taken..range.start).map(|entry| entry.1));
            let last = rows(range.clone()).next_back().map(|entry| entry.1);
            order.extend(last);
            repeated.extend(last);
            taken = range.end;
        }
        order.extend(rows(taken..entries.len()).map(|entry| entry.1));
        SortedRows { replaced: (entries.len() - order.len()) as u64, order: Some(order), repeated }
    }
}

/// Returns the sorted rows of `batch`, in batches of at most `chunk_rows`.
pub fn gather<'a>(
    batch: &'a RecordBatch,
    sorted: &'a SortedRows,
    chunk_rows: usize,
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + 'a {
    let chunk_rows = chunk_rows.max(1);
    let rows = sorted.order.as_ref().map_or(batch.num_rows(), Vec::len);
    (0..rows).step_by(chunk_rows).map(move |start| {
        let end = rows.min(start + chunk_rows);
        match sorted.order.as_ref().and_then(|order| order.get(start..end)) {
            Some(rows) => take_record_batch(batch, &UInt32Array::from(rows.to_vec())),
            None => Ok(batch.slice(start, end - start)),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::array::{
        AsArray, BooleanArray, Decimal128Array, Int64Array, StringArray, StringViewArray,
        TimestampMicrosecondArray, UInt8Array,
    };
    use arrow::compute::concat_batches;
    use arrow::datatypes::Int64Type;
    use arrow::row::{RowConverter, SortField};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    fn batch(rows: &[(String, i64, i64)]) -> RecordBatch {
        let text: StringArray = rows.iter().map(|r| Some(r.0.as_str())).collect();
        let number: Int64Array = rows.iter().map(|r| Some(r.1)).collect();
        let value: Int64Array = rows.iter().map(|r| Some(r.2)).collect();
        RecordBatch::try_from_iter([
            ("text", Arc::new(text) as ArrayRef),
            ("number", Arc::new(number) as ArrayRef),
            ("value", Arc::new(value) as ArrayRef),
        ])
        .unwrap()
    }

    /// Sorts naively: converts whole keys to a form that compares as bytes, and sorts these.
    fn plain(key: &[ArrayRef]) -> Vec<u32> {
        let fields = key.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let keys = RowConverter::new(fields).unwrap().convert_columns(key).unwrap();
        let mut order: Vec<u32> = (0..keys.num_rows() as u32).collect();
        order.sort_by_key(|row| (keys.row(*row as usize), *row));
        let last_of_its_key = |(position, row): (usize, &u32)| match order.get(position + 1) {
            Some(next) => keys.row(*next as usize) != keys.row(*row as usize),
            None => true,
        };
        order.iter().enumerate().filter(|entry| last_of_its_key(*entry)).map(|(_, row)| *row).collect()
    }

    fn order_of(key: &[ArrayRef]) -> Vec<u32> {
        let sorted = sort_newest_wins(key).unwrap();
        let rows = key[0].len();
        assert_eq!(sorted.replaced as usize, rows - sorted.order.as_ref().map_or(rows, Vec::len));
        sorted.order.unwrap_or_else(|| (0..rows as u32).collect())
    }

    proptest! {
        #[test]
        fn sorting_equals_a_map_that_rows_are_put_into(
            rows in proptest::collection::vec(("[ab]{0,9}", -2i64..2, any::<i64>()), 0..120), chunk in 1usize..130,
        ) {
            let batch = batch(&rows);
            let key = [Arc::clone(batch.column(1)), Arc::clone(batch.column(0))];
            let sorted = sort_newest_wins(&key).unwrap();
            let mut expected = BTreeMap::new();
            for (text, number, value) in &rows {
                expected.insert((*number, text.clone()), *value);
            }
            let chunks: Vec<RecordBatch> = gather(&batch, &sorted, chunk).map(Result::unwrap).collect();
            let gathered = concat_batches(&batch.schema(), &chunks).unwrap();
            let values: Vec<i64> = gathered.column(2).as_primitive::<Int64Type>().values().to_vec();
            prop_assert_eq!(values, expected.values().copied().collect::<Vec<_>>());
            prop_assert_eq!(sorted.replaced as usize, rows.len() - expected.len());
        }

        #[test]
        fn words_and_ties_give_the_order_of_whole_keys(
            rows in proptest::collection::vec(
                ("(common-)?[a-c\\x00]{0,3}", any::<Option<i64>>(), any::<bool>(), 0u8..3, -3i128..3), 0..200,
            ),
            first in 0usize..6, second in 0usize..6, third in 0usize..6,
        ) {
            let columns: [ArrayRef; 6] = [
                Arc::new(rows.iter().map(|r| Some(r.0.as_str())).collect::<StringArray>()),
                Arc::new(rows.iter().map(|r| Some(r.0.as_str())).collect::<StringViewArray>()),
                Arc::new(rows.iter().map(|r| r.1).collect::<TimestampMicrosecondArray>()),
                Arc::new(rows.iter().map(|r| Some(r.2)).collect::<BooleanArray>()),
                Arc::new(rows.iter().map(|r| r.3).collect::<Vec<_>>().into_iter().map(Some).collect::<UInt8Array>()),
                Arc::new(rows.iter().map(|r| Some(r.4)).collect::<Decimal128Array>()),
            ];
            let key = [first, second, third].map(|column| Arc::clone(&columns[column]));
            prop_assert_eq!(order_of(&key), plain(&key));
        }

        #[test]
        fn late_rows_are_sorted_in(
            steps in proptest::collection::vec((0i64..5, 0i64..200, 0u8..30), 0..400), late in 1u8..30,
        ) {
            let mut now = 0;
            let times: Int64Array = steps
                .iter()
                .map(|(step, back, chance)| {
                    now += step;
                    Some(if *chance < late { now - back + 60 } else { now })
                })
                .collect();
            let key = [Arc::new(times) as ArrayRef];
            prop_assert_eq!(order_of(&key), plain(&key));
        }
    }

    #[test]
    fn rows_in_order_stay_as_they_are() {
        let key = [Arc::new(Int64Array::from(vec![-3, 0, 7])) as ArrayRef];
        let sorted = sort_newest_wins(&key).unwrap();
        assert_eq!(sorted, SortedRows { order: None, repeated: vec![], replaced: 0 });
        let empty = [Arc::new(Int64Array::from(Vec::<i64>::new())) as ArrayRef];
        assert_eq!(sort_newest_wins(&empty).unwrap().order, None);
    }

    #[test]
    fn the_last_row_of_a_repeated_key_is_named() {
        let key = [Arc::new(Int64Array::from(vec![2, 1, 2, 3, 1, 1])) as ArrayRef];
        let sorted = sort_newest_wins(&key).unwrap();
        assert_eq!(sorted, SortedRows { order: Some(vec![5, 2, 3]), repeated: vec![5, 2], replaced: 3 });
    }
}
