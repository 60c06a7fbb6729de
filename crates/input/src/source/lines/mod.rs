//! Line-oriented text: one row per line, no quotes that could hold a line break, special characters
//! written as escapes. Data files of YDB dumps have this form, and the tab-separated text of
//! PostgreSQL, ClickHouse and MySQL.

mod rows;

use std::collections::HashSet;
use std::io::{BufRead, Read};
use std::sync::Arc;

use crate::source::error::SourceError;
use crate::source::format::MAX_RECORD_BYTES;
use crate::source::lines::rows::{RowDecoder, Rows, texts};
use crate::source::options::{InputOptions, PART_BYTES, READ_BATCH_BYTES};
use crate::source::raw::{RawBatch, RawPart, RawReader, UnreadText};
use crate::source::stream::{TextStream, buffered, drain};
use crate::source::type_names::{TypedColumns, declared_types};

/// Spelling of rows and fields.
pub(super) trait Spelling: 'static {
    /// Byte between fields.
    const DELIMITER: u8;
    /// Whether a backslash escapes the next byte, including a delimiter or a line break.
    const BACKSLASHES: bool;
    /// Line that ends the rows.
    const END: Option<&'static [u8]>;

    /// Whether a field has an escape that no writer of this spelling makes.
    fn is_doubtful(field: &[u8]) -> bool {
        let _ = field;
        false
    }

    /// Appends the value of a field to `value`; returns whether there is one, that is, whether the
    /// field is not NULL.
    ///
    /// # Errors
    /// The problem of a field that has no value in this spelling.
    fn decode(field: &[u8], value: &mut Vec<u8>) -> Result<bool, &'static str>;
}

/// Reads lines of a spelling.
pub(super) struct LineReader<S> {
    stream: TextStream,
    decoder: Arc<RowDecoder<S>>,
    /// Columns with the types that the second line states.
    types: Option<TypedColumns>,
    /// First line of the last row.
    line: u64,
    /// Number of lines that the last row has beyond its first.
    more_lines: u64,
    /// The last line or row that was read on its own.
    text: Vec<u8>,
    /// Whether the last line ended with a line break, rather than with the file.
    has_break: bool,
    /// Whether `text` is a row that was read ahead.
    is_pending: bool,
    has_ended: bool,
    /// Whether the rows ended with the end marker line.
    has_met_end: bool,
    batch_rows: usize,
}

impl<S: Spelling> LineReader<S> {
    /// Creates a reader of a file without a header, whose fields are `columns`, in this order.
    pub(super) fn open(
        file: &str,
        stream: Box<dyn Read + Send>,
        columns: Vec<String>,
        requested: &[String],
        batch_rows: usize,
    ) -> Self {
        Self::with(RowDecoder::new(file, columns, requested), buffered(stream), batch_rows)
    }

    /// Creates a reader of a file whose first line has the names of the columns, unless the options
    /// override them, and whose second line may have their types.
    ///
    /// # Errors
    /// [`SourceError`] if the file cannot be read, or has no header with distinct names.
    pub(super) fn open_with_header(
        file: &str,
        stream: Box<dyn Read + Send>,
        requested: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let first = RowDecoder::new(file, Vec::new(), &[]);
        let mut header = Self::with(first, buffered(stream), options.batch_rows);
        let has_row = header.next_row()?;
        if header.text.starts_with("\u{feff}".as_bytes()) {
            header.text.drain(.."\u{feff}".len());
        }
        let header_names = options.names_in(file, texts::<S>(&header.text))?;
        let is_header = header_names.is_some();
        let names = header_names.unwrap_or_else(|| options.names.clone());
        check_header(file, &names)?;
        let decoder = RowDecoder::new(file, names, requested).with_options(options);
        let mut reader = Self { decoder: Arc::new(decoder), is_pending: has_row && !is_header, ..header };
        if is_header && reader.next_row()? {
            reader.types = declared_types(&reader.decoder.columns, &texts::<S>(&reader.text));
            reader.is_pending = reader.types.is_none();
        }
        Ok(reader)
    }

    fn with(decoder: RowDecoder<S>, stream: TextStream, batch_rows: usize) -> Self {
        Self {
            stream,
            decoder: Arc::new(decoder),
            types: None,
            line: 0,
            more_lines: 0,
            text: Vec::new(),
            has_break: false,
            is_pending: false,
            has_ended: false,
            has_met_end: false,
            batch_rows: batch_rows.max(1),
        }
    }

    /// Reads the next row into `text`; returns whether there is one.
    fn next_row(&mut self) -> Result<bool, SourceError> {
        let mut text = Vec::new();
        let has_row = self.append_row(&mut text)?;
        self.text = text;
        Ok(has_row)
    }

    /// Appends the next row to `text`, without its end; returns whether there is one.
    fn append_row(&mut self, text: &mut Vec<u8>) -> Result<bool, SourceError> {
        if std::mem::take(&mut self.is_pending) {
            text.append(&mut self.text);
            return Ok(true);
        }
        if self.has_ended {
            return Ok(false);
        }
        self.line += 1 + std::mem::take(&mut self.more_lines);
        let begin = text.len();
        while self.append_line(text, begin)? {
            let row = text.get(begin..).unwrap_or_default();
            let slashes = row.iter().rev().take_while(|byte| **byte == b'\\').count();
            // A backslash at the end of the file escapes nothing.
            if !S::BACKSLASHES || slashes % 2 == 0 || !self.has_break {
                self.has_ended = S::END.is_some_and(|end| end == row);
                self.has_met_end = self.has_ended;
                if self.has_ended {
                    text.truncate(begin);
                }
                return Ok(!self.has_ended);
            }
            // The line break belongs to the value.
            text.push(b'\n');
            self.more_lines += 1;
        }
        self.has_ended = true;
        Ok(text.len() > begin)
    }

    /// Reads the next line, whatever the spelling of rows; `None` at the end of the file.
    pub(super) fn next_line(&mut self) -> Result<Option<&[u8]>, SourceError> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        self.line += 1 + std::mem::take(&mut self.more_lines);
        let has_line = self.append_line(&mut text, 0)?;
        self.text = text;
        Ok(has_line.then_some(self.text.as_slice()))
    }

    /// Prepares for rows of these columns, which begin in the next line.
    pub(super) fn begin(&mut self, columns: Vec<String>) {
        self.decoder = Arc::new(self.decoder.with_columns(columns));
        self.has_ended = false;
        self.has_met_end = false;
    }

    /// Whether the rows ended with the end marker line.
    pub(super) fn has_met_end(&self) -> bool {
        self.has_met_end
    }

    /// Appends a line to a row that begins at `begin`, without its end; returns whether there is
    /// one.
    fn append_line(&mut self, text: &mut Vec<u8>, begin: usize) -> Result<bool, SourceError> {
        let row_bytes = text.len() - begin;
        let most = (MAX_RECORD_BYTES + 1).saturating_sub(row_bytes) as u64;
        let count = (&mut self.stream)
            .take(most)
            .read_until(b'\n', text)
            .map_err(|source| SourceError::Read { file: self.decoder.file.clone(), source })?;
        if row_bytes + count > MAX_RECORD_BYTES {
            return Err(SourceError::RecordTooLong { file: self.decoder.file.clone(), line: self.line });
        }
        self.has_break = count > 0 && text.last() == Some(&b'\n');
        if self.has_break {
            text.pop();
            if text.len() > begin && text.last() == Some(&b'\r') {
                text.pop();
            }
        }
        Ok(count > 0)
    }

    /// Reads the rows of a batch, and stops once they have `most_bytes` bytes; `None` at their end,
    /// which may precede the end of the file.
    fn next_rows(&mut self, most_bytes: usize) -> Result<Option<Rows>, SourceError> {
        let mut rows = Rows::default();
        while rows.ends.len() < self.batch_rows && rows.text.len() < most_bytes {
            if !self.append_row(&mut rows.text)? {
                break;
            }
            rows.ends.push((self.line, rows.text.len()));
        }
        Ok((!rows.ends.is_empty()).then_some(rows))
    }

    /// Reads the next rows; `None` at their end, which may precede the end of the file.
    pub(super) fn read_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        self.next_rows(READ_BATCH_BYTES)?.map(|rows| self.decoder.decode(&rows)).transpose()
    }

    /// Reads the next rows like [`Self::read_batch`], for another thread to decode.
    pub(super) fn read_part(&mut self) -> Result<Option<RawPart>, SourceError> {
        let Some(rows) = self.next_rows(PART_BYTES)? else { return Ok(None) };
        let decoder = Arc::clone(&self.decoder);
        let (bytes, count, columns) = (rows.text.len(), rows.ends.len(), decoder.wanted.len());
        let read = Box::new(move || vec![decoder.decode(&rows)]);
        Ok(Some(RawPart::Text(UnreadText::new(bytes, count, columns, read))))
    }

    /// Reads what follows the rows, which is part of the file's fingerprint.
    fn finish(&mut self) -> Result<(), SourceError> {
        drain(&mut self.stream)
            .map_err(|source| SourceError::Read { file: self.decoder.file.clone(), source })
    }
}

/// Checks the names in a header.
///
/// # Errors
/// [`SourceError`] if there are no names, or if a name occurs twice.
pub(super) fn check_header(file: &str, names: &[String]) -> Result<(), SourceError> {
    if names.iter().all(String::is_empty) {
        return Err(SourceError::Empty { file: file.to_owned() });
    }
    let mut seen = HashSet::new();
    match names.iter().find(|name| !name.is_empty() && !seen.insert(name.as_str())) {
        Some(column) => Err(SourceError::RepeatedColumn { file: file.to_owned(), column: column.clone() }),
        None => Ok(()),
    }
}

impl<S: Spelling> RawReader for LineReader<S> {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        let batch = self.read_batch()?;
        if batch.is_none() {
            self.finish()?;
        }
        Ok(batch)
    }

    fn next_part(&mut self) -> Result<Option<RawPart>, SourceError> {
        let part = self.read_part()?;
        if part.is_none() {
            self.finish()?;
        }
        Ok(part)
    }

    fn unknown_columns(&self) -> Vec<String> {
        self.decoder.unknown_columns()
    }

    fn column_names(&self) -> Option<Vec<String>> {
        Some(self.decoder.columns.clone())
    }

    fn declared_columns(&self) -> Option<&TypedColumns> {
        self.types.as_ref()
    }
}

#[cfg(test)]
pub(in crate::source) mod tests;
