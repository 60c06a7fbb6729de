//! Statistics of the columns of a portion, as stored in its file.

use bytes::Bytes;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::{Statistics, ValueStatistics};

use crate::portion::footer::{FooterError, parse};
use evenkeel_model::table::{Column, ColumnType, KeyValue};

/// Statistics of one column of a portion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnStatistics {
    /// Number of NULLs; all rows if the portion was written before the column was added. `None` if
    /// unknown.
    pub nulls: Option<u64>,
    /// Smallest value. `None` if there are only NULLs, for types without an order that all readers
    /// share (booleans, floating point, decimals, UUIDs), and for long text or bytes.
    pub min: Option<KeyValue>,
    /// Largest value, with the same exceptions.
    pub max: Option<KeyValue>,
}

impl ColumnStatistics {
    /// Reads the statistics of each of `columns` from the last bytes of a file of `file_bytes`.
    ///
    /// # Errors
    /// [`FooterError::NeedsMore`] if `tail` is too short, and [`FooterError::Parquet`] if it is not
    /// a Parquet file.
    pub fn read(tail: &Bytes, file_bytes: u64, columns: &[Column]) -> Result<Vec<Self>, FooterError> {
        let metadata = parse(tail, file_bytes)?;
        Ok(columns.iter().map(|column| Self::from_metadata(&metadata, column)).collect())
    }

    fn from_metadata(metadata: &ParquetMetaData, column: &Column) -> Self {
        let schema = metadata.file_metadata().schema_descr();
        let index = schema.columns().iter().position(|leaf| leaf.path().parts() == [column.name.as_str()]);
        let Some(index) = index else {
            return Self {
                nulls: u64::try_from(metadata.file_metadata().num_rows()).ok(),
                ..Self::default()
            };
        };
        let chunks: Vec<ChunkStatistics> = metadata
            .row_groups()
            .iter()
            .map(|group| ChunkStatistics::from_row_group(group, index, column.column_type))
            .collect();
        // Whatever is missing in one row group is unknown for the file.
        let with_values = || chunks.iter().filter(|chunk| !chunk.only_nulls);
        let known = |bound: fn(&ChunkStatistics) -> &Option<KeyValue>| {
            with_values().map(|chunk| bound(chunk).clone()).collect::<Option<Vec<_>>>()
        };
        Self {
            nulls: chunks.iter().map(|chunk| chunk.nulls).sum(),
            min: known(|chunk| &chunk.min).and_then(|values| values.into_iter().min()),
            max: known(|chunk| &chunk.max).and_then(|values| values.into_iter().max()),
        }
    }
}

/// Statistics of one column in one row group.
struct ChunkStatistics {
    nulls: Option<u64>,
    only_nulls: bool,
    min: Option<KeyValue>,
    max: Option<KeyValue>,
}

impl ChunkStatistics {
    fn from_row_group(group: &RowGroupMetaData, index: usize, column_type: ColumnType) -> Self {
        let statistics = group.columns().get(index).and_then(|chunk| chunk.statistics());
        let nulls = statistics.and_then(Statistics::null_count_opt);
        let only_nulls = nulls.is_some() && nulls == u64::try_from(group.num_rows()).ok();
        let (min, max) = statistics.map(|statistics| range(statistics, column_type)).unwrap_or_default();
        Self { nulls, only_nulls, min, max }
    }
}

/// Returns the smallest and largest value, each only if it is known exactly.
fn range(statistics: &Statistics, column_type: ColumnType) -> (Option<KeyValue>, Option<KeyValue>) {
    fn both<T>(
        statistics: &ValueStatistics<T>,
        value: impl Fn(&T) -> Option<KeyValue>,
    ) -> (Option<KeyValue>, Option<KeyValue>) {
        let exact = |bound: Option<&T>, exact: bool| bound.filter(|_| exact).and_then(&value);
        (
            exact(statistics.min_opt(), statistics.min_is_exact()),
            exact(statistics.max_opt(), statistics.max_is_exact()),
        )
    }
    if statistics.is_min_max_deprecated() {
        return (None, None);
    }
    match (statistics, column_type) {
        (Statistics::Int32(numbers), ColumnType::Uint8 | ColumnType::Uint16 | ColumnType::Uint32) => {
            both(numbers, |value| Some(KeyValue::Uint(value.cast_unsigned().into())))
        }
        (
            Statistics::Int32(numbers),
            ColumnType::Int8 | ColumnType::Int16 | ColumnType::Int32 | ColumnType::Date | ColumnType::Date32,
        ) => both(numbers, |value| Some(KeyValue::Int((*value).into()))),
        (Statistics::Int64(numbers), ColumnType::Uint64) => {
            both(numbers, |value| Some(KeyValue::Uint(value.cast_unsigned())))
        }
        (
            Statistics::Int64(numbers),
            ColumnType::Int64
            | ColumnType::Datetime
            | ColumnType::Datetime64
            | ColumnType::Timestamp
            | ColumnType::Timestamp64
            | ColumnType::Interval
            | ColumnType::Interval64,
        ) => both(numbers, |value| Some(KeyValue::Int(*value))),
        (Statistics::ByteArray(text), ColumnType::Utf8 | ColumnType::Json | ColumnType::JsonDocument) => {
            both(text, |value| Some(KeyValue::Text(value.as_utf8().ok()?.to_owned())))
        }
        (Statistics::ByteArray(bytes), ColumnType::String | ColumnType::Yson) => {
            both(bytes, |value| Some(KeyValue::Bytes(value.data().to_vec())))
        }
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt8Array, UInt64Array,
    };

    use super::*;
    use crate::portion::encoder::PortionEncoder;
    use evenkeel_model::table::{PlacementFunction, TableDefinition, TableSpec};
    use evenkeel_model::units::{PartitionCount, PartitionId};

    fn statistics(columns: Vec<Column>, arrays: Vec<ArrayRef>) -> Vec<ColumnStatistics> {
        let spec = TableSpec::new(TableDefinition {
            name: "t".into(),
            columns,
            primary_key: vec!["k".into()],
            partition_key: Vec::new(),
            partitions: PartitionCount::ONE,
            placement: PlacementFunction::Ydb,
            ttl: None,
        })
        .unwrap();
        let batch = RecordBatch::try_new(Arc::clone(spec.schema()), arrays).unwrap();
        let mut encoder = PortionEncoder::new(&spec, PartitionId(0));
        encoder.push(&batch).unwrap();
        let portion = encoder.finish().unwrap();
        let mut columns = spec.columns().to_vec();
        columns.push(Column::nullable("later", ColumnType::Utf8));
        ColumnStatistics::read(&portion.bytes, portion.bytes.len() as u64, &columns).unwrap()
    }

    #[test]
    fn ranges_are_those_of_the_type_and_long_text_has_none() {
        let long = "z".repeat(65);
        let column_statistics = statistics(
            vec![
                Column::required("k", ColumnType::Int64),
                Column::nullable("u", ColumnType::Uint64),
                Column::nullable("b", ColumnType::Uint8),
                Column::nullable("s", ColumnType::Utf8),
                Column::nullable("f", ColumnType::Double),
                Column::nullable("n", ColumnType::Uint64),
            ],
            vec![
                Arc::new(Int64Array::from(vec![-5, 0, 7])),
                Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(1)])),
                Arc::new(UInt8Array::from(vec![200, 3, 255])),
                Arc::new(StringArray::from(vec![Some("é"), Some(&long), Some("a")])),
                Arc::new(Float64Array::from(vec![1.0, f64::NAN, 2.0])),
                Arc::new(UInt64Array::from(vec![None::<u64>; 3])),
            ],
        );
        let uint = |value| Some(KeyValue::Uint(value));
        let known = |nulls, min, max| ColumnStatistics { nulls: Some(nulls), min, max };
        assert_eq!(
            column_statistics,
            [
                known(0, Some(KeyValue::Int(-5)), Some(KeyValue::Int(7))),
                known(1, uint(1), uint(u64::MAX)),
                known(0, uint(3), uint(255)),
                known(0, Some(KeyValue::Text("a".into())), Some(KeyValue::Text("é".into()))),
                known(0, None, None),
                known(3, None, None),
                known(3, None, None),
            ]
        );
        let column_statistics = statistics(
            vec![Column::required("k", ColumnType::Int64), Column::nullable("s", ColumnType::Utf8)],
            vec![Arc::new(Int64Array::from(vec![1, 2])), Arc::new(StringArray::from(vec!["a", &long]))],
        );
        assert_eq!(
            column_statistics.get(1),
            Some(&known(0, Some(KeyValue::Text("a".into())), None)),
            "the beginning of a long text is no value"
        );
    }

    #[test]
    fn a_file_of_many_row_groups_has_the_range_of_all() {
        let rows = evenkeel_model::table::ROW_GROUP_ROWS as i64 + 10;
        let column_statistics = statistics(
            vec![Column::required("k", ColumnType::Int64), Column::nullable("v", ColumnType::Int64)],
            vec![
                Arc::new((0..rows).collect::<Int64Array>()),
                Arc::new((0..rows).map(|row| (row % 2 == 0).then_some(-row)).collect::<Int64Array>()),
            ],
        );
        let last = rows - 1 - (rows - 1) % 2;
        let known = |nulls, min, max| ColumnStatistics {
            nulls: Some(nulls),
            min: Some(KeyValue::Int(min)),
            max: Some(KeyValue::Int(max)),
        };
        assert_eq!(column_statistics.first(), Some(&known(0, 0, rows - 1)));
        assert_eq!(column_statistics.get(1), Some(&known(rows as u64 / 2, -last, 0)));
    }
}
