//! Decodes rows that were already split, on any thread.

use std::borrow::Cow;
use std::marker::PhantomData;

use arrow::array::BinaryBuilder;
use evenkeel_model::note::Fault;

use crate::source::error::SourceError;
use crate::source::lines::Spelling;
use crate::source::options::InputOptions;
use crate::source::raw::{Positions, RawBatch, RawCells};
use crate::source::reject::{Reject, RowPosition};

/// Consecutive rows of a file.
#[derive(Default)]
pub(super) struct Rows {
    /// The rows without the line breaks that end them.
    pub(super) text: Vec<u8>,
    /// First line of each row, and its end in the text.
    pub(super) ends: Vec<(u64, usize)>,
}

/// A row of a file.
#[derive(Clone, Copy)]
struct Row<'a> {
    text: &'a [u8],
    line: u64,
}

/// Decodes rows; shared by all threads that do.
pub(super) struct RowDecoder<S> {
    pub(super) file: String,
    pub(super) columns: Vec<String>,
    /// Position of the builder of each column; `None` if the column is not requested.
    slots: Vec<Option<usize>>,
    pub(super) wanted: Vec<String>,
    /// Values that the user declared to be NULL.
    nulls: Vec<Vec<u8>>,
    /// Whether the spelling was guessed from the first lines.
    is_guessed: bool,
    spelling: PhantomData<fn() -> S>,
}

impl<S: Spelling> RowDecoder<S> {
    /// Prepares for rows with these columns, of which the requested ones are decoded.
    pub(super) fn new(file: &str, columns: Vec<String>, requested: &[String]) -> Self {
        let wanted = requested.iter().filter(|name| columns.contains(name)).cloned().collect();
        let decoder = Self {
            file: file.to_owned(),
            columns: Vec::new(),
            slots: Vec::new(),
            wanted,
            nulls: Vec::new(),
            is_guessed: false,
            spelling: PhantomData,
        };
        decoder.with_columns(columns)
    }

    /// Returns a decoder of the same requested columns for rows that have these columns.
    pub(super) fn with_columns(&self, columns: Vec<String>) -> Self {
        let slot = |name: &String| self.wanted.iter().position(|wanted| wanted == name);
        Self {
            file: self.file.clone(),
            slots: columns.iter().map(slot).collect(),
            columns,
            wanted: self.wanted.clone(),
            nulls: self.nulls.clone(),
            is_guessed: self.is_guessed,
            spelling: PhantomData,
        }
    }

    /// Reads the values that the user declared to be NULL as that, and doubts a spelling that the
    /// user did not state.
    pub(super) fn with_options(self, options: &InputOptions) -> Self {
        Self { nulls: options.given_nulls(), is_guessed: options.format.is_none(), ..self }
    }

    /// Returns the named columns that are not decoded.
    pub(super) fn unknown_columns(&self) -> Vec<String> {
        self.columns.iter().filter(|name| !name.is_empty() && !self.wanted.contains(name)).cloned().collect()
    }

    /// Decodes rows.
    ///
    /// # Errors
    /// [`SourceError::DoubtfulEscapes`] if the spelling was guessed, and no writer of it would
    /// write a field like that.
    pub(super) fn decode(&self, rows: &Rows) -> Result<RawBatch, SourceError> {
        let mut builders: Vec<BinaryBuilder> = self.wanted.iter().map(|_| BinaryBuilder::new()).collect();
        let (mut lines, mut broken) = (Vec::with_capacity(rows.ends.len()), Vec::new());
        let mut values = Vec::new();
        let mut cells = vec![None; self.wanted.len()];
        let mut begin = 0;
        for (line, end) in &rows.ends {
            let row = Row { text: rows.text.get(begin..*end).unwrap_or_default(), line: *line };
            begin = *end;
            if self.is_guessed && fields::<S>(row.text).any(S::is_doubtful) {
                return Err(SourceError::DoubtfulEscapes { file: self.file.clone(), line: *line });
            }
            values.clear();
            if let Err(reject) = self.decode_row(row, &mut values, &mut cells) {
                broken.push(reject);
                continue;
            }
            lines.push(*line);
            for (builder, cell) in builders.iter_mut().zip(&cells) {
                builder.append_option(cell.and_then(|(start, end)| values.get(start..end)));
            }
        }
        let columns = self.wanted.iter().cloned().zip(builders.iter_mut().map(BinaryBuilder::finish));
        let cells = RawCells::Text(columns.collect());
        Ok(RawBatch { cells, positions: Positions::Lines(lines), broken, is_json: false })
    }

    /// Decodes a row into `cells`, one per requested column: the range of its value in `values`, or
    /// `None` for NULL.
    fn decode_row(
        &self,
        row: Row<'_>,
        values: &mut Vec<u8>,
        cells: &mut [Option<(usize, usize)>],
    ) -> Result<(), Reject> {
        let field_count = fields::<S>(row.text).count();
        if field_count != self.columns.len() {
            let expected = self.columns.len();
            let problem = format!("has {field_count} fields, the table has {expected} columns");
            return Err(self.broken(row, None, problem));
        }
        for (position, (field, slot)) in fields::<S>(row.text).zip(&self.slots).enumerate() {
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
                    return Err(Reject { reason: fault, ..self.broken(row, self.columns.get(position), "") });
                }
            }
        }
        Ok(())
    }

    fn broken(&self, row: Row<'_>, column: Option<&String>, problem: impl Into<Cow<'static, str>>) -> Reject {
        let fields = fields::<S>(row.text).enumerate().map(|(position, field)| {
            let name = self.columns.get(position).cloned();
            let name = name.unwrap_or_else(|| format!("field {}", position + 1));
            (name, String::from_utf8_lossy(field).into_owned().into())
        });
        Reject {
            file: self.file.clone(),
            position: RowPosition::Line(row.line),
            column: column.cloned(),
            reason: Fault::in_row(problem),
            record: fields.collect(),
        }
    }
}

/// Returns the fields of a row as text without spaces around it.
pub(super) fn texts<S: Spelling>(row: &[u8]) -> Vec<String> {
    let text = |field: &[u8]| {
        let mut value = Vec::new();
        let _ = S::decode(field, &mut value);
        String::from_utf8_lossy(&value).trim().to_owned()
    };
    fields::<S>(row).map(text).collect()
}

/// Splits a row into its fields, which are not decoded.
pub(super) fn fields<S: Spelling>(row: &[u8]) -> impl Iterator<Item = &[u8]> {
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
