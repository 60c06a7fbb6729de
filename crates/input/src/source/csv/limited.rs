//! Stream of bytes below the reader of records, which watches what the latter does not report.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::source::blank_lines::{BlankLineScanner, BlankLines};
use crate::source::error::SourceError;
use crate::source::format::{InputFormat, MAX_RECORD_BYTES};
use crate::source::quoting::{MisplacedQuotes, QuoteScanner, quotes_in};
use crate::source::stream::TextStream;

/// Facts about the bytes read so far that the record reader does not expose.
#[derive(Debug, Clone, Default)]
pub(super) struct Watched {
    /// Number of bytes that the reader took since its last record.
    pub(super) since_record: Arc<AtomicUsize>,
    /// Number of quotes in all bytes read so far.
    pub(super) quotes: Arc<AtomicUsize>,
    /// Whether the header line ends with a carriage return and a line feed. The reader counts the
    /// line feed of a record only when the next record begins.
    pub(super) two_byte_ends: Arc<AtomicBool>,
    pub(super) misplaced: MisplacedQuotes,
    pub(super) blank: BlankLines,
}

/// Stream that fails on a record without an end.
pub(super) struct Limited {
    pub(super) stream: TextStream,
    pub(super) scanner: QuoteScanner,
    blank_lines: BlankLineScanner,
    watched: Watched,
    /// The last byte read so far.
    last: u8,
    in_header: bool,
    /// The last bytes read: a reader of records has used all others.
    chunk: Vec<u8>,
    /// Number of bytes read.
    end: u64,
}

impl Limited {
    pub(super) fn new(stream: TextStream, delimiter: u8, watched: &Watched) -> Self {
        Self {
            scanner: QuoteScanner::new(delimiter, watched.misplaced.clone()),
            blank_lines: BlankLineScanner::new(watched.blank.clone()),
            stream,
            watched: watched.clone(),
            last: 0,
            in_header: true,
            chunk: Vec::new(),
            end: 0,
        }
    }

    /// Returns the bytes from an offset on that were read.
    pub(super) fn unread(&self, offset: u64) -> &[u8] {
        let count = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        self.chunk.get(self.chunk.len().saturating_sub(count)..).unwrap_or_default()
    }

    fn see_header(&mut self, read: &[u8]) {
        let end = read.iter().position(|byte| *byte == b'\n');
        if let Some(end) = end {
            let before = end.checked_sub(1).and_then(|before| read.get(before)).unwrap_or(&self.last);
            self.watched.two_byte_ends.store(*before == b'\r', Ordering::Relaxed);
            self.in_header = false;
        }
        self.last = read.last().copied().unwrap_or(self.last);
    }
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        let read = buffer.get(..count).unwrap_or_default();
        let quotes = quotes_in(read);
        self.watched.quotes.fetch_add(quotes, Ordering::Relaxed);
        self.scanner.see(read, quotes);
        self.blank_lines.see(read);
        if self.in_header {
            self.see_header(read);
        }
        self.chunk.clear();
        self.chunk.extend_from_slice(read);
        self.end += count as u64;
        let before = self.watched.since_record.fetch_add(count, Ordering::Relaxed);
        if before + count > MAX_RECORD_BYTES {
            return Err(io::Error::other("a record has no end"));
        }
        Ok(count)
    }
}

/// Returns the line in which a record begins.
pub(super) fn line_of(position: &csv::Position, two_byte_ends: &AtomicBool) -> u64 {
    position.line() + u64::from(two_byte_ends.load(Ordering::Relaxed))
}

/// Distinguishes a record without an end, a failure of the underlying stream and malformed CSV;
/// `since_record` counts the bytes since the last record.
pub(super) fn failed(file: &str, error: &csv::Error, since_record: usize, line: u64) -> SourceError {
    if since_record > MAX_RECORD_BYTES {
        return SourceError::RecordTooLong { file: file.to_owned(), line };
    }
    match error.kind() {
        csv::ErrorKind::Io(source) => SourceError::Read {
            file: file.to_owned(),
            source: std::io::Error::new(source.kind(), source.to_string()),
        },
        _ => {
            SourceError::Format { file: file.to_owned(), format: InputFormat::Csv, reason: error.to_string() }
        }
    }
}
