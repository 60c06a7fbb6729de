//! Converts raw rows to rows of the table: columns matched by name, values without loss, invalid
//! rows set apart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::floats::with_plain_nans;
use crate::source::delete_marks::{delete_marks, filled};
use crate::source::deletes::Deletes;
use crate::source::error::SourceError;
use crate::source::guess::{has_more_digits_than_double, loses_characters};
use crate::source::lossless::{check_range, read_array};
use crate::source::options::InputOptions;
use crate::source::raw::{RawBatch, RawCells};
use crate::source::reject::{Reject, RowPosition};
use evenkeel_model::bounded::quote;
use evenkeel_model::note::Fault;
use evenkeel_model::table::{Column, ColumnType, MAX_KEY_BYTES, TableSpec, as_view, view_schema};
use evenkeel_model::text_value::{CellFault, ParsedColumn, TextFormat, parse_text_column};

/// Converts the rows of one input to the schema of a table.
///
/// - A column is found by its name, in any position. A nullable column that the input lacks is
///   NULL; a missing NOT NULL column is an error. Columns that the table lacks are left out;
///   `Input::unknown_columns` reports them to the caller.
/// - A value is accepted if the table's type holds it exactly. Times of another unit or zone are
///   the same instant; text is parsed as in a text file.
/// - A row with a value that cannot be accepted, with NULL in a NOT NULL column or with a key of
///   more than 1 MB becomes a [`Reject`]; the other rows of its batch are accepted.
#[derive(Debug, Clone)]
pub struct Conform {
    file: String,
    columns: Arc<[Column]>,
    schema: SchemaRef,
    /// Columns of the primary key; empty if no table is declared.
    primary_key: Vec<usize>,
    /// Spelling of values, per column of the table.
    text: Vec<TextFormat>,
    /// Columns of numbers whose types are guesses.
    guessed: BTreeSet<String>,
    /// Whether text and bytes are returned as views.
    views: bool,
    /// Whether batches lack columns that are outside a projection.
    is_projected: bool,
    /// Rows that delete.
    deletes: Deletes,
}

/// Accepted rows of the table, and rejected ones.
#[derive(Debug, Clone)]
pub struct Conformed {
    /// Rows in input order, in the schema of the table.
    pub batch: RecordBatch,
    /// Positions of the accepted rows in the raw batch; `None` if all were accepted.
    pub kept: Option<Vec<usize>>,
    /// Rejected rows, in input order.
    pub rejects: Vec<Reject>,
    /// Marks of the accepted rows that delete, NULL if the column that marks deletes is NULL;
    /// `None` if no row can delete. Only the key columns of marked rows have a meaning.
    pub deletes: Option<BooleanArray>,
}

/// Types of whole numbers.
const WHOLE_NUMBERS: [ColumnType; 8] = [
    ColumnType::Int8,
    ColumnType::Int16,
    ColumnType::Int32,
    ColumnType::Int64,
    ColumnType::Uint8,
    ColumnType::Uint16,
    ColumnType::Uint32,
    ColumnType::Uint64,
];

/// Adds faults for strings that a whole number does not preserve: `007`, `+7`, ` 7`.
fn check_digits(cells: &RawCells, column: &str, parsed: &mut ParsedColumn) {
    let RawCells::Text(columns) = cells else { return };
    let Some((_, cells)) = columns.iter().find(|(name, _)| name == column) else { return };
    let changes = |cell: &[u8]| {
        let digits = cell.strip_prefix(b"-").unwrap_or(cell);
        matches!(digits, [b'0', b'0'..=b'9', ..] | [b'+', ..]) || cell.trim_ascii() != cell
    };
    for (row, cell) in cells.iter().enumerate() {
        if let Some(cell) = cell.filter(|cell| changes(cell)) {
            let problem = "is text that a whole number would change; read the column as utf8";
            parsed.faults.push(CellFault { row, fault: Fault::in_value(cell, problem) });
        }
    }
}

/// Adds faults for values that lose leading zeros, a sign or digits as numbers. Their column was
/// taken for numbers because its first values lose nothing.
fn check_guess(column: &Column, cells: &BinaryArray, parsed: &mut ParsedColumn) {
    let problem = |cell: &[u8]| {
        if loses_characters(cell) {
            return Some("would lose its leading zeros or its sign as a number");
        }
        let is_lossy = column.column_type == ColumnType::Double && has_more_digits_than_double(cell);
        is_lossy.then_some("has more digits than Double keeps")
    };
    for (row, cell) in cells.iter().enumerate() {
        if let Some((cell, problem)) = cell.and_then(|cell| Some((cell, problem(cell)?))) {
            let name = quote(&column.name);
            let problem = format!(
                "{problem}, which '{name}' was taken for because of its first values; --type {name}:utf8 keeps it, \
                 --type {name}:{} reads it so",
                column.column_type.to_string().to_lowercase()
            );
            parsed.faults.push(CellFault { row, fault: Fault::in_value(cell, problem) });
        }
    }
}

fn is_marked(marks: Option<&BooleanArray>, row: usize) -> bool {
    marks.is_some_and(|marks| marks.is_valid(row) && marks.value(row))
}

/// The first fault of each row at fault.
type Faults = BTreeMap<usize, (Option<String>, Fault)>;

impl Conform {
    /// Creates a converter for the input called `file`.
    #[must_use]
    pub fn new(file: &str, spec: &TableSpec, options: &InputOptions) -> Self {
        let schema = Arc::clone(spec.schema());
        Self::with(file, spec.columns().into(), schema, spec.primary_key().to_vec(), options)
    }

    /// Creates a converter to `columns` that do not belong to a table yet, for the input called
    /// `file`.
    #[must_use]
    pub fn to_columns(file: &str, columns: Arc<[Column]>, schema: SchemaRef, options: &InputOptions) -> Self {
        Self::with(file, columns, schema, Vec::new(), options)
    }

    fn with(
        file: &str,
        columns: Arc<[Column]>,
        schema: SchemaRef,
        primary_key: Vec<usize>,
        options: &InputOptions,
    ) -> Self {
        let text = columns.iter().map(|column| options.text_of(&column.name)).collect();
        let schema = if options.views { view_schema(&schema) } else { schema };
        let is_number = |kind: ColumnType| WHOLE_NUMBERS.contains(&kind) || kind == ColumnType::Double;
        let guessed = columns.iter().filter(|column| is_number(column.column_type));
        let guessed = guessed.map(|column| &column.name).filter(|name| options.guessed.contains(*name));
        let (guessed, views) = (guessed.cloned().collect(), options.views);
        let is_projected = !options.unprojected.is_empty();
        let deletes = options.deletes.clone();
        Self {
            file: file.to_owned(),
            columns,
            schema,
            primary_key,
            text,
            guessed,
            views,
            is_projected,
            deletes,
        }
    }

    /// Checks that an input with the columns `names` can serve the table. `names` holds all its
    /// columns, so that the error for a missing one can list them.
    ///
    /// # Errors
    /// [`SourceError`] if a NOT NULL column is missing, or every column.
    pub fn check_names(&self, names: &[String]) -> Result<(), SourceError> {
        let declared: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        if !names.iter().any(|name| declared.contains(name)) {
            return Err(SourceError::NoCommonColumn {
                file: self.file.clone(),
                found: names.to_vec(),
                declared,
            });
        }
        if let Deletes::Where { column, .. } = &self.deletes
            && !names.contains(column)
        {
            let column = column.clone();
            return Err(SourceError::DeleteColumn { file: self.file.clone(), column, found: names.to_vec() });
        }
        let is_needed = |index: usize| !self.deletes.needs_only_keys() || self.primary_key.contains(&index);
        let is_missing = |(index, column): &(usize, &Column)| {
            !column.nullable && is_needed(*index) && !names.contains(&column.name)
        };
        match self.columns.iter().enumerate().find(is_missing) {
            Some((_, column)) => Err(SourceError::MissingColumn {
                file: self.file.clone(),
                column: column.name.clone(),
                found: names.to_vec(),
            }),
            None => Ok(()),
        }
    }

    /// Converts a batch to the table's schema.
    ///
    /// # Errors
    /// [`SourceError`] if a whole column is missing or has a type that cannot be read as the
    /// table's.
    pub fn conform(&self, raw: RawBatch) -> Result<Conformed, SourceError> {
        let rows = match &raw.cells {
            RawCells::Text(columns) => columns.first().map_or(0, |(_, cells)| cells.len()),
            RawCells::Arrow(batch) => batch.num_rows(),
        };
        if let RawCells::Arrow(batch) = &raw.cells {
            let names: Vec<String> =
                batch.schema().fields().iter().map(|field| field.name().clone()).collect();
            if !self.is_projected {
                self.check_names(&names)?;
            }
        }
        let marks = delete_marks(&self.deletes, &raw.cells, rows).map_err(|data_type| {
            SourceError::DeleteColumnType { file: self.file.clone(), found: data_type.to_string() }
        })?;
        let mut faults = Faults::new();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (index, (column, text)) in self.columns.iter().zip(&self.text).enumerate() {
            let mut parsed = self.column(column, text, &raw.cells, rows)?;
            if raw.is_json && WHOLE_NUMBERS.contains(&column.column_type) {
                check_digits(&raw.cells, &column.name, &mut parsed);
            } else if self.guessed.contains(&column.name)
                && let Some(cells) = raw.cells.text_of(&column.name)
            {
                check_guess(column, &cells, &mut parsed);
            }
            // Of a row that deletes, only the key matters.
            let marks = marks.as_ref().filter(|_| !self.primary_key.contains(&index));
            for fault in parsed.faults {
                if !is_marked(marks, fault.row) {
                    faults.entry(fault.row).or_insert((Some(column.name.clone()), fault.fault));
                }
            }
            self.check_nulls(index, column, &parsed.values, marks, &mut faults);
            columns.push(match marks {
                Some(marks) => filled(column, &parsed.values, marks)
                    .map_err(|source| SourceError::Arrow { file: self.file.clone(), source })?,
                None => parsed.values,
            });
        }
        self.check_key_bytes(&columns, &mut faults);
        let batch = self.assemble(columns, rows, &faults)?;
        let deletes = marks.map(|marks| {
            let kept = marks.iter().enumerate().filter(|(row, _)| !faults.contains_key(row));
            kept.map(|(_, mark)| mark).collect()
        });
        let taken = || (0..rows).filter(|row| !faults.contains_key(row)).collect();
        let kept = (!faults.is_empty()).then(taken);
        let mut rejects = self.rejects(&raw, faults);
        rejects.extend(raw.broken);
        rejects.sort_by_key(|reject| match reject.position {
            RowPosition::Line(number) | RowPosition::Row(number) => number,
        });
        Ok(Conformed { batch, kept, rejects, deletes })
    }

    fn column(
        &self,
        column: &Column,
        text: &TextFormat,
        cells: &RawCells,
        rows: usize,
    ) -> Result<ParsedColumn, SourceError> {
        let null = || ParsedColumn {
            values: new_null_array(&column.column_type.arrow_type(), rows),
            faults: Vec::new(),
        };
        let parsed = match cells {
            RawCells::Text(columns) => columns
                .iter()
                .find(|(name, _)| *name == column.name)
                .map(|(_, cells)| parse_text_column(cells, column.column_type, text)),
            RawCells::Arrow(batch) => {
                let read = |array: &ArrayRef| {
                    if self.views
                        && array.data_type() == &DataType::Utf8View
                        && column.column_type == ColumnType::Utf8
                    {
                        return Ok(ParsedColumn { values: Arc::clone(array), faults: Vec::new() });
                    }
                    read_array(array, column.column_type, text).ok_or_else(|| SourceError::ColumnType {
                        file: self.file.clone(),
                        column: column.name.clone(),
                        found: array.data_type().to_string(),
                        column_type: column.column_type,
                    })
                };
                batch.column_by_name(&column.name).map(read).transpose()?
            }
        };
        let mut parsed = parsed.unwrap_or_else(null);
        check_range(column.column_type, &mut parsed);
        if let Some(plain) = with_plain_nans(&parsed.values) {
            parsed.values = plain;
        }
        if self.views {
            parsed.values = as_view(&parsed.values)
                .map_err(|source| SourceError::Arrow { file: self.file.clone(), source })?;
        }
        Ok(parsed)
    }

    /// Adds a fault for each NULL in a NOT NULL column, except in marked rows.
    fn check_nulls(
        &self,
        index: usize,
        column: &Column,
        array: &ArrayRef,
        marks: Option<&BooleanArray>,
        faults: &mut Faults,
    ) {
        if column.nullable || array.null_count() == 0 {
            return;
        }
        let place = if self.primary_key.contains(&index) { "primary-key column" } else { "column" };
        for row in (0..array.len()).filter(|row| array.is_null(*row) && !is_marked(marks, *row)) {
            let fault = Fault::in_row(format!("is NULL, the {place} is NOT NULL"));
            faults.entry(row).or_insert((Some(column.name.clone()), fault));
        }
    }

    fn check_key_bytes(&self, columns: &[ArrayRef], faults: &mut Faults) {
        let text: Vec<&ArrayRef> = self
            .primary_key
            .iter()
            .filter_map(|index| columns.get(*index))
            .filter(|array| array.data_type().is_string() || array.data_type().is_binary())
            .collect();
        let bytes_of = |array: &ArrayRef, row: usize| match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().value(row).len(),
            DataType::Utf8View => array.as_string_view().value(row).len(),
            DataType::BinaryView => array.as_binary_view().value(row).len(),
            _ => array.as_binary::<i32>().value(row).len(),
        };
        let all: usize = text.iter().map(|array| array.get_buffer_memory_size()).sum();
        if all <= MAX_KEY_BYTES {
            return;
        }
        for row in 0..text.first().map_or(0, |array| array.len()) {
            let bytes: usize =
                text.iter().filter(|array| array.is_valid(row)).map(|a| bytes_of(a, row)).sum();
            if bytes > MAX_KEY_BYTES {
                let reason =
                    format!("the primary key has {bytes} bytes of text, YDB accepts at most {MAX_KEY_BYTES}");
                faults.entry(row).or_insert((None, Fault::in_row(reason)));
            }
        }
    }

    fn assemble(
        &self,
        columns: Vec<ArrayRef>,
        rows: usize,
        faults: &Faults,
    ) -> Result<RecordBatch, SourceError> {
        let error = |source: ArrowError| SourceError::Arrow { file: self.file.clone(), source };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        if faults.is_empty() {
            let schema = Arc::clone(&self.schema);
            return RecordBatch::try_new_with_options(schema, columns, &options).map_err(error);
        }
        // Rows at fault may hold NULL in NOT NULL columns until they are removed.
        let fields: Vec<Field> =
            self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let lenient = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options);
        let keep: BooleanArray = (0..rows).map(|row| Some(!faults.contains_key(&row))).collect();
        let kept = lenient.and_then(|batch| filter_record_batch(&batch, &keep)).map_err(error)?;
        let options = RecordBatchOptions::new().with_row_count(Some(kept.num_rows()));
        let schema = Arc::clone(&self.schema);
        RecordBatch::try_new_with_options(schema, kept.columns().to_vec(), &options).map_err(error)
    }

    fn rejects(&self, raw: &RawBatch, faults: Faults) -> Vec<Reject> {
        faults
            .into_iter()
            .map(|(row, (column, reason))| Reject {
                file: self.file.clone(),
                position: raw.positions.position(row),
                column,
                reason,
                record: raw.cells.record(row),
            })
            .collect()
    }
}

#[cfg(test)]
#[path = "conform_tests.rs"]
mod tests;
