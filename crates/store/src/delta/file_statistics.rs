//! Statistics of the values in a file, which let Delta readers skip it.

use chrono::{DateTime, Datelike, Utc};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::portion::ColumnStatistics;
use evenkeel_model::table::{Column, ColumnType, KeyValue};

/// Last year with four digits. Readers do not parse dates beyond it as text.
const LAST_YEAR: i32 = 9999;

/// Whether the smallest and largest value of a column are known for a file of `rows` rows, or that
/// it holds only NULLs. A reader may treat a missing bound as a value that nothing exceeds:
/// deltalake (Python) does, and loses the rows of the file.
pub(super) fn is_known(column: &Column, rows: u64, known: &ColumnStatistics) -> bool {
    let bound =
        |value: &Option<KeyValue>| value.as_ref().is_some_and(|v| json(v, column.column_type).is_some());
    known.nulls.is_some() && (known.nulls == Some(rows) || bound(&known.min) && bound(&known.max))
}

/// The `stats` of a file. A smallest or largest value always occurs in a row, and is never an
/// estimate: readers answer `min` and `max` from it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct FileStatistics {
    num_records: u64,
    min_values: Map<String, Value>,
    max_values: Map<String, Value>,
    null_count: Map<String, Value>,
}

/// Returns the `stats` of a file of `rows` rows as JSON, with statistics of the published columns.
pub(super) fn file_statistics(
    rows: u64,
    columns: &[Column],
    statistics: &[ColumnStatistics],
    published: &[String],
) -> Result<String, serde_json::Error> {
    let mut file_statistics = FileStatistics { num_records: rows, ..FileStatistics::default() };
    for (column, known) in
        columns.iter().zip(statistics).filter(|(column, _)| published.contains(&column.name))
    {
        let bound = |value: &Option<KeyValue>| {
            let value = value.as_ref().and_then(|value| json(value, column.column_type));
            value.map(|value| (column.name.clone(), value))
        };
        file_statistics.min_values.extend(bound(&known.min));
        file_statistics.max_values.extend(bound(&known.max));
        file_statistics.null_count.extend(known.nulls.map(|nulls| (column.name.clone(), nulls.into())));
    }
    serde_json::to_string(&file_statistics)
}

/// Returns a value as the protocol writes it; `None` if it has no form that all readers interpret
/// in the same way.
fn json(value: &KeyValue, column_type: ColumnType) -> Option<Value> {
    let time = |time: Option<DateTime<Utc>>, format: &str| {
        let time = time.filter(|time| (1..=LAST_YEAR).contains(&time.year()))?;
        Some(Value::String(time.format(format).to_string()))
    };
    const MICROSECONDS: &str = "%Y-%m-%dT%H:%M:%S%.6f";
    match (value, column_type) {
        (KeyValue::Int(days), ColumnType::Date | ColumnType::Date32) => {
            let seconds = days.checked_mul(86_400)?;
            time(DateTime::from_timestamp(seconds, 0), "%Y-%m-%d")
        }
        (KeyValue::Int(millis), ColumnType::Datetime | ColumnType::Datetime64) => {
            time(DateTime::from_timestamp_millis(*millis), MICROSECONDS)
        }
        (KeyValue::Int(micros), ColumnType::Timestamp | ColumnType::Timestamp64) => {
            time(DateTime::from_timestamp_micros(*micros), MICROSECONDS)
        }
        (KeyValue::Int(number), _) => Some((*number).into()),
        (KeyValue::Uint(number), _) => Some((*number).into()),
        (KeyValue::Text(text), _) => Some(text.clone().into()),
        // Bytes have no representation in JSON.
        (KeyValue::Bytes(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(nulls: u64, min: KeyValue, max: KeyValue) -> ColumnStatistics {
        ColumnStatistics { nulls: Some(nulls), min: Some(min), max: Some(max) }
    }

    #[test]
    fn values_are_written_to_the_last_microsecond_and_left_out_where_readers_differ() {
        let columns = [
            Column::required("at", ColumnType::Timestamp64),
            Column::nullable("day", ColumnType::Date32),
            Column::nullable("s", ColumnType::Utf8),
            Column::nullable("u", ColumnType::Uint64),
            Column::nullable("b", ColumnType::String),
            Column::nullable("none", ColumnType::Int64),
        ];
        let statistics = [
            known(0, KeyValue::Int(-1), KeyValue::Int(1_000_000)),
            known(0, KeyValue::Int(-719_163), KeyValue::Int(2_932_896)),
            known(1, KeyValue::Text("\"é\n".into()), KeyValue::Text("😀".into())),
            known(0, KeyValue::Uint(0), KeyValue::Uint(i64::MAX as u64)),
            known(0, KeyValue::Bytes(vec![0]), KeyValue::Bytes(vec![1])),
            ColumnStatistics { nulls: Some(3), min: None, max: None },
        ];
        let published: Vec<String> = columns
            .iter()
            .zip(&statistics)
            .filter(|(column, known)| is_known(column, 3, known))
            .map(|(column, _)| column.name.clone())
            .collect();
        assert_eq!(published, ["at", "s", "u", "none"]);
        assert_eq!(
            file_statistics(3, &columns, &statistics, &published).unwrap(),
            "{\"numRecords\":3,\
             \"minValues\":{\"at\":\"1969-12-31T23:59:59.999999\",\"s\":\"\\\"é\\n\",\"u\":0},\
             \"maxValues\":{\"at\":\"1970-01-01T00:00:01.000000\",\"s\":\"😀\",\"u\":9223372036854775807},\
             \"nullCount\":{\"at\":0,\"none\":3,\"s\":1,\"u\":0}}"
        );
    }
}
