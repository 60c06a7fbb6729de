//! Reads files into batches of a declared schema.
//!
//! ```text
//! arguments -> find_inputs -> Input::open -> RawBatch -> Conform -> Conformed { batch, rejects }
//!             files, folders,  decompress,   text cells   match by name, cast without loss,
//!             globs, stdin     detect format or arrays    check NOT NULL, ranges and key size
//! ```
//! CSV and NDJSON become columns of text cells, Parquet and Arrow stay arrays; both are converted
//! to the table by the same rules. A row that cannot be accepted becomes a [`Reject`] with its
//! place in the file, its column and the reason.

mod arrow_ipc;
mod columnar;
mod conform;
mod csv;
mod discover;
mod export;
mod file_name;
mod infer;
mod lossless;
mod ndjson;
mod open;
mod places;
mod remote;
mod stream;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use arrow::array::{Array, ArrayRef, BinaryArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use crate::source::arrow_ipc::panics_are_caught;
pub use crate::source::conform::{Conform, Conformed};
pub use crate::source::discover::{InputPath, Inputs, find_inputs};
pub use crate::source::export::{Export, ExportPlace, OnUnreadable, Stretch, Unreadable, row_counts};
pub use crate::source::infer::{Sample, infer_columns};
pub use crate::source::open::Input;
pub use crate::source::places::{Extent, RowsAcross};
pub use crate::source::remote::RemoteFile;
pub use crate::source::stream::Fingerprint;

use evenkeel_model::bounded::{names, quote};
use evenkeel_model::note::Fault;
use evenkeel_model::table::ColumnType;
use evenkeel_model::text_value::{TextFormat, TimestampFormat};
use evenkeel_storage::StorageError;

/// Maximum number of rows to read at one time.
pub const READ_BATCH_ROWS: usize = 16 * 1024;
/// Approximate number of bytes to read at one time; if rows are wide, fewer of them are read.
const READ_BATCH_BYTES: usize = 8 << 20;

/// Maximum length of a record in a text file. A longer one is most likely an unclosed quote.
const MAX_RECORD_BYTES: usize = 64 << 20;

/// Input formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputFormat {
    /// Parquet.
    Parquet,
    /// Comma-separated values with a header line.
    Csv,
    /// Newline-delimited JSON objects.
    Ndjson,
    /// Arrow IPC, file or stream.
    Arrow,
}

impl fmt::Display for InputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parquet => "Parquet",
            Self::Csv => "CSV",
            Self::Ndjson => "NDJSON",
            Self::Arrow => "Arrow IPC",
        })
    }
}

/// Options for what inputs do not specify themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputOptions {
    /// Spelling of points in time in individual columns, by name.
    pub column_timestamps: BTreeMap<String, TimestampFormat>,
    /// Input format; if not given, detected from name and content.
    pub format: Option<InputFormat>,
    /// Spelling of values in text.
    pub text: TextFormat,
    /// Byte between CSV fields; if not given, a comma, or a tab in `.tsv` files.
    pub delimiter: Option<u8>,
    /// CSV fields that are read as NULL.
    pub null_values: Vec<String>,
    /// Maximum number of rows to read at one time.
    pub batch_rows: usize,
    /// Columns outside the projection, with their types. A columnar file that has such a column in
    /// exactly this type does not read it, and it is NULL. In text files such
    /// columns are read anyway, because their unreadable values must be reported.
    #[serde(skip)]
    pub unasked: BTreeMap<String, DataType>,
    /// Rows of a Parquet file to read, counted from 0; `None` reads all. Other files are read
    /// whole.
    pub rows: Option<Range<u64>>,
    /// Ranges of rows of a Parquet file to read, in ascending order and disjoint. If not empty,
    /// only these are read, and `rows` is ignored.
    #[serde(skip)]
    pub places: Vec<Range<u64>>,
    /// Whether text and bytes are returned as views, to which Parquet decodes fastest.
    pub views: bool,
}

impl Default for InputOptions {
    fn default() -> Self {
        Self {
            column_timestamps: BTreeMap::new(),
            format: None,
            text: TextFormat::default(),
            delimiter: None,
            null_values: vec![String::new()],
            batch_rows: READ_BATCH_ROWS,
            unasked: BTreeMap::new(),
            rows: None,
            places: Vec::new(),
            views: false,
        }
    }
}

impl InputOptions {
    /// Returns the spelling of the values of one column.
    #[must_use]
    pub fn text_of(&self, column: &str) -> TextFormat {
        match self.column_timestamps.get(column) {
            Some(timestamps) => TextFormat { timestamps: timestamps.clone(), ..self.text.clone() },
            None => self.text.clone(),
        }
    }
}

/// Reason why an input cannot be read.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum SourceError {
    #[error("no input '{path}': there is no such file or folder")]
    NotFound { path: String },
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(
        "{path} is a table; its files contain superseded rows. Write its rows to a file first: \
         evenkeel query {path} -c 'SELECT * FROM t' --output rows.parquet"
    )]
    Table { path: String },
    #[error("no input matches '{pattern}'", pattern = quote(pattern))]
    NoMatch { pattern: String },
    #[error("'{pattern}' is not a glob pattern: {reason}", pattern = quote(pattern))]
    Pattern { pattern: String, reason: String },
    #[error(
        "folder {path} has no file with a known extension (.parquet, .csv, .tsv, .ndjson, .jsonl, .json, \
            .arrow, .ipc, \
         .arrows, .feather; each also with .gz or .zst)"
    )]
    EmptyFolder { path: String },
    #[error("standard input (-) can be given only once")]
    StdinTwice,
    #[error("{file}: cannot read: {source}")]
    Read { file: String, source: std::io::Error },
    #[error("{file}: is empty")]
    Empty { file: String },
    #[error(
        "{file}: cannot tell the format from its name or content; name it with --input-format parquet|csv|ndjson|arrow"
    )]
    UnknownFormat { file: String },
    #[error("{file}: is not readable as {format}: {reason}")]
    Format { file: String, format: InputFormat, reason: String },
    #[error("{file}: is one JSON array, not one object per line; turn it into lines with: jq -c '.[]' FILE")]
    JsonArray { file: String },
    #[error("{file}: the header names column '{column}' twice", column = quote(column))]
    RepeatedColumn { file: String, column: String },
    #[error("{file}: has no column '{column}', which is NOT NULL in the table; the file has: {}{}", names(found), similar(column, found), column = quote(column))]
    MissingColumn { file: String, column: String, found: Vec<String> },
    #[error(
        "{file}: it has none of the expected columns; the file has: {}; expected: {}{}",
        names(found),
        names(declared),
        wrong_names(declared, found)
    )]
    NoCommonColumn { file: String, found: Vec<String>, declared: Vec<String> },
    #[error("{file}: column '{column}' of type {found} cannot be read as {column_type} without loss", column = quote(column), found = quote(found))]
    ColumnType { file: String, column: String, found: String, column_type: ColumnType },
    #[error("{file}: cannot detect the columns: {reason}")]
    Infer { file: String, reason: String },
    #[error("{file}: has no record from which types could be detected")]
    NoRecord { file: String },
    #[error("there is no input")]
    NoInput,
    #[error("there is no column '{column}' with a YDB type; there are: {}{}", names(found), similar(column, found), column = quote(column))]
    NoSuchColumn { column: String, found: Vec<String> },
    #[error(
        "{reject}. --on-error skip leaves such rows out; --type COLUMN:TYPE reads a column as another type, such as utf8"
    )]
    Unreadable { reject: Box<Reject> },
    #[error("{file}, line {line}: a quote is opened here and never closed")]
    UnclosedQuote { file: String, line: u64 },
    #[error("{file}, line {line}: a record has more than {} MiB; is a quote not closed?", MAX_RECORD_BYTES >> 20)]
    RecordTooLong { file: String, line: u64 },
    #[error("{file}: had {expected} rows when it was opened, and has {found} now; do not change files \
        while they are read", found = found.map_or_else(|| "another format".to_owned(), |found| found.to_string()))]
    Changed { file: String, expected: u64, found: Option<u64> },
    #[error("{file}: cannot assemble rows: {source}")]
    Arrow { file: String, source: ArrowError },
}

/// Returns a hint if a name differs only in case.
fn similar(column: &str, found: &[String]) -> String {
    found
        .iter()
        .find(|name| name.eq_ignore_ascii_case(column))
        .map(|name| format!(" (names are case-sensitive: '{name}' is not '{column}')"))
        .unwrap_or_default()
}

/// Returns the separator that a single heading seems to be written with.
fn wrong_separator(names: &[String]) -> Option<&'static str> {
    let [only] = names else { return None };
    let found = [";", "\t", "|"].into_iter().find(|separator| only.contains(separator))?;
    Some(if found == "\t" { "tab" } else { found })
}

/// Returns a hint if names differ from the declared ones only in case, or if the separator is
/// another one.
fn wrong_names(declared: &[String], found: &[String]) -> String {
    if let Some(separator) = wrong_separator(found) {
        return format!(" (is the delimiter a different one? Try --delimiter '{separator}')");
    }
    declared.iter().map(|column| similar(column, found)).find(|hint| !hint.is_empty()).unwrap_or_default()
}

/// Place of a row in its input, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowPosition {
    /// A line of a text file; for a CSV record that spans several lines, the first.
    Line(u64),
    /// A row of a columnar file or a stream.
    Row(u64),
}

impl fmt::Display for RowPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// A rejected row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reject {
    /// Name of the input.
    pub file: String,
    /// Place in the input.
    #[serde(flatten)]
    pub position: RowPosition,
    /// The column at fault; `None` if no single column is.
    pub column: Option<String>,
    /// Reason for the rejection.
    pub reason: Fault,
    /// Values of the table's columns as text; for a broken record, all of it.
    pub record: serde_json::Map<String, serde_json::Value>,
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.reason)
    }
}

impl Reject {
    /// Removes the values of the row; its place stays.
    pub fn mask(&mut self) {
        self.reason = Fault::of_row("cannot be read; its values are masked");
        self.record.clear();
    }

    /// Returns the place of the row: `x.csv, line 7, column 'n'`.
    #[must_use]
    pub fn place(&self) -> String {
        let column = self.column.as_ref().map(|column| format!(", column '{}'", quote(column)));
        format!("{}, {}{}", self.file, self.position, column.unwrap_or_default())
    }
}

/// Rows of an input before they are converted to a table.
#[derive(Debug, Clone)]
pub struct RawBatch {
    /// The cells.
    pub cells: RawCells,
    /// Place of each row.
    pub positions: Positions,
    /// Rows that are not even records: too few fields, broken JSON.
    pub broken: Vec<Reject>,
}

/// Cells as text or as arrays.
#[derive(Debug, Clone)]
pub enum RawCells {
    /// Named columns of text.
    Text(Vec<(String, BinaryArray)>),
    /// Arrays with their schema.
    Arrow(RecordBatch),
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
    fn of(&self, row: usize) -> RowPosition {
        match self {
            Self::Lines(lines) => RowPosition::Line(lines.get(row).copied().unwrap_or(0)),
            Self::RowsFrom(first) => RowPosition::Row(first + row as u64),
        }
    }
}

/// Returns the size in bytes of the rows of a batch, without the rest of larger buffers that it is
/// a slice of.
#[must_use]
pub fn batch_bytes(batch: &RecordBatch) -> usize {
    let bytes_of = |array: &ArrayRef| {
        array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
    };
    batch.columns().iter().map(bytes_of).sum()
}

/// Reads an input batch by batch.
trait RawReader: Send {
    /// Returns the next rows; `None` at the end.
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError>;

    /// Returns names in the input that the table does not have, among those seen so far.
    fn unknown_columns(&self) -> Vec<String>;

    /// Returns all columns of the input, if they are known before its rows.
    fn column_names(&self) -> Option<Vec<String>> {
        self.file_schema().map(|schema| schema.fields().iter().map(|field| field.name().clone()).collect())
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
}

/// A file that can be read repeatedly; deletes itself if it is temporary.
#[derive(Debug)]
enum SeekableFile {
    Kept(PathBuf),
    Spooled(tempfile::NamedTempFile),
}

impl SeekableFile {
    fn open(&self) -> std::io::Result<std::fs::File> {
        match self {
            Self::Kept(path) => std::fs::File::open(path),
            Self::Spooled(file) => file.reopen(),
        }
    }
}
