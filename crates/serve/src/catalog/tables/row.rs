//! Rows of catalog tables, and their batches.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_empty_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use chrono::{DateTime, Utc};
use datafusion::common::{Result, ScalarValue};

/// A value of a row.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Number(i64),
    Float(f64),
    Flag(bool),
    Text(String),
    Time(DateTime<Utc>),
    Numbers(Vec<i64>),
    Null,
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Number(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Number(value.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// Values of a row, by column name.
pub(super) type Row = BTreeMap<&'static str, Value>;

/// Creates a row from columns and values.
macro_rules! row {
    ($($name:ident: $value:expr),* $(,)?) => {
        std::collections::BTreeMap::from([
            $((stringify!($name), $crate::catalog::tables::row::Value::from($value))),*
        ])
    };
}
pub(super) use row;

/// A column of text.
pub(super) fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

/// A column of times in UTC.
pub(super) fn time(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())), true)
}

/// Returns rows as a batch. Columns without a value are NULL, or zero, false or empty if they are
/// not nullable.
pub(super) fn fill(schema: &SchemaRef, rows: &[Row]) -> Result<RecordBatch> {
    let column = |field: &Arc<Field>| -> Result<ArrayRef> {
        if rows.is_empty() {
            return Ok(new_empty_array(field.data_type()));
        }
        let value = |row: &Row| scalar(row.get(field.name().as_str()), field);
        let values: Vec<ScalarValue> = rows.iter().map(value).collect::<Result<_>>()?;
        Ok(cast(&ScalarValue::iter_to_array(values)?, field.data_type())?)
    };
    let columns: Vec<ArrayRef> = schema.fields().iter().map(column).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn scalar(value: Option<&Value>, field: &Field) -> Result<ScalarValue> {
    let data_type = field.data_type();
    let scalar = match value {
        Some(Value::Number(number)) => ScalarValue::Int64(Some(*number)),
        Some(Value::Float(number)) => ScalarValue::Float64(Some(*number)),
        Some(Value::Flag(flag)) => ScalarValue::Boolean(Some(*flag)),
        Some(Value::Text(text)) => ScalarValue::Utf8(Some(text.clone())),
        Some(Value::Time(time)) => {
            ScalarValue::TimestampMicrosecond(Some(time.timestamp_micros()), Some("+00:00".into()))
        }
        Some(Value::Numbers(numbers)) => match data_type {
            DataType::List(element) => {
                let numbers: Vec<ScalarValue> =
                    numbers.iter().map(|number| ScalarValue::Int64(Some(*number))).collect();
                let list = ScalarValue::new_list(&numbers, &DataType::Int64, true);
                let list = ScalarValue::List(list);
                return list.cast_to(&DataType::List(Arc::clone(element)));
            }
            _ => {
                let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                ScalarValue::Utf8(Some(numbers.join(" ")))
            }
        },
        Some(Value::Null) => return ScalarValue::try_from(data_type),
        None if field.is_nullable() => return ScalarValue::try_from(data_type),
        None => match data_type {
            DataType::Boolean => ScalarValue::Boolean(Some(false)),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                ScalarValue::Utf8(Some(String::new()))
            }
            DataType::List(element) => {
                return Ok(ScalarValue::List(ScalarValue::new_list(&[], element.data_type(), true)));
            }
            _ => ScalarValue::Int64(Some(0)),
        },
    };
    scalar.cast_to(data_type)
}
