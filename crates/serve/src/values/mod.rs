//! Values of Arrow arrays in the two formats of the PostgreSQL protocol.
//!
//! In text, values are written as PostgreSQL writes them with `DateStyle` ISO and `TimeZone` UTC.
//! The binary format of each type is the output of its `send` function: numbers in network byte
//! order, times in microseconds and dates in days since 2000-01-01.

mod binary;
mod lists;
mod numbers;
mod text;
mod times;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use arrow::error::ArrowError;
use bytes::{BufMut, BytesMut};
use thiserror::Error;

use crate::types::{PgType, pg_type};
use crate::values::binary::binary;
use crate::values::text::text;
pub(crate) use crate::values::times::{EPOCH_DAYS, EPOCH_MICROS};

/// A value that cannot be sent to clients.
#[derive(Debug, Error)]
pub(crate) enum ValueError {
    #[error("{kind} out of range: {value} cannot be sent")]
    OutOfRange { kind: &'static str, value: String },
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// The format of a column of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    #[default]
    Text,
    Binary,
}

impl Format {
    /// Code of the format in messages.
    pub(crate) fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }
}

/// Returns the format of the column or the parameter at a position, or its code. If none is given,
/// all are text; a single one applies to all.
pub(crate) fn format_at<F: Copy + Default>(formats: &[F], at: usize) -> F {
    match formats {
        [] => F::default(),
        [all] => *all,
        several => several.get(at).copied().unwrap_or_default(),
    }
}

/// Writes one value that is not NULL.
type Write = Box<dyn Fn(usize, &mut BytesMut) -> Result<(), ValueError> + Send>;

/// Writes the values of a column.
pub(crate) struct Column {
    /// Logical: an array of type Null is all NULL, without a mask.
    nulls: Option<NullBuffer>,
    write: Write,
}

impl Column {
    /// Whether a value is NULL.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends a value that is not NULL.
    pub(crate) fn write(&self, row: usize, out: &mut BytesMut) -> Result<(), ValueError> {
        (self.write)(row, out)
    }

    /// Appends a value with its length in front, which is -1 for NULL.
    pub(crate) fn write_with_length(&self, row: usize, out: &mut BytesMut) -> Result<(), ValueError> {
        if self.is_null(row) {
            out.put_i32(-1);
            return Ok(());
        }
        let start = out.len();
        out.put_i32(0);
        self.write(row, out)?;
        let length = i32::try_from(out.len() - start - 4).map_err(|_| ValueError::OutOfRange {
            kind: "length",
            value: format!("a value of {} bytes", out.len() - start),
        })?;
        if let Some(place) = out.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }
}

/// Returns the writers of the columns of a batch. `formats` has one for each column, or one for
/// all.
pub(crate) fn columns(batch: &RecordBatch, formats: &[Format]) -> Result<Vec<Column>, ValueError> {
    let fields = batch.schema_ref().fields().iter().zip(batch.columns());
    let column = |(at, (field, array)): (usize, (&arrow::datatypes::FieldRef, &ArrayRef))| {
        column(array, &pg_type(field), format_at(formats, at))
    };
    fields.enumerate().map(column).collect()
}

/// Returns the writer of an array as values of a type.
fn column(array: &ArrayRef, pg: &PgType, format: Format) -> Result<Column, ValueError> {
    // Types that differ only in width or layout have one representation here.
    let normal = match array.data_type() {
        DataType::Dictionary(_, values) => {
            let flat = cast(array, values)?;
            return column(&flat, pg, format);
        }
        DataType::Float16 => Some(DataType::Float32),
        DataType::Utf8 | DataType::LargeUtf8 => Some(DataType::Utf8View),
        DataType::Binary | DataType::LargeBinary => Some(DataType::BinaryView),
        DataType::Date64 => Some(DataType::Date32),
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => Some(DataType::Decimal128(*p, *s)),
        DataType::Time32(_) | DataType::Time64(TimeUnit::Nanosecond) => {
            Some(DataType::Time64(TimeUnit::Microsecond))
        }
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
            Some(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        DataType::Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime) => {
            Some(DataType::Interval(IntervalUnit::MonthDayNano))
        }
        DataType::FixedSizeList(field, _) => Some(DataType::List(field.clone())),
        _ => None,
    };
    let array = match normal {
        // A value that does not fit is an error, not NULL.
        Some(normal) => &arrow::compute::cast_with_options(
            array,
            &normal,
            &arrow::compute::CastOptions { safe: false, ..Default::default() },
        )?,
        None => array,
    };
    let write = match format {
        Format::Text => text(array, &pg.base)?,
        Format::Binary => binary(array, &pg.base)?,
    };
    Ok(Column { nulls: array.logical_nulls(), write })
}

/// Writes a primitive value by a function of it.
fn each_primitive<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    write: impl Fn(T::Native, &mut BytesMut) -> Result<(), ValueError> + Send + 'static,
) -> Write {
    let values = array.as_primitive::<T>().values().clone();
    Box::new(move |row, out| match values.get(row) {
        Some(value) => write(*value, out),
        None => Ok(()),
    })
}

/// Like [`each_primitive`], for values that can always be written.
fn sure<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    write: impl Fn(T::Native, &mut BytesMut) + Send + 'static,
) -> Write {
    each_primitive::<T>(array, move |value, out| {
        write(value, out);
        Ok(())
    })
}

fn out_of_range(kind: &'static str, value: impl std::fmt::Display) -> ValueError {
    ValueError::OutOfRange { kind, value: value.to_string() }
}

#[cfg(test)]
mod tests;
