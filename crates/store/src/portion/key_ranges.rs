//! Ranges of the primary key in a portion, and single values of key columns.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{
    max, max_binary, max_binary_view, max_string, max_string_view, min, min_binary, min_binary_view,
    min_string, min_string_view,
};
use arrow::datatypes::{
    ArrowPrimitiveType, Date32Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use crate::portion::error::PortionError;
use evenkeel_model::table::{ColumnType, KeyRange, KeyValue, TableSpec};
use evenkeel_model::units::PartitionId;

/// Collects the ranges of the primary key over sorted batches.
pub(super) struct KeyRanges<'a> {
    spec: &'a TableSpec,
    partition: PartitionId,
    key: Option<KeyRange>,
    columns: Vec<KeyRange>,
}

impl<'a> KeyRanges<'a> {
    pub(super) fn new(spec: &'a TableSpec, partition: PartitionId) -> Self {
        Self { spec, partition, key: None, columns: Vec::new() }
    }

    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<(), PortionError> {
        let mut first = Vec::new();
        let mut last = Vec::new();
        let mut ranges = Vec::new();
        let key = self.spec.primary_key().iter().zip(self.spec.primary_key_columns());
        for (index, column) in key {
            let array = batch.columns().get(*index);
            let read = |row: usize| array.and_then(|array| key_value(array, column.column_type, row));
            let range = array.and_then(|array| column_range(array, column.column_type));
            let (Some(low), Some(high), Some((min, max))) = (read(0), read(batch.num_rows() - 1), range)
            else {
                return Err(PortionError::Key {
                    partition: self.partition,
                    column: column.name.clone(),
                    found: array.map_or("nothing".to_owned(), |array| array.data_type().to_string()),
                });
            };
            first.push(low);
            last.push(high);
            ranges.push(KeyRange { min: vec![min], max: vec![max] });
        }
        match self.key.as_mut() {
            None => {
                self.key = Some(KeyRange { min: first, max: last });
                self.columns = ranges;
            }
            Some(key) => {
                key.max = last;
                for (known, range) in self.columns.iter_mut().zip(ranges) {
                    if range.min < known.min {
                        known.min = range.min;
                    }
                    if range.max > known.max {
                        known.max = range.max;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(KeyRange, Vec<KeyRange>), PortionError> {
        let key = self.key.ok_or(PortionError::Empty { partition: self.partition })?;
        Ok((key, self.columns))
    }
}

/// Returns one value of a key column; `None` if it is NULL, there is no such row, or the array is
/// not of the column's type.
#[must_use]
pub(crate) fn key_value(array: &ArrayRef, column_type: ColumnType, row: usize) -> Option<KeyValue> {
    fn number<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> Option<T::Native> {
        array.as_primitive_opt::<T>().map(|array| array.value(row))
    }
    if row >= array.len() || array.is_null(row) {
        return None;
    }
    match column_type {
        ColumnType::Int32 => number::<Int32Type>(array, row).map(|v| KeyValue::Int(v.into())),
        ColumnType::Int64 => number::<Int64Type>(array, row).map(KeyValue::Int),
        ColumnType::Date => number::<Date32Type>(array, row).map(|v| KeyValue::Int(v.into())),
        ColumnType::Datetime | ColumnType::Datetime64 => {
            number::<TimestampMillisecondType>(array, row).map(KeyValue::Int)
        }
        ColumnType::Timestamp | ColumnType::Timestamp64 => {
            number::<TimestampMicrosecondType>(array, row).map(KeyValue::Int)
        }
        ColumnType::Uint8 => number::<UInt8Type>(array, row).map(|v| KeyValue::Uint(v.into())),
        ColumnType::Uint16 => number::<UInt16Type>(array, row).map(|v| KeyValue::Uint(v.into())),
        ColumnType::Uint32 => number::<UInt32Type>(array, row).map(|v| KeyValue::Uint(v.into())),
        ColumnType::Uint64 => number::<UInt64Type>(array, row).map(KeyValue::Uint),
        ColumnType::Utf8 => {
            let plain = array.as_string_opt::<i32>().map(|array| array.value(row));
            let text = plain.or_else(|| array.as_string_view_opt().map(|array| array.value(row)));
            text.map(|text| KeyValue::Text(text.to_owned()))
        }
        ColumnType::String => {
            let plain = array.as_binary_opt::<i32>().map(|array| array.value(row));
            let bytes = plain.or_else(|| array.as_binary_view_opt().map(|array| array.value(row)));
            bytes.map(|bytes| KeyValue::Bytes(bytes.to_vec()))
        }
        _ => None,
    }
}

/// Returns the smallest and largest value of a key column without NULLs.
fn column_range(array: &ArrayRef, column_type: ColumnType) -> Option<(KeyValue, KeyValue)> {
    fn number<T: ArrowPrimitiveType>(
        array: &ArrayRef,
        value: impl Fn(T::Native) -> KeyValue,
    ) -> Option<(KeyValue, KeyValue)> {
        let array = array.as_primitive_opt::<T>()?;
        Some((value(min(array)?), value(max(array)?)))
    }
    match column_type {
        ColumnType::Int32 => number::<Int32Type>(array, |v| KeyValue::Int(v.into())),
        ColumnType::Int64 => number::<Int64Type>(array, KeyValue::Int),
        ColumnType::Date => number::<Date32Type>(array, |v| KeyValue::Int(v.into())),
        ColumnType::Datetime | ColumnType::Datetime64 => {
            number::<TimestampMillisecondType>(array, KeyValue::Int)
        }
        ColumnType::Timestamp | ColumnType::Timestamp64 => {
            number::<TimestampMicrosecondType>(array, KeyValue::Int)
        }
        ColumnType::Uint8 => number::<UInt8Type>(array, |v| KeyValue::Uint(v.into())),
        ColumnType::Uint16 => number::<UInt16Type>(array, |v| KeyValue::Uint(v.into())),
        ColumnType::Uint32 => number::<UInt32Type>(array, |v| KeyValue::Uint(v.into())),
        ColumnType::Uint64 => number::<UInt64Type>(array, KeyValue::Uint),
        ColumnType::Utf8 => {
            let (min, max) = match array.as_string_view_opt() {
                Some(views) => (min_string_view(views)?, max_string_view(views)?),
                None => {
                    let array = array.as_string_opt::<i32>()?;
                    (min_string(array)?, max_string(array)?)
                }
            };
            Some((KeyValue::Text(min.to_owned()), KeyValue::Text(max.to_owned())))
        }
        ColumnType::String => {
            let (min, max) = match array.as_binary_view_opt() {
                Some(views) => (min_binary_view(views)?, max_binary_view(views)?),
                None => {
                    let array = array.as_binary_opt::<i32>()?;
                    (min_binary(array)?, max_binary(array)?)
                }
            };
            Some((KeyValue::Bytes(min.to_vec()), KeyValue::Bytes(max.to_vec())))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BinaryArray, BinaryViewArray, Date32Array, Int64Array, StringArray, StringViewArray, UInt8Array,
        UInt64Array,
    };

    use super::*;
    use evenkeel_model::table::{Column, PlacementFunction, TableDefinition};
    use evenkeel_model::units::PartitionCount;

    #[test]
    fn a_value_and_a_range_are_those_of_the_column_type() {
        let text = |text: &str| KeyValue::Text(text.into());
        let bytes = |bytes: &[u8]| KeyValue::Bytes(bytes.into());
        let arrays: [(ArrayRef, ColumnType, [KeyValue; 3]); 7] = [
            (Arc::new(Int64Array::from(vec![3, -7, 5])), ColumnType::Int64, [3, -7, 5].map(KeyValue::Int)),
            (Arc::new(Date32Array::from(vec![3, -7, 5])), ColumnType::Date, [3, -7, 5].map(KeyValue::Int)),
            (Arc::new(UInt8Array::from(vec![3, 0, 255])), ColumnType::Uint8, [3, 0, 255].map(KeyValue::Uint)),
            (
                Arc::new(UInt64Array::from(vec![3, 0, u64::MAX])),
                ColumnType::Uint64,
                [3, 0, u64::MAX].map(KeyValue::Uint),
            ),
            (Arc::new(StringArray::from(vec!["b", "", "é"])), ColumnType::Utf8, ["b", "", "é"].map(text)),
            (Arc::new(StringViewArray::from(vec!["b", "", "é"])), ColumnType::Utf8, ["b", "", "é"].map(text)),
            (
                Arc::new(BinaryArray::from_vec(vec![b"b", b"", &[255]])),
                ColumnType::String,
                [&b"b"[..], b"", &[255]].map(bytes),
            ),
        ];
        for (array, column_type, [first, least, most]) in arrays {
            assert_eq!(key_value(&array, column_type, 0), Some(first), "{column_type}");
            assert_eq!(column_range(&array, column_type), Some((least, most)), "{column_type}");
        }
        let views: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([b"b", b"a"]));
        assert_eq!(column_range(&views, ColumnType::String), Some((bytes(b"a"), bytes(b"b"))));
    }

    #[test]
    fn there_is_no_value_of_null_of_another_type_or_beyond_the_end() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(1)]));
        assert_eq!(key_value(&array, ColumnType::Int64, 0), None);
        assert_eq!(key_value(&array, ColumnType::Int64, 2), None);
        for other in [ColumnType::Uint64, ColumnType::Utf8, ColumnType::Double] {
            assert_eq!(key_value(&array, other, 1), None);
            assert_eq!(column_range(&array, other), None);
        }
    }

    #[test]
    fn the_range_of_the_key_is_from_the_first_row_to_the_last_and_columns_have_their_own() {
        let definition = TableDefinition {
            name: "t".into(),
            columns: vec![Column::required("u", ColumnType::Utf8), Column::required("k", ColumnType::Int64)],
            primary_key: vec!["k".into(), "u".into()],
            partition_key: vec![],
            partitions: PartitionCount::ONE,
            placement: PlacementFunction::Ydb,
            ttl: None,
        };
        let spec = TableSpec::new(definition).unwrap();
        let batch = |rows: &[(i64, &str)]| {
            let users: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1)));
            let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
            RecordBatch::try_new(Arc::clone(spec.schema()), vec![users, keys]).unwrap()
        };
        let mut ranges = KeyRanges::new(&spec, PartitionId(0));
        ranges.add(&batch(&[(1, "m"), (2, "z")])).unwrap();
        ranges.add(&batch(&[(2, "zz"), (4, "a"), (9, "k")])).unwrap();
        let (key, columns) = ranges.finish().unwrap();
        let key_of = |key: i64, user: &str| vec![KeyValue::Int(key), KeyValue::Text(user.into())];
        assert_eq!(key, KeyRange { min: key_of(1, "m"), max: key_of(9, "k") });
        let text = |text: &str| vec![KeyValue::Text(text.into())];
        assert_eq!(columns[1], KeyRange { min: text("a"), max: text("zz") });
        assert_eq!(columns[0], KeyRange { min: vec![KeyValue::Int(1)], max: vec![KeyValue::Int(9)] });
        let empty = KeyRanges::new(&spec, PartitionId(3)).finish().unwrap_err();
        assert!(matches!(empty, PortionError::Empty { partition: PartitionId(3) }), "{empty}");
        let short = batch(&[(1, "m")]).project(&[0]).unwrap();
        assert!(matches!(KeyRanges::new(&spec, PartitionId(0)).add(&short), Err(PortionError::Key { .. })));
    }
}
