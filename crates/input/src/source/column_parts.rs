//! Decodes parts of the columns of a Parquet file on threads of their own.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::mpsc::{Receiver, SendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow::datatypes::{Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// Decoded batches of a part that wait for those of the others.
const BATCHES_AHEAD: usize = 1;

/// Batch of some of the columns; `None` at the end of the file.
type Part = Result<Option<RecordBatch>, ParquetError>;

/// Decoder of some of the columns.
enum Decoder {
    /// Not started yet, or not on a thread of its own because the system starts no more.
    Here(Box<ParquetRecordBatchReader>),
    /// Decodes ahead.
    Thread(Receiver<Part>),
}

/// Batches that are decoded by several readers, each of which reads some of the columns of the same
/// rows.
pub(super) struct ColumnParts {
    decoders: Vec<Decoder>,
    has_started: bool,
    has_ended: bool,
    schema: SchemaRef,
    /// Part of each column of the schema, and its position in it.
    places: Vec<(usize, usize)>,
}

impl ColumnParts {
    /// Joins the columns of readers. `columns` has the positions in the file of each reader's
    /// columns, which determine the order of all columns. Threads start when the first rows are
    /// requested.
    pub(super) fn new(readers: Vec<ParquetRecordBatchReader>, columns: &[Vec<usize>]) -> Self {
        let mut places = Vec::new();
        for (part, columns) in columns.iter().enumerate() {
            places.extend(columns.iter().enumerate().map(|(place, column)| (*column, (part, place))));
        }
        places.sort_unstable();
        let places: Vec<(usize, usize)> = places.into_iter().map(|(_, place)| place).collect();
        let schemas: Vec<SchemaRef> = readers.iter().map(|reader| reader.schema()).collect();
        let field = |(part, place): &(usize, usize)| {
            schemas.get(*part).and_then(|schema| schema.fields().get(*place)).cloned()
        };
        let metadata = schemas.first().map(|schema| schema.metadata().clone()).unwrap_or_default();
        let fields: Vec<_> = places.iter().filter_map(field).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let decoders = readers.into_iter().map(|reader| Decoder::Here(Box::new(reader))).collect();
        Self { decoders, has_started: false, has_ended: false, schema, places }
    }

    /// Returns the next rows; `None` at the end.
    pub(super) fn next_batch(&mut self) -> Part {
        if self.has_ended {
            return Ok(None);
        }
        if !std::mem::replace(&mut self.has_started, true) {
            self.decoders = std::mem::take(&mut self.decoders).into_iter().map(Decoder::start).collect();
        }
        let parts = self.decoders.iter_mut().map(Decoder::next_batch).collect::<Result<Vec<_>, _>>()?;
        if parts.iter().all(Option::is_none) {
            self.has_ended = true;
            return Ok(None);
        }
        let mut rows = parts.iter().map(|part| part.as_ref().map(RecordBatch::num_rows));
        let first = rows.next().flatten();
        if rows.any(|rows| rows != first) {
            return Err(ParquetError::General("its columns have different numbers of rows".to_owned()));
        }
        let column = |(part, place): &(usize, usize)| -> Option<ArrayRef> {
            parts.get(*part)?.as_ref()?.columns().get(*place).cloned()
        };
        let columns = self.places.iter().filter_map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(first);
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?))
    }
}

impl Decoder {
    /// Decodes on a new thread, which ends with the file, at a failure, or when the receiver is
    /// gone.
    fn start(self) -> Self {
        let Self::Here(reader) = self else { return self };
        // The reader is handed over once the thread exists, so that it is not lost without one.
        let (hand_over, taken_over) = sync_channel::<Box<ParquetRecordBatchReader>>(1);
        let (sender, batches) = sync_channel(BATCHES_AHEAD);
        let decode = move || {
            let Ok(mut reader) = taken_over.recv() else { return };
            loop {
                let batch = reader.next().transpose().map_err(ParquetError::from);
                let is_last = !matches!(batch, Ok(Some(_)));
                if sender.send(batch).is_err() || is_last {
                    return;
                }
            }
        };
        if std::thread::Builder::new().spawn(decode).is_err() {
            return Self::Here(reader);
        }
        match hand_over.send(reader) {
            Ok(()) => Self::Thread(batches),
            Err(SendError(reader)) => Self::Here(reader),
        }
    }

    fn next_batch(&mut self) -> Part {
        match self {
            Self::Here(reader) => reader.next().transpose().map_err(ParquetError::from),
            Self::Thread(batches) => batches.recv().unwrap_or_else(|_| {
                Err(ParquetError::General("the decoder of some columns stopped".to_owned()))
            }),
        }
    }
}

/// A file that several readers read at the same time.
#[derive(Clone)]
pub(super) struct SharedFile {
    file: Arc<Mutex<File>>,
    bytes: u64,
}

impl SharedFile {
    /// Shares an open file, whose contents stay the same if another file takes its name.
    pub(super) fn new(file: File) -> std::io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self { file: Arc::new(Mutex::new(file)), bytes })
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<SharedRead>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(SharedRead { file: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = vec![0; length];
        SharedRead { file: self.clone(), at: start }.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Place in a shared file.
pub(super) struct SharedRead {
    file: SharedFile,
    at: u64,
}

impl Read for SharedRead {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut file = self.file.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.at))?;
        let count = file.read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
#[path = "column_parts_tests.rs"]
mod tests;
