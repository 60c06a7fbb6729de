//! Typed columns from text: the common part of CSV, NDJSON and key literals.
//!
//! Every accepted text is exactly one value of its type; other text is rejected. Numbers and times
//! may be surrounded by white space; text is taken as it is.
//!
//! - Integers, intervals: digits with or without a sign, leading zeros, a fraction of zeros (`5.0`,
//!   as pandas exports integers with gaps).
//! - Decimal: digits with or without a sign and a point; digits beyond the scale must be zeros; no
//!   exponent.
//! - Double, Float: the nearest number to decimal text with or without an exponent; `inf`,
//!   `infinity`, `nan`; neither overflow nor underflow.
//! - Bool: `true`, `t`, `yes`, `1`, `false`, `f`, `no`, `0`, in any case.
//! - Dates and times: see [`TimestampFormat`]; digits beyond microseconds must be zeros; no leap
//!   second, no 24:00.
//! - Uuid: 32 hexadecimal digits, plain, with hyphens, in braces or as a URN.
//! - ObjectId: 24 hexadecimal digits, which become lower case, plain or as `ObjectId(...)`, which
//!   mongoexport writes into CSV.

mod cell_error;
mod number;
#[cfg(test)]
mod oracle;
mod time;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BooleanArray, Decimal128Array,
    FixedSizeBinaryBuilder, PrimitiveArray, StringArray,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    Date32Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

pub use crate::text_value::time::{TimestampFormat, TimestampFormatError, UnixUnit};

use crate::note::Fault;
use crate::table::ColumnType;
use crate::text_value::cell_error::CellError;

/// Choices for text that can be read in several ways.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TextFormat {
    /// Spelling of points in time.
    pub timestamps: TimestampFormat,
    /// Whether numbers are written as `1.234,56` instead of `1234.56`.
    pub decimal_comma: bool,
}

/// A cell that cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellFault {
    /// Row within the column, from 0.
    pub row: usize,
    /// The value and its problem.
    pub fault: Fault,
}

/// A typed column, and its rejected cells, which are NULL in `values`.
#[derive(Debug, Clone)]
pub struct ParsedColumn {
    /// The values, in the Arrow type of the column type.
    pub values: ArrayRef,
    /// Rejected cells, in row order.
    pub faults: Vec<CellFault>,
}

/// Parses a column of text, UTF-8 bytes or NULL, as `column_type`. The result has the length of the
/// input.
#[must_use]
pub fn parse_text_column(text: &BinaryArray, column_type: ColumnType, format: &TextFormat) -> ParsedColumn {
    let cells = Cells { text, column_type, decimal_comma: format.decimal_comma };
    let is_dump = format.timestamps == TimestampFormat::YdbDump;
    match column_type {
        ColumnType::Bool => cells.boolean(),
        ColumnType::Int8 => cells.number::<Int8Type>(number::integer),
        ColumnType::Int16 => cells.number::<Int16Type>(number::integer),
        ColumnType::Int32 => cells.number::<Int32Type>(number::integer),
        ColumnType::Int64 => cells.number::<Int64Type>(number::integer),
        ColumnType::Uint8 => cells.number::<UInt8Type>(number::integer),
        ColumnType::Uint16 => cells.number::<UInt16Type>(number::integer),
        ColumnType::Uint32 => cells.number::<UInt32Type>(number::integer),
        ColumnType::Uint64 => cells.number::<UInt64Type>(number::integer),
        ColumnType::Float => cells.number::<Float32Type>(number::float32),
        ColumnType::Double => cells.number::<Float64Type>(number::float64),
        ColumnType::Decimal { precision, scale } => cells.decimal(precision, scale),
        ColumnType::Utf8 => cells.text(),
        ColumnType::Json | ColumnType::JsonDocument => cells.json(),
        ColumnType::String | ColumnType::Yson => {
            ParsedColumn { values: Arc::new(text.clone()), faults: Vec::new() }
        }
        ColumnType::Uuid => cells.uuid(),
        ColumnType::ObjectId => cells.object_id(),
        ColumnType::Date32 if is_dump => cells.primitive::<Date32Type>(number::integer),
        ColumnType::Datetime64 if is_dump => cells.primitive::<TimestampMillisecondType>(|text| {
            let seconds = number::integer::<i64>(text)?;
            seconds.checked_mul(1000).ok_or_else(|| "is outside Datetime64".into())
        }),
        ColumnType::Timestamp64 if is_dump => cells.primitive::<TimestampMicrosecondType>(number::integer),
        ColumnType::Date | ColumnType::Date32 => {
            cells.primitive::<Date32Type>(|text| time::days(text, &format.timestamps))
        }
        ColumnType::Datetime | ColumnType::Datetime64 => {
            cells.primitive::<TimestampMillisecondType>(|text| {
                time::whole_second_millis(text, &format.timestamps)
            })
        }
        ColumnType::Timestamp | ColumnType::Timestamp64 => {
            cells.primitive::<TimestampMicrosecondType>(|text| time::micros(text, &format.timestamps))
        }
        ColumnType::Interval | ColumnType::Interval64 => {
            cells.primitive::<DurationMicrosecondType>(number::integer)
        }
    }
}

/// Problem of text in another encoding.
const NOT_UTF8: &str = "is not valid UTF-8; convert the file, for example with: iconv -f latin1 -t utf-8";

struct Cells<'a> {
    text: &'a BinaryArray,
    column_type: ColumnType,
    decimal_comma: bool,
}

impl Cells<'_> {
    /// Parses each non-null cell; a cell that does not parse becomes a fault and `T::default()`.
    fn parse<T: Default>(
        &self,
        parse: impl Fn(&str) -> Result<T, CellError>,
    ) -> (Vec<T>, Option<NullBuffer>, Vec<CellFault>) {
        let mut faults = Vec::new();
        let mut values = Vec::with_capacity(self.text.len());
        for (row, cell) in self.text.iter().enumerate() {
            let Some(bytes) = cell else {
                values.push(T::default());
                continue;
            };
            let parsed = match std::str::from_utf8(bytes) {
                Ok(text) => parse(text.trim()),
                Err(_) => Err(NOT_UTF8.into()),
            };
            values.push(parsed.unwrap_or_else(|error| {
                faults.push(CellFault { row, fault: Fault::in_value(bytes, error) });
                T::default()
            }));
        }
        let nulls = with_faults(self.text, &faults);
        (values, nulls, faults)
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        parse: impl Fn(&str) -> Result<T::Native, CellError>,
    ) -> ParsedColumn {
        let expected =
            || CellError::from(format!("is not of type {}{}", self.column_type, hint(self.column_type)));
        let (values, nulls, faults) =
            self.parse(|text| parse(text).map_err(|error| if error.is_empty() { expected() } else { error }));
        let values = PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls);
        ParsedColumn { values: Arc::new(values), faults }
    }

    fn number<T: ArrowPrimitiveType>(
        &self,
        parse: impl Fn(&str) -> Result<T::Native, CellError>,
    ) -> ParsedColumn {
        self.primitive::<T>(|text| parse(&number::with_point(text, self.decimal_comma)))
    }

    fn boolean(&self) -> ParsedColumn {
        let (values, nulls, faults) = self.parse(|text| match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "1" => Ok(true),
            "false" | "f" | "no" | "0" => Ok(false),
            _ => Err("is not a Bool (true, false, yes, no, 1 or 0)".into()),
        });
        ParsedColumn { values: Arc::new(BooleanArray::new(values.into(), nulls)), faults }
    }

    fn decimal(&self, precision: u8, scale: i8) -> ParsedColumn {
        let (values, nulls, faults) = self
            .parse(|text| number::decimal(&number::with_point(text, self.decimal_comma), precision, scale));
        // Precision and scale were checked when the type was parsed; the fallback keeps the
        // defaults.
        let array = Decimal128Array::new(ScalarBuffer::from(values), nulls);
        let array = array.clone().with_precision_and_scale(precision, scale).unwrap_or(array);
        ParsedColumn { values: Arc::new(array), faults }
    }

    fn text(&self) -> ParsedColumn {
        match StringArray::try_from_binary(self.text.clone()) {
            Ok(values) => ParsedColumn { values: Arc::new(values), faults: Vec::new() },
            Err(_) => self.text_with_faults(),
        }
    }

    fn json(&self) -> ParsedColumn {
        let mut column = self.text();
        check_json(&mut column);
        column
    }

    fn text_with_faults(&self) -> ParsedColumn {
        let mut faults = Vec::new();
        let values: StringArray = self
            .text
            .iter()
            .enumerate()
            .map(|(row, cell)| {
                let bytes = cell?;
                std::str::from_utf8(bytes)
                    .inspect_err(|_| {
                        faults.push(CellFault { row, fault: Fault::in_value(bytes, NOT_UTF8) });
                    })
                    .ok()
            })
            .collect();
        ParsedColumn { values: Arc::new(values), faults }
    }

    fn object_id(&self) -> ParsedColumn {
        let (values, nulls, faults) = self.parse(|text| {
            let digits = text.strip_prefix("ObjectId(").and_then(|rest| rest.strip_suffix(')'));
            let digits = digits.unwrap_or(text);
            let is_id = digits.len() == 24 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_id {
                Ok(digits.to_ascii_lowercase())
            } else {
                Err(CellError::from("is not an ObjectId of 24 hexadecimal digits"))
            }
        });
        let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let values = values.into_iter().enumerate().map(|(row, value)| (!is_null(row)).then_some(value));
        ParsedColumn { values: Arc::new(StringArray::from_iter(values)), faults }
    }

    fn uuid(&self) -> ParsedColumn {
        let (values, nulls, faults) = self.parse(|text| {
            uuid::Uuid::try_parse(text)
                .map_err(|_| CellError::from("is not a Uuid such as f79c3e09-677c-4bbd-a479-3f349cb785e7"))
        });
        let mut builder = FixedSizeBinaryBuilder::with_capacity(values.len(), 16);
        for (row, value) in values.iter().enumerate() {
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                // A Uuid has 16 bytes, the width of the builder.
                let _ = builder.append_value(value.as_bytes());
            } else {
                builder.append_null();
            }
        }
        ParsedColumn { values: Arc::new(builder.finish()), faults }
    }
}

/// Adds a fault for each text of the column that is not one JSON value.
pub fn check_json(column: &mut ParsedColumn) {
    let Some(text) = column.values.as_string_opt::<i32>() else { return };
    let invalid = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_err();
    let faults = text.iter().enumerate().filter_map(|(row, text)| {
        let text = text.filter(|text| invalid(text))?;
        Some(CellFault { row, fault: Fault::in_value(text.as_bytes(), "is not JSON") })
    });
    let faults: Vec<CellFault> = faults.collect();
    column.faults.extend(faults);
}

/// Returns the nulls of the text, plus a null for each fault.
fn with_faults(text: &BinaryArray, faults: &[CellFault]) -> Option<NullBuffer> {
    if faults.is_empty() {
        return text.nulls().cloned();
    }
    let mut faulty = faults.iter().map(|fault| fault.row).peekable();
    let valid: Vec<bool> =
        (0..text.len()).map(|row| faulty.next_if_eq(&row).is_none() && text.is_valid(row)).collect();
    Some(NullBuffer::from(valid))
}

/// Describes the values of the type, for messages.
fn hint(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::Int8 => " (-128 to 127)",
        ColumnType::Int16 => " (-32768 to 32767)",
        ColumnType::Int32 => " (-2147483648 to 2147483647)",
        ColumnType::Int64 => " (-2^63 to 2^63 - 1)",
        ColumnType::Uint8 => " (0 to 255)",
        ColumnType::Uint16 => " (0 to 65535)",
        ColumnType::Uint32 => " (0 to 4294967295)",
        ColumnType::Uint64 => " (0 to 2^64 - 1)",
        ColumnType::Interval | ColumnType::Interval64 => " (a whole number of microseconds)",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
