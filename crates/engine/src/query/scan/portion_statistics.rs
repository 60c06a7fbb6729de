//! Row counts and key ranges of portions as statistics of DataFusion.

use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};

use evenkeel_model::table::{KeyValue, TableSpec};
use evenkeel_store::log::PortionEntry;

/// Returns the statistics of portions together: their rows, and the range of each primary-key
/// column. `schema` has the columns of the table with the types that queries see.
pub(in crate::query) fn portion_statistics<'a>(
    spec: &TableSpec,
    schema: &SchemaRef,
    portions: impl Iterator<Item = &'a PortionEntry>,
) -> Statistics {
    let mut rows = 0;
    let mut ranges: Vec<(Option<&KeyValue>, Option<&KeyValue>)> = Vec::new();
    for portion in portions {
        if rows == 0 {
            ranges = portion.column_ranges.iter().map(|r| (r.min.first(), r.max.first())).collect();
        }
        rows += portion.rows;
        for ((min, max), range) in ranges.iter_mut().zip(&portion.column_ranges) {
            *min = (*min).min(range.min.first());
            *max = (*max).max(range.max.first());
        }
    }
    let mut columns = vec![ColumnStatistics::new_unknown(); spec.columns().len()];
    for (index, (min, max)) in spec.primary_key().iter().zip(ranges) {
        let data_type = schema.field(*index).data_type();
        let exact = |value: Option<&KeyValue>| {
            value.and_then(|value| scalar(value, data_type)).map_or(Precision::Absent, Precision::Exact)
        };
        if let Some(column) = columns.get_mut(*index) {
            column.null_count = Precision::Exact(0);
            column.min_value = exact(min);
            column.max_value = exact(max);
        }
    }
    Statistics {
        num_rows: usize::try_from(rows).map_or(Precision::Absent, Precision::Exact),
        total_byte_size: Precision::Absent,
        column_statistics: columns,
    }
}

/// Converts a key value to a value of its column. The common types are made directly: a plan of
/// 10,000 portions makes 60,000 of them.
pub(in crate::query) fn scalar(value: &KeyValue, data_type: &DataType) -> Option<ScalarValue> {
    let plain = match (value, data_type) {
        (KeyValue::Int(value), DataType::Int64) => return Some(ScalarValue::Int64(Some(*value))),
        (KeyValue::Int(value), DataType::Date32) => {
            return i32::try_from(*value).ok().map(|v| ScalarValue::Date32(Some(v)));
        }
        (KeyValue::Int(value), DataType::Timestamp(TimeUnit::Millisecond, None)) => {
            return Some(ScalarValue::TimestampMillisecond(Some(*value), None));
        }
        (KeyValue::Int(value), DataType::Timestamp(TimeUnit::Microsecond, None)) => {
            return Some(ScalarValue::TimestampMicrosecond(Some(*value), None));
        }
        (KeyValue::Uint(value), DataType::UInt64) => return Some(ScalarValue::UInt64(Some(*value))),
        (KeyValue::Text(value), DataType::Utf8View) => {
            return Some(ScalarValue::Utf8View(Some(value.clone())));
        }
        (KeyValue::Bytes(value), DataType::BinaryView) => {
            return Some(ScalarValue::BinaryView(Some(value.clone())));
        }
        (KeyValue::Int(value), _) => ScalarValue::Int64(Some(*value)),
        (KeyValue::Uint(value), _) => ScalarValue::UInt64(Some(*value)),
        (KeyValue::Text(value), _) => ScalarValue::Utf8(Some(value.clone())),
        (KeyValue::Bytes(value), _) => ScalarValue::Binary(Some(value.clone())),
    };
    plain.cast_to(data_type).ok()
}
