//! Rows that delete others: their mark while they are buffered, and their construction.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::{cast, filter_record_batch, not};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use evenkeel_model::table::{TableSpec, filler};

/// Name of the column that marks deletes.
const MARK: &str = "__deleted";

/// Adds the column that marks deletes.
#[must_use]
pub fn marked_schema(schema: &SchemaRef) -> SchemaRef {
    let mark = Arc::new(Field::new(MARK, DataType::Boolean, false));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain([mark]).collect::<Vec<_>>()))
}

/// Adds the marks to rows.
///
/// # Errors
/// [`ArrowError`] if there are not as many.
pub(super) fn marked(batch: &RecordBatch, marks: BooleanArray) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().cloned().chain([Arc::new(marks) as ArrayRef]).collect();
    RecordBatch::try_new(marked_schema(&batch.schema()), columns)
}

/// Splits rows by their marks, which are the last column: rows to keep, and deletes.
///
/// # Errors
/// [`ArrowError`] if there are no marks.
pub fn split_marked(batch: &RecordBatch) -> Result<(RecordBatch, RecordBatch), ArrowError> {
    let columns: Vec<usize> = (0..batch.num_columns().saturating_sub(1)).collect();
    let plain = batch.project(&columns)?;
    let marks = batch.columns().last().and_then(|marks| marks.as_any().downcast_ref::<BooleanArray>());
    let marks = marks.ok_or_else(|| ArrowError::SchemaError("rows have no marks".to_owned()))?;
    Ok(match marks.true_count() {
        0 => (plain.clone(), plain.slice(0, 0)),
        all if all == batch.num_rows() => (plain.slice(0, 0), plain),
        _ => (filter_record_batch(&plain, &not(marks)?)?, filter_record_batch(&plain, marks)?),
    })
}

/// Returns deletes without the values of columns outside the key, which have no meaning.
///
/// # Errors
/// [`ArrowError`] if the columns do not match the table.
pub(super) fn without_values(spec: &TableSpec, deletes: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns =
        spec.columns().iter().zip(deletes.columns()).enumerate().map(|(index, (column, values))| match spec
            .primary_key()
            .contains(&index)
        {
            true => Ok(Arc::clone(values)),
            false => filler(values.data_type(), column.nullable, values.len()),
        });
    RecordBatch::try_new(deletes.schema(), columns.collect::<Result<_, ArrowError>>()?)
}

/// Makes rows of the table from primary keys, in key order. The other columns have no meaning: they
/// are NULL or, if they are NOT NULL, 0 or empty.
///
/// # Errors
/// [`ArrowError`] if the columns do not match the key.
pub(super) fn rows_of_keys(spec: &TableSpec, keys: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let rows = keys.num_rows();
    let columns = spec.columns().iter().enumerate().map(|(index, column)| {
        let in_key = spec.primary_key().iter().position(|key| *key == index);
        match in_key.and_then(|position| keys.columns().get(position)) {
            Some(values) => cast(values, &column.column_type.arrow_type()),
            None => filler(&column.column_type.arrow_type(), column.nullable, rows),
        }
    });
    let columns: Vec<ArrayRef> = columns.collect::<Result<_, ArrowError>>()?;
    RecordBatch::try_new(Arc::clone(spec.schema()), columns)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;
    use evenkeel_model::table::{Column, ColumnType, PlacementFunction, TableDefinition};
    use evenkeel_model::units::PartitionCount;

    #[test]
    fn keys_become_rows_of_every_type() {
        let types = [
            "Bool",
            "Int8",
            "Uint64",
            "Float",
            "Double",
            "Utf8",
            "String",
            "Json",
            "Uuid",
            "Date",
            "Datetime",
            "Timestamp",
            "Interval",
            "Decimal(22,9)",
        ];
        let mut columns = Vec::new();
        for (number, name) in types.iter().enumerate() {
            let column_type: ColumnType = name.parse().unwrap();
            columns.push(Column::required(format!("r{number}"), column_type));
            columns.push(Column::nullable(format!("n{number}"), column_type));
        }
        columns.insert(3, Column::required("b", ColumnType::Int64));
        columns.push(Column::required("a", ColumnType::Int64));
        let spec = TableSpec::new(TableDefinition {
            name: "t".into(),
            columns,
            primary_key: vec!["a".into(), "b".into()],
            partition_key: vec![],
            partitions: PartitionCount::ONE,
            placement: PlacementFunction::Ydb,
            ttl: None,
        })
        .unwrap();
        let keys: [ArrayRef; 2] =
            [Arc::new(Int64Array::from(vec![1, 2])), Arc::new(Int64Array::from(vec![7, 8]))];
        let keys = RecordBatch::try_from_iter([("a", keys[0].clone()), ("b", keys[1].clone())]).unwrap();
        let rows = rows_of_keys(&spec, &keys).unwrap();
        assert_eq!(rows.schema().fields(), spec.schema().fields());
        let values =
            |name: &str| rows.column_by_name(name).unwrap().as_primitive::<Int64Type>().values().to_vec();
        assert_eq!((values("a"), values("b")), (vec![1, 2], vec![7, 8]));
        for (field, column) in rows.schema().fields().iter().zip(rows.columns()) {
            assert_eq!(column.null_count(), if field.is_nullable() { 2 } else { 0 }, "{field}");
        }
        let both = marked(&rows, BooleanArray::from(vec![true, false])).unwrap();
        let (kept, deleted) = split_marked(&both).unwrap();
        assert_eq!((kept, deleted), (rows.slice(1, 1), rows.slice(0, 1)));
        assert!(split_marked(&rows).is_err());
    }
}
