//! Reading of all rows of an export, in input order.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::source::conform::Conform;
use crate::source::error::SourceError;
use crate::source::export::contents::Export;
use crate::source::open::Input;
use crate::source::options::InputOptions;
use crate::source::raw::{Positions, RawBatch, RawCells};
use crate::source::reject::Reject;
use evenkeel_model::bounded::quote;
use evenkeel_model::note::Note;
use evenkeel_model::table::Column;

/// Treatment of rows that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnUnreadable {
    /// The first unreadable row is an error.
    #[default]
    Fail,
    /// Unreadable rows are left out and counted.
    Skip,
}

/// Rows and columns that were left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Number of rows.
    pub rows: u64,
    /// The first of these rows.
    pub first: Option<Reject>,
    /// Columns of inputs that the export does not have, each with the first input that has it.
    pub unknown_columns: BTreeMap<String, String>,
    /// Columns of the export that some inputs do not have, so that they are NULL there, each with
    /// the first of these inputs.
    pub missing_columns: BTreeMap<String, String>,
}

impl Unreadable {
    /// Adds the omissions of a later part.
    pub fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.first = self.first.take().or(later.first);
        for (column, input) in later.unknown_columns {
            self.unknown_columns.entry(column).or_insert(input);
        }
        for (column, input) in later.missing_columns {
            self.missing_columns.entry(column).or_insert(input);
        }
    }
}

/// Places of the rows of a batch.
#[derive(Debug, Clone)]
pub struct ExportPlace {
    input: Arc<str>,
    positions: Positions,
    /// Positions in the input of the rows in the batch, if some were left out.
    kept: Option<Vec<usize>>,
}

impl ExportPlace {
    /// Returns the place of a row of the batch, as messages show it: `x.csv, line 7`.
    #[must_use]
    pub fn row_place(&self, row: usize) -> String {
        let row = match &self.kept {
            Some(kept) => kept.get(row).copied().unwrap_or(row),
            None => row,
        };
        format!("{}, {}", self.input, self.positions.position(row))
    }
}

impl Export {
    /// Reads all rows in input order, from the first one on each call. `each` returns whether to
    /// continue.
    ///
    /// # Errors
    /// [`SourceError`] if an input cannot be read, or if a row cannot and `on_unreadable` makes
    /// that an error.
    pub fn read<E: From<SourceError>>(
        &self,
        on_unreadable: OnUnreadable,
        each: impl FnMut(&ExportPlace, RecordBatch) -> Result<bool, E>,
    ) -> Result<Unreadable, E> {
        self.read_with(self.options.clone(), on_unreadable, each)
    }

    /// Reads like [`Export::read`], but only the columns in the projection (others may be NULL),
    /// and returns text as views.
    ///
    /// # Errors
    /// See [`Export::read`].
    pub fn read_columns<E: From<SourceError>>(
        &self,
        on_unreadable: OnUnreadable,
        projection: &dyn Fn(usize) -> bool,
        each: impl FnMut(&ExportPlace, RecordBatch) -> Result<bool, E>,
    ) -> Result<Unreadable, E> {
        self.read_with(self.options_for(projection), on_unreadable, each)
    }

    /// Returns the options for reading the columns of a projection, with text as views.
    pub(super) fn options_for(&self, projection: &dyn Fn(usize) -> bool) -> InputOptions {
        // Values outside the range of a type are reported even in columns outside the projection.
        let excluded = self.columns.iter().enumerate().filter(|(position, column)| {
            !projection(*position) && column.column_type.value_range().is_none()
        });
        let excluded = excluded.map(|(_, column)| (column.name.clone(), column.column_type.arrow_type()));
        InputOptions { unprojected: excluded.collect(), views: true, ..self.options.clone() }
    }

    fn read_with<E: From<SourceError>>(
        &self,
        options: InputOptions,
        on_unreadable: OnUnreadable,
        mut each: impl FnMut(&ExportPlace, RecordBatch) -> Result<bool, E>,
    ) -> Result<Unreadable, E> {
        let mut unreadable = Unreadable::default();
        let names = self.names();
        options.meter.reset();
        for path in &self.inputs {
            let input = match Input::open_unknown(path, &names, &options) {
                Err(SourceError::Empty { .. }) if self.inputs.len() > 1 => continue,
                opened => opened?,
            };
            if !self.read_input(input, &options, on_unreadable, &mut unreadable, &mut each)? {
                return Ok(unreadable);
            }
        }
        Ok(unreadable)
    }

    /// Reads the rows of one input; returns whether to continue.
    pub(super) fn read_input<E: From<SourceError>>(
        &self,
        mut input: Input,
        options: &InputOptions,
        on_unreadable: OnUnreadable,
        unreadable: &mut Unreadable,
        each: &mut impl FnMut(&ExportPlace, RecordBatch) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let (columns, schema) = (Arc::clone(&self.columns), Arc::clone(&self.schema));
        let conform = Conform::to_columns(input.name(), columns, schema, options);
        if let Some(names) = input.column_names() {
            conform.check_names(&names)?;
            let names: HashSet<String> = names.into_iter().collect();
            for column in self.columns.iter().filter(|column| !names.contains(&column.name)) {
                let input = || input.name().to_owned();
                unreadable.missing_columns.entry(column.name.clone()).or_insert_with(input);
            }
        }
        let name: Arc<str> = input.name().into();
        let convert = |raw: RawBatch| (raw.positions.clone(), conform.conform(self.in_microseconds(raw)));
        let is_complete = input.convert_batches(convert, |(positions, conformed)| -> Result<bool, E> {
            let conformed = conformed?;
            let place = ExportPlace { input: Arc::clone(&name), positions, kept: conformed.kept };
            if let Some(first) = conformed.rejects.first() {
                if on_unreadable == OnUnreadable::Fail {
                    let reject = Box::new(first.clone());
                    return Err(SourceError::Unreadable { reject }.into());
                }
                unreadable.rows += conformed.rejects.len() as u64;
                unreadable.first.get_or_insert_with(|| first.clone());
            }
            Ok(conformed.batch.num_rows() == 0 || each(&place, conformed.batch)?)
        })?;
        if !is_complete {
            return Ok(false);
        }
        for column in input.unknown_columns() {
            unreadable.unknown_columns.entry(column).or_insert_with(|| name.to_string());
        }
        Ok(true)
    }

    /// Returns notes on the rows and columns that a reading left out.
    #[must_use]
    pub fn notes_on(&self, left_out: Unreadable) -> Vec<Note> {
        let Unreadable { rows, first, mut unknown_columns, missing_columns } = left_out;
        // Columns without a YDB type have a separate note.
        let without_type = self.notes().iter().filter_map(|note| match note {
            Note::ColumnLeftOut { column, .. } => Some(quote(column).to_string()),
            _ => None,
        });
        without_type.for_each(|column| drop(unknown_columns.remove(&column)));
        let mut notes = Vec::new();
        notes.extend(first.map(|first| Note::RowsLeftOut {
            rows,
            place: first.place(),
            first: Some(first.reason),
        }));
        if let Some(file) = unknown_columns.values().next().cloned() {
            notes.push(Note::UnknownColumns { columns: unknown_columns.into_keys().collect(), file });
        }
        if let Some(file) = missing_columns.values().next().cloned() {
            notes.push(Note::MissingColumns { columns: missing_columns.into_keys().collect(), file });
        }
        notes
    }

    /// Cuts timestamps finer than a microsecond to the precision of a YDB column.
    fn in_microseconds(&self, raw: RawBatch) -> RawBatch {
        let RawCells::Arrow(batch) = &raw.cells else { return raw };
        let is_finer =
            |data_type: &DataType| matches!(data_type, DataType::Timestamp(TimeUnit::Nanosecond, _));
        if !batch.columns().iter().any(|array| is_finer(array.data_type())) {
            return raw;
        }
        let cut = |array: &ArrayRef, name: &str| -> ArrayRef {
            let of_time = |column: &Column| column.name == name && column.column_type.is_timestamp();
            match array.data_type() {
                DataType::Timestamp(TimeUnit::Nanosecond, zone) if self.columns.iter().any(of_time) => {
                    cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
                        .unwrap_or_else(|_| Arc::clone(array))
                }
                _ => Arc::clone(array),
            }
        };
        let schema = batch.schema();
        let columns =
            schema.fields().iter().zip(batch.columns()).map(|(f, a)| (f.name(), cut(a, f.name()), true));
        match RecordBatch::try_from_iter_with_nullable(columns) {
            Ok(batch) => RawBatch { cells: RawCells::Arrow(batch), ..raw },
            Err(_) => raw,
        }
    }
}
