//! Opening one input: fingerprint, compression, format.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;

use crate::source::arrow_ipc::{ArrowFileReader, ArrowStreamReader};
use crate::source::avro::AvroReader;
use crate::source::columnar::ParquetReader;
use crate::source::csv::open_csv;
use crate::source::error::SourceError;
use crate::source::escaped::EscapedReader;
use crate::source::file_name::format_of_name;
use crate::source::format::InputFormat;
use crate::source::format_of_bytes::{format_of_content, format_of_escapes, format_of_text};
use crate::source::input_path::InputPath;
use crate::source::input_path::RemoteFile;
use crate::source::meter::{MeteredReader, RowMeter};
use crate::source::ndjson::NdjsonReader;
use crate::source::options::InputOptions;
use crate::source::orc::OrcReader;
use crate::source::path_columns::{WithPathColumns, path_columns};
use crate::source::raw::{RawBatch, RawPart, RawReader};
use crate::source::remote::RemoteObject;
use crate::source::repeated_names::RenamedColumn;
use crate::source::stored::HEAD_BYTES;
use crate::source::stream::{
    Fingerprint, HashingReader, SeekableFile, StreamHash, decompress, fingerprint_file, peek, spool,
};
use crate::source::systems::postgres::DumpSectionReader;
use crate::source::systems::refused_content;
use crate::source::systems::ydb::DumpReader;
use crate::source::type_names::TypedColumns;

/// An input whose rows can be read.
pub struct Input {
    name: String,
    format: InputFormat,
    /// Character between the fields, if the format is CSV.
    delimiter: Option<u8>,
    reader: Box<dyn RawReader>,
    content: Content,
    /// Whether a file is read by parts, not from its beginning to its end.
    is_by_parts: bool,
    /// Counts the bytes of files that are read by parts.
    meter: Option<RowMeter>,
    /// Number of threads that may read it.
    pub(super) threads: usize,
}

/// Whether a file is read once in advance for its fingerprint.
#[derive(Clone, Copy)]
enum Fingerprints {
    Taken,
    LeftOut,
}

/// Random-access source, for formats that are read from their end.
enum Seekable {
    File(PathBuf),
    Copy(tempfile::NamedTempFile),
    Remote(RemoteObject),
}

/// Source of the fingerprint.
enum Content {
    /// Not requested.
    Unknown,
    /// Computed from a file in advance.
    Known(Fingerprint),
    /// Computed from a pipe while it is read.
    Streaming(Arc<Mutex<StreamHash>>),
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("name", &self.name)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl Input {
    /// Opens an input. `columns` are the requested names; other columns are not read if the format
    /// allows it.
    ///
    /// # Errors
    /// [`SourceError`] if the input cannot be read or its format is unknown.
    pub fn open(path: &InputPath, columns: &[String], options: &InputOptions) -> Result<Self, SourceError> {
        match path {
            InputPath::File(file) | InputPath::Copy { path: file, .. } => {
                Self::open_file(file, &path.name(), Fingerprints::Taken, columns, options)
            }
            InputPath::Remote(file) => Self::open_copied(file, columns, options),
            InputPath::Stdin => Self::open_pipe(&path.name(), Box::new(io::stdin()), columns, options),
        }
    }

    /// Opens a file of an object store whose content must be known: it is fetched once, as a whole.
    fn open_copied(
        file: &RemoteFile,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let error = |source| SourceError::Read { file: file.url.clone(), source };
        let (copy, fingerprint) = RemoteObject::open(file)?.copy().map_err(error)?;
        let reader = Box::new(copy.reopen().map_err(error)?);
        let (seekable, content) = (Some(Seekable::Copy(copy)), Content::Known(fingerprint));
        Self::open_stream(&file.url, Path::new(&file.url), seekable, reader, content, columns, options)
    }

    /// Opens a file of an object store, fetching only the parts that are needed.
    fn open_remote(
        file: &RemoteFile,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let object = RemoteObject::open(file)?;
        let reader = Box::new(object.clone().reader());
        let (seekable, content) = (Some(Seekable::Remote(object)), Content::Unknown);
        Self::open_stream(&file.url, Path::new(&file.url), seekable, reader, content, columns, options)
    }

    /// Opens bytes from any source that can be read once; `name` is used in messages.
    ///
    /// # Errors
    /// As for [`Input::open`].
    pub fn open_reader(
        name: &str,
        reader: Box<dyn Read + Send>,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        Self::open_pipe(name, reader, columns, options)
    }

    /// Opens an input without reading it in advance for its fingerprint: [`Input::fingerprint`] of
    /// a file is `None`.
    ///
    /// # Errors
    /// As for [`Input::open`].
    pub fn open_unknown(
        path: &InputPath,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        match path {
            InputPath::File(file) | InputPath::Copy { path: file, .. } => {
                Self::open_file(file, &path.name(), Fingerprints::LeftOut, columns, options)
            }
            InputPath::Remote(file) => Self::open_remote(file, columns, options),
            InputPath::Stdin => Self::open(path, columns, options),
        }
    }

    fn open_file(
        path: &Path,
        name: &str,
        fingerprints: Fingerprints,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let error = |source| SourceError::Read { file: name.to_owned(), source };
        if !std::fs::metadata(path).map_err(error)?.is_file() {
            return Self::open_pipe(name, Box::new(File::open(path).map_err(error)?), columns, options);
        }
        let content = match fingerprints {
            Fingerprints::Taken => Content::Known(fingerprint_file(path).map_err(error)?),
            Fingerprints::LeftOut => Content::Unknown,
        };
        let file = File::open(path).map_err(error)?;
        let bytes = file.metadata().map_err(error)?.len();
        let file = Box::new(MeteredReader { inner: file, meter: options.meter.clone() });
        let seekable = Some(Seekable::File(path.to_owned()));
        let mut input = Self::open_stream(name, path, seekable, file, content, columns, options)?;
        // The rest of the file, after the bytes that were looked at.
        let bytes = bytes.saturating_sub(HEAD_BYTES);
        let all_rows = input.reader.row_count();
        input.meter = input.is_by_parts.then(|| RowMeter::new(options.meter.clone(), bytes, all_rows));
        Ok(input)
    }

    /// Opens a pipe. It is read only once, so it is hashed on the way.
    fn open_pipe(
        name: &str,
        pipe: Box<dyn Read + Send>,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let hash = Arc::new(Mutex::new(StreamHash::default()));
        let reader = HashingReader { inner: pipe, hash: Arc::clone(&hash) };
        let nameless = Path::new("");
        Self::open_stream(name, nameless, None, Box::new(reader), Content::Streaming(hash), columns, options)
    }

    fn open_stream(
        name: &str,
        path: &Path,
        seekable: Option<Seekable>,
        raw: Box<dyn Read + Send>,
        content: Content,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let error = |source| SourceError::Read { file: name.to_owned(), source };
        let (plain, compressed) = decompress(raw).map_err(error)?;
        let (head, plain) = peek(plain, HEAD_BYTES).map_err(error)?;
        if head.is_empty() {
            return Err(SourceError::Empty { file: name.to_owned() });
        }
        refused_content(name, &head)?;
        let declared = options.declared.as_ref();
        let format = options
            .format
            .or_else(|| format_of_content(&head))
            .or_else(|| declared.map(|_| InputFormat::YdbDump))
            .or_else(|| format_of_escapes(&head, options))
            .or_else(|| format_of_name(path))
            .or_else(|| format_of_text(&head))
            .ok_or_else(|| SourceError::UnknownFormat { file: name.to_owned() })?;
        let remote = match &seekable {
            Some(Seekable::Remote(object)) if !compressed => Some(object.clone()),
            _ => None,
        };
        let is_file =
            matches!(format, InputFormat::Parquet | InputFormat::Orc) || head.starts_with(b"ARROW1");
        let is_by_parts = is_file && !compressed && matches!(seekable, Some(Seekable::File(_)));
        let file = |plain: Box<dyn Read + Send>| match seekable {
            Some(Seekable::File(path)) if !compressed => Ok(SeekableFile::Kept(path)),
            Some(Seekable::Copy(copy)) if !compressed => Ok(SeekableFile::Spooled(copy)),
            _ => spool(plain).map_err(error),
        };
        let mut delimiter = None;
        let reader: Box<dyn RawReader> = match format {
            InputFormat::Parquet => match remote {
                Some(object) => Box::new(ParquetReader::open_remote(name, object, columns, options)?),
                None => Box::new(ParquetReader::open(name, file(plain)?, columns, options)?),
            },
            InputFormat::Arrow if head.starts_with(b"ARROW1") => {
                Box::new(ArrowFileReader::open(name, file(plain)?, columns)?)
            }
            InputFormat::Arrow => Box::new(ArrowStreamReader::open(name, plain, columns)?),
            InputFormat::Csv => {
                let (reader, separator) = open_csv(name, path, plain, &head, columns, options)?;
                delimiter = Some(separator);
                Box::new(reader)
            }
            InputFormat::Orc => Box::new(OrcReader::open(name, file(plain)?, columns, options)?),
            InputFormat::PgDump => Box::new(DumpSectionReader::open(name, plain, columns, options)?),
            InputFormat::Avro => Box::new(AvroReader::open(name, plain, columns, options)?),
            InputFormat::Ndjson => Box::new(NdjsonReader::open(name, plain, columns, options)?),
            InputFormat::Tsv => Box::new(EscapedReader::open_with_header(name, plain, columns, options)?),
            InputFormat::YdbDump => {
                let declared = declared.into_iter().flatten().map(|column| column.name.clone()).collect();
                Box::new(DumpReader::open(name, plain, declared, columns, options.batch_rows))
            }
        };
        let of_path = match declared.is_none() && options.section.is_none() {
            true => path_columns(path),
            false => Vec::new(),
        };
        let reader = match of_path.is_empty() {
            true => reader,
            false => Box::new(WithPathColumns::new(reader, of_path, columns)),
        };
        let threads = options.available_threads();
        Ok(Self {
            name: name.to_owned(),
            format,
            delimiter,
            reader,
            content,
            is_by_parts,
            meter: None,
            threads,
        })
    }

    /// Returns the name of the input in messages and in the log.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the format in which the input is read.
    #[must_use]
    pub fn format(&self) -> InputFormat {
        self.format
    }

    /// Returns the character between the fields, if the input is CSV.
    pub(super) fn delimiter(&self) -> Option<u8> {
        self.delimiter
    }

    /// Returns the next rows; `None` at the end.
    ///
    /// # Errors
    /// [`SourceError`] if the input ends early or is damaged.
    pub fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        let batch = self.reader.next_batch()?;
        self.count(batch.as_ref());
        Ok(batch)
    }

    /// Returns the next rows, or text that another thread can read; `None` at the end.
    pub(super) fn next_part(&mut self) -> Result<Option<RawPart>, SourceError> {
        let part = self.reader.next_part()?;
        match &part {
            Some(RawPart::Read(batch)) => self.count(Some(batch)),
            // Bytes of text are counted when they are read.
            Some(RawPart::Text(_)) => {}
            None => self.count(None),
        }
        Ok(part)
    }

    /// Counts the rows of a file that is read by parts; `None` at its end.
    fn count(&mut self, batch: Option<&RawBatch>) {
        if let Some(meter) = &mut self.meter {
            meter.add(batch.map(RawBatch::array_rows));
        }
    }

    /// Returns the number of rows of a whole Parquet file, if ranges of it can be read.
    pub(super) fn row_count(&self) -> Option<u64> {
        self.reader.row_count()
    }

    /// Returns names in the input that were not requested, among those seen so far.
    #[must_use]
    pub fn unknown_columns(&self) -> Vec<String> {
        self.reader.unknown_columns()
    }

    /// Returns all columns of the input, if they are known before its rows; for NDJSON they are
    /// not.
    #[must_use]
    pub fn column_names(&self) -> Option<Vec<String>> {
        self.reader.column_names()
    }

    /// Refuses an input in which two columns have the name of one of `columns`, unless the name
    /// that the second one got is among them, too: the name is ambiguous.
    ///
    /// # Errors
    /// [`SourceError::RepeatedColumn`].
    pub fn check_repeated_names(&self, columns: &[String]) -> Result<(), SourceError> {
        let is_doubtful =
            |column: &&RenamedColumn| columns.contains(&column.name) && !columns.contains(&column.new_name);
        match self.renamed_columns().iter().find(is_doubtful) {
            Some(RenamedColumn { name, .. }) => {
                Err(SourceError::RepeatedColumn { file: self.name().to_owned(), column: name.clone() })
            }
            None => Ok(()),
        }
    }

    /// Returns the columns that were renamed because earlier ones have their names.
    pub(super) fn renamed_columns(&self) -> &[RenamedColumn] {
        self.reader.renamed_columns()
    }

    /// Returns the names of the columns whose values are in the path of the file.
    pub(super) fn path_columns(&self) -> impl Iterator<Item = &String> {
        self.reader.path_columns().iter().map(|column| &column.name)
    }

    /// Returns the columns with their types, if a text file states them.
    pub(super) fn declared_columns(&self) -> Option<&TypedColumns> {
        self.reader.declared_columns()
    }

    /// Returns the whole schema of a columnar file.
    #[must_use]
    pub(super) fn file_schema(&self) -> Option<&SchemaRef> {
        self.reader.file_schema()
    }

    /// Returns the least and greatest value of a column of dates or times, as its numbers, if the
    /// file states them.
    pub(super) fn extremes(&self, column: &str) -> Option<(i64, i64)> {
        self.reader.extremes(column)
    }

    /// Returns the identity of the input's content; for a pipe, only once it has been read to its
    /// end.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        match &self.content {
            Content::Unknown => None,
            Content::Known(fingerprint) => Some(fingerprint.clone()),
            Content::Streaming(hash) => {
                let hash = hash.lock().unwrap_or_else(PoisonError::into_inner);
                hash.fingerprint_at_end()
            }
        }
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
