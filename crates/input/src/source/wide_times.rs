//! Dates and times of columnar files whose years need a wider type.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::compute::{cast, max, min};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};

use crate::source::error::SourceError;
use crate::source::input_path::InputPath;
use crate::source::open::Input;
use crate::source::options::InputOptions;
use crate::source::raw::RawCells;
use evenkeel_model::table::{Column, ColumnType};

/// Maximum number of records of a text file to examine for its types.
pub(super) const SAMPLE_RECORDS: usize = 100_000;

/// Gives columns the type that holds years before 1970 and after 2105, if they are known to have
/// such values; `extremes` returns the least and the greatest value of a column, as its numbers.
pub(super) fn widen_times(
    columns: &mut [Column],
    schema: &Schema,
    extremes: impl Fn(&str) -> Option<(i64, i64)>,
) {
    for column in columns {
        let wide = match column.column_type {
            ColumnType::Date => ColumnType::Date32,
            ColumnType::Timestamp => ColumnType::Timestamp64,
            _ => continue,
        };
        let per_second = match schema.field_with_name(&column.name).map(Field::data_type) {
            Ok(DataType::Timestamp(TimeUnit::Second, _)) => 1_000_000,
            Ok(DataType::Timestamp(TimeUnit::Millisecond, _)) => 1_000,
            Ok(DataType::Timestamp(TimeUnit::Nanosecond, _)) | Err(_) => continue,
            _ => 1,
        };
        let (Some(range), Some((least, greatest))) =
            (column.column_type.value_range(), extremes(&column.name))
        else {
            continue;
        };
        if least.saturating_mul(per_second) < range.min || greatest.saturating_mul(per_second) > range.max {
            column.column_type = wide;
        }
    }
}

/// Returns the least and the greatest value of columns of dates and times in the first rows of a
/// columnar file, as numbers of its own unit.
pub(super) fn first_extremes(
    columns: &[Column],
    input: &InputPath,
    options: &InputOptions,
) -> Result<BTreeMap<String, (i64, i64)>, SourceError> {
    let of_time = |column: &&Column| matches!(column.column_type, ColumnType::Date | ColumnType::Timestamp);
    let names: Vec<String> = columns.iter().filter(of_time).map(|column| column.name.clone()).collect();
    let mut extremes: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    if names.is_empty() {
        return Ok(extremes);
    }
    let mut input = Input::open_unknown(input, &names, options)?;
    let mut records = 0;
    while records < SAMPLE_RECORDS
        && let Some(batch) = input.next_batch()?
    {
        let RawCells::Arrow(batch) = batch.cells else { break };
        for name in &names {
            let days_or_time = batch.column_by_name(name).and_then(|array| match array.data_type() {
                DataType::Date64 => cast(array, &DataType::Date32).ok(),
                _ => Some(Arc::clone(array)),
            });
            let numbers = days_or_time.and_then(|array| cast(&array, &DataType::Int64).ok());
            let Some(numbers) = numbers.as_ref().and_then(|array| array.as_primitive_opt::<Int64Type>())
            else {
                continue;
            };
            if let (Some(least), Some(greatest)) = (min(numbers), max(numbers)) {
                let known = extremes.entry(name.clone()).or_insert((least, greatest));
                *known = (known.0.min(least), known.1.max(greatest));
            }
        }
        records += batch.num_rows();
    }
    Ok(extremes)
}
