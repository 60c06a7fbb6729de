//! Tests of text parsing against independent readers: whole numbers as i128, decimals as fractions,
//! days by counting, and grammars that are written differently. The texts follow the grammar,
//! exceed its limits, or have characters changed.

mod calendar;
mod numbers;
mod spellings;
mod times;

use arrow::array::{AsArray, BinaryArray};
use arrow::datatypes::ArrowPrimitiveType;

use crate::table::ColumnType;
use crate::text_value::{ParsedColumn, TextFormat, parse_text_column};

fn column(text: &str, column_type: ColumnType, format: &TextFormat) -> ParsedColumn {
    parse_text_column(&BinaryArray::from_iter_values([text.as_bytes()]), column_type, format)
}

/// Returns the value if the text is accepted.
fn value<T: ArrowPrimitiveType>(
    text: &str,
    column_type: ColumnType,
    format: &TextFormat,
) -> Option<T::Native> {
    let column = column(text, column_type, format);
    assert_eq!(column.faults.is_empty(), column.values.is_valid(0), "{text}");
    column.faults.is_empty().then(|| column.values.as_primitive::<T>().value(0))
}

fn usual<T: ArrowPrimitiveType>(text: &str, column_type: ColumnType) -> Option<T::Native> {
    value::<T>(text, column_type, &TextFormat::default())
}

fn comma() -> TextFormat {
    TextFormat { decimal_comma: true, ..TextFormat::default() }
}

fn format(format: &str) -> TextFormat {
    TextFormat { timestamps: format.parse().unwrap(), ..TextFormat::default() }
}
