//! Blocks of whole records, which several threads can read at the same time.
//!
//! The reading thread only looks for the last record end of a block. Records are read from it by
//! the same library as from a stream, so that both find the same records.

use std::io::Read;

use csv::{ByteRecord, ReaderBuilder};

use crate::source::csv::records::{ROWS_AT_FIRST, Rows, Shape};
use crate::source::error::SourceError;
use crate::source::format::{InputFormat, MAX_RECORD_BYTES};
use crate::source::quoting::{BOM, MisplacedQuotes, QuoteScanner, count_of, quotes_in};
use crate::source::raw::RawBatch;
use crate::source::stream::TextStream;

/// A part of a file that begins and ends with whole records.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    /// Line in which it begins.
    pub(super) line: u64,
    /// Number of its line feeds, of which most end rows.
    pub(super) lines: u64,
}

/// Cuts the rest of a stream into blocks.
pub(super) struct Blocks {
    stream: TextStream,
    delimiter: u8,
    /// Bytes read after the last block.
    rest: Vec<u8>,
    /// Line in which the next block begins.
    line: u64,
    has_ended: bool,
    /// Maximum number of lines in a block, if its records end with lines.
    most_lines: usize,
    /// Bytes to read for a block.
    block_bytes: usize,
}

impl Blocks {
    /// Continues a stream that was read by records. `unread` are bytes that were taken from it but
    /// belong to no record yet; they begin in `line`, and not with a byte order mark, which a reader
    /// of the block would remove. `sizes` are the maximum number of lines in a block, and the bytes
    /// to read for it.
    pub(super) fn new(
        stream: TextStream,
        delimiter: u8,
        unread: Vec<u8>,
        line: u64,
        sizes: (usize, usize),
    ) -> Self {
        let (most_lines, block_bytes) = sizes;
        Self { stream, delimiter, rest: unread, line, has_ended: false, most_lines, block_bytes }
    }

    /// Returns the bytes of as many lines as a block may have, and some more; `None` if there are
    /// not more lines.
    fn first_lines<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        if line_feeds(bytes) <= self.most_lines as u64 {
            return None;
        }
        let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let (last, _) = ends.nth(self.most_lines.saturating_sub(1))?;
        bytes.get(..last + 1 + BOM.len())
    }

    /// Returns the next block; `None` at the end.
    pub(super) fn next_block(&mut self, file: &str) -> Result<Option<Block>, SourceError> {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut more = self.block_bytes;
        let mut is_short = self.first_lines(&bytes).is_none();
        loop {
            if !self.has_ended && std::mem::replace(&mut is_short, true) {
                bytes.reserve_exact(more);
                let read = (&mut self.stream).take(more as u64).read_to_end(&mut bytes);
                let count = read.map_err(|source| SourceError::Read { file: file.to_owned(), source })?;
                self.has_ended = count < more;
            }
            let end = self.first_lines(&bytes).and_then(|lines| last_record_end(lines, self.delimiter));
            let end = end.or_else(|| match self.has_ended {
                true => Some(bytes.len()),
                false => last_record_end(&bytes, self.delimiter),
            });
            if let Some(end) = end {
                self.rest = bytes.split_off(end);
                let (line, lines) = (self.line, line_feeds(&bytes));
                self.line += lines;
                return Ok((!bytes.is_empty()).then_some(Block { bytes, line, lines }));
            }
            if bytes.len() > MAX_RECORD_BYTES {
                return Err(SourceError::RecordTooLong { file: file.to_owned(), line: self.line });
            }
            more = bytes.len().max(self.block_bytes);
        }
    }
}

fn line_feeds(bytes: &[u8]) -> u64 {
    count_of(b'\n', bytes) as u64
}

/// Returns the position after the last record of bytes that begin with one; `None` if none ends in
/// them. What follows has at least the length of a byte order mark, and does not begin with one.
fn last_record_end(bytes: &[u8], delimiter: u8) -> Option<usize> {
    let has_quotes = quotes_in(bytes) > 0;
    // Carriage returns alone end records, too, in files that have no line feeds outside quotes.
    let last = |terminator| match has_quotes {
        false => last_in(bytes, 0..bytes.len(), terminator),
        true => last_outside_quotes(bytes, delimiter, terminator),
    };
    last(b'\n').or_else(|| last(b'\r'))
}

/// Returns the position after the last terminator in a range without quotes.
fn last_in(bytes: &[u8], range: std::ops::Range<usize>, terminator: u8) -> Option<usize> {
    let mut end = range.end.min(bytes.len().saturating_sub(BOM.len()));
    loop {
        let at = bytes.get(range.start..end)?.iter().rposition(|byte| *byte == terminator)?;
        let after = range.start + at + 1;
        let next = bytes.get(after..)?;
        let goes_on = terminator == b'\r' && next.first() == Some(&b'\n');
        if !goes_on && !next.starts_with(BOM) {
            return Some(after);
        }
        end = range.start + at;
    }
}

/// Returns the position after the last terminator outside quotes. A quote at the beginning of a
/// field opens it, and the next quote that is not doubled closes it.
fn last_outside_quotes(bytes: &[u8], delimiter: u8, terminator: u8) -> Option<usize> {
    let next_quote = |from: usize| {
        let quote = bytes.get(from..).and_then(|rest| rest.iter().position(|byte| *byte == b'"'));
        quote.map_or(bytes.len(), |quote| from + quote)
    };
    let (mut last, mut at, mut is_quoted) = (None, 0, false);
    while at < bytes.len() {
        let quote = next_quote(at);
        if is_quoted {
            is_quoted = bytes.get(quote + 1) == Some(&b'"');
            at = quote + 1 + usize::from(is_quoted);
        } else {
            last = last_in(bytes, at..quote, terminator).or(last);
            let before = quote.checked_sub(1).and_then(|before| bytes.get(before));
            is_quoted = before.is_none_or(|byte| *byte == delimiter || matches!(byte, b'\n' | b'\r'));
            at = quote + 1;
        }
    }
    last
}

/// Reads the records of a block. After a failure, there are no more rows.
pub(super) fn read_block(shape: &Shape, delimiter: u8, block: &Block) -> Vec<Result<RawBatch, SourceError>> {
    let bytes = block.bytes.as_slice();
    let misplaced = MisplacedQuotes::default();
    let mut scanner = QuoteScanner::new(delimiter, misplaced.clone());
    scanner.see(bytes, quotes_in(bytes));
    let mut reader =
        ReaderBuilder::new().flexible(true).delimiter(delimiter).has_headers(false).from_reader(bytes);
    let mut batches = Vec::new();
    let space = usize::try_from(block.lines).unwrap_or(usize::MAX);
    let (mut rows, mut record) = (Rows::new(shape, space), ByteRecord::new());
    let mut line = block.line;
    loop {
        let (begin, lines_before) = (reader.position().byte(), reader.position().line() - 1);
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                let (file, reason) = (shape.file.clone(), error.to_string());
                batches.push(Err(SourceError::Format { file, format: InputFormat::Csv, reason }));
                return batches;
            }
        }
        line = block.line + lines_before + line_feeds_before_record(bytes, begin);
        let end = reader.position().byte();
        if end - begin > MAX_RECORD_BYTES as u64 {
            batches.push(Err(SourceError::RecordTooLong { file: shape.file.clone(), line }));
            return batches;
        }
        rows.add(&record, line, misplaced.take_before(end));
        if rows.is_full() {
            batches.extend(std::mem::replace(&mut rows, Rows::new(shape, ROWS_AT_FIRST)).finish().map(Ok));
        }
    }
    // Without a closing quote, the last record runs to the end.
    if scanner.is_within_quotes() {
        batches.push(Err(SourceError::UnclosedQuote { file: shape.file.clone(), line }));
    } else {
        batches.extend(rows.finish().map(Ok));
    }
    batches
}

/// Counts the line feeds between the end of a record and the next one: that of the record itself,
/// after a carriage return, and those of blank lines.
fn line_feeds_before_record(bytes: &[u8], end: u64) -> u64 {
    let rest = usize::try_from(end).ok().and_then(|end| bytes.get(end..)).unwrap_or_default();
    let blank = rest.iter().take_while(|byte| matches!(byte, b'\n' | b'\r'));
    blank.filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
