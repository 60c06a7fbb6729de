//! Columns of text and bytes as Arrow views.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, make_array, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

/// Returns the schema with text and bytes as views: short values are stored in the view itself and
/// move like numbers.
#[must_use]
pub fn view_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let data_type = view_type(field.data_type()).unwrap_or_else(|| field.data_type().clone());
        Field::new(field.name(), data_type, field.is_nullable())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Casts a column to its type in [`view_schema`].
///
/// # Errors
/// [`ArrowError`] if memory does not suffice.
pub fn as_view(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match view_type(column.data_type()) {
        Some(view) => cast(column, &view),
        None => Ok(Arc::clone(column)),
    }
}

/// Returns the batch without the bytes of long texts that its views do not refer to: those of rows
/// that a selection or a slice left out stay in memory as long as its views do.
///
/// # Errors
/// [`ArrowError`] if the columns do not match the schema.
pub fn without_unused_text(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(without_unused_bytes).collect();
    RecordBatch::try_new(batch.schema(), columns)
}

/// Returns a column of views without the bytes that it does not refer to.
#[must_use]
pub fn without_unused_bytes(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Utf8View if !column.as_string_view().data_buffers().is_empty() => {
            Arc::new(column.as_string_view().gc())
        }
        DataType::BinaryView if !column.as_binary_view().data_buffers().is_empty() => {
            Arc::new(column.as_binary_view().gc())
        }
        _ => Arc::clone(column),
    }
}

/// Returns filler values for rows in which only other columns matter: NULL or, if not nullable, 0
/// or empty.
///
/// # Errors
/// [`ArrowError`] for types that no column has.
pub fn filler(data_type: &DataType, nullable: bool, rows: usize) -> Result<ArrayRef, ArrowError> {
    let nulls = new_null_array(data_type, rows);
    if nullable {
        return Ok(nulls);
    }
    // Below the marks of NULL there are zeros.
    Ok(make_array(nulls.to_data().into_builder().nulls(None).build()?))
}

/// Returns the view type of text and bytes; `None` for other types and for views.
fn view_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Utf8 => Some(DataType::Utf8View),
        DataType::Binary => Some(DataType::BinaryView),
        _ => None,
    }
}
