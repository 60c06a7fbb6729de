//! CSV: reads records into columns of text cells.

mod blocks;
mod limited;
mod records;

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use csv::{ByteRecord, Reader, ReaderBuilder};

use crate::source::csv::blocks::{Blocks, read_block};
use crate::source::csv::limited::{Limited, Watched, failed, line_of};
use crate::source::csv::records::{ROWS_AT_FIRST, Rows, Shape, TEXT_AFTER_QUOTE};
use crate::source::doubt::Doubt;
use crate::source::error::SourceError;
use crate::source::escaped::has_doubled_quotes;
use crate::source::file_name::is_tab_separated;
use crate::source::format_of_bytes::is_of_dsbulk;
use crate::source::lines::check_header;
use crate::source::options::{InputOptions, PART_BYTES};
use crate::source::quoting::BOM;
use crate::source::raw::{RawBatch, RawPart, RawReader, UnreadText};
use crate::source::repeated_names::{RenamedColumn, distinct_names};
use crate::source::separator::other_separator;
use crate::source::stream::{buffered, drain};
use crate::source::type_names::{TypedColumns, declared_types};
use crate::source::unquoted::{NULL, Requoted};
use evenkeel_model::bounded::quote;

/// Reads CSV with a header line. A field that equals one of the null values is NULL, quoted or
/// not, unless `quoted_empty` is set.
pub(super) struct CsvReader {
    shape: Arc<Shape>,
    delimiter: u8,
    source: Source,
    watched: Watched,
    /// First line of the last record.
    last_line: Option<u64>,
    renamed: Vec<RenamedColumn>,
    /// Columns with the types that the second line states.
    types: Option<TypedColumns>,
    /// The first record, if it was read ahead.
    pending: Option<ByteRecord>,
    /// Signs of escapes in a file that may or may not use them.
    doubt: Option<Doubt>,
    block_bytes: usize,
    /// Rows of blocks that were not returned yet.
    ready: VecDeque<Result<RawBatch, SourceError>>,
}

/// How the rest of the file is read.
enum Source {
    Records(Box<Reader<Limited>>),
    Blocks(Blocks),
    /// Between the two.
    Nothing,
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
    let limited = Limited::new(buffered(stream), delimiter, watched);
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
        let null_values = match options.quoted_empty {
            true => vec![NULL.to_vec()],
            false => options.null_values.iter().map(|text| text.clone().into_bytes()).collect(),
        };
        Ok(Self {
            shape: Arc::new(Shape {
                file: file.to_owned(),
                header,
                is_named: !options.names.is_empty(),
                wanted,
                never_null,
                null_values,
                batch_rows: options.batch_rows.max(1),
            }),
            delimiter,
            source: Source::Records(Box::new(reader)),
            watched,
            last_line: None,
            doubt: is_guessed.then_some(doubt),
            renamed,
            types,
            pending,
            block_bytes: PART_BYTES,
            ready: VecDeque::new(),
        })
    }

    /// Reads the rest by blocks from now on, if it can be.
    fn read_by_blocks(&mut self) {
        let source = std::mem::replace(&mut self.source, Source::Nothing);
        self.source = match source {
            // If escapes are in doubt, the meaning of a record depends on all records before it. If
            // the delimiter could also end a record, no blocks can be cut.
            Source::Records(reader)
                if self.doubt.is_none()
                    && self.pending.is_none()
                    && !matches!(self.delimiter, b'\n' | b'\r' | b'"') =>
            {
                let unread = reader.get_ref().unread(reader.position().byte());
                if unread.len() < BOM.len() || unread.starts_with(BOM) {
                    Source::Records(reader)
                } else {
                    let (unread, line) = (unread.to_vec(), reader.position().line());
                    let stream = reader.into_inner().stream;
                    let sizes = (self.shape.batch_rows, self.block_bytes);
                    Source::Blocks(Blocks::new(stream, self.delimiter, unread, line, sizes))
                }
            }
            source => source,
        };
    }

    /// Returns the next rows of a file that is read by blocks.
    fn next_of_blocks(&mut self) -> Result<Option<RawBatch>, SourceError> {
        while self.ready.is_empty()
            && let Source::Blocks(blocks) = &mut self.source
            && let Some(block) = blocks.next_block(&self.shape.file)?
        {
            self.ready.extend(read_block(&self.shape, self.delimiter, &block));
        }
        self.ready.pop_front().transpose()
    }
}

/// Opens CSV, and returns its separator, too.
pub(super) fn open_csv(
    name: &str,
    path: &Path,
    plain: Box<dyn Read + Send>,
    head: &[u8],
    columns: &[String],
    options: &InputOptions,
) -> Result<(CsvReader, u8), SourceError> {
    let escape = options.escape.or(is_of_dsbulk(path).then_some(b'\\'));
    let options = InputOptions { escape, ..options.clone() };
    let by_name = || is_tab_separated(path).then_some(b'\t');
    let separator = options.delimiter.or_else(by_name).or_else(|| other_separator(head)).unwrap_or(b',');
    let reader = CsvReader::open(name, plain, separator, has_doubled_quotes(head), columns, &options)?;
    Ok((reader, separator))
}

/// Returns the texts that mean NULL without quotes.
fn unquoted_nulls(options: &InputOptions) -> Vec<Vec<u8>> {
    let given = options.given_nulls();
    if given.is_empty() { vec![Vec::new()] } else { given }
}

/// Returns the fields of a record as text.
fn texts(record: &ByteRecord) -> Vec<String> {
    record.iter().map(|field| String::from_utf8_lossy(field).trim().to_owned()).collect()
}

impl RawReader for CsvReader {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        let Source::Records(reader) = &mut self.source else { return self.next_of_blocks() };
        let file = &self.shape.file;
        let mut rows = Rows::new(&self.shape, ROWS_AT_FIRST);
        let mut record = ByteRecord::new();
        while !rows.is_full() {
            let more = match self.pending.take() {
                Some(first) => {
                    record = first;
                    true
                }
                None => reader.read_byte_record(&mut record).map_err(|error| {
                    let line = line_of(reader.position(), &self.watched.two_byte_ends);
                    failed(file, &error, self.watched.since_record.load(Ordering::Relaxed), line)
                })?,
            };
            if !more {
                // Without a closing quote, the last record runs to the end.
                let is_open = reader.get_ref().scanner.is_within_quotes();
                if let Some(line) = self.last_line.filter(|_| is_open) {
                    return Err(SourceError::UnclosedQuote { file: file.clone(), line });
                }
                break;
            }
            self.watched.since_record.store(0, Ordering::Relaxed);
            let line = record.position().map_or(0, |position| {
                line_of(position, &self.watched.two_byte_ends) + self.watched.blank.take_at(position.byte())
            });
            self.last_line = Some(line);
            let has_text_after_quote = self.watched.misplaced.take_before(reader.position().byte());
            if let Some(doubt) = &mut self.doubt
                && !has_text_after_quote
            {
                if record.len() == self.shape.header.len() {
                    doubt.see(&record, line, self.watched.quotes.load(Ordering::Relaxed) > 0);
                    doubt.check(file)?;
                } else if record.as_slice().contains(&b'\\') {
                    // A backslash before a tab or a line break, or the mark at the end of the rows.
                    return Err(SourceError::DoubtfulEscapes { file: file.clone(), line });
                }
            }
            rows.add(&record, line, has_text_after_quote);
        }
        let batch = rows.finish();
        if batch.is_none() {
            drain(&mut reader.get_mut().stream)
                .map_err(|source| SourceError::Read { file: file.clone(), source })?;
        }
        Ok(batch)
    }

    fn next_part(&mut self) -> Result<Option<RawPart>, SourceError> {
        self.read_by_blocks();
        let Source::Blocks(blocks) = &mut self.source else {
            return Ok(self.next_batch()?.map(RawPart::Read));
        };
        if let Some(batch) = self.ready.pop_front() {
            return Ok(Some(RawPart::Read(batch?)));
        }
        let Some(block) = blocks.next_block(&self.shape.file)? else { return Ok(None) };
        let (shape, delimiter) = (Arc::clone(&self.shape), self.delimiter);
        let rows = usize::try_from(block.lines).unwrap_or(usize::MAX);
        let (bytes, columns) = (block.bytes.len(), shape.wanted.len());
        let read = Box::new(move || read_block(&shape, delimiter, &block));
        Ok(Some(RawPart::Text(UnreadText::new(bytes, rows, columns, read))))
    }

    fn unknown_columns(&self) -> Vec<String> {
        let known =
            |name: &&String| !name.is_empty() && !self.shape.wanted.iter().any(|(wanted, _)| wanted == *name);
        self.shape.header.iter().filter(known).map(|name| quote(name).to_string()).collect()
    }

    fn declared_columns(&self) -> Option<&TypedColumns> {
        self.types.as_ref()
    }

    fn column_names(&self) -> Option<Vec<String>> {
        Some(self.shape.header.clone())
    }

    fn renamed_columns(&self) -> &[RenamedColumn] {
        &self.renamed
    }
}

#[cfg(test)]
mod tests;
