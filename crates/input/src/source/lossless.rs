//! Converts arrays of any type to columns of the table: every value exactly, or with a fault.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, StringArray, new_null_array};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{CastOptions, can_cast_types, cast, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, DurationMicrosecondType, Int64Type, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use evenkeel_model::note::Fault;
use evenkeel_model::table::{ColumnType, ValueRange};
use evenkeel_model::text_value::{
    CellFault, ParsedColumn, TextFormat, TimestampFormat, check_json, parse_text_column,
};

/// Reads an array as a column of the table; `None` if the values of its type have no single meaning
/// in the column's type.
pub(super) fn read_array(
    array: &ArrayRef,
    column_type: ColumnType,
    text: &TextFormat,
) -> Option<ParsedColumn> {
    let mut column = read_plain(array, column_type, text)?;
    if matches!(column_type, ColumnType::Json | ColumnType::JsonDocument) {
        check_json(&mut column);
    }
    Some(column)
}

fn read_plain(array: &ArrayRef, column_type: ColumnType, text: &TextFormat) -> Option<ParsedColumn> {
    let target = column_type.arrow_type();
    if array.data_type() == &target && column_type != ColumnType::ObjectId {
        return Some(ParsedColumn { values: Arc::clone(array), faults: Vec::new() });
    }
    if array.data_type() == &DataType::Null {
        return Some(ParsedColumn { values: new_null_array(&target, array.len()), faults: Vec::new() });
    }
    if let DataType::Dictionary(_, value_type) = array.data_type() {
        return read_plain(&cast(array, value_type).ok()?, column_type, text);
    }
    if let (Some(ids), ColumnType::Utf8) = (array.as_fixed_size_binary_opt(), column_type)
        && ids.value_length() == 16
    {
        let texts = ids.iter().map(|id| Some(uuid::Uuid::from_slice(id?).ok()?.to_string()));
        return Some(ParsedColumn { values: Arc::new(texts.collect::<StringArray>()), faults: Vec::new() });
    }
    match (family(array.data_type()), family(&target)) {
        (Some(Family::Text), Some(Family::Text | Family::Bytes))
            if !matches!(column_type, ColumnType::Uuid | ColumnType::ObjectId) => {}
        (Some(Family::Text), _) => {
            let cells = cast(array, &DataType::Binary).ok()?;
            return Some(parse_text_column(cells.as_binary::<i32>(), column_type, text));
        }
        (Some(Family::Number), Some(Family::Time | Family::Duration | Family::Bool))
            if text.timestamps == TimestampFormat::YdbDump =>
        {
            return number_of_dump(array, column_type, text);
        }
        (Some(Family::Number), Some(Family::Time)) => return number_as_time(array, column_type, text),
        _ => {}
    }
    cast_without_loss(array, column_type, &target)
}

/// Reads numbers as times, but only if the format gives their unit.
fn number_as_time(array: &ArrayRef, column_type: ColumnType, text: &TextFormat) -> Option<ParsedColumn> {
    if !matches!(text.timestamps, TimestampFormat::Unix(_)) {
        return None;
    }
    let cells = cast(array, &DataType::Utf8).and_then(|cells| cast(&cells, &DataType::Binary)).ok()?;
    Some(parse_text_column(cells.as_binary::<i32>(), column_type, text))
}

/// Reads numbers of a Parquet file of a YDB dump: times of the narrow types are in the units of the
/// wide ones.
fn number_of_dump(array: &ArrayRef, column_type: ColumnType, text: &TextFormat) -> Option<ParsedColumn> {
    let wide = match column_type {
        ColumnType::Date => ColumnType::Date32,
        ColumnType::Datetime => ColumnType::Datetime64,
        ColumnType::Timestamp => ColumnType::Timestamp64,
        other => other,
    };
    let cells = cast(array, &DataType::Utf8).and_then(|cells| cast(&cells, &DataType::Binary)).ok()?;
    Some(parse_text_column(cells.as_binary::<i32>(), wide, text))
}

/// Casts, and finds the values that were lost: they became NULL, or differ after casting back.
fn cast_without_loss(array: &ArrayRef, column_type: ColumnType, target: &DataType) -> Option<ParsedColumn> {
    let array = without_zone(array)?;
    if !may_become(array.data_type(), target) || !can_cast_types(array.data_type(), target) {
        return None;
    }
    let safe = CastOptions { safe: true, ..CastOptions::default() };
    let values = cast_with_options(&array, target, &safe).ok()?;
    let back = cast_with_options(&values, array.data_type(), &safe).ok()?;
    let same = distinct(&back, &array).ok()?;
    if same.true_count() == 0 {
        return Some(ParsedColumn { values, faults: Vec::new() });
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).ok()?;
    let fault = |row: usize| {
        let value = formatter.value(row).to_string();
        let problem: Cow<'static, str> = if family(array.data_type()) == Some(Family::Bytes) {
            "is not valid UTF-8; convert it first".into()
        } else if values.is_null(row) {
            format!("is outside {column_type}").into()
        } else {
            format!("would lose precision as {column_type}").into()
        };
        CellFault { row, fault: Fault::in_value(value.as_bytes(), problem) }
    };
    let faults = (0..array.len()).filter(|row| same.value(*row)).map(fault).collect();
    Some(ParsedColumn { values, faults })
}

/// Types whose values have the same kind of meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Bool,
    Number,
    Text,
    Bytes,
    Time,
    Duration,
}

fn family(data_type: &DataType) -> Option<Family> {
    match data_type {
        DataType::Boolean => Some(Family::Bool),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Family::Text),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Some(Family::Bytes)
        }
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _) => Some(Family::Time),
        DataType::Duration(_) => Some(Family::Duration),
        number if number.is_numeric() => Some(Family::Number),
        _ => None,
    }
}

/// Whether values of one type have exactly one meaning in another. A number cannot become a time or
/// a duration, nor the reverse: the unit would be a guess.
fn may_become(from: &DataType, to: &DataType) -> bool {
    match (family(from), family(to)) {
        (Some(from), Some(to)) if from == to => true,
        (Some(Family::Text), Some(Family::Bytes)) | (Some(Family::Bytes), Some(Family::Text)) => true,
        (Some(Family::Bool | Family::Number | Family::Time), Some(Family::Text)) => true,
        _ => false,
    }
}

/// Drops the zone of a timestamp; the instants stay the same.
fn without_zone(array: &ArrayRef) -> Option<ArrayRef> {
    match array.data_type() {
        DataType::Timestamp(unit, Some(_)) => cast(array, &DataType::Timestamp(*unit, None)).ok(),
        _ => Some(Arc::clone(array)),
    }
}

/// Adds a fault for each value that fits the Arrow type but not the column type.
pub(super) fn check_range(column_type: ColumnType, parsed: &mut ParsedColumn) {
    fn outside<T>(array: &PrimitiveArray<T>, range: ValueRange) -> Vec<usize>
    where
        T: ArrowPrimitiveType<Native: Into<i64>>,
    {
        let bad = |value: T::Native| {
            let value: i64 = value.into();
            value < range.min || value > range.max
        };
        if !array.values().iter().any(|value| bad(*value)) {
            return Vec::new();
        }
        (0..array.len()).filter(|row| array.is_valid(*row) && bad(array.value(*row))).collect()
    }
    let Some(range) = column_type.value_range() else { return };
    let rows = match parsed.values.data_type() {
        DataType::Date32 => outside(parsed.values.as_primitive::<Date32Type>(), range),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            outside(parsed.values.as_primitive::<TimestampMillisecondType>(), range)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            outside(parsed.values.as_primitive::<TimestampMicrosecondType>(), range)
        }
        DataType::Duration(_) => outside(parsed.values.as_primitive::<DurationMicrosecondType>(), range),
        _ => Vec::new(),
    };
    let whole_second = matches!(column_type, ColumnType::Datetime | ColumnType::Datetime64);
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(parsed.values.as_ref(), &options).ok();
    let raw = cast(&parsed.values, &DataType::Int64).ok();
    let text = |row: usize| {
        let shown = formatter.as_ref().and_then(|formatter| formatter.value(row).try_to_string().ok());
        let number = || raw.as_ref().map(|raw| raw.as_primitive::<Int64Type>().value(row).to_string());
        shown.or_else(number).unwrap_or_default()
    };
    let mut faults: Vec<CellFault> = rows
        .into_iter()
        .map(|row| CellFault {
            row,
            fault: Fault::in_value(
                text(row).as_bytes(),
                format!("is outside {column_type}{}", wider(column_type)),
            ),
        })
        .collect();
    if whole_second && let Some(array) = parsed.values.as_primitive_opt::<TimestampMillisecondType>() {
        let fraction = |row: &usize| array.is_valid(*row) && array.value(*row) % 1000 != 0;
        faults.extend((0..array.len()).filter(fraction).map(|row| CellFault {
            row,
            fault: Fault::in_value(text(row).as_bytes(), format!("would lose precision as {column_type}")),
        }));
    }
    drop(formatter);
    parsed.faults.extend(faults);
}

/// Hint at the type that holds earlier and later times, for messages.
fn wider(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::Date => " (1970 to 2105); Date32 holds it",
        ColumnType::Datetime => " (1970 to 2105); Datetime64 holds it",
        ColumnType::Timestamp => " (1970 to 2105); Timestamp64 holds it",
        ColumnType::Interval => "; Interval64 holds it",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::FixedSizeBinaryArray;

    #[test]
    fn uuids_in_bytes_become_their_text() {
        let id = uuid::Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        let ids =
            FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some(id.as_bytes()), None].into_iter(), 16);
        let ids: ArrayRef = Arc::new(ids.unwrap());
        let read = read_array(&ids, ColumnType::Utf8, &TextFormat::default()).unwrap();
        assert!(read.faults.is_empty());
        let texts: Vec<_> = read.values.as_string::<i32>().iter().collect();
        assert_eq!(texts, [Some("01234567-89ab-cdef-0123-456789abcdef"), None]);
    }
}
