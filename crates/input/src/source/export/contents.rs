//! The files that are evaluated together, and their columns.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::source::error::SourceError;
use crate::source::export::kept_copy::KeptCopy;
use crate::source::format::InputFormat;
use crate::source::input_path::InputPath;
use crate::source::meter::Reading;
use crate::source::open::Input;
use crate::source::options::InputOptions;
use evenkeel_model::note::Note;
use evenkeel_model::table::{Column, ColumnType};
use evenkeel_model::text_value::TimestampFormat;

/// Files that are evaluated together, with the columns they have. All columns are nullable: an
/// export is examined unchanged.
#[derive(Debug)]
pub struct Export {
    pub(super) inputs: Vec<InputPath>,
    pub(super) options: InputOptions,
    pub(super) columns: Arc<[Column]>,
    pub(super) schema: SchemaRef,
    notes: Vec<Note>,
    types: BTreeMap<String, ColumnType>,
    /// Copies of pipes, deleted when the last export of these rows is dropped.
    copies: Arc<Vec<KeptCopy>>,
}

impl Export {
    /// Creates an export whose columns are known; nothing is read yet. With the results of
    /// [`Export::inputs`], [`Export::options`] and [`Export::columns`] of another export it has the
    /// same rows, as long as the other is not dropped if it was read from a pipe.
    #[must_use]
    pub fn with_columns(inputs: Vec<InputPath>, options: InputOptions, columns: Vec<Column>) -> Self {
        let fields = columns.iter().map(|c| Field::new(&c.name, c.column_type.arrow_type(), true));
        Self {
            inputs,
            options,
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            columns: columns.into(),
            notes: Vec::new(),
            types: BTreeMap::new(),
            copies: Arc::default(),
        }
    }

    /// Returns an export of the same rows with other types of some columns.
    #[must_use]
    pub fn with_types(&self, types: &BTreeMap<String, ColumnType>) -> Self {
        let mut columns = self.columns.to_vec();
        for column in &mut columns {
            column.column_type = types.get(&column.name).copied().unwrap_or(column.column_type);
        }
        let all = self.types.iter().chain(types).map(|(name, t)| (name.clone(), *t)).collect();
        let same_rows = Self::with_columns(self.inputs.clone(), self.options.clone(), columns);
        same_rows.keeping(Arc::clone(&self.copies), self.notes.clone(), all)
    }

    /// Returns an export of the same rows in which some columns are points in time, in these
    /// formats.
    #[must_use]
    pub fn with_times(&self, formats: &BTreeMap<String, TimestampFormat>) -> Self {
        let mut options = self.options.clone();
        options.column_timestamps.extend(formats.iter().map(|(name, format)| (name.clone(), format.clone())));
        let times = formats.keys().map(|name| (name.clone(), ColumnType::Timestamp)).collect();
        Self { options, ..self.with_types(&times) }
    }

    /// Adds the results of opening the export: copies of pipes, notes, and overridden types.
    pub(super) fn keeping(
        self,
        copies: Arc<Vec<KeptCopy>>,
        notes: Vec<Note>,
        types: BTreeMap<String, ColumnType>,
    ) -> Self {
        Self { notes, types, copies, ..self }
    }

    /// Returns an export of the same rows with every column as the text in the files, if all of
    /// them are CSV.
    ///
    /// # Errors
    /// [`SourceError`] if an input cannot be read.
    pub fn as_text(&self) -> Result<Option<Self>, SourceError> {
        for input in &self.inputs {
            if Input::open_unknown(input, &[], &self.options)?.format() != InputFormat::Csv {
                return Ok(None);
            }
        }
        let text = |column: &Column| Column::nullable(&column.name, ColumnType::Utf8);
        let columns: Vec<Column> = self.columns.iter().map(text).collect();
        let fields = columns.iter().map(|column| Field::new(&column.name, DataType::Utf8, true));
        Ok(Some(Self {
            inputs: self.inputs.clone(),
            options: InputOptions { null_values: Vec::new(), ..self.options.clone() },
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            columns: columns.into(),
            notes: self.notes.clone(),
            types: BTreeMap::new(),
            copies: Arc::clone(&self.copies),
        }))
    }

    /// Returns the columns, in the order of the first input.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the Arrow schema of the batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the columns whose types were overridden, with these types.
    #[must_use]
    pub fn changed_types(&self) -> &BTreeMap<String, ColumnType> {
        &self.types
    }

    /// Returns remarks on columns and values that were left out or changed.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns the inputs.
    #[must_use]
    pub fn inputs(&self) -> &[InputPath] {
        &self.inputs
    }

    /// Returns the options for reading the inputs.
    #[must_use]
    pub fn options(&self) -> &InputOptions {
        &self.options
    }

    /// Returns the names of the inputs.
    #[must_use]
    pub fn input_names(&self) -> Vec<String> {
        self.inputs.iter().map(InputPath::name).collect()
    }

    /// Returns the paths of the inputs, if all of them are files.
    #[must_use]
    pub fn files(&self) -> Option<Vec<PathBuf>> {
        let file = |input: &InputPath| match input {
            InputPath::File(path) => Some(path.clone()),
            InputPath::Stdin | InputPath::Copy { .. } | InputPath::Remote(_) => None,
        };
        self.inputs.iter().map(file).collect()
    }

    /// Returns how much of the inputs has been read by the current pass; `None` if their size is
    /// not known.
    #[must_use]
    pub fn reading(&self) -> Option<Reading> {
        Reading::start(&self.inputs, &self.options.meter)
    }

    /// Returns the stored size of the inputs in bytes; an input that is not a file counts as 0.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.inputs.iter().map(InputPath::stored_bytes).sum()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }
}
