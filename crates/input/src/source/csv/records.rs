//! Records of CSV as rows of text cells.

use arrow::array::BinaryBuilder;
use csv::ByteRecord;

use crate::source::options::READ_BATCH_BYTES;
use crate::source::raw::{Positions, RawBatch, RawCells};
use crate::source::reject::{Reject, RowPosition};
use evenkeel_model::note::Fault;

/// Problem of a field such as `"5"6`.
pub(super) const TEXT_AFTER_QUOTE: &str = "text after the closing quote of a field";

/// Rows that a batch has space for at first.
pub(super) const ROWS_AT_FIRST: usize = 1024;

/// Meaning of the records of a file.
pub(super) struct Shape {
    pub(super) file: String,
    pub(super) header: Vec<String>,
    /// Whether the columns have names that the user gave.
    pub(super) is_named: bool,
    /// Requested columns: name and field number.
    pub(super) wanted: Vec<(String, usize)>,
    /// Whether the file states that a requested column has no NULL, so that fields are taken
    /// literally.
    pub(super) never_null: Vec<bool>,
    pub(super) null_values: Vec<Vec<u8>>,
    /// Maximum number of rows in a batch.
    pub(super) batch_rows: usize,
}

impl Shape {
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

/// Rows of a batch that is being read.
pub(super) struct Rows<'a> {
    shape: &'a Shape,
    builders: Vec<BinaryBuilder>,
    lines: Vec<u64>,
    broken: Vec<Reject>,
    bytes: usize,
}

impl<'a> Rows<'a> {
    /// Starts a batch with space for this number of rows.
    pub(super) fn new(shape: &'a Shape, rows: usize) -> Self {
        let builder = |_| BinaryBuilder::with_capacity(rows.min(shape.batch_rows), rows);
        let builders = shape.wanted.iter().map(builder).collect();
        Self { shape, builders, lines: Vec::new(), broken: Vec::new(), bytes: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        self.lines.len() + self.broken.len() >= self.shape.batch_rows || self.bytes >= READ_BATCH_BYTES
    }

    /// Adds a record that begins in `line`. `has_text_after_quote` says whether a closing quote in
    /// it is followed by text.
    pub(super) fn add(&mut self, record: &ByteRecord, line: u64, has_text_after_quote: bool) {
        self.bytes += record.as_slice().len();
        if has_text_after_quote {
            let reason = format!("has {TEXT_AFTER_QUOTE}; a quote within quotes is written twice");
            return self.broken.push(self.shape.reject(line, record, reason));
        }
        if record.len() != self.shape.header.len() {
            return self.broken.push(self.shape.broken(line, record));
        }
        self.lines.push(line);
        let requested = self.shape.wanted.iter().zip(&self.shape.never_null);
        for (builder, ((_, field), never_null)) in self.builders.iter_mut().zip(requested) {
            match record.get(*field) {
                Some(cell) if *never_null || !self.shape.null_values.iter().any(|null| null == cell) => {
                    builder.append_value(cell)
                }
                _ => builder.append_null(),
            }
        }
    }

    /// Returns the rows; `None` if there are no records.
    pub(super) fn finish(self) -> Option<RawBatch> {
        if self.lines.is_empty() && self.broken.is_empty() {
            return None;
        }
        let columns = self.shape.wanted.iter().zip(self.builders);
        let columns = columns.map(|((name, _), mut builder)| (name.clone(), builder.finish()));
        Some(RawBatch {
            cells: RawCells::Text(columns.collect()),
            positions: Positions::Lines(self.lines),
            broken: self.broken,
            is_json: false,
        })
    }
}
