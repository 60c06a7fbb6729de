//! Text columns that a scan returns with their dictionaries.
//!
//! A portion stores a column of texts that repeat as one dictionary for each row group, and a code
//! for each row. A scan returns views of the texts or, if asked, the dictionaries. All batches of a
//! row group then have the same one (the same allocation), so that the work for a text is done once
//! for all of its rows. A column that a file stores otherwise is returned with
//! dictionaries of a single batch. Within the scan, conditions on a text column are evaluated on
//! the texts of dictionaries (`dictionary_conditions`).

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, UInt32Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr, Literal, lit};
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use evenkeel_model::table::as_view;
use parquet::basic::Encoding;
use parquet::file::metadata::ParquetMetaData;

use crate::query::scan::dictionary_conditions::selecting_parts;
use crate::query::walk::Walk;

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

/// Columns that a scan can read with dictionaries: it returns them as they are, if at all, and each
/// part of its conditions that is on one of them is on no other column.
pub(in crate::query) struct Readable {
    /// Columns in other expressions.
    others: HashSet<Column>,
    /// Columns in conditions.
    in_conditions: HashSet<Column>,
}

impl Readable {
    pub(in crate::query) fn new(
        projection: &ProjectionExprs,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Self {
        let parts = predicate.map(selecting_parts).unwrap_or_default();
        let (alone, joint): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| is_on_values(part));
        let expressions = projection.expr_iter().filter(|part| !part.is::<Column>());
        let others = expressions.chain(joint.into_iter().cloned());
        Self {
            others: others.flat_map(|part| collect_columns(&part)).collect(),
            in_conditions: alone.into_iter().flat_map(collect_columns).collect(),
        }
    }

    /// Whether a column of texts can be read with dictionaries.
    pub(in crate::query) fn has(&self, column: &Column) -> bool {
        !self.others.contains(column)
    }

    /// Columns that conditions are better evaluated on if they are read with dictionaries.
    pub(super) fn in_conditions(&self) -> impl Iterator<Item = &Column> {
        self.in_conditions.iter().filter(|column| self.has(column))
    }
}

/// Whether the result of a condition depends on the value of one column only.
pub(super) fn is_on_values(condition: &Arc<dyn PhysicalExpr>) -> bool {
    let may_change = condition.exists_dyn(|node| Ok(node.is::<DynamicFilterPhysicalExpr>())).unwrap_or(true);
    !may_change && !is_volatile(condition) && collect_columns(condition).len() == 1
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

/// Returns the columns of a file without the dictionaries that they are read with.
pub(super) fn without_dictionaries(columns: &SchemaRef) -> SchemaRef {
    let plain = |field: &FieldRef| match field.data_type() {
        DataType::Dictionary(_, values) => {
            Arc::new(field.as_ref().clone().with_data_type(Views::data_type(values)))
        }
        _ => Arc::clone(field),
    };
    let is_coded = |field: &FieldRef| matches!(field.data_type(), DataType::Dictionary(..));
    match columns.fields().iter().any(is_coded) {
        true => Arc::new(Schema::new_with_metadata(
            columns.fields().iter().map(plain).collect::<Vec<_>>(),
            columns.metadata().clone(),
        )),
        false => Arc::clone(columns),
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

/// The latest dictionary of a column, whose texts are needed as views.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// The dictionary as it was read.
    dictionary: Option<ArrayRef>,
    /// All of its texts.
    texts: Option<ArrayRef>,
    /// Rows of which the texts were returned.
    rows: usize,
}

impl Views {
    /// Type of the views of texts.
    pub(super) fn data_type(texts: &DataType) -> DataType {
        match texts {
            DataType::Binary | DataType::BinaryView => DataType::BinaryView,
            _ => DataType::Utf8View,
        }
    }

    /// Takes up the dictionary of some rows; returns whether it is another one than before.
    pub(super) fn enter(&mut self, rows: &DictionaryArray<UInt32Type>) -> bool {
        let is_known = |known: &ArrayRef| known.to_data().ptr_eq(&rows.values().to_data());
        if self.dictionary.as_ref().is_some_and(is_known) {
            return false;
        }
        *self = Self { dictionary: Some(Arc::clone(rows.values())), texts: None, rows: 0 };
        true
    }

    /// Returns all texts of the dictionary of some rows.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if memory does not suffice.
    pub(super) fn all(&mut self, rows: &DictionaryArray<UInt32Type>) -> Result<ArrayRef> {
        self.enter(rows);
        let texts = match self.texts.take() {
            Some(texts) => texts,
            None => as_view(rows.values())?,
        };
        Ok(Arc::clone(self.texts.insert(texts)))
    }

    /// Returns the texts of rows. As long as they are few, the other texts are not looked at.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if memory does not suffice.
    pub(super) fn of_rows(&mut self, rows: &DictionaryArray<UInt32Type>) -> Result<ArrayRef> {
        self.enter(rows);
        self.rows = self.rows.saturating_add(rows.len());
        if self.texts.is_none() && self.rows < rows.values().len() / 2 {
            return Ok(as_view(&take(rows.values(), rows.keys(), None)?)?);
        }
        Ok(take(&self.all(rows)?, rows.keys(), None)?)
    }
}

/// Gives columns of a stream of batches the types that a scan returns.
#[derive(Debug, Default)]
pub(super) struct Dictionaries {
    /// Positions of the columns that are returned with dictionaries.
    columns: Vec<usize>,
    /// Of each column, its latest dictionary.
    latest: Vec<Views>,
}

impl Dictionaries {
    pub(super) fn new(columns: &[usize]) -> Self {
        Self { columns: columns.to_vec(), latest: Vec::new() }
    }

    /// Returns rows in the schema of [`returned_schema`].
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the rows have other columns.
    pub(super) fn returned(&mut self, rows: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let (_, mut arrays, count) = rows.into_parts();
        self.latest.resize_with(arrays.len(), Views::default);
        let columns = arrays.iter_mut().zip(&mut self.latest).zip(schema.fields());
        for (position, ((array, latest), field)) in columns.enumerate() {
            let is_wanted = self.columns.contains(&position);
            *array = match (array.as_dictionary_opt::<UInt32Type>(), field.data_type()) {
                (Some(coded), _) if is_wanted => Arc::new(coded.with_values(latest.all(coded)?)),
                (None, _) if is_wanted => one_code_per_row(array)?,
                // The query itself may have made the dictionary.
                (None, _) | (Some(_), DataType::Dictionary(..)) => continue,
                (Some(coded), _) => latest.of_rows(coded)?,
            };
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
    }
}

/// Returns a column with itself as the dictionary.
fn one_code_per_row(array: &ArrayRef) -> Result<ArrayRef> {
    let codes: Vec<u32> = (0u32..).take(array.len()).collect();
    let codes = UInt32Array::new(codes.into(), array.nulls().cloned());
    Ok(Arc::new(DictionaryArray::try_new(codes, Arc::clone(array))?))
}
