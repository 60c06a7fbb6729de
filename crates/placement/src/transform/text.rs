//! Values in the text form of GoogleSQL's `CAST(value AS STRING)`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use chrono::DateTime;
use uuid::Uuid;

/// Texts of a column.
pub(super) enum Texts<'a> {
    Text(ArrayRef),
    Instants(ArrayRef),
    Uuid(ArrayRef),
    Other(ArrayFormatter<'a>, &'a ArrayRef),
}

const FORMAT: FormatOptions<'static> = FormatOptions::new();

impl<'a> Texts<'a> {
    pub(super) fn new(column: &'a ArrayRef) -> Result<Self, ArrowError> {
        Ok(match column.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Self::Text(cast(column, &DataType::Utf8View)?)
            }
            // Bytes are hashed unchanged.
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                let bytes = cast(column, &DataType::Binary)?;
                Self::Text(cast(&bytes, &DataType::BinaryView)?)
            }
            DataType::Timestamp(_, _) => {
                Self::Instants(cast(column, &DataType::Timestamp(TimeUnit::Microsecond, None))?)
            }
            DataType::FixedSizeBinary(16) => Self::Uuid(Arc::clone(column)),
            DataType::Decimal128(_, _) | DataType::Boolean | DataType::Date32 | DataType::Null => {
                Self::Other(ArrayFormatter::try_new(column.as_ref(), &FORMAT)?, column)
            }
            whole if whole.is_integer() => {
                Self::Other(ArrayFormatter::try_new(column.as_ref(), &FORMAT)?, column)
            }
            other => {
                let message = format!(
                    "values of type {other} have no unique text to compute a fingerprint from; cast them to text first"
                );
                return Err(ArrowError::InvalidArgumentError(message));
            }
        })
    }

    /// Like `Texts::new`, for one of several columns: bytes become hexadecimal text.
    pub(super) fn among_others(column: &'a ArrayRef) -> Result<Self, ArrowError> {
        Ok(match Self::new(column)? {
            Self::Text(array) => match array.as_binary_view_opt() {
                Some(bytes) => {
                    let hex = |bytes: &[u8]| {
                        bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
                    };
                    Self::Text(Arc::new(
                        bytes.iter().map(|value| value.map(hex)).collect::<StringViewArray>(),
                    ))
                }
                None => Self::Text(array),
            },
            other => other,
        })
    }

    /// Appends the text of a row; returns false if it is NULL.
    pub(super) fn append(&self, row: usize, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Text(array) if array.is_valid(row) => match array.data_type() {
                DataType::BinaryView => out.extend_from_slice(array.as_binary_view().value(row)),
                _ => out.extend_from_slice(array.as_string_view().value(row).as_bytes()),
            },
            Self::Instants(array) if array.is_valid(row) => {
                let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
                out.extend_from_slice(instant(micros).as_bytes());
            }
            Self::Uuid(array) if array.is_valid(row) => {
                let Ok(uuid) = Uuid::from_slice(array.as_fixed_size_binary().value(row)) else {
                    return false;
                };
                out.extend_from_slice(uuid.hyphenated().to_string().as_bytes());
            }
            Self::Other(_, array) if array.data_type() == &DataType::Null => return false,
            Self::Other(formatter, array) if array.is_valid(row) => {
                let text = formatter.value(row).to_string();
                // NUMERIC has no trailing zeros.
                let text = match array.data_type() {
                    DataType::Decimal128(_, scale) if *scale > 0 => {
                        text.trim_end_matches('0').trim_end_matches('.')
                    }
                    _ => &text,
                };
                out.extend_from_slice(text.as_bytes());
            }
            _ => return false,
        }
        true
    }
}

/// Formats a point in time, in microseconds since 1970, in UTC: the zone as hours, and the fraction
/// of a second with as few groups of three digits as needed.
#[must_use]
pub fn instant(micros: i64) -> String {
    let Some(at) = DateTime::from_timestamp_micros(micros) else { return micros.to_string() };
    let form = match micros.rem_euclid(1_000_000) {
        0 => "%Y-%m-%d %H:%M:%S+00",
        part if part % 1000 == 0 => "%Y-%m-%d %H:%M:%S%.3f+00",
        _ => "%Y-%m-%d %H:%M:%S%.6f+00",
    };
    at.format(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_have_no_more_digits_than_they_need() {
        let at = 1_453_734_610_000_000;
        assert_eq!(instant(at), "2016-01-25 15:10:10+00");
        assert_eq!(instant(at + 500_000), "2016-01-25 15:10:10.500+00");
        assert_eq!(instant(at + 555_555), "2016-01-25 15:10:10.555555+00");
        assert_eq!(instant(-1), "1969-12-31 23:59:59.999999+00");
    }
}
