//! Text columns that a scan returns with their dictionaries.
//!
//! A portion stores a column of texts that repeat as one dictionary for each row group, and a code
//! for each row. A scan returns views of the texts, or the dictionaries if asked for them: then
//! all batches of a row group have the same one (the same allocation), and the work for a text is
//! done once for all of its rows. A column that a file stores otherwise is returned with
//! dictionaries of a single batch.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, UInt32Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, Literal, lit};
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_expr::utils::collect_columns;
use evenkeel_model::table::as_view;
use parquet::basic::Encoding;
use parquet::file::metadata::ParquetMetaData;

/// Type of a column that is returned with dictionaries; `None` if columns of this type are not.
pub(in crate::query) fn with_dictionary(values: &DataType) -> Option<DataType> {
    let is_text = matches!(values, DataType::Utf8View | DataType::BinaryView);
    is_text.then(|| DataType::Dictionary(Box::new(DataType::UInt32), Box::new(values.clone())))
}

/// Columns that exactly one of some expressions uses.
pub(in crate::query) fn used_once(
    expressions: impl Iterator<Item = Arc<dyn PhysicalExpr>>,
) -> HashSet<Column> {
    let (mut once, mut twice) = (HashSet::new(), HashSet::new());
    for column in expressions.flat_map(|expression| collect_columns(&expression)) {
        if !twice.contains(&column) && !once.insert(column.clone()) {
            once.remove(&column);
            twice.insert(column);
        }
    }
    once
}

/// The same columns, of which some are returned with dictionaries.
pub(super) fn returned_schema(columns: &Schema, dictionaries: &[usize]) -> SchemaRef {
    let returned = |(position, field): (usize, &FieldRef)| {
        let coded = with_dictionary(field.data_type()).filter(|_| dictionaries.contains(&position));
        coded
            .map_or_else(|| Arc::clone(field), |coded| Arc::new(field.as_ref().clone().with_data_type(coded)))
    };
    let fields: Vec<FieldRef> = columns.fields().iter().enumerate().map(returned).collect();
    Arc::new(Schema::new_with_metadata(fields, columns.metadata().clone()))
}

/// A column as the reader returns it from a file in which all of its rows have codes.
pub(super) fn read_with_dictionary(field: &Field, file: &ParquetMetaData) -> Option<Field> {
    let values = match field.data_type() {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        _ => return None,
    };
    let coded = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(values));
    has_codes(field.name(), file).then(|| field.clone().with_data_type(coded))
}

/// Returns the columns of a table, those with the types of a file that it reads with dictionaries.
pub(super) fn coded_as(table: &SchemaRef, file: &Schema) -> SchemaRef {
    let read = |field: &FieldRef| match file.field_with_name(field.name()).map(Field::data_type) {
        Ok(coded @ DataType::Dictionary(..)) => {
            Arc::new(field.as_ref().clone().with_data_type(coded.clone()))
        }
        _ => Arc::clone(field),
    };
    let is_coded = |field: &FieldRef| matches!(field.data_type(), DataType::Dictionary(..));
    match file.fields().iter().any(is_coded) {
        true => Arc::new(Schema::new(table.fields().iter().map(read).collect::<Vec<_>>())),
        false => Arc::clone(table),
    }
}

/// Whether all rows of a column in a file have codes.
fn has_codes(name: &str, file: &ParquetMetaData) -> bool {
    let leaves = file.file_metadata().schema_descr().columns();
    let Some(leaf) = leaves.iter().position(|leaf| leaf.path().parts() == [name]) else { return false };
    file.row_groups().iter().all(|row_group| {
        row_group.columns().get(leaf).is_some_and(|column| {
            let encodings = column.page_encoding_stats_mask();
            column.dictionary_page_offset().is_some()
                && encodings.is_some_and(|pages| pages.is_only(Encoding::RLE_DICTIONARY))
        })
    })
}

/// Returns a projection in which constants at some positions are dictionaries of one text.
pub(super) fn with_coded_constants(projection: &ProjectionExprs, dictionaries: &[usize]) -> ProjectionExprs {
    let coded = |(position, part): (usize, &ProjectionExpr)| {
        let constant = part.expr.downcast_ref::<Literal>().map(Literal::value);
        match constant
            .filter(|value| dictionaries.contains(&position) && with_dictionary(&value.data_type()).is_some())
        {
            Some(value) => {
                let coded = ScalarValue::Dictionary(Box::new(DataType::UInt32), Box::new(value.clone()));
                ProjectionExpr::new(lit(coded), part.alias.clone())
            }
            None => part.clone(),
        }
    };
    ProjectionExprs::new(projection.iter().enumerate().map(coded))
}

/// Gives columns of a stream of batches their dictionaries.
#[derive(Debug, Default)]
pub(super) struct Dictionaries {
    /// Positions of the columns.
    columns: Vec<usize>,
    /// Of each column, the latest dictionary as it was read and as it is returned.
    latest: Vec<Option<(ArrayRef, ArrayRef)>>,
}

impl Dictionaries {
    pub(super) fn new(columns: &[usize]) -> Self {
        Self { columns: columns.to_vec(), latest: vec![None; columns.len()] }
    }

    /// Returns rows in the schema of [`returned_schema`].
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the rows have other columns.
    pub(super) fn returned(&mut self, rows: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let (_, mut arrays, count) = rows.into_parts();
        for (position, latest) in self.columns.iter().zip(&mut self.latest) {
            if let Some(array) = arrays.get_mut(*position) {
                *array = coded(array, latest)?;
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
    }
}

/// Returns a column with a dictionary of views.
fn coded(array: &ArrayRef, latest: &mut Option<(ArrayRef, ArrayRef)>) -> Result<ArrayRef> {
    let Some(read) = array.as_dictionary_opt::<UInt32Type>() else {
        // Each row has a code of its own.
        let codes: Vec<u32> = (0u32..).take(array.len()).collect();
        let codes = UInt32Array::new(codes.into(), array.nulls().cloned());
        return Ok(Arc::new(DictionaryArray::try_new(codes, Arc::clone(array))?));
    };
    let known = latest.take().filter(|(known, _)| known.to_data().ptr_eq(&read.values().to_data()));
    let (known, values) = match known {
        Some(known) => known,
        None => (Arc::clone(read.values()), as_view(read.values())?),
    };
    let coded = read.with_values(Arc::clone(&values));
    *latest = Some((known, values));
    Ok(Arc::new(coded))
}
