//! Keys and values as bytes that compare in their order.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::row::{Row, RowConverter, RowParser, Rows, SortField};

use crate::evaluate::EvaluateError;
use evenkeel_model::table::{Candidate, ColumnType};
use evenkeel_model::units::PartitionId;
use evenkeel_model::wire::{Wire, WireError, WireReader, put_bytes, take_bytes};

/// Bytes of a key or value that are kept for a sampled row; longer ones are distinguished by these.
pub(super) const MAX_KEPT_BYTES: usize = 256;

/// Sampled row. Its key and columns are next to each other in memory that the row which replaces it
/// in the sample uses again.
#[derive(Debug, Clone, Default)]
pub(super) struct SampledRow {
    pub(super) arrival: u64,
    pub(super) partition: PartitionId,
    /// The key and then the columns, each after its length in two bytes.
    bytes: Vec<u8>,
}

impl SampledRow {
    /// Sets the key and the columns, whose bytes beyond the first [`MAX_KEPT_BYTES`] are left out.
    pub(super) fn set<'p>(&mut self, key: &'p [u8], columns: impl Iterator<Item = &'p [u8]>) {
        self.bytes.clear();
        for part in std::iter::once(key).chain(columns) {
            let kept = part.get(..MAX_KEPT_BYTES).unwrap_or(part);
            self.bytes.extend((kept.len() as u16).to_le_bytes());
            self.bytes.extend_from_slice(kept);
        }
    }

    /// Returns the beginning of the key.
    pub(super) fn key(&self) -> &[u8] {
        self.parts().next().unwrap_or_default()
    }

    /// Returns the beginning of the values of the columns.
    pub(super) fn columns(&self) -> impl Iterator<Item = &[u8]> {
        self.parts().skip(1)
    }

    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let mut left = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let (length, parts) = left.split_first_chunk()?;
            let (part, parts) = parts.split_at_checked(u16::from_le_bytes(*length).into())?;
            left = parts;
            Some(part)
        })
    }
}

impl Wire for SampledRow {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.arrival.put(bytes);
        self.partition.put(bytes);
        put_bytes(self.key(), bytes);
        self.columns().count().put(bytes);
        self.columns().for_each(|column| put_bytes(column, bytes));
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let mut row = Self { arrival: Wire::take(left)?, partition: Wire::take(left)?, bytes: Vec::new() };
        let key = take_bytes(left)?;
        let count = usize::take(left)?;
        let columns = (0..count).map(|_| take_bytes(left)).collect::<Result<Vec<_>, _>>()?;
        row.set(key, columns.into_iter());
        Ok(row)
    }
}

/// The first bytes of a key as a number. It decides most comparisons of keys, without a look at
/// their bytes elsewhere in memory: a smaller number is that of a smaller key.
pub(super) fn head(key: &[u8]) -> u128 {
    match key.first_chunk() {
        Some(head) => u128::from_be_bytes(*head),
        None => {
            let mut head = [0; 16];
            head.iter_mut().zip(key).for_each(|(head, byte)| *head = *byte);
            u128::from_be_bytes(head)
        }
    }
}

/// Converts values to bytes that compare in the same order, whether text is in views or not.
pub(super) struct KeyRows {
    converter: RowConverter,
    types: Vec<DataType>,
}

impl KeyRows {
    fn new(types: Vec<DataType>) -> Result<Self, ArrowError> {
        let fields = types.iter().map(|data_type| SortField::new(data_type.clone())).collect();
        Ok(Self { converter: RowConverter::new(fields)?, types })
    }

    pub(super) fn for_types(types: &[ColumnType], key: &Candidate) -> Result<Self, EvaluateError> {
        Self::new(types.iter().map(|column_type| column_type.arrow_type()).collect())
            .map_err(|source| EvaluateError::Sort { key: key.to_string(), source })
    }

    pub(super) fn convert(&mut self, arrays: &[ArrayRef]) -> Result<Rows, ArrowError> {
        let differ = |(array, known): (&ArrayRef, &DataType)| array.data_type() != known;
        if arrays.iter().zip(&self.types).any(differ) {
            // Views have the same bytes as plain text.
            *self = Self::new(arrays.iter().map(|array| array.data_type().clone()).collect())?;
        }
        self.converter.convert_columns(arrays)
    }

    /// Reads the bytes of single rows.
    pub(super) fn parser(&self) -> RowParser {
        self.converter.parser()
    }

    /// Converts rows back to columns.
    pub(super) fn arrays<'r>(
        &self,
        rows: impl IntoIterator<Item = Row<'r>>,
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        self.converter.convert_rows(rows)
    }

    /// Converts columns of the types of the previous ones.
    pub(super) fn convert_again(&self, arrays: &[ArrayRef]) -> Result<Rows, ArrowError> {
        self.converter.convert_columns(arrays)
    }
}

#[cfg(test)]
mod tests {
    use super::head;

    #[test]
    fn heads_are_in_the_order_of_keys_or_equal() {
        let keys: Vec<Vec<u8>> = (0..400_u32)
            .map(|key| {
                let length = key as usize * 7 % 23;
                (0..length).map(|at| (key.wrapping_mul(2_654_435_761) >> (at % 4 * 8)) as u8 & 1).collect()
            })
            .collect();
        for one in &keys {
            for other in &keys {
                assert!(head(one) <= head(other) || one > other, "{one:?} {other:?}");
                assert!(one[..one.len().min(16)] != other[..other.len().min(16)] || head(one) == head(other));
            }
        }
    }
}
