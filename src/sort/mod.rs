//! Sorting the rows of one partition by the primary key, newest of equal keys wins.
//!
//! Rows stay where they arrived until they are written: what is sorted are references, and each value is copied once.

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{interleave, interleave_record_batch};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};

/// A row of one of several batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowRef {
    /// Which batch.
    pub batch: u32,
    /// Which row of it.
    pub row: u32,
}

impl From<RowRef> for (usize, usize) {
    fn from(row: RowRef) -> Self {
        (row.batch as usize, row.row as usize)
    }
}

/// Rows in key order, each key once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedRows {
    /// The rows to keep, in key order.
    pub rows: Vec<RowRef>,
    /// A row of every key that came more than once, in key order: the one that is kept.
    pub repeated: Vec<RowRef>,
    /// How many rows were dropped because a later row has their key.
    pub replaced: u64,
}

/// Sorts `rows` by the columns `key` of their batches. `rows` are in input order; of equal keys the last stays.
///
/// Input `(k, v)`: `(2, a) (1, b) (2, c)`; output: `(1, b) (2, c)`, because `(2, c)` is newer than `(2, a)`.
///
/// # Errors
/// [`ArrowError`] where a key column cannot be compared.
pub fn sort_newest_wins(
    batches: &[RecordBatch],
    rows: &[RowRef],
    key: &[usize],
) -> Result<SortedRows, ArrowError> {
    let keys = encode_keys(batches, rows, key)?;
    let mut order: Vec<(u64, u32)> =
        (0u32..).zip(keys.iter()).map(|(i, row)| (prefix(row.data()), i)).collect();
    let compare = |a: &(u64, u32), b: &(u64, u32)| {
        a.0.cmp(&b.0)
            .then_with(|| keys.row(a.1 as usize).cmp(&keys.row(b.1 as usize)))
            .then_with(|| a.1.cmp(&b.1))
    };
    // Events mostly arrive in time order; then there is nothing to sort.
    if !order.is_sorted_by(|a, b| compare(a, b).is_le()) {
        order.sort_unstable_by(compare);
    }
    let mut sorted = SortedRows { rows: Vec::with_capacity(rows.len()), repeated: Vec::new(), replaced: 0 };
    let mut run = 0u64;
    for (position, (_, index)) in order.iter().enumerate() {
        let next = order.get(position + 1).map(|(_, next)| *next as usize);
        if next.is_some_and(|next| keys.row(next) == keys.row(*index as usize)) {
            run += 1;
            continue;
        }
        sorted.rows.extend(rows.get(*index as usize));
        if run > 0 {
            sorted.repeated.extend(rows.get(*index as usize));
            sorted.replaced += run;
            run = 0;
        }
    }
    Ok(sorted)
}

/// The first eight bytes of an encoded key, as a number of the same order.
fn prefix(key: &[u8]) -> u64 {
    let mut bytes = [0u8; 8];
    for (byte, value) in bytes.iter_mut().zip(key) {
        *byte = *value;
    }
    u64::from_be_bytes(bytes)
}

/// The keys of `rows` in a form that compares as bytes.
fn encode_keys(batches: &[RecordBatch], rows: &[RowRef], key: &[usize]) -> Result<Rows, ArrowError> {
    let places: Vec<(usize, usize)> = rows.iter().map(|row| (*row).into()).collect();
    let columns = gather_columns(batches, &places, key)?;
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    RowConverter::new(fields)?.convert_columns(&columns)
}

/// Gathers only the columns `columns` of the places.
fn gather_columns(
    batches: &[RecordBatch],
    places: &[(usize, usize)],
    columns: &[usize],
) -> Result<Vec<ArrayRef>, ArrowError> {
    let gather_one = |column: &usize| {
        let arrays: Option<Vec<&dyn Array>> =
            batches.iter().map(|batch| batch.columns().get(*column).map(AsRef::as_ref)).collect();
        let arrays = arrays
            .ok_or_else(|| ArrowError::InvalidArgumentError(format!("a batch has no column {column}")))?;
        interleave(&arrays, places)
    };
    columns.iter().map(gather_one).collect()
}

/// The rows of the references, in their order, as one batch.
///
/// # Errors
/// [`ArrowError`] where the batches differ in schema or one text column would pass 2 GiB.
pub fn gather(batches: &[RecordBatch], rows: &[RowRef]) -> Result<RecordBatch, ArrowError> {
    let places: Vec<(usize, usize)> = rows.iter().map(|row| (*row).into()).collect();
    let batches: Vec<&RecordBatch> = batches.iter().collect();
    interleave_record_batch(&batches, &places)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;
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

    proptest! {
        #[test]
        fn sorting_equals_a_map_that_rows_are_put_into(
            rows in proptest::collection::vec(("[ab]{0,9}", -2i64..2, any::<i64>()), 0..120), cut in 0usize..120,
        ) {
            let cut = cut.min(rows.len());
            let batches = [batch(&rows[..cut]), batch(&rows[cut..])];
            let refs: Vec<RowRef> = (0..2u32)
                .flat_map(|b| (0..batches[b as usize].num_rows() as u32).map(move |row| RowRef { batch: b, row }))
                .collect();
            let sorted = sort_newest_wins(&batches, &refs, &[1, 0]).unwrap();
            let mut expected = BTreeMap::new();
            for (text, number, value) in &rows {
                expected.insert((*number, text.clone()), *value);
            }
            let found = gather(&batches, &sorted.rows).unwrap();
            let values: Vec<i64> = found.column(2).as_primitive::<Int64Type>().values().to_vec();
            prop_assert_eq!(values, expected.values().copied().collect::<Vec<_>>());
            prop_assert_eq!(sorted.replaced as usize, rows.len() - expected.len());
        }
    }

    #[test]
    fn nothing_sorts_to_nothing() {
        let sorted = sort_newest_wins(&[batch(&[])], &[], &[0]).unwrap();
        assert_eq!(sorted, SortedRows { rows: vec![], repeated: vec![], replaced: 0 });
    }
}
