//! Rows of an input as they are stored, before they are converted to a table.

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use evenkeel_model::values::lengths;

use crate::source::error::SourceError;
use crate::source::options::CELL_BYTES;
use crate::source::reject::{Reject, RowPosition};
use crate::source::repeated_names::RenamedColumn;
use crate::source::type_names::TypedColumns;

/// Rows of an input before they are converted to a table.
#[derive(Debug, Clone)]
pub struct RawBatch {
    /// The cells.
    pub cells: RawCells,
    /// Place of each row.
    pub positions: Positions,
    /// Rows that are not even records: too few fields, broken JSON.
    pub broken: Vec<Reject>,
    /// Whether the text comes from JSON, whose numbers have no leading zeros: a value with leading
    /// zeros is a string.
    pub is_json: bool,
}

/// Cells as text or as arrays.
#[derive(Debug, Clone)]
pub enum RawCells {
    /// Named columns of text.
    Text(Vec<(String, BinaryArray)>),
    /// Arrays with their schema.
    Arrow(RecordBatch),
}

impl RawCells {
    /// Returns the cells of a column of text.
    pub(super) fn text_of(&self, column: &str) -> Option<BinaryArray> {
        match self {
            RawCells::Text(columns) => {
                columns.iter().find(|(name, _)| name == column).map(|(_, cells)| cells.clone())
            }
            RawCells::Arrow(batch) => {
                let array = batch.column_by_name(column).filter(|array| array.data_type().is_string())?;
                cast(array, &DataType::Binary).ok()?.as_binary_opt().cloned()
            }
        }
    }

    /// Returns one row as text by column.
    pub(super) fn record(&self, row: usize) -> serde_json::Map<String, serde_json::Value> {
        let text = |cells: &BinaryArray| {
            if row < cells.len() && cells.is_valid(row) {
                serde_json::Value::from(String::from_utf8_lossy(cells.value(row)))
            } else {
                serde_json::Value::Null
            }
        };
        match self {
            RawCells::Text(columns) => {
                columns.iter().map(|(name, cells)| (name.clone(), text(cells))).collect()
            }
            RawCells::Arrow(batch) => {
                let options = FormatOptions::default();
                let schema = batch.schema();
                let value = |array: &ArrayRef| match ArrayFormatter::try_new(array.as_ref(), &options) {
                    Ok(formatter) if array.is_valid(row) => formatter.value(row).to_string().into(),
                    _ => serde_json::Value::Null,
                };
                schema
                    .fields()
                    .iter()
                    .zip(batch.columns())
                    .map(|(f, array)| (f.name().clone(), value(array)))
                    .collect()
            }
        }
    }
}

impl RawBatch {
    /// Returns the number of rows of arrays, 0 for text.
    pub(super) fn array_rows(&self) -> u64 {
        match &self.cells {
            RawCells::Arrow(batch) => batch.num_rows() as u64,
            RawCells::Text(_) => 0,
        }
    }

    /// Returns the size of the rows in memory, including those that are no records.
    pub(super) fn bytes(&self) -> usize {
        let cells: usize = match &self.cells {
            RawCells::Text(columns) => columns.iter().map(|(_, cells)| cells.get_array_memory_size()).sum(),
            RawCells::Arrow(batch) => batch.get_array_memory_size(),
        };
        cells + self.broken.iter().map(Reject::bytes).sum::<usize>()
    }
}

/// Rows of an input, or text that still has to be read.
pub(super) enum RawPart {
    Read(RawBatch),
    Text(UnreadText),
}

/// Text that any thread can read.
pub(super) struct UnreadText {
    /// Approximate size in memory of the text and its rows.
    pub(super) bytes: usize,
    /// Maximum number of rows.
    pub(super) rows: usize,
    /// Returns its rows; after a failure, there are no more.
    pub(super) read: ReadText,
}

impl UnreadText {
    /// Wraps a function that reads at most `rows` rows of `columns` columns from text of
    /// `text_bytes` bytes.
    pub(super) fn new(text_bytes: usize, rows: usize, columns: usize, read: ReadText) -> Self {
        let cells = rows.saturating_mul(columns);
        Self { bytes: text_bytes.saturating_add(cells.saturating_mul(CELL_BYTES)), rows, read }
    }
}

/// Reads text into batches.
pub(super) type ReadText = Box<dyn FnOnce() -> Vec<Result<RawBatch, SourceError>> + Send>;

impl RawPart {
    /// Returns the size in memory.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Read(batch) => batch.bytes(),
            Self::Text(text) => text.bytes,
        }
    }

    /// Returns the rows; after a failure, there are no more.
    pub(super) fn read(self) -> Vec<Result<RawBatch, SourceError>> {
        match self {
            Self::Read(batch) => vec![Ok(batch)],
            Self::Text(text) => (text.read)(),
        }
    }
}

/// Wraps a batch made by the caller as if it were read from a file; the number is its first row's.
impl From<(RecordBatch, u64)> for RawBatch {
    fn from((batch, first_row): (RecordBatch, u64)) -> Self {
        Self {
            cells: RawCells::Arrow(batch),
            positions: Positions::RowsFrom(first_row),
            broken: Vec::new(),
            is_json: false,
        }
    }
}

/// Places of the rows of a batch.
#[derive(Debug, Clone)]
pub enum Positions {
    /// A line number per row.
    Lines(Vec<u64>),
    /// Consecutive rows; the number of the first one.
    RowsFrom(u64),
}

impl Positions {
    pub(super) fn position(&self, row: usize) -> RowPosition {
        match self {
            Self::Lines(lines) => RowPosition::Line(lines.get(row).copied().unwrap_or(0)),
            Self::RowsFrom(first) => RowPosition::Row(first + row as u64),
        }
    }
}

/// Returns the size in bytes of the rows of a batch, without the rest of larger buffers that it is
/// a slice of.
#[must_use]
pub(super) fn batch_bytes(batch: &RecordBatch) -> usize {
    let bytes_of = |array: &ArrayRef| {
        let of_slice = array.to_data().get_slice_memory_size();
        let bytes = of_slice.unwrap_or_else(|_| array.get_array_memory_size());
        // The size of views leaves out their text.
        let is_view = matches!(array.data_type(), DataType::Utf8View | DataType::BinaryView);
        let text = lengths(array).filter(|_| is_view).unwrap_or_default();
        bytes + text.iter().map(|length| *length as usize).sum::<usize>()
    };
    batch.columns().iter().map(bytes_of).sum()
}

/// A column with one value in all rows of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathColumn {
    pub(super) name: String,
    pub(super) value: Option<String>,
}

/// Reads an input batch by batch.
pub(super) trait RawReader: Send {
    /// Returns the next rows; `None` at the end.
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError>;

    /// Returns the next rows like [`RawReader::next_batch`], or text that another thread can read
    /// while this reader goes on.
    fn next_part(&mut self) -> Result<Option<RawPart>, SourceError> {
        Ok(self.next_batch()?.map(RawPart::Read))
    }

    /// Returns names in the input that the table does not have, among those seen so far.
    fn unknown_columns(&self) -> Vec<String>;

    /// Returns all columns of the input, if they are known before its rows.
    fn column_names(&self) -> Option<Vec<String>> {
        self.file_schema().map(|schema| schema.fields().iter().map(|field| field.name().clone()).collect())
    }

    /// Returns the columns with their types, if a text file states them.
    fn declared_columns(&self) -> Option<&TypedColumns> {
        None
    }

    /// Returns the columns that were renamed because earlier ones have their names.
    fn renamed_columns(&self) -> &[RenamedColumn] {
        &[]
    }

    /// Returns the columns whose values are in the path of the file.
    fn path_columns(&self) -> &[PathColumn] {
        &[]
    }

    /// Returns the number of rows of a whole Parquet file, if ranges of it can be read; `None` if
    /// it was copied to a temporary file first, for example to decompress it.
    fn row_count(&self) -> Option<u64> {
        None
    }

    /// Returns the whole schema, if the file has one.
    fn file_schema(&self) -> Option<&SchemaRef> {
        None
    }

    /// Minimum and maximum value of a column of dates or times, as its numbers, if the file states
    /// them.
    fn extremes(&self, column: &str) -> Option<(i64, i64)> {
        let _ = column;
        None
    }
}
