//! A whole export as one stream of batches with the columns that it itself declares.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::source::infer::infer_input;
use crate::source::{
    Conform, Input, InputFormat, InputOptions, InputPath, Positions, RawBatch, RawCells, Reject, SourceError,
};
use crate::table::{Column, ColumnType};

/// Batches of a block, at most.
const BATCHES_OF_BLOCK: usize = 16;
/// Bytes of a block, about, where rows are wide. Who reads in one thread and works in others has four blocks in memory at one time: some
/// rows are read, some wait, some are prepared and some are counted.
const BYTES_OF_BLOCK: usize = 16 << 20;

/// What is done with rows that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnUnreadable {
    /// The first one is an error.
    #[default]
    Fail,
    /// They are left out and counted.
    Skip,
}

/// Rows that were left out.
#[derive(Debug, Clone, Default)]
pub struct Unreadable {
    /// How many.
    pub rows: u64,
    /// The first one.
    pub first: Option<Reject>,
}

/// Where the rows of a batch stand.
#[derive(Debug, Clone)]
pub struct ExportPlace {
    input: Arc<str>,
    positions: Positions,
    /// Rows of the input that the batch has, where some were left out.
    kept: Option<Vec<usize>>,
}

impl ExportPlace {
    /// The place of a row of the batch, as it is called in messages: `x.csv, line 7`.
    #[must_use]
    pub fn of(&self, row: usize) -> String {
        let row = match &self.kept {
            Some(kept) => kept.get(row).copied().unwrap_or(row),
            None => row,
        };
        format!("{}, {}", self.input, self.positions.of(row))
    }
}

/// Files that are evaluated together, with the columns they have. All columns take NULL: what an export holds is seen as it is.
#[derive(Debug)]
pub struct Export {
    inputs: Vec<InputPath>,
    options: InputOptions,
    columns: Arc<[Column]>,
    schema: SchemaRef,
    notes: Vec<String>,
    types: BTreeMap<String, ColumnType>,
    /// Copies of pipes, which are deleted in the end.
    _copies: Vec<tempfile::TempPath>,
}

impl Export {
    /// The export in `inputs`. The columns are those of the first input that has rows, as [`crate::source::infer_columns`] finds them;
    /// `types` changes some of them. A pipe is copied to a temporary file first, because it is read more than once.
    ///
    /// # Errors
    /// [`SourceError`] where there is no row, an input cannot be read, or `types` names a column that there is not.
    pub fn open(
        inputs: &[InputPath],
        options: InputOptions,
        types: &BTreeMap<String, ColumnType>,
    ) -> Result<Self, SourceError> {
        let mut copies = Vec::new();
        let inputs = inputs.iter().map(|input| readable_again(input, &mut copies));
        let inputs: Vec<InputPath> = inputs.collect::<Result<_, _>>()?;
        let mut notes = Vec::new();
        let mut columns = first_columns(&inputs, &options, &mut notes)?;
        for (name, column_type) in types {
            let found = columns.iter_mut().find(|column| column.name == *name);
            let Some(column) = found else {
                return Err(SourceError::NoSuchColumn {
                    column: name.clone(),
                    found: columns.into_iter().map(|column| column.name).collect(),
                });
            };
            column.column_type = *column_type;
            notes.retain(|note| !note.contains(&format!("column '{name}'")));
        }
        let fields = columns.iter().map(|c| Field::new(&c.name, c.column_type.arrow_type(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self {
            inputs,
            options,
            columns: columns.into(),
            schema,
            notes,
            types: types.clone(),
            _copies: copies,
        })
    }

    /// The same rows with every column as the text that stands in the files, where all of them are CSV.
    ///
    /// # Errors
    /// [`SourceError`] where an input cannot be read.
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
            // Those of this one, which has to live as long.
            _copies: Vec::new(),
        }))
    }

    /// The columns, in the order of the first input.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The Arrow schema of the batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Columns whose type was given, with it.
    #[must_use]
    pub fn changed_types(&self) -> &BTreeMap<String, ColumnType> {
        &self.types
    }

    /// What was left out or changed, one sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How the inputs are called.
    #[must_use]
    pub fn input_names(&self) -> Vec<String> {
        self.inputs.iter().map(InputPath::name).collect()
    }

    /// The inputs, where all of them are files.
    #[must_use]
    pub fn files(&self) -> Option<Vec<PathBuf>> {
        let file = |input: &InputPath| match input {
            InputPath::File(path) => Some(path.clone()),
            InputPath::Stdin | InputPath::Copy { .. } | InputPath::Remote(_) => None,
        };
        self.inputs.iter().map(file).collect()
    }

    /// Bytes of the inputs as stored; 0 for what is no file.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        let bytes = |input: &InputPath| match input {
            InputPath::File(path) | InputPath::Copy { path, .. } => {
                std::fs::metadata(path).map_or(0, |metadata| metadata.len())
            }
            InputPath::Remote(file) => file.bytes,
            InputPath::Stdin => 0,
        };
        self.inputs.iter().map(bytes).sum()
    }

    /// Reads all rows in input order, from the first on each time it is called. `each` says whether to go on.
    ///
    /// # Errors
    /// [`SourceError`] where an input cannot be read, or a row where that is an error.
    pub fn read<E: From<SourceError>>(
        &self,
        on_unreadable: OnUnreadable,
        each: impl FnMut(&ExportPlace, RecordBatch) -> Result<bool, E>,
    ) -> Result<Unreadable, E> {
        self.read_with(self.options.clone(), on_unreadable, each)
    }

    /// As [`Export::read`], for someone who takes text as views and does not look at the columns at positions that are not `asked`
    /// for: these may be NULL.
    ///
    /// # Errors
    /// As for [`Export::read`].
    pub fn read_columns<E: From<SourceError>>(
        &self,
        on_unreadable: OnUnreadable,
        asked: &dyn Fn(usize) -> bool,
        each: impl FnMut(&ExportPlace, RecordBatch) -> Result<bool, E>,
    ) -> Result<Unreadable, E> {
        // What a type does not hold is told, whether asked for or not.
        let unasked = self
            .columns
            .iter()
            .enumerate()
            .filter(|(position, column)| !asked(*position) && column.column_type.value_range().is_none());
        let unasked = unasked.map(|(_, column)| (column.name.clone(), column.column_type.arrow_type()));
        let options = InputOptions { unasked: unasked.collect(), views: true, ..self.options.clone() };
        self.read_with(options, on_unreadable, each)
    }

    /// As [`Export::read_columns`], for someone in another thread: several batches at a time, of so many bytes about. `each` says whether
    /// to go on.
    ///
    /// # Errors
    /// As for [`Export::read`].
    pub fn read_blocks<E: From<SourceError>>(
        &self,
        on_unreadable: OnUnreadable,
        asked: &[bool],
        mut each: impl FnMut(Vec<RecordBatch>) -> bool,
    ) -> Result<Unreadable, E> {
        let asked = &|column: usize| asked.get(column).copied().unwrap_or(true);
        let (mut together, mut bytes) = (Vec::new(), 0);
        let read = self.read_columns::<E>(on_unreadable, asked, |_, batch| {
            bytes += batch.get_array_memory_size();
            together.push(batch);
            if together.len() < BATCHES_OF_BLOCK && bytes < BYTES_OF_BLOCK {
                return Ok(true);
            }
            bytes = 0;
            Ok(each(std::mem::take(&mut together)))
        });
        each(together);
        read
    }

    fn read_with<E: From<SourceError>>(
        &self,
        options: InputOptions,
        on_unreadable: OnUnreadable,
        mut each: impl FnMut(&ExportPlace, RecordBatch) -> Result<bool, E>,
    ) -> Result<Unreadable, E> {
        let mut unreadable = Unreadable::default();
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        for path in &self.inputs {
            let mut input = match Input::open_unknown(path, &names, &options) {
                Err(SourceError::Empty { .. }) if self.inputs.len() > 1 => continue,
                opened => opened?,
            };
            let (columns, schema) = (Arc::clone(&self.columns), Arc::clone(&self.schema));
            let conform = Conform::to_columns(input.name(), columns, schema, &options);
            if let Some(names) = input.column_names() {
                conform.check_names(&names)?;
            }
            let name: Arc<str> = input.name().into();
            while let Some(raw) = input.next_batch()? {
                let positions = raw.positions.clone();
                let conformed = conform.conform(self.in_microseconds(raw))?;
                let place = ExportPlace { input: Arc::clone(&name), positions, kept: conformed.kept };
                let rows = conformed.batch.num_rows() as u64;
                if let Some(first) = conformed.rejects.first() {
                    if on_unreadable == OnUnreadable::Fail {
                        let reject = Box::new(first.clone());
                        return Err(SourceError::Unreadable { reject }.into());
                    }
                    unreadable.rows += conformed.rejects.len() as u64;
                    unreadable.first.get_or_insert_with(|| first.clone());
                }
                if rows > 0 && !each(&place, conformed.batch)? {
                    return Ok(unreadable);
                }
            }
        }
        Ok(unreadable)
    }

    /// Timestamps finer than a microsecond are cut to what a column of YDB holds.
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

/// The columns of the first input that has rows.
fn first_columns(
    inputs: &[InputPath],
    options: &InputOptions,
    notes: &mut Vec<String>,
) -> Result<Vec<Column>, SourceError> {
    let mut nothing = SourceError::NoInput;
    for input in inputs {
        let sample = match infer_input(input, options) {
            Ok(sample) => sample,
            Err(error @ (SourceError::Empty { .. } | SourceError::NoRecord { .. })) => {
                nothing = error;
                continue;
            }
            Err(error) => return Err(error),
        };
        // What an ingest would refuse is cut here.
        notes.extend(sample.notes.into_iter().map(|note| match note.split_once(" counts nanoseconds") {
            Some((column, _)) => {
                format!(
                    "{column} counts nanoseconds; it is evaluated as the Timestamp of YDB, in microseconds"
                )
            }
            None => note,
        }));
        let nullable = |column: Column| Column { nullable: true, ..column };
        return Ok(sample.columns.into_iter().map(nullable).collect());
    }
    Err(nothing)
}

/// The input itself where it is a file; else a copy of it.
fn readable_again(input: &InputPath, copies: &mut Vec<tempfile::TempPath>) -> Result<InputPath, SourceError> {
    let name = input.name();
    let error = |source| SourceError::Read { file: name.clone(), source };
    let mut stream: Box<dyn io::Read> = match input {
        InputPath::Copy { .. } | InputPath::Remote(_) => return Ok(input.clone()),
        InputPath::File(path) if std::fs::metadata(path).map_err(error)?.is_file() => {
            return Ok(input.clone());
        }
        InputPath::File(path) => Box::new(File::open(path).map_err(error)?),
        InputPath::Stdin => Box::new(io::stdin()),
    };
    let mut copy = tempfile::NamedTempFile::new().map_err(error)?;
    io::copy(&mut stream, &mut copy).map_err(error)?;
    let copy = copy.into_temp_path();
    let path: PathBuf = copy.to_path_buf();
    copies.push(copy);
    Ok(InputPath::Copy { path, name })
}
