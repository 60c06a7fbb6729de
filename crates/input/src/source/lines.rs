//! Line-oriented text: one row per line, no quotes that could hold a line break, special characters
//! written as escapes. Data files of YDB dumps have this form, and the tab-separated text of
//! PostgreSQL, ClickHouse and MySQL.

use std::collections::HashSet;
use std::io::{BufRead, Read};

use arrow::array::BinaryBuilder;

use crate::source::error::SourceError;
use crate::source::format::MAX_RECORD_BYTES;
use crate::source::options::{InputOptions, READ_BATCH_BYTES};
use crate::source::raw::{Positions, RawBatch, RawCells, RawReader};
use crate::source::reject::{Reject, RowPosition};
use crate::source::stream::{TextStream, buffered, drain};
use crate::source::type_names::{TypedColumns, declared_types};
use evenkeel_model::note::Fault;

/// Spelling of rows and fields.
pub(super) trait Spelling: Send {
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
    file: String,
    stream: TextStream,
    columns: Vec<String>,
    /// Columns with the types that the second line states.
    types: Option<TypedColumns>,
    /// Position of the builder of each column; `None` if the column is not requested.
    slots: Vec<Option<usize>>,
    wanted: Vec<String>,
    /// First line of the last row.
    line: u64,
    /// Number of lines that the last row has beyond its first.
    more_lines: u64,
    /// The last row.
    text: Vec<u8>,
    /// Whether the last line ended with a line break, rather than with the file.
    has_break: bool,
    /// Whether the last row was read ahead.
    is_pending: bool,
    has_ended: bool,
    /// Whether the rows ended with the end marker line.
    has_met_end: bool,
    /// Values that the user declared to be NULL.
    nulls: Vec<Vec<u8>>,
    /// Whether the spelling was guessed from the first lines.
    is_guessed: bool,
    batch_rows: usize,
    spelling: std::marker::PhantomData<fn() -> S>,
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
        Self::with(file, buffered(stream), columns, requested, batch_rows)
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
        let mut header = Self::with(file, buffered(stream), Vec::new(), &[], options.batch_rows);
        let has_row = header.next_row()?;
        if header.text.starts_with("\u{feff}".as_bytes()) {
            header.text.drain(.."\u{feff}".len());
        }
        let header_names = options.names_in(file, header.texts())?;
        let is_header = header_names.is_some();
        let names = header_names.unwrap_or_else(|| options.names.clone());
        check_header(file, &names)?;
        let reader = Self::with(file, header.stream, names, requested, options.batch_rows);
        let mut reader =
            Self { line: header.line, more_lines: header.more_lines, text: header.text, ..reader };
        reader.has_ended = header.has_ended;
        reader.nulls = options.given_nulls();
        reader.is_guessed = options.format.is_none();
        reader.is_pending = has_row && !is_header;
        if is_header && reader.next_row()? {
            reader.types = declared_types(&reader.columns, &reader.texts());
            reader.is_pending = reader.types.is_none();
        }
        Ok(reader)
    }

    fn with(
        file: &str,
        stream: TextStream,
        columns: Vec<String>,
        requested: &[String],
        batch_rows: usize,
    ) -> Self {
        let wanted: Vec<String> = requested.iter().filter(|name| columns.contains(name)).cloned().collect();
        let slot = |name: &String| wanted.iter().position(|wanted| wanted == name);
        Self {
            file: file.to_owned(),
            stream,
            types: None,
            slots: columns.iter().map(slot).collect(),
            columns,
            wanted,
            line: 0,
            more_lines: 0,
            text: Vec::new(),
            has_break: false,
            is_pending: false,
            has_ended: false,
            has_met_end: false,
            nulls: Vec::new(),
            is_guessed: false,
            batch_rows: batch_rows.max(1),
            spelling: std::marker::PhantomData,
        }
    }

    /// Reads the next row into `text`, without its end; returns whether there is one.
    fn next_row(&mut self) -> Result<bool, SourceError> {
        if std::mem::take(&mut self.is_pending) {
            return Ok(true);
        }
        self.text.clear();
        if self.has_ended {
            return Ok(false);
        }
        self.line += 1 + std::mem::take(&mut self.more_lines);
        while self.append_line()? {
            let slashes = self.text.iter().rev().take_while(|byte| **byte == b'\\').count();
            // A backslash at the end of the file escapes nothing.
            if !S::BACKSLASHES || slashes % 2 == 0 || !self.has_break {
                self.has_ended = S::END.is_some_and(|end| end == self.text);
                self.has_met_end = self.has_ended;
                return Ok(!self.has_ended);
            }
            // The line break belongs to the value.
            self.text.push(b'\n');
            self.more_lines += 1;
        }
        self.has_ended = true;
        Ok(!self.text.is_empty())
    }

    /// Reads the next line, whatever the spelling of rows; `None` at the end of the file.
    pub(super) fn next_line(&mut self) -> Result<Option<&[u8]>, SourceError> {
        self.text.clear();
        self.line += 1 + std::mem::take(&mut self.more_lines);
        Ok(if self.append_line()? { Some(&self.text) } else { None })
    }

    /// Prepares for rows of these columns, which begin in the next line.
    pub(super) fn begin(&mut self, columns: Vec<String>) {
        let slot = |name: &String| self.wanted.iter().position(|wanted| wanted == name);
        self.slots = columns.iter().map(slot).collect();
        self.columns = columns;
        self.has_ended = false;
        self.has_met_end = false;
    }

    /// Whether the rows ended with the end marker line.
    pub(super) fn has_met_end(&self) -> bool {
        self.has_met_end
    }

    /// Appends a line to `text`, without its end; returns whether there is one.
    fn append_line(&mut self) -> Result<bool, SourceError> {
        let most = (MAX_RECORD_BYTES + 1).saturating_sub(self.text.len()) as u64;
        let count = (&mut self.stream)
            .take(most)
            .read_until(b'\n', &mut self.text)
            .map_err(|source| SourceError::Read { file: self.file.clone(), source })?;
        if self.text.len() > MAX_RECORD_BYTES {
            return Err(SourceError::RecordTooLong { file: self.file.clone(), line: self.line });
        }
        self.has_break = count > 0 && self.text.last() == Some(&b'\n');
        if self.has_break {
            self.text.pop();
            if self.text.last() == Some(&b'\r') {
                self.text.pop();
            }
        }
        Ok(count > 0)
    }

    /// Returns the fields of the last row as text.
    fn texts(&self) -> Vec<String> {
        let text = |field: &[u8]| {
            let mut value = Vec::new();
            let _ = S::decode(field, &mut value);
            String::from_utf8_lossy(&value).trim().to_owned()
        };
        fields::<S>(&self.text).map(text).collect()
    }

    /// Decodes the last row into `cells`, one per requested column: the range of its value in
    /// `values`, or `None` for NULL.
    fn decode_row(&self, values: &mut Vec<u8>, cells: &mut [Option<(usize, usize)>]) -> Result<(), Reject> {
        let field_count = fields::<S>(&self.text).count();
        if field_count != self.columns.len() {
            let expected = self.columns.len();
            return Err(
                self.broken(None, format!("has {field_count} fields, the table has {expected} columns"))
            );
        }
        for (position, (field, slot)) in fields::<S>(&self.text).zip(&self.slots).enumerate() {
            let Some(cell) = slot.and_then(|slot| cells.get_mut(slot)) else { continue };
            let start = values.len();
            match S::decode(field, values) {
                Ok(has_value) => {
                    let is_null = |text: &[u8]| self.nulls.iter().any(|null| null == text);
                    let is_value = has_value && !values.get(start..).is_some_and(is_null);
                    *cell = is_value.then_some((start, values.len()));
                }
                Err(problem) => {
                    let fault = Fault::in_value(field, problem);
                    return Err(Reject { reason: fault, ..self.broken(self.columns.get(position), "") });
                }
            }
        }
        Ok(())
    }

    fn broken(&self, column: Option<&String>, problem: impl Into<std::borrow::Cow<'static, str>>) -> Reject {
        let fields = fields::<S>(&self.text).enumerate().map(|(position, field)| {
            let name = self.columns.get(position).cloned();
            let name = name.unwrap_or_else(|| format!("field {}", position + 1));
            (name, String::from_utf8_lossy(field).into_owned().into())
        });
        Reject {
            file: self.file.clone(),
            position: RowPosition::Line(self.line),
            column: column.cloned(),
            reason: Fault::in_row(problem),
            record: fields.collect(),
        }
    }
}

/// Splits a row into its fields, which are not decoded.
fn fields<S: Spelling>(row: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(row);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut is_escaped = false;
        let end = text.iter().position(|byte| {
            let ends = *byte == S::DELIMITER && !is_escaped;
            is_escaped = S::BACKSLASHES && *byte == b'\\' && !is_escaped;
            ends
        });
        let Some(end) = end else { return rest.take() };
        rest = text.get(end + 1..);
        text.get(..end)
    })
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

impl<S: Spelling> LineReader<S> {
    /// Reads the next rows; `None` at their end, which may precede the end of the file.
    pub(super) fn read_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        let mut builders: Vec<BinaryBuilder> = self.wanted.iter().map(|_| BinaryBuilder::new()).collect();
        let (mut lines, mut broken) = (Vec::new(), Vec::new());
        let mut values = Vec::new();
        let mut cells = vec![None; self.wanted.len()];
        let mut bytes = 0;
        while lines.len() + broken.len() < self.batch_rows && bytes < READ_BATCH_BYTES && self.next_row()? {
            bytes += self.text.len();
            values.clear();
            if self.is_guessed && fields::<S>(&self.text).any(S::is_doubtful) {
                return Err(SourceError::DoubtfulEscapes { file: self.file.clone(), line: self.line });
            }
            if let Err(reject) = self.decode_row(&mut values, &mut cells) {
                broken.push(reject);
                continue;
            }
            lines.push(self.line);
            for (builder, cell) in builders.iter_mut().zip(&cells) {
                builder.append_option(cell.and_then(|(start, end)| values.get(start..end)));
            }
        }
        if lines.is_empty() && broken.is_empty() {
            return Ok(None);
        }
        let columns = self.wanted.iter().cloned().zip(builders.iter_mut().map(BinaryBuilder::finish));
        let cells = RawCells::Text(columns.collect());
        Ok(Some(RawBatch { cells, positions: Positions::Lines(lines), broken, is_json: false }))
    }
}

impl<S: Spelling> RawReader for LineReader<S> {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        let batch = self.read_batch()?;
        if batch.is_none() {
            drain(&mut self.stream)
                .map_err(|source| SourceError::Read { file: self.file.clone(), source })?;
        }
        Ok(batch)
    }

    fn unknown_columns(&self) -> Vec<String> {
        self.columns.iter().filter(|name| !name.is_empty() && !self.wanted.contains(name)).cloned().collect()
    }

    fn column_names(&self) -> Option<Vec<String>> {
        Some(self.columns.clone())
    }

    fn declared_columns(&self) -> Option<&TypedColumns> {
        self.types.as_ref()
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
pub(in crate::source) mod tests;
