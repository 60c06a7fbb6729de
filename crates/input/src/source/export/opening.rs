//! Opening of an export: copies of pipes, and the columns of its first rows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use crate::source::error::SourceError;
use crate::source::export::contents::Export;
use crate::source::export::kept_copy::KeptCopy;
use crate::source::export::reading::OnUnreadable;
use crate::source::format::InputFormat;
use crate::source::guess::type_of_values;
use crate::source::infer::infer_input;
use crate::source::input_path::InputPath;
use crate::source::open::Input;
use crate::source::options::InputOptions;
use crate::source::sample::Sample;
use evenkeel_model::note::Note;
use evenkeel_model::table::{Column, ColumnType};

/// Number of rows and bytes to examine for the types of columns without a value at the beginning.
const ROWS_OF_TYPES: usize = 100_000;
const BYTES_OF_TYPES: usize = 64 << 20;

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
        let mut sample = first_columns(&inputs, &options, &mut notes)?;
        sample.read_path(&inputs, &options);
        let Sample { mut columns, mut without_values, mut guessed, .. } = sample;
        without_values.retain(|name| !types.contains_key(name));
        guessed.retain(|name| !types.contains_key(name));
        if !without_values.is_empty() {
            columns = Self::with_columns(inputs.clone(), options.clone(), columns)
                .with_types_of(&without_values)?;
        }
        for (name, column_type) in types {
            let matching = columns.iter_mut().find(|column| column.name == *name);
            let Some(column) = matching else {
                return Err(SourceError::NoSuchColumn {
                    column: name.clone(),
                    found: columns.into_iter().map(|column| column.name).collect(),
                });
            };
            column.column_type = *column_type;
            notes.retain(|note| note.column() != Some(name));
        }
        let export = Self::with_columns(inputs, InputOptions { guessed, ..options }, columns);
        Ok(export.keeping(Arc::new(copies), notes, types.clone()))
    }

    /// Returns the columns; columns in `without_values` get the type of the values in later rows.
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
            let column_type = type_of_values(cells, &self.options.text_of(&column.name), json);
            column.column_type = column_type.unwrap_or(column.column_type);
        }
        Ok(columns)
    }
}

/// Returns the columns of the first input that has rows, and adds its notes to `notes`.
fn first_columns(
    inputs: &[InputPath],
    options: &InputOptions,
    notes: &mut Vec<Note>,
) -> Result<Sample, SourceError> {
    let mut nothing = SourceError::NoInput;
    for input in inputs {
        let mut sample = match infer_input(input, options) {
            Ok(sample) => sample,
            Err(error @ (SourceError::Empty { .. } | SourceError::NoRecord { .. })) => {
                nothing = error;
                continue;
            }
            Err(error) => return Err(error),
        };
        // An ingest would refuse these values; here they are cut.
        notes.extend(std::mem::take(&mut sample.notes).into_iter().map(|note| match note {
            Note::NanosecondsRefused { column } => Note::NanosecondsCut { column },
            other => other,
        }));
        let nullable = |column: Column| Column { nullable: true, ..column };
        let columns = sample.columns.into_iter().map(nullable).collect();
        return Ok(Sample { columns, notes: Vec::new(), ..sample });
    }
    Err(nothing)
}

/// Returns the input itself if it can be read again; otherwise a copy of it.
fn readable_again(input: &InputPath, copies: &mut Vec<KeptCopy>) -> Result<InputPath, SourceError> {
    let name = input.name();
    let error = |source| SourceError::Read { file: name.clone(), source };
    let mut stream: Box<dyn io::Read> = match input {
        InputPath::Copy { .. } | InputPath::Remote(_) => return Ok(input.clone()),
        InputPath::File(path) if std::fs::metadata(path).map_err(error)?.is_file() => {
            return Ok(input.clone());
        }
        InputPath::File(path) if is_device(path) => {
            return Err(SourceError::Refused {
                file: name,
                problem: "is a device, which may have no end".to_owned(),
                advice: "give a file or a pipe".to_owned(),
            });
        }
        InputPath::File(path) => Box::new(File::open(path).map_err(error)?),
        InputPath::Stdin => Box::new(io::stdin()),
    };
    let (path, mut copy) = KeptCopy::create().map_err(error)?;
    io::copy(&mut stream, copy.file()).map_err(error)?;
    copies.push(copy);
    Ok(InputPath::Copy { path, name })
}

/// Whether a path is that of a device, such as `/dev/zero`; `/dev/stdin` may be one for a pipe.
fn is_device(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let is_one = |kind: std::fs::FileType| kind.is_char_device() || kind.is_block_device();
        std::fs::metadata(path).is_ok_and(|metadata| is_one(metadata.file_type()))
    }
    #[cfg(not(unix))]
    false
}
