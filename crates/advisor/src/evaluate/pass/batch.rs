//! Data of a batch that all keys need, computed once for all of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, NullArray, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::Value;

use crate::evaluate::EvaluateError;
use evenkeel_model::table::{Candidate, Column, ColumnType, KeyPart, Transform};
use evenkeel_model::values::{derived_column, lengths, row_bytes, width};
use evenkeel_stats::sketch::{column_identities, combine, fold};
use evenkeel_stats::windows::{MomentRows, WindowedRows};

/// One part of some key, shared by every key that has it.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedPart {
    pub(crate) part: KeyPart,
    /// Position of the column.
    pub(crate) column: usize,
    /// Type of the part itself.
    pub(crate) column_type: ColumnType,
}

/// Parts of all keys, each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyParts(Vec<ResolvedPart>);

impl KeyParts {
    /// Returns the positions of the parts of `key`, and adds the parts that are new.
    pub(crate) fn resolve(
        &mut self,
        key: &Candidate,
        columns: &[Column],
    ) -> Result<Vec<usize>, EvaluateError> {
        key.parts().iter().map(|part| self.position(key, part, columns)).collect()
    }

    fn position(
        &mut self,
        key: &Candidate,
        part: &KeyPart,
        columns: &[Column],
    ) -> Result<usize, EvaluateError> {
        if let Some(position) = self.0.iter().position(|known| known.part == *part) {
            return Ok(position);
        }
        let column = columns.iter().position(|column| column.name == part.column);
        let entry = column.and_then(|index| Some((index, columns.get(index)?)));
        let (column, declared) = entry.ok_or_else(|| EvaluateError::UnknownColumn {
            key: key.to_string(),
            column: part.column.clone(),
            known: columns.iter().map(|column| column.name.clone()).collect(),
        })?;
        let column_type = match part.transform {
            Transform::Identity => declared.column_type,
            _ if !declared.column_type.is_timestamp() => {
                return Err(EvaluateError::NotTime {
                    key: key.to_string(),
                    column: part.column.clone(),
                    column_type: declared.column_type,
                });
            }
            Transform::Date => ColumnType::Date,
            Transform::Truncate(_) => ColumnType::Timestamp,
        };
        self.0.push(ResolvedPart { part: part.clone(), column, column_type });
        Ok(self.0.len() - 1)
    }

    /// Whether some part is made from a column.
    pub(crate) fn have(&self, column: usize) -> bool {
        self.0.iter().any(|part| part.column == column)
    }

    pub(crate) fn get(&self, position: usize) -> Option<&ResolvedPart> {
        self.0.get(position)
    }
}

/// One part of the keys, in one batch.
#[derive(Debug)]
pub(crate) struct PreparedPart {
    pub(crate) array: ArrayRef,
    pub(crate) identities: Vec<u64>,
    /// Bytes of all its values, and of the longest.
    pub(crate) bytes: u64,
    longest: u64,
    column_type: ColumnType,
}

/// Batch with the data that keys need from it.
#[derive(Debug)]
pub(crate) struct KeyedBatch {
    pub(crate) rows: usize,
    /// Number of rows before this batch.
    pub(crate) first_row: u64,
    parts: Vec<PreparedPart>,
    /// Bytes of each row's values.
    pub(crate) row_bytes: Vec<u32>,
    /// Identity of each whole row, if primary keys are evaluated.
    pub(crate) row_identities: Vec<u64>,
    pub(crate) windows: Option<WindowedRows>,
    pub(crate) moments: Option<MomentRows>,
}

impl KeyedBatch {
    /// Prepares a batch in the schema of the export.
    pub(crate) fn new(
        batch: &RecordBatch,
        first_row: u64,
        parts: &KeyParts,
        whole_rows: bool,
    ) -> Result<Self, EvaluateError> {
        let rows = batch.num_rows();
        let prepare = |part: &ResolvedPart| prepare_part(part, batch);
        let parts: Vec<PreparedPart> = parts.0.iter().map(prepare).collect::<Result<_, _>>()?;
        Ok(Self {
            rows,
            first_row,
            parts,
            row_bytes: row_bytes(batch),
            row_identities: if whole_rows { row_identities(batch) } else { Vec::new() },
            windows: None,
            moments: None,
        })
    }

    pub(crate) fn part(&self, position: usize) -> Option<&PreparedPart> {
        self.parts.get(position)
    }

    /// Returns the parts of a key.
    pub(crate) fn parts_of<'a>(&'a self, key: &'a [usize]) -> impl Iterator<Item = &'a PreparedPart> {
        key.iter().filter_map(|position| self.parts.get(*position))
    }

    /// Returns the identity of every row's key.
    pub(crate) fn identities(&self, key: &[usize]) -> Vec<u64> {
        combine(&self.parts_of(key).map(|part| part.identities.as_slice()).collect::<Vec<_>>())
    }

    /// Returns the number of rows with NULL in some part of a key.
    pub(crate) fn null_rows(&self, key: &[usize]) -> u64 {
        let mut with_nulls = self.parts_of(key).filter(|part| part.array.null_count() > 0);
        let (Some(first), second) = (with_nulls.next(), with_nulls.next()) else { return 0 };
        if second.is_none() {
            return first.array.null_count() as u64;
        }
        let is_null = |row: &usize| self.parts_of(key).any(|part| part.array.is_null(*row));
        (0..self.rows).filter(is_null).count() as u64
    }

    /// Returns the bytes of the longest key, or `known` if that is larger.
    pub(crate) fn longest_key(&self, key: &[usize], known: u64) -> u64 {
        // Usually the key fits even if one row had the longest value of every part.
        let most = self.parts_of(key).map(|part| part.longest).sum();
        if most <= known || key.len() == 1 {
            return known.max(most);
        }
        let mut of_keys = vec![0u64; self.rows];
        for part in self.parts_of(key) {
            let of_rows = match width(part.column_type) {
                Some(width) => {
                    (0..self.rows).map(|row| if part.array.is_null(row) { 0 } else { width }).collect()
                }
                None => lengths(&part.array).unwrap_or_default(),
            };
            of_keys.iter_mut().zip(of_rows).for_each(|(sum, more)| *sum += u64::from(more));
        }
        of_keys.into_iter().fold(known, u64::max)
    }

    /// Returns the columns of a key, for these rows only.
    pub(crate) fn rows_of(&self, key: &[usize], rows: &[u32]) -> Vec<ArrayRef> {
        let rows = UInt32Array::from(rows.to_vec());
        // Taking rows that exist cannot fail.
        let taken = self.parts_of(key).map(|part| take(&part.array, &rows, None));
        taken.map(|taken| taken.unwrap_or_else(|_| Arc::new(NullArray::new(rows.len())))).collect()
    }

    /// Returns the values of one row's key.
    pub(crate) fn values(&self, key: &[usize], row: usize) -> Vec<Value> {
        self.parts_of(key).map(|part| json_value(&part.array, row)).collect()
    }
}

fn prepare_part(part: &ResolvedPart, batch: &RecordBatch) -> Result<PreparedPart, EvaluateError> {
    let unreadable = || EvaluateError::Time { column: part.part.column.clone() };
    let array = batch.columns().get(part.column).ok_or_else(unreadable)?;
    let array = derived_column(array, part.part.transform).ok_or_else(unreadable)?;
    let (bytes, longest) = bytes_of(&array, part.column_type);
    Ok(PreparedPart {
        identities: column_identities(&array),
        array,
        bytes,
        longest,
        column_type: part.column_type,
    })
}

/// Returns the bytes of all values, and of the longest.
fn bytes_of(array: &ArrayRef, column_type: ColumnType) -> (u64, u64) {
    match width(column_type) {
        Some(width) => {
            let valid = (array.len() - array.null_count()) as u64;
            (valid * u64::from(width), if valid > 0 { u64::from(width) } else { 0 })
        }
        None => lengths(array).map_or((0, 0), |lengths| {
            lengths
                .iter()
                .fold((0, 0), |(sum, most), length| (sum + u64::from(*length), most.max(u64::from(*length))))
        }),
    }
}

/// Returns the identities of whole rows, whatever the order of their columns.
fn row_identities(batch: &RecordBatch) -> Vec<u64> {
    let mut identities = vec![0u64; batch.num_rows()];
    let schema = batch.schema();
    let mut columns: Vec<_> = schema.fields().iter().zip(batch.columns()).collect();
    columns.sort_by(|(a, _), (b, _)| a.name().cmp(b.name()));
    for (_, array) in columns {
        for (identity, value) in identities.iter_mut().zip(column_identities(array)) {
            *identity = fold(*identity, value);
        }
    }
    identities
}

/// Maximum number of bytes of a text that a result shows.
const LONGEST_SHOWN: usize = 1 << 10;

/// Returns a text, or the beginning of a long one, marked by its last character.
fn shown(text: &str) -> Value {
    if text.len() <= LONGEST_SHOWN {
        return Value::String(text.to_owned());
    }
    let begin = text.get(..text.floor_char_boundary(LONGEST_SHOWN)).unwrap_or_default();
    Value::String(format!("{begin}…"))
}

/// Returns a value as JSON: numbers and booleans as such, everything else as text of at most 1 KiB.
pub(crate) fn json_value(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    let options = FormatOptions::default();
    let text = match array.data_type() {
        DataType::Binary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            return bytes_value(array, row);
        }
        DataType::Utf8 => return shown(array.as_string::<i32>().value(row)),
        DataType::Utf8View => return shown(array.as_string_view().value(row)),
        _ => ArrayFormatter::try_new(array.as_ref(), &options).map(|f| f.value(row).to_string()),
    };
    let text = text.unwrap_or_default();
    let is_plain = array.data_type().is_integer() || array.data_type() == &DataType::Boolean;
    match serde_json::from_str(&text) {
        Ok(value) if is_plain => value,
        _ => shown(&text),
    }
}

/// Returns bytes as text if they are text, otherwise in hexadecimal.
fn bytes_value(array: &ArrayRef, row: usize) -> Value {
    let bytes = match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::BinaryView => array.as_binary_view().value(row),
        _ => array.as_fixed_size_binary().value(row),
    };
    if let (DataType::FixedSizeBinary(16), Ok(uuid)) = (array.data_type(), uuid::Uuid::from_slice(bytes)) {
        return Value::String(uuid.to_string());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => shown(text),
        _ => {
            let begin = bytes.get(..LONGEST_SHOWN / 2 + 1).unwrap_or(bytes);
            shown(&begin.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, Int64Array, StringArray, StringViewArray};

    use super::*;

    #[test]
    fn values_are_shown_by_their_type_and_not_at_any_length() {
        let long = "é".repeat(2000);
        let arrays: [ArrayRef; 2] = [
            Arc::new(StringArray::from(vec!["5", long.as_str()])),
            Arc::new(StringViewArray::from(vec!["5", long.as_str()])),
        ];
        for array in &arrays {
            assert_eq!(json_value(array, 0), Value::String("5".to_owned()));
            let Value::String(cut) = json_value(array, 1) else { panic!() };
            assert_eq!(cut, format!("{}…", "é".repeat(512)));
        }
        let number: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None]));
        assert_eq!((json_value(&number, 0), json_value(&number, 1)), (Value::from(5), Value::Null));
        let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![vec![255; 5000].as_slice(), b"abc"]));
        let Value::String(cut) = json_value(&bytes, 0) else { panic!() };
        assert_eq!(cut, format!("{}…", "f".repeat(1024)));
        assert_eq!(json_value(&bytes, 1), Value::String("abc".to_owned()));
    }
}
