//! Arrow IPC files and streams.
//!
//! The readers of the arrow crate trust the lengths stated in a file, so a damaged length can
//! exhaust memory. This module checks each length against the available bytes before anything is
//! allocated, and then uses the crate's lower-level decoders.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, Read, Seek, SeekFrom};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{FileDecoder, StreamDecoder, read_footer_length};
use arrow::ipc::{Block, root_as_footer};

use crate::source::columnar::{RowCounter, failed, open_file};
use crate::source::error::SourceError;
use crate::source::format::InputFormat;
use crate::source::options::READ_BATCH_BYTES;
use crate::source::raw::{RawBatch, RawReader, batch_bytes};
use crate::source::selection::split_columns;
use crate::source::stream::{SeekableFile, TextStream, buffered};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread reads a file whose reader may panic on damage. Such a panic becomes an
/// error, so a panic hook should not report it.
#[must_use]
pub fn panics_are_caught() -> bool {
    GUARDED.get()
}

/// Runs a decoder that panics on some damaged files.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    GUARDED.set(true);
    // The decoder is not used again after an error.
    let result = std::panic::catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    result.unwrap_or_else(|_| Err(ArrowError::IpcError("the file is damaged".to_owned())))
}

/// Remainder of a batch that is returned in pieces: its size was chosen by the writer of the file,
/// not by this reader.
#[derive(Default)]
pub(super) struct BatchRemainder {
    pub(super) rest: Option<RecordBatch>,
}

impl BatchRemainder {
    /// Takes about `READ_BATCH_BYTES` of the remainder.
    pub(super) fn take(&mut self) -> Option<RecordBatch> {
        let batch = self.rest.take()?;
        let row_bytes = (batch_bytes(&batch) / batch.num_rows().max(1)).max(1);
        let rows = (READ_BATCH_BYTES / row_bytes).max(1);
        if rows >= batch.num_rows() {
            return Some(batch);
        }
        self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        Some(batch.slice(0, rows))
    }
}

/// Reads an Arrow IPC file.
pub(super) struct ArrowFileReader {
    file: String,
    source: File,
    length: u64,
    decoder: FileDecoder,
    batches: std::vec::IntoIter<Block>,
    pieces: BatchRemainder,
    schema: SchemaRef,
    unknown: Vec<String>,
    counter: RowCounter,
    /// Keeps a temporary file alive until it has been read.
    _kept: SeekableFile,
}

/// Contents of the footer of a file.
struct Footer {
    schema: SchemaRef,
    version: arrow::ipc::MetadataVersion,
    dictionaries: Vec<Block>,
    batches: Vec<Block>,
}

impl ArrowFileReader {
    pub(super) fn open(file: &str, kept: SeekableFile, columns: &[String]) -> Result<Self, SourceError> {
        let error = |error: ArrowError| failed(file, InputFormat::Arrow, error);
        let mut source = open_file(file, &kept)?;
        let length =
            source.metadata().map_err(|source| SourceError::Read { file: file.to_owned(), source })?.len();
        let footer = guarded(|| read_footer(&mut source, length)).map_err(error)?;
        let (wanted, unknown) = split_columns(file, &footer.schema, columns)?;
        let mut decoder =
            FileDecoder::new(Arc::clone(&footer.schema), footer.version).with_projection(wanted);
        for block in &footer.dictionaries {
            let bytes = read_block(&mut source, length, block).map_err(error)?;
            guarded(|| decoder.read_dictionary(block, &bytes)).map_err(error)?;
        }
        Ok(Self {
            file: file.to_owned(),
            source,
            length,
            decoder,
            batches: footer.batches.into_iter(),
            pieces: BatchRemainder::default(),
            schema: footer.schema,
            unknown,
            counter: RowCounter { next: 1 },
            _kept: kept,
        })
    }

    fn next_whole_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let Some(block) = self.batches.next() else { return Ok(None) };
        let bytes = read_block(&mut self.source, self.length, &block)?;
        guarded(|| self.decoder.read_record_batch(&block, &bytes))
    }
}

fn read_footer(source: &mut File, length: u64) -> Result<Footer, ArrowError> {
    /// A file ends with the length of the footer in 4 bytes and a magic of 6 bytes.
    const TRAILER: u64 = 10;
    let damaged = || ArrowError::IpcError("the file is shorter than its header says".to_owned());
    let mut trailer = [0u8; TRAILER as usize];
    let at = length.checked_sub(TRAILER).ok_or_else(damaged)?;
    source.seek(SeekFrom::Start(at))?;
    source.read_exact(&mut trailer)?;
    let footer_length = read_footer_length(trailer)? as u64;
    let at = at.checked_sub(footer_length).ok_or_else(damaged)?;
    let bytes = read_range(source, length, at, footer_length)?;
    let footer = root_as_footer(&bytes).map_err(|error| ArrowError::IpcError(error.to_string()))?;
    let schema = footer.schema().ok_or_else(|| ArrowError::IpcError("the file has no schema".to_owned()))?;
    Ok(Footer {
        schema: Arc::new(fb_to_schema(schema)),
        version: footer.version(),
        dictionaries: footer
            .dictionaries()
            .map(|blocks| blocks.iter().copied().collect())
            .unwrap_or_default(),
        batches: footer.recordBatches().map(|blocks| blocks.iter().copied().collect()).unwrap_or_default(),
    })
}

fn read_block(source: &mut File, length: u64, block: &Block) -> Result<Buffer, ArrowError> {
    let damaged = || ArrowError::IpcError("a block of the file lies beyond its end".to_owned());
    let at = u64::try_from(block.offset()).map_err(|_| damaged())?;
    let body = u64::try_from(block.bodyLength()).map_err(|_| damaged())?;
    let metadata = u64::try_from(block.metaDataLength()).map_err(|_| damaged())?;
    let bytes = read_range(source, length, at, body.checked_add(metadata).ok_or_else(damaged)?)?;
    Ok(Buffer::from_vec(bytes))
}

/// Reads a range of a file of the given length; a range beyond the end means damage.
fn read_range(source: &mut File, length: u64, at: u64, count: u64) -> Result<Vec<u8>, ArrowError> {
    let inside = at.checked_add(count).is_some_and(|end| end <= length);
    if !inside {
        return Err(ArrowError::IpcError("a part of the file lies beyond its end".to_owned()));
    }
    source.seek(SeekFrom::Start(at))?;
    let mut bytes = vec![0u8; usize::try_from(count).unwrap_or(0)];
    source.read_exact(&mut bytes)?;
    Ok(bytes)
}

impl RawReader for ArrowFileReader {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        if self.pieces.rest.is_none() {
            let batch = self.next_whole_batch();
            self.pieces.rest = batch.map_err(|error| failed(&self.file, InputFormat::Arrow, error))?;
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

/// Reads an Arrow IPC stream.
pub(super) struct ArrowStreamReader {
    file: String,
    chunks: Chunks,
    wanted: Vec<usize>,
    pieces: BatchRemainder,
    schema: SchemaRef,
    unknown: Vec<String>,
    counter: RowCounter,
}

/// A stream and its decoder, which consumes bytes as they arrive and allocates no more than those.
struct Chunks {
    stream: TextStream,
    decoder: StreamDecoder,
    chunk: Buffer,
}

impl Chunks {
    /// Returns the next batch; `None` at the end. The schema is known after the first call.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        loop {
            let batch = guarded(|| self.decoder.decode(&mut self.chunk))?;
            if batch.is_some() || !self.fill()? {
                return Ok(batch);
            }
        }
    }

    /// Reads the schema, which is at the beginning of the stream.
    fn schema(&mut self) -> Result<SchemaRef, ArrowError> {
        loop {
            if let Some(schema) = self.decoder.schema() {
                return Ok(schema);
            }
            // One byte at a time, so that the first batch stays unread.
            let Some(byte) = self.stream.fill_buf()?.first().copied() else {
                return Err(ArrowError::IpcError("the stream has no schema".to_owned()));
            };
            self.stream.consume(1);
            let mut one = Buffer::from_vec(vec![byte]);
            guarded(|| self.decoder.decode(&mut one))?;
        }
    }

    /// Reads the next bytes of the stream; false at its end.
    fn fill(&mut self) -> Result<bool, ArrowError> {
        let bytes = self.stream.fill_buf()?;
        let count = bytes.len();
        if count == 0 {
            guarded(|| self.decoder.finish())?;
            return Ok(false);
        }
        self.chunk = Buffer::from_slice_ref(bytes);
        self.stream.consume(count);
        Ok(true)
    }
}

impl ArrowStreamReader {
    pub(super) fn open(
        file: &str,
        stream: Box<dyn Read + Send>,
        columns: &[String],
    ) -> Result<Self, SourceError> {
        let mut chunks = Chunks {
            stream: buffered(stream),
            decoder: StreamDecoder::new(),
            chunk: Buffer::from_vec(Vec::<u8>::new()),
        };
        let schema = chunks.schema().map_err(|error| failed(file, InputFormat::Arrow, error))?;
        let (wanted, unknown) = split_columns(file, &schema, columns)?;
        Ok(Self {
            file: file.to_owned(),
            chunks,
            wanted,
            pieces: BatchRemainder::default(),
            schema,
            unknown,
            counter: RowCounter { next: 1 },
        })
    }
}

impl RawReader for ArrowStreamReader {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        if self.pieces.rest.is_none() {
            let batch = self.chunks.next_batch();
            let wanted = batch.and_then(|batch| batch.map(|batch| batch.project(&self.wanted)).transpose());
            self.pieces.rest = wanted.map_err(|error| {
                let reason = format!("{error} (an input is one stream; does it hold several?)");
                failed(&self.file, InputFormat::Arrow, reason)
            })?;
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

#[cfg(test)]
#[path = "arrow_ipc_tests.rs"]
mod tests;
