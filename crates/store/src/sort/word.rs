//! One column of a key, as 64-bit words that sort like its values.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, DynComparator, make_comparator};
use arrow::compute::SortOptions;
use arrow::datatypes::{
    DataType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;

use evenkeel_stats::numbering::prefix;

/// A column of a key. A smaller word means a smaller value; equal words mean equal values only if
/// the column is exact.
pub(super) struct KeyColumn {
    word: Box<dyn Fn(usize) -> u64>,
    /// Compares values with equal words; `None` if these are equal.
    compare: Option<DynComparator>,
}

impl KeyColumn {
    /// Reads the words of a column: integers and times are their own words, text and bytes use
    /// their prefix, and other types have no words. NULL sorts first.
    pub(super) fn new(array: &ArrayRef) -> Result<Self, ArrowError> {
        let exact = match array.data_type() {
            DataType::Int8 => signed::<Int8Type>(array),
            DataType::Int16 => signed::<Int16Type>(array),
            DataType::Int32 => signed::<Int32Type>(array),
            DataType::Int64 => signed::<Int64Type>(array),
            DataType::Date32 => signed::<Date32Type>(array),
            DataType::Timestamp(TimeUnit::Second, _) => signed::<TimestampSecondType>(array),
            DataType::Timestamp(TimeUnit::Millisecond, _) => signed::<TimestampMillisecondType>(array),
            DataType::Timestamp(TimeUnit::Microsecond, _) => signed::<TimestampMicrosecondType>(array),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => signed::<TimestampNanosecondType>(array),
            DataType::UInt8 => unsigned::<UInt8Type>(array),
            DataType::UInt16 => unsigned::<UInt16Type>(array),
            DataType::UInt32 => unsigned::<UInt32Type>(array),
            DataType::UInt64 => unsigned::<UInt64Type>(array),
            _ => None,
        };
        if let Some(word) = exact {
            return Ok(Self { word, compare: None });
        }
        let options = SortOptions { descending: false, nulls_first: true };
        let compare = make_comparator(array, array, options)?;
        let word: Box<dyn Fn(usize) -> u64> = match array.data_type() {
            DataType::Utf8 => {
                let text = array.as_string::<i32>().clone();
                Box::new(move |row| if text.is_null(row) { 0 } else { prefix(text.value(row).as_bytes()) })
            }
            DataType::Utf8View => {
                let text = array.as_string_view().clone();
                Box::new(move |row| if text.is_null(row) { 0 } else { prefix(text.value(row).as_bytes()) })
            }
            DataType::Binary => {
                let bytes = array.as_binary::<i32>().clone();
                Box::new(move |row| if bytes.is_null(row) { 0 } else { prefix(bytes.value(row)) })
            }
            DataType::BinaryView => {
                let bytes = array.as_binary_view().clone();
                Box::new(move |row| if bytes.is_null(row) { 0 } else { prefix(bytes.value(row)) })
            }
            _ => Box::new(|_| 0),
        };
        Ok(Self { word, compare: Some(compare) })
    }

    pub(super) fn word(&self, row: u32) -> u64 {
        (self.word)(row as usize)
    }

    pub(super) fn is_exact(&self) -> bool {
        self.compare.is_none()
    }

    /// Compares whole values.
    pub(super) fn compare(&self, a: u32, b: u32) -> Ordering {
        match &self.compare {
            Some(compare) => compare(a as usize, b as usize),
            None => self.word(a).cmp(&self.word(b)),
        }
    }
}

type Word = Box<dyn Fn(usize) -> u64>;

/// Returns the words of integers that may be negative; `None` if the column has NULLs or another
/// type.
fn signed<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &ArrayRef) -> Option<Word> {
    let values = array.as_primitive_opt::<T>().filter(|array| array.null_count() == 0)?.values().clone();
    Some(Box::new(move |row| {
        let value: i64 = values.get(row).copied().unwrap_or_default().into();
        value.cast_unsigned() ^ (1 << 63)
    }))
}

fn unsigned<T: ArrowPrimitiveType<Native: Into<u64>>>(array: &ArrayRef) -> Option<Word> {
    let values = array.as_primitive_opt::<T>().filter(|array| array.null_count() == 0)?.values().clone();
    Some(Box::new(move |row| values.get(row).copied().unwrap_or_default().into()))
}
