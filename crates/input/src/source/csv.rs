//! CSV: reads records into columns of text cells.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::{BinaryArray, BinaryBuilder};
use csv::{ByteRecord, Reader, ReaderBuilder};

use crate::source::blank_lines::{BlankLineScanner, BlankLines};
use crate::source::doubt::Doubt;
use crate::source::error::SourceError;
use crate::source::format::{InputFormat, MAX_RECORD_BYTES};
use crate::source::lines::check_header;
use crate::source::options::{InputOptions, READ_BATCH_BYTES};
use crate::source::quoting::{MisplacedQuotes, QuoteScanner, quotes_in};
use crate::source::raw::{Positions, RawBatch, RawCells, RawReader};
use crate::source::reject::{Reject, RowPosition};
use crate::source::repeated_names::{RenamedColumn, distinct_names};
use crate::source::stream::{TextStream, buffered, drain};
use crate::source::type_names::{TypedColumns, declared_types};
use crate::source::unquoted::{NULL, Requoted};
use evenkeel_model::bounded::quote;
use evenkeel_model::note::Fault;

/// Reads CSV with a header line. A field that equals one of the null values is NULL, quoted or
/// not, unless `quoted_empty` is set.
pub(super) struct CsvReader {
    file: String,
    reader: Reader<Limited>,
    watched: Watched,
    /// First line of the last record.
    last_line: Option<u64>,
    header: Vec<String>,
    renamed: Vec<RenamedColumn>,
    /// Columns with the types that the second line states.
    types: Option<TypedColumns>,
    /// The first record, if it was read ahead.
    pending: Option<ByteRecord>,
    /// Requested columns: name and field number.
    wanted: Vec<(String, usize)>,
    null_values: Vec<Vec<u8>>,
    /// Whether the file states that a requested column has no NULL, so that fields are taken
    /// literally.
    never_null: Vec<bool>,
    /// Whether the columns have names that the user gave.
    is_named: bool,
    /// Signs of escapes in a file that may or may not use them.
    doubt: Option<Doubt>,
    batch_rows: usize,
}

/// Facts about the bytes read so far that the record reader does not expose.
#[derive(Debug, Clone, Default)]
struct Watched {
    /// Number of bytes that the reader took since its last record.
    since_record: Arc<AtomicUsize>,
    /// Number of quotes in all bytes read so far.
    quotes: Arc<AtomicUsize>,
    /// Whether the header line ends with a carriage return and a line feed. The reader counts the
    /// line feed of a record only when the next record begins.
    two_byte_ends: Arc<AtomicBool>,
    misplaced: MisplacedQuotes,
    blank: BlankLines,
}

/// Names of the fields, and the records read for them.
struct Head {
    header: Vec<String>,
    renamed: Vec<RenamedColumn>,
    /// Columns with the types that the second line states.
    types: Option<TypedColumns>,
    /// The first record of the rows, if it was read ahead.
    pending: Option<ByteRecord>,
    /// The first record of the file.
    first: ByteRecord,
}

impl Head {
    fn read(
        file: &str,
        reader: &mut Reader<Limited>,
        watched: &Watched,
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let mut next = || {
            let mut record = ByteRecord::new();
            match reader.read_byte_record(&mut record) {
                Ok(more) => {
                    watched.since_record.store(0, Ordering::Relaxed);
                    Ok(more.then_some(record))
                }
                Err(error) => {
                    let line = line_of(reader.position(), &watched.two_byte_ends);
                    Err(failed(file, &error, watched.since_record.load(Ordering::Relaxed), line))
                }
            }
        };
        let mut pending = next()?;
        let first = pending.clone().unwrap_or_default();
        let mut types = None;
        let (header, renamed) = match options.names_in(file, texts(&first))? {
            Some(header) => {
                let (header, renamed) =
                    if options.names.is_empty() { distinct_names(header) } else { (header, Vec::new()) };
                pending = next()?;
                types = pending.as_ref().and_then(|first| declared_types(&header, &texts(first)));
                pending = pending.filter(|_| types.is_none());
                (header, renamed)
            }
            None => (options.names.clone(), Vec::new()),
        };
        let rows_begin = pending.as_ref().and_then(ByteRecord::position).unwrap_or(reader.position()).byte();
        if watched.misplaced.take_before(rows_begin) {
            let problem = format!("the header has {TEXT_AFTER_QUOTE}");
            let advice = "double a quote that belongs to a name".to_owned();
            return Err(SourceError::Refused { file: file.to_owned(), problem, advice });
        }
        check_header(file, &header)?;
        Ok(Self { header, renamed, types, pending, first })
    }
}

/// Creates a reader of records of any number of fields.
fn reader_of(
    stream: Box<dyn Read + Send>,
    delimiter: u8,
    watched: &Watched,
    options: &InputOptions,
) -> Reader<Limited> {
    let nulls = if options.quoted_empty { unquoted_nulls(options) } else { Vec::new() };
    let stream: Box<dyn Read + Send> = match options.quoted_empty || options.escape.is_some() {
        true => Box::new(Requoted::new(stream, delimiter, nulls, options.escape)),
        false => stream,
    };
    let limited = Limited {
        scanner: QuoteScanner::new(delimiter, watched.misplaced.clone()),
        blank_lines: BlankLineScanner::new(watched.blank.clone()),
        stream: buffered(stream),
        watched: watched.clone(),
        last: 0,
        in_header: true,
    };
    ReaderBuilder::new().flexible(true).delimiter(delimiter).has_headers(false).from_reader(limited)
}

impl CsvReader {
    pub(super) fn open(
        file: &str,
        stream: Box<dyn Read + Send>,
        delimiter: u8,
        has_csv_quotes: bool,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let watched = Watched::default();
        let mut reader = reader_of(stream, delimiter, &watched, options);
        let Head { header, renamed, types, pending, first } =
            Head::read(file, &mut reader, &watched, options)?;
        let is_required = |name: &String| {
            let typed = types.iter().flat_map(|types: &TypedColumns| &types.columns);
            typed.into_iter().any(|column| column.name == *name && !column.nullable)
        };
        let never_null = columns.iter().filter(|name| header.contains(name)).map(is_required).collect();
        let field = |name: &String| header.iter().position(|field| field == name);
        let is_guessed = delimiter == b'\t' && options.format.is_none() && options.delimiter.is_none();
        // If `\N` is text, it shows that the file has escapes.
        let keeps_nulls = options.quoted_empty || !options.null_values.iter().any(|text| text == "\\N");
        let mut doubt = Doubt::new(has_csv_quotes, keeps_nulls);
        doubt.see(&first, 1, false);
        let wanted = columns.iter().filter_map(|name| Some((name.clone(), field(name)?))).collect();
        Ok(Self {
            file: file.to_owned(),
            reader,
            watched,
            last_line: None,
            wanted,
            null_values: match options.quoted_empty {
                true => vec![NULL.to_vec()],
                false => options.null_values.iter().map(|text| text.clone().into_bytes()).collect(),
            },
            batch_rows: options.batch_rows.max(1),
            never_null,
            is_named: !options.names.is_empty(),
            doubt: is_guessed.then_some(doubt),
            renamed,
            types,
            pending,
            header,
        })
    }

    fn failed(&self, error: &csv::Error) -> SourceError {
        let line = line_of(self.reader.position(), &self.watched.two_byte_ends);
        failed(&self.file, error, self.watched.since_record.load(Ordering::Relaxed), line)
    }

    fn broken(&self, line: u64, record: &ByteRecord) -> Reject {
        let field_count = record.len();
        let reason = if self.is_named {
            format!("has {field_count} fields, but {} columns are named", self.header.len())
        } else {
            format!("has {field_count} fields, the header has {}", self.header.len())
        };
        self.reject(line, record, reason)
    }

    fn reject(&self, line: u64, record: &ByteRecord, reason: String) -> Reject {
        let fields = record.iter().enumerate().map(|(index, field)| {
            let name = self.header.get(index).cloned().unwrap_or_else(|| format!("field {}", index + 1));
            (name, String::from_utf8_lossy(field).into_owned().into())
        });
        Reject {
            file: self.file.clone(),
            position: RowPosition::Line(line),
            column: None,
            reason: Fault::in_row(reason),
            record: fields.collect(),
        }
    }
}

/// Problem of a field such as `"5"6`.
const TEXT_AFTER_QUOTE: &str = "text after the closing quote of a field";

/// Returns the texts that mean NULL without quotes.
fn unquoted_nulls(options: &InputOptions) -> Vec<Vec<u8>> {
    let given = options.given_nulls();
    if given.is_empty() { vec![Vec::new()] } else { given }
}

/// Returns the fields of a record as text.
fn texts(record: &ByteRecord) -> Vec<String> {
    record.iter().map(|field| String::from_utf8_lossy(field).trim().to_owned()).collect()
}

/// Stream that fails on a record without an end.
struct Limited {
    stream: TextStream,
    scanner: QuoteScanner,
    blank_lines: BlankLineScanner,
    watched: Watched,
    /// The last byte read so far.
    last: u8,
    in_header: bool,
}

impl Limited {
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
        let before = self.watched.since_record.fetch_add(count, Ordering::Relaxed);
        if before + count > MAX_RECORD_BYTES {
            return Err(io::Error::other("a record has no end"));
        }
        Ok(count)
    }
}

/// Returns the line in which a record begins.
fn line_of(position: &csv::Position, two_byte_ends: &AtomicBool) -> u64 {
    position.line() + u64::from(two_byte_ends.load(Ordering::Relaxed))
}

/// Distinguishes a record without an end, a failure of the underlying stream and malformed CSV;
/// `since_record` counts the bytes since the last record.
fn failed(file: &str, error: &csv::Error, since_record: usize, line: u64) -> SourceError {
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

impl RawReader for CsvReader {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        let mut builders: Vec<BinaryBuilder> = self.wanted.iter().map(|_| BinaryBuilder::new()).collect();
        let mut lines = Vec::new();
        let mut broken = Vec::new();
        let mut record = ByteRecord::new();
        let mut bytes = 0;
        while lines.len() + broken.len() < self.batch_rows && bytes < READ_BATCH_BYTES {
            let more = match self.pending.take() {
                Some(first) => {
                    record = first;
                    true
                }
                None => self.reader.read_byte_record(&mut record).map_err(|error| self.failed(&error))?,
            };
            if !more {
                // Without a closing quote, the last record runs to the end.
                let is_open = self.reader.get_ref().scanner.is_within_quotes();
                if let Some(line) = self.last_line.filter(|_| is_open) {
                    return Err(SourceError::UnclosedQuote { file: self.file.clone(), line });
                }
                break;
            }
            self.watched.since_record.store(0, Ordering::Relaxed);
            bytes += record.as_slice().len();
            let line = record.position().map_or(0, |position| {
                line_of(position, &self.watched.two_byte_ends) + self.watched.blank.take_at(position.byte())
            });
            self.last_line = Some(line);
            if self.watched.misplaced.take_before(self.reader.position().byte()) {
                let reason = format!("has {TEXT_AFTER_QUOTE}; a quote within quotes is written twice");
                broken.push(self.reject(line, &record, reason));
                continue;
            }
            if record.len() != self.header.len() {
                // A backslash before a tab or a line break, or the mark at the end of the rows.
                if self.doubt.is_some() && record.as_slice().contains(&b'\\') {
                    return Err(SourceError::DoubtfulEscapes { file: self.file.clone(), line });
                }
                broken.push(self.broken(line, &record));
                continue;
            }
            if let Some(doubt) = &mut self.doubt {
                doubt.see(&record, line, self.watched.quotes.load(Ordering::Relaxed) > 0);
                doubt.check(&self.file)?;
            }
            lines.push(line);
            let requested = self.wanted.iter().zip(&self.never_null);
            for (builder, ((_, field), never_null)) in builders.iter_mut().zip(requested) {
                match record.get(*field) {
                    Some(cell) if *never_null || !self.null_values.iter().any(|null| null == cell) => {
                        builder.append_value(cell)
                    }
                    _ => builder.append_null(),
                }
            }
        }
        if lines.is_empty() && broken.is_empty() {
            drain(&mut self.reader.get_mut().stream)
                .map_err(|source| SourceError::Read { file: self.file.clone(), source })?;
            return Ok(None);
        }
        let columns = self.wanted.iter().zip(builders);
        let columns = columns.map(|((name, _), mut builder)| (name.clone(), builder.finish()));
        let cells: Vec<(String, BinaryArray)> = columns.collect();
        Ok(Some(RawBatch {
            cells: RawCells::Text(cells),
            positions: Positions::Lines(lines),
            broken,
            is_json: false,
        }))
    }

    fn unknown_columns(&self) -> Vec<String> {
        let known =
            |name: &&String| !name.is_empty() && !self.wanted.iter().any(|(wanted, _)| wanted == *name);
        self.header.iter().filter(known).map(|name| quote(name).to_string()).collect()
    }

    fn declared_columns(&self) -> Option<&TypedColumns> {
        self.types.as_ref()
    }

    fn column_names(&self) -> Option<Vec<String>> {
        Some(self.header.clone())
    }

    fn renamed_columns(&self) -> &[RenamedColumn] {
        &self.renamed
    }
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
