//! Contents of columns: points in time, and sizes in bytes.

use std::cell::Cell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampMicrosecondType};

use crate::table::{Column, ColumnType, Transform};
use crate::units::Micros;

/// Returns the instants of a column of dates or points in time, in microseconds; `None` for other
/// columns.
#[must_use]
pub fn instants(array: &ArrayRef) -> Option<ArrayRef> {
    let zone = match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, None) => return Some(ArrayRef::clone(array)),
        DataType::Timestamp(_, zone) => zone.clone(),
        DataType::Date32 => None,
        _ => return None,
    };
    let instants = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone)).ok()?;
    cast(&instants, &DataType::Timestamp(TimeUnit::Microsecond, None)).ok()
}

/// Applies a key's transform to a column; `None` if the transform cuts time and the column holds
/// neither dates nor points in time.
#[must_use]
pub fn derived_column(array: &ArrayRef, transform: Transform) -> Option<ArrayRef> {
    if transform == Transform::Identity {
        return Some(Arc::clone(array));
    }
    let times = instants(array)?;
    let times = times.as_primitive::<TimestampMicrosecondType>();
    Some(match transform {
        // A day number of the time types fits into 32 bits.
        Transform::Date => {
            Arc::new(times.unary::<_, Date32Type>(run_wise(Micros::DAY, |slice| slice as i32)))
        }
        Transform::Truncate(length) => {
            Arc::new(times.unary::<_, TimestampMicrosecondType>(run_wise(length, |slice| {
                slice.saturating_mul(length.get())
            })))
        }
        Transform::Identity => return None,
    })
}

/// Applies `value` to the time slice of an instant. Consecutive rows mostly share a slice, so a
/// division is rarely needed.
fn run_wise<T: Copy>(length: Micros, value: impl Fn(i64) -> T) -> impl Fn(i64) -> T {
    let of_slice = move |slice: i64| {
        let begin = slice.saturating_mul(length.get());
        (begin, begin.saturating_add(length.get()), value(slice))
    };
    let run = Cell::new(of_slice(0));
    move |at| {
        let (begin, end, _) = run.get();
        if !(begin..end).contains(&at) {
            run.set(of_slice(length.slice_of(at)));
        }
        run.get().2
    }
}

/// Size in bytes of a value of the type in YDB; `None` for text and bytes, whose values vary in
/// length.
#[must_use]
pub fn width(column_type: ColumnType) -> Option<u32> {
    Some(match column_type {
        ColumnType::Bool | ColumnType::Int8 | ColumnType::Uint8 => 1,
        ColumnType::Int16 | ColumnType::Uint16 | ColumnType::Date => 2,
        ColumnType::Int32
        | ColumnType::Uint32
        | ColumnType::Float
        | ColumnType::Datetime
        | ColumnType::Date32 => 4,
        ColumnType::Int64
        | ColumnType::Uint64
        | ColumnType::Double
        | ColumnType::Timestamp
        | ColumnType::Interval
        | ColumnType::Datetime64
        | ColumnType::Timestamp64
        | ColumnType::Interval64 => 8,
        ColumnType::Decimal { .. } | ColumnType::Uuid => 16,
        ColumnType::Utf8
        | ColumnType::String
        | ColumnType::Json
        | ColumnType::JsonDocument
        | ColumnType::Yson
        | ColumnType::ObjectId => return None,
    })
}

/// Returns the length of every text or byte string; `None` for other types.
#[must_use]
pub fn lengths(array: &ArrayRef) -> Option<Vec<u32>> {
    let of_offsets = |offsets: &[i32]| {
        offsets.iter().zip(offsets.iter().skip(1)).map(|(begin, end)| (end - begin).cast_unsigned()).collect()
    };
    // The length is the first of the four numbers in a view.
    let of_views = |views: &[u128], array: &ArrayRef| match array.nulls() {
        None => views.iter().map(|view| *view as u32).collect(),
        Some(nulls) => {
            views.iter().zip(nulls).map(|(view, valid)| if valid { *view as u32 } else { 0 }).collect()
        }
    };
    Some(match array.data_type() {
        DataType::Utf8 => of_offsets(array.as_string::<i32>().value_offsets()),
        DataType::Binary => of_offsets(array.as_binary::<i32>().value_offsets()),
        DataType::Utf8View => of_views(array.as_string_view().views(), array),
        DataType::BinaryView => of_views(array.as_binary_view().views(), array),
        _ => return None,
    })
}

/// Returns the size in bytes of each row's values: fixed types by their width in Arrow (Boolean as
/// 1), text by its length.
#[must_use]
pub fn row_bytes(batch: &RecordBatch) -> Vec<u32> {
    let fixed = |array: &ArrayRef| match array.data_type() {
        DataType::Boolean => 1,
        DataType::FixedSizeBinary(bytes) => bytes.unsigned_abs(),
        other => other.primitive_width().unwrap_or(0) as u32,
    };
    let mut bytes = vec![batch.columns().iter().map(fixed).sum::<u32>(); batch.num_rows()];
    for lengths in batch.columns().iter().filter_map(lengths) {
        for (bytes, length) in bytes.iter_mut().zip(lengths) {
            *bytes = bytes.saturating_add(length);
        }
    }
    bytes
}

/// Returns for each position whether the column must be read: columns in `named`, and columns whose
/// values vary in length, because the size of a row depends on them.
#[must_use]
pub fn columns_to_read(columns: &[Column], named: &[usize]) -> Vec<bool> {
    let has_any_length = |column: &Column| width(column.column_type).is_none();
    let positions = columns.iter().enumerate();
    positions.map(|(position, column)| named.contains(&position) || has_any_length(column)).collect()
}
