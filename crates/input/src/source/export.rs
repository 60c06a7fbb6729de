//! A whole export as one stream of batches, with the columns that it declares itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::source::infer::{infer_input, type_of_values};
use crate::source::{
    Conform, Input, InputFormat, InputOptions, InputPath, Positions, RawBatch, RawCells, Reject, SourceError,
};
use evenkeel_model::note::Note;
use evenkeel_model::table::{Column, ColumnType};

/// Maximum number of batches in a block.
const BATCHES_OF_BLOCK: usize = 16;
/// Approximate maximum size of a block in bytes if rows are wide. With one reading thread and
/// several workers, four blocks are in memory at one time: one is read, one is waiting, one is
/// prepared and one is counted.
const BYTES_OF_BLOCK: usize = 16 << 20;

/// Number of rows and bytes to examine for the types of columns without a value at the beginning.
const ROWS_OF_TYPES: usize = 100_000;
const BYTES_OF_TYPES: usize = 64 << 20;

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

/// Rows that were left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Number of rows.
    pub rows: u64,
    /// The first of these rows.
    pub first: Option<Reject>,
}

impl Unreadable {
    /// Adds the unreadable rows of a later part.
    pub fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.first = self.first.take().or(later.first);
    }
}

/// A range of rows of an export whose inputs are Parquet files, counted from 0 over all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// The rows.
    pub rows: Range<u64>,
    /// Number of rows of each input, as returned by [`row_counts`].
    pub row_counts: Vec<u64>,
}

impl Stretch {
    /// Returns the rows of each input that are in the range, counted from 0 within the input;
    /// `None` for an input without such rows.
    fn of_inputs(&self) -> impl Iterator<Item = Option<Range<u64>>> {
        let mut begin = 0u64;
        self.row_counts.iter().map(move |count| {
            let within = |row: u64| row.saturating_sub(begin).min(*count);
            let rows = within(self.rows.start)..within(self.rows.end);
            begin = begin.saturating_add(*count);
            (!rows.is_empty()).then_some(rows)
        })
    }
}

/// Returns the number of rows of each input, if all inputs are Parquet files of which ranges can be
/// read; otherwise `None`. An empty file among others has no rows.
///
/// # Errors
/// [`SourceError`] if an input cannot be read.
pub fn row_counts(inputs: &[InputPath], options: &InputOptions) -> Result<Option<Vec<u64>>, SourceError> {
    let count = |input: &InputPath| match input {
        InputPath::Stdin | InputPath::Copy { .. } => Ok(None),
        // Anything other than a regular file can be read only once.
        InputPath::File(path) if !path.is_file() => Ok(None),
        InputPath::File(_) | InputPath::Remote(_) => match Input::open_unknown(input, &[], options) {
            Err(SourceError::Empty { .. }) if inputs.len() > 1 => Ok(Some(0)),
            opened => Ok(opened?.row_count()),
        },
    };
    inputs.iter().map(count).collect()
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

/// Files that are evaluated together, with the columns they have. All columns take NULL: an export
/// is examined as it is.
#[derive(Debug)]
pub struct Export {
    inputs: Vec<InputPath>,
    options: InputOptions,
    columns: Arc<[Column]>,
    schema: SchemaRef,
    notes: Vec<Note>,
    types: BTreeMap<String, ColumnType>,
    /// Copies of pipes, deleted when the export is dropped.
    _copies: Vec<tempfile::TempPath>,
}

impl Export {
    /// Opens the export in `inputs`. The columns are those of the first input with rows, as found
    /// by [`crate::source::infer_columns`]; `types` overrides the types of some. A pipe is copied
    /// to a temporary file first, because it is read more than once.
    ///
    /// # Errors
    /// [`SourceError`] if there are no rows, an input cannot be read, or `types` names an unknown
    /// column.
    pub fn open(
        inputs: &[InputPath],
        options: InputOptions,
        types: &BTreeMap<String, ColumnType>,
    ) -> Result<Self, SourceError> {
        let mut copies = Vec::new();
        let inputs = inputs.iter().map(|input| readable_again(input, &mut copies));
        let inputs: Vec<InputPath> = inputs.collect::<Result<_, _>>()?;
        let mut notes = Vec::new();
        let (mut columns, mut without_values) = first_columns(&inputs, &options, &mut notes)?;
        without_values.retain(|name| !types.contains_key(name));
        if !without_values.is_empty() {
            columns = Self::with_columns(inputs.clone(), options.clone(), columns)
                .with_types_of(&without_values)?;
        }
        for (name, column_type) in types {
            let found = columns.iter_mut().find(|column| column.name == *name);
            let Some(column) = found else {
                return Err(SourceError::NoSuchColumn {
                    column: name.clone(),
                    found: columns.into_iter().map(|column| column.name).collect(),
                });
            };
            column.column_type = *column_type;
            notes.retain(|note| note.column() != Some(name));
        }
        let export = Self::with_columns(inputs, options, columns);
        Ok(Self { notes, types: types.clone(), _copies: copies, ..export })
    }

    /// Returns the columns; those in `without_values` get the type of the values that later rows
    /// have.
    fn with_types_of(&self, without_values: &[String]) -> Result<Vec<Column>, SourceError> {
        let most = (ROWS_OF_TYPES, BYTES_OF_TYPES);
        let rows = self.rows_across::<SourceError>(OnUnreadable::Skip, most, &AtomicBool::new(false))?;
        let mut opened =
            self.inputs.iter().filter_map(|path| Input::open_unknown(path, &[], &self.options).ok());
        let json = opened.next().is_some_and(|input| input.format() == InputFormat::Ndjson);
        let mut columns = self.columns.to_vec();
        for (position, column) in columns.iter_mut().enumerate() {
            if !without_values.contains(&column.name) {
                continue;
            }
            let arrays = rows.batches.iter().filter_map(|batch| batch.columns().get(position));
            let arrays: Vec<ArrayRef> =
                arrays.filter_map(|array| cast(array, &DataType::Binary).ok()).collect();
            let cells = arrays.iter().filter_map(|array| array.as_binary_opt::<i32>());
            let found = type_of_values(cells, &self.options.text_of(&column.name), json);
            column.column_type = found.unwrap_or(column.column_type);
        }
        Ok(columns)
    }

    /// Creates an export whose columns are known; nothing is read yet. With the results of
    /// [`Export::inputs`], [`Export::options`] and [`Export::columns`] of another export it has the
    /// same rows.
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
            _copies: Vec::new(),
        }
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
            // The copies belong to the original export, which must outlive this one.
            _copies: Vec::new(),
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

    /// Returns the stored size of the inputs in bytes; an input that is not a file counts as 0.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.inputs.iter().map(InputPath::stored_bytes).sum()
    }

    /// Reads all rows in input order, from the first one on each call. `each` returns whether to go
    /// on.
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
        asked: &dyn Fn(usize) -> bool,
        each: impl FnMut(&ExportPlace, RecordBatch) -> Result<bool, E>,
    ) -> Result<Unreadable, E> {
        self.read_with(self.options_for(asked), on_unreadable, each)
    }

    /// Returns the options for reading the columns of a projection, with text as views.
    pub(super) fn options_for(&self, asked: &dyn Fn(usize) -> bool) -> InputOptions {
        // Values outside the range of a type are reported even in columns outside the projection.
        let unasked = self
            .columns
            .iter()
            .enumerate()
            .filter(|(position, column)| !asked(*position) && column.column_type.value_range().is_none());
        let unasked = unasked.map(|(_, column)| (column.name.clone(), column.column_type.arrow_type()));
        InputOptions { unasked: unasked.collect(), views: true, ..self.options.clone() }
    }

    /// Reads like [`Export::read_columns`], but passes on blocks of several batches with a limited
    /// total size, for another thread. `each` returns whether to go on.
    ///
    /// # Errors
    /// See [`Export::read`].
    pub fn read_blocks<E: From<SourceError>>(
        &self,
        on_unreadable: OnUnreadable,
        asked: &[bool],
        each: impl FnMut(Vec<RecordBatch>) -> bool,
    ) -> Result<Unreadable, E> {
        let asked = &|column: usize| asked.get(column).copied().unwrap_or(true);
        let mut blocks = Blocks { together: Vec::new(), bytes: 0, each };
        let read = self.read_columns::<E>(on_unreadable, asked, |_, batch| Ok(blocks.add(batch)));
        blocks.end();
        read
    }

    /// Reads like [`Export::read_blocks`], but only a range of rows: row groups without any of them
    /// are not decoded.
    ///
    /// # Errors
    /// See [`Export::read`]; also [`SourceError::Changed`] if an input does not have the expected
    /// number of rows.
    pub fn read_stretch<E: From<SourceError>>(
        &self,
        stretch: &Stretch,
        on_unreadable: OnUnreadable,
        asked: &[bool],
        each: impl FnMut(Vec<RecordBatch>) -> bool,
    ) -> Result<Unreadable, E> {
        let options = self.options_for(&|column: usize| asked.get(column).copied().unwrap_or(true));
        let mut unreadable = Unreadable::default();
        let mut blocks = Blocks { together: Vec::new(), bytes: 0, each };
        for ((path, rows), expected) in self.inputs.iter().zip(stretch.of_inputs()).zip(&stretch.row_counts) {
            let Some(rows) = rows else { continue };
            let options = InputOptions { rows: Some(rows), ..options.clone() };
            let input = Input::open_unknown(path, &self.names(), &options)?;
            let found = input.row_count();
            if found != Some(*expected) {
                return Err(SourceError::Changed { file: path.name(), expected: *expected, found }.into());
            }
            let mut add = |_: &ExportPlace, batch| Ok::<bool, E>(blocks.add(batch));
            if !self.read_input(input, &options, on_unreadable, &mut unreadable, &mut add)? {
                return Ok(unreadable);
            }
        }
        blocks.end();
        Ok(unreadable)
    }

    fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    fn read_with<E: From<SourceError>>(
        &self,
        options: InputOptions,
        on_unreadable: OnUnreadable,
        mut each: impl FnMut(&ExportPlace, RecordBatch) -> Result<bool, E>,
    ) -> Result<Unreadable, E> {
        let mut unreadable = Unreadable::default();
        let names = self.names();
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

    /// Reads the rows of one input; returns whether to go on.
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
                return Ok(false);
            }
        }
        Ok(true)
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

/// Collects batches into blocks.
struct Blocks<F> {
    together: Vec<RecordBatch>,
    bytes: usize,
    each: F,
}

impl<F: FnMut(Vec<RecordBatch>) -> bool> Blocks<F> {
    /// Adds a batch; returns whether to go on.
    fn add(&mut self, batch: RecordBatch) -> bool {
        self.bytes += batch.get_array_memory_size();
        self.together.push(batch);
        if self.together.len() < BATCHES_OF_BLOCK && self.bytes < BYTES_OF_BLOCK {
            return true;
        }
        self.bytes = 0;
        (self.each)(std::mem::take(&mut self.together))
    }

    /// Passes on the last block.
    fn end(mut self) {
        (self.each)(self.together);
    }
}

/// Returns the columns of the first input that has rows, and the names of those without a value in
/// it.
fn first_columns(
    inputs: &[InputPath],
    options: &InputOptions,
    notes: &mut Vec<Note>,
) -> Result<(Vec<Column>, Vec<String>), SourceError> {
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
        // An ingest would refuse these values; here they are cut.
        notes.extend(sample.notes.into_iter().map(|note| match note {
            Note::NanosecondsRefused { column } => Note::NanosecondsCut { column },
            other => other,
        }));
        let nullable = |column: Column| Column { nullable: true, ..column };
        return Ok((sample.columns.into_iter().map(nullable).collect(), sample.without_values));
    }
    Err(nothing)
}

/// Returns the input itself if it can be read again; otherwise a copy of it.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use arrow::array::{Int64Array, StringArray};
    use arrow::compute::concat_batches;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    use super::*;

    /// Writes one file per number of rows, in row groups of 100; the row numbers continue from file
    /// to file.
    fn files(folder: &Path, rows: &[i64]) -> Vec<InputPath> {
        let mut begin = 0;
        let file = |(number, rows): (usize, &i64)| {
            let numbers = begin..begin + rows;
            begin += rows;
            let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers.clone()));
            let texts: ArrayRef =
                Arc::new(StringArray::from_iter_values(numbers.map(|id| format!("row {id}"))));
            let batch = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
            let path = folder.join(format!("{number}.parquet"));
            let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100)).build();
            let file = File::create(&path).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            InputPath::File(path)
        };
        rows.iter().enumerate().map(file).collect()
    }

    fn read(export: &Export, stretch: Option<&Stretch>, asked: &[bool]) -> Result<RecordBatch, SourceError> {
        let mut batches = Vec::new();
        let each = |block: Vec<RecordBatch>| {
            batches.extend(block);
            true
        };
        match stretch {
            Some(stretch) => export.read_stretch::<SourceError>(stretch, OnUnreadable::Fail, asked, each)?,
            None => export.read_blocks::<SourceError>(OnUnreadable::Fail, asked, each)?,
        };
        let Some(first) = batches.first() else {
            return Ok(RecordBatch::new_empty(Arc::new(Schema::empty())));
        };
        Ok(concat_batches(&first.schema(), &batches).unwrap())
    }

    #[test]
    fn stretches_are_the_rows_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut inputs = files(folder.path(), &[250, 0, 1000, 7, 333]);
        let empty = folder.path().join("empty.parquet");
        std::fs::write(&empty, "").unwrap();
        inputs.insert(2, InputPath::File(empty));
        let options = InputOptions { batch_rows: 64, ..InputOptions::default() };
        let export = Export::open(&inputs, options.clone(), &BTreeMap::new()).unwrap();
        let there = Export::with_columns(inputs.clone(), options.clone(), export.columns().to_vec());
        let counts = row_counts(&inputs, &options).unwrap().unwrap();
        assert_eq!(counts, [250, 0, 0, 1000, 7, 333]);
        for asked in [[true, true], [true, false], [false, true]] {
            let whole = read(&export, None, &asked).unwrap();
            assert_eq!(whole.num_rows(), 1590);
            for length in [1, 99, 100, 251, 1590, 5000] {
                // Reading one row at a time would take too long, so only some are read.
                let step = if length == 1 { 123 } else { length };
                for begin in (0..1590).step_by(step as usize) {
                    let rows = begin..(begin + length).min(1590);
                    let expected = whole.slice(begin as usize, (rows.end - begin) as usize);
                    let stretch = Stretch { rows: rows.clone(), row_counts: counts.clone() };
                    assert_eq!(read(&there, Some(&stretch), &asked).unwrap(), expected, "{rows:?} {asked:?}");
                }
            }
        }
        let beyond = Stretch { rows: 1590..2000, row_counts: counts };
        assert_eq!(read(&there, Some(&beyond), &[true, true]).unwrap().num_rows(), 0);
    }

    #[test]
    fn what_is_no_plain_parquet_has_no_row_counts() {
        let folder = tempfile::tempdir().unwrap();
        let mut inputs = files(folder.path(), &[10]);
        let options = InputOptions::default();
        let unpacked = std::fs::read(folder.path().join("0.parquet")).unwrap();
        let packed = folder.path().join("packed.parquet.zst");
        std::fs::write(&packed, zstd::encode_all(unpacked.as_slice(), 1).unwrap()).unwrap();
        let text = folder.path().join("text.csv");
        std::fs::write(&text, "id,text\n1,a\n").unwrap();
        assert_eq!(row_counts(&inputs, &options).unwrap(), Some(vec![10]));
        for other in [InputPath::File(packed), InputPath::File(text), InputPath::Stdin] {
            inputs.truncate(1);
            inputs.push(other);
            assert_eq!(row_counts(&inputs, &options).unwrap(), None, "{inputs:?}");
        }
        let nothing = folder.path().join("nothing.parquet");
        std::fs::write(&nothing, "").unwrap();
        let nothing = row_counts(&[InputPath::File(nothing)], &options);
        assert!(matches!(nothing, Err(SourceError::Empty { .. })));
    }

    #[test]
    fn a_file_that_changed_is_told_and_a_row_is_told_by_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = files(folder.path(), &[250, 400]);
        let types = BTreeMap::from([("id".to_owned(), ColumnType::Int16)]);
        let export = Export::open(&inputs, InputOptions::default(), &types).unwrap();
        let stretch = |rows: Range<u64>, counts: [u64; 2]| Stretch { rows, row_counts: counts.to_vec() };
        let changed = read(&export, Some(&stretch(0..300, [250, 399])), &[true, true]);
        assert!(matches!(changed, Err(SourceError::Changed { expected: 399, found: Some(400), .. })));
        let types = BTreeMap::from([("id".to_owned(), ColumnType::Uint8)]);
        let export = Export::open(&inputs, InputOptions::default(), &types).unwrap();
        let told =
            |stretch: Option<&Stretch>| read(&export, stretch, &[false, true]).unwrap_err().to_string();
        let second = stretch(270..650, [250, 400]);
        assert!(told(None).contains("1.parquet, row 7"), "{}", told(None));
        assert!(told(Some(&second)).contains("1.parquet, row 21"), "{}", told(Some(&second)));
    }

    #[test]
    fn what_was_left_out_travels_and_adds_up() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = files(folder.path(), &[300]);
        let types = BTreeMap::from([("id".to_owned(), ColumnType::Uint8)]);
        let export = Export::open(&inputs, InputOptions::default(), &types).unwrap();
        let left_out = |rows: Range<u64>| {
            let stretch = Stretch { rows, row_counts: vec![300] };
            let read: Result<Unreadable, SourceError> =
                export.read_stretch(&stretch, OnUnreadable::Skip, &[true, true], |_| true);
            let text = serde_json::to_string(&read.unwrap()).unwrap();
            serde_json::from_str::<Unreadable>(&text).unwrap()
        };
        let whole = left_out(0..300);
        let mut together = left_out(0..100);
        assert_eq!((together.rows, &together.first), (0, &None));
        together.merge(left_out(100..270));
        together.merge(left_out(270..300));
        assert_eq!((together.rows, &together), (44, &whole));
    }

    #[test]
    fn a_column_without_a_value_at_the_beginning_has_the_type_of_its_values_further_on() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            InputPath::File(path)
        };
        let rows = |begin: usize, at: &str, n: &str| -> String {
            (begin..begin + 50).map(|id| format!("{id},{at},{n},\n")).collect()
        };
        let first = write("1.csv", format!("id,at,n,never\n{}", rows(0, "", "")));
        let second = write("2.csv", format!("id,at,n,never\n{}", rows(50, "2026-01-31T10:00:00Z", "")));
        let third = write("3.csv", format!("id,at,n,never\n{}", rows(100, "2026-02-01T10:00:00Z", "7")));
        let types = |inputs: &[InputPath]| {
            let export = Export::open(inputs, InputOptions::default(), &BTreeMap::new()).unwrap();
            export.columns().iter().map(|column| column.column_type.to_string()).collect::<Vec<_>>()
        };
        let all = [first.clone(), second, third];
        assert_eq!(types(&all), ["Int64", "Timestamp", "Int64", "Utf8"]);
        assert_eq!(types(&all[..1]), ["Int64", "Utf8", "Utf8", "Utf8"]);
        // A given type stays.
        let given = BTreeMap::from([("n".to_owned(), ColumnType::Double)]);
        let export = Export::open(&all, InputOptions::default(), &given).unwrap();
        assert_eq!(export.columns()[2].column_type, ColumnType::Double);
        let lines = write("1.ndjson", "{\"id\": 1, \"at\": null, \"s\": null}\n".repeat(10));
        let more =
            write("2.ndjson", "{\"id\": 2, \"at\": \"2026-01-31T10:00:00Z\", \"s\": \"7\"}\n".to_owned());
        let export = Export::open(&[lines, more], InputOptions::default(), &BTreeMap::new()).unwrap();
        let of = |name: &str| export.columns().iter().find(|column| column.name == name).unwrap().column_type;
        assert_eq!((of("at"), of("s")), (ColumnType::Timestamp, ColumnType::Utf8));
    }
}
