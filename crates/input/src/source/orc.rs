//! ORC files.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use bytes::Bytes;
use orc_rust::arrow_reader::{ArrowReader, ArrowReaderBuilder};
use orc_rust::projection::ProjectionMask;
use orc_rust::reader::ChunkReader;

use crate::source::arrow_ipc::{Pieces, guarded};
use crate::source::columnar::{RowCounter, failed, open_file};
use crate::source::error::SourceError;
use crate::source::options::{InputFormat, InputOptions};
use crate::source::raw::{RawBatch, RawReader};
use crate::source::selection::split_columns;
use crate::source::stream::SeekableFile;

/// A file whose parts are checked against its length before memory is taken for them.
struct Bounded {
    file: File,
    length: u64,
}

impl ChunkReader for Bounded {
    type T = BufReader<File>;

    fn len(&self) -> u64 {
        self.length
    }

    fn get_read(&self, offset: u64) -> io::Result<Self::T> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(BufReader::new(file))
    }

    fn get_bytes(&self, offset: u64, length: u64) -> io::Result<Bytes> {
        if offset.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(io::Error::other("a part of the file lies outside it"));
        }
        let mut bytes = Vec::new();
        self.get_read(offset)?.take(length).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes.into())
    }
}

/// Reads the requested columns of an ORC file.
pub(super) struct OrcReader {
    file: String,
    reader: ArrowReader<Bounded>,
    schema: SchemaRef,
    unknown: Vec<String>,
    pieces: Pieces,
    counter: RowCounter,
    /// Number of rows that the footer states.
    rows: u64,
    /// Keeps a temporary file alive until it has been read.
    _kept: SeekableFile,
}

impl OrcReader {
    pub(super) fn open(
        file: &str,
        kept: SeekableFile,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let error = |error: ArrowError| failed(file, InputFormat::Orc, error);
        let source = open_file(file, &kept)?;
        let length =
            source.metadata().map_err(|source| SourceError::Read { file: file.to_owned(), source })?.len();
        let source = Bounded { file: source, length };
        let builder = guarded(|| Ok(ArrowReaderBuilder::try_new(source)?)).map_err(error)?;
        let builder = builder.with_batch_size(options.batch_rows.max(1));
        let schema = builder.schema();
        let (wanted, unknown) = split_columns(file, &schema, columns)?;
        let mut names: Vec<&str> = wanted.iter().map(|at| schema.field(*at).name().as_str()).collect();
        if names.is_empty() {
            // The number of rows comes from a column.
            names.extend(schema.fields().first().map(|field| field.name().as_str()));
        }
        let mask = ProjectionMask::named_roots(builder.file_metadata().root_data_type(), &names);
        let rows = builder.file_metadata().number_of_rows();
        let reader = guarded(|| Ok(builder.with_projection(mask).build())).map_err(error)?;
        Ok(Self {
            file: file.to_owned(),
            reader,
            schema,
            unknown,
            pieces: Pieces::default(),
            counter: RowCounter { next: 1 },
            rows,
            _kept: kept,
        })
    }

    fn next_whole_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let batch = guarded(|| self.reader.next().transpose())?;
        let read = self.counter.next - 1;
        match batch {
            None if read != self.rows => {
                Err(ArrowError::ParseError(format!("it has {read} rows, its footer says {}", self.rows)))
            }
            batch => Ok(batch),
        }
    }
}

impl RawReader for OrcReader {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        if self.pieces.rest.is_none() {
            let batch = self.next_whole_batch();
            self.pieces.rest = batch.map_err(|error| failed(&self.file, InputFormat::Orc, error))?;
        }
        Ok(self.pieces.take().map(|batch| self.counter.raw(batch)))
    }

    fn unknown_columns(&self) -> Vec<String> {
        self.unknown.clone()
    }

    fn file_schema(&self) -> Option<&SchemaRef> {
        Some(&self.schema)
    }
}
