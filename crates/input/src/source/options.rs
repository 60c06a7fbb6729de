//! Reading options that inputs do not specify themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

use crate::source::declared::{DataForm, DeclaredTable};
use crate::source::deletes::Deletes;
use crate::source::error::SourceError;
use crate::source::format::InputFormat;
use crate::source::meter::Meter;
use evenkeel_model::table::{Column, ColumnType};
use evenkeel_model::text_value::{TextFormat, TimestampFormat};

/// Maximum number of rows to read at one time.
const READ_BATCH_ROWS: usize = 16 * 1024;
/// Approximate number of bytes to read at one time; if rows are wide, fewer of them are read.
pub(super) const READ_BATCH_BYTES: usize = 8 << 20;
/// Approximate number of bytes of text that one of several threads reads at a time.
pub(super) const PART_BYTES: usize = 512 << 10;
/// Approximate memory of a cell that is read from text, without its characters: its ends in two
/// arrays, or its value in one.
pub(super) const CELL_BYTES: usize = 24;

/// A table in a file of several tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Names of its sections of rows.
    pub tables: Vec<String>,
    /// Columns of the table.
    pub columns: Vec<String>,
}

/// Reading options that inputs do not specify themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputOptions {
    /// Spelling of points in time in individual columns, by name.
    pub column_timestamps: BTreeMap<String, TimestampFormat>,
    /// Input format; if not given, detected from name and content.
    pub format: Option<InputFormat>,
    /// Spelling of values in text.
    pub text: TextFormat,
    /// Byte between CSV fields; if not given, a tab in `.tsv` files, otherwise a comma, or the
    /// semicolon, tab or `|` that separates every line into the same number of fields.
    pub delimiter: Option<u8>,
    /// Names of the columns of text files, in order. A first line of only such names is a header;
    /// otherwise there is no header.
    pub names: Vec<String>,
    /// Types of columns of text files, by name; other types are detected.
    pub types: BTreeMap<String, ColumnType>,
    /// Columns of text files whose types are a guess from the first rows: a later value that would
    /// lose characters or digits is refused.
    pub guessed: BTreeSet<String>,
    /// Whether the user said that the first line has names, whatever it looks like.
    pub header_given: bool,
    /// Whether text files have no header, whatever their first line looks like.
    pub headerless: bool,
    /// CSV fields that are read as NULL.
    pub null_values: Vec<String>,
    /// Whether a CSV field in quotes is never NULL: an empty one is empty text.
    pub quoted_empty: bool,
    /// Byte that escapes a quote in a quoted CSV field, instead of another quote.
    pub escape: Option<u8>,
    /// Maximum number of rows to read at one time.
    pub batch_rows: usize,
    /// Count of the bytes of local files that have been read.
    #[serde(skip)]
    pub meter: Meter,
    /// Maximum number of threads that read an input; `None` if there may be one for each core.
    #[serde(skip)]
    pub threads: Option<usize>,
    /// Columns outside the projection, with their types. A columnar file that has such a column in
    /// exactly this type does not read it, and it is NULL. In text files such
    /// columns are read anyway, because their unreadable values must be reported.
    #[serde(skip)]
    pub unprojected: BTreeMap<String, DataType>,
    /// Rows of a Parquet file to read, counted from 0; `None` reads all. Other files are read
    /// whole.
    pub rows: Option<Range<u64>>,
    /// Ranges of rows of a Parquet file to read, in ascending order and disjoint. If not empty,
    /// only these are read, and `rows` is ignored.
    #[serde(skip)]
    pub places: Vec<Range<u64>>,
    /// Columns that a dump declares: names in the order of its data files, and types.
    pub declared: Option<Vec<Column>>,
    /// Table whose rows are read from a file of several tables.
    pub section: Option<Section>,
    /// Whether text and bytes are returned as views, the fastest form to decode Parquet to.
    pub views: bool,
    /// Which rows are deletes.
    #[serde(default)]
    pub deletes: Deletes,
}

impl Default for InputOptions {
    fn default() -> Self {
        Self {
            column_timestamps: BTreeMap::new(),
            format: None,
            text: TextFormat::default(),
            delimiter: None,
            names: Vec::new(),
            types: BTreeMap::new(),
            guessed: BTreeSet::new(),
            header_given: false,
            headerless: false,
            null_values: vec![String::new(), "\\N".to_owned()],
            quoted_empty: false,
            escape: None,
            batch_rows: READ_BATCH_ROWS,
            meter: Meter::default(),
            threads: None,
            unprojected: BTreeMap::new(),
            rows: None,
            places: Vec::new(),
            declared: None,
            section: None,
            views: false,
            deletes: Deletes::None,
        }
    }
}

impl InputOptions {
    /// Number of threads that may read an input.
    pub(super) fn available_threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.map_or(cores, |threads| threads.min(cores))
    }

    /// Returns the options for the data files of a declared table.
    #[must_use]
    pub(super) fn for_table(self, table: &DeclaredTable) -> Self {
        if table.form == DataForm::YdbDump {
            return self.for_dump(table);
        }
        let typed =
            table.columns.iter().filter_map(|column| Some((column.name.clone(), column.column_type?)));
        let types = typed.collect();
        let all_names = || table.columns.iter().map(|column| column.name.clone()).collect();
        match table.form {
            DataForm::Ordered => Self { names: all_names(), types, ..self },
            DataForm::OrderedQuoted => Self {
                names: all_names(),
                types,
                quoted_empty: true,
                headerless: true,
                format: Some(InputFormat::Csv),
                delimiter: self.delimiter.or(Some(b',')),
                ..self
            },
            DataForm::Escaped => {
                Self { names: all_names(), types, format: Some(InputFormat::Tsv), headerless: true, ..self }
            }
            DataForm::Section => {
                let section = Section { tables: table.sections.clone(), columns: all_names() };
                Self { section: Some(section), types, ..self }
            }
            DataForm::Named | DataForm::YdbDump => Self { types, ..self },
        }
    }

    fn for_dump(self, table: &DeclaredTable) -> Self {
        let timestamps = match self.text.timestamps {
            TimestampFormat::Usual => TimestampFormat::YdbDump,
            given => given,
        };
        let text = TextFormat { timestamps, ..self.text };
        Self { declared: table.typed_columns(), text, ..self }
    }

    /// Returns the names in the first line of a text file; `None` if that is a row, because names
    /// are given and it contains none of them. Case does not matter.
    ///
    /// # Errors
    /// [`SourceError::OtherHeader`] if some of its fields are given names and others are not.
    pub(super) fn names_in(
        &self,
        file: &str,
        fields: Vec<String>,
    ) -> Result<Option<Vec<String>>, SourceError> {
        if self.headerless {
            return Ok(None);
        }
        if self.names.is_empty() {
            return Ok(Some(fields));
        }
        let known = |field: &String| self.names.iter().find(|name| name.eq_ignore_ascii_case(field)).cloned();
        let known_names: Vec<Option<String>> = fields.iter().map(known).collect();
        let count = known_names.iter().flatten().count();
        if count == known_names.len() {
            return Ok(Some(known_names.into_iter().flatten().collect()));
        }
        let Some(unknown) =
            fields.iter().zip(&known_names).find(|(_, name)| name.is_none()).map(|(field, _)| field)
        else {
            return Ok(None);
        };
        if 2 * count < fields.len() {
            return Ok(None);
        }
        Err(SourceError::OtherHeader {
            file: file.to_owned(),
            unknown: unknown.clone(),
            given: self.names.clone(),
        })
    }

    /// Returns the texts that the user declared to be NULL.
    pub(super) fn given_nulls(&self) -> Vec<Vec<u8>> {
        let defaults = Self::default().null_values;
        let given = self.null_values.iter().filter(|_| self.null_values != defaults);
        given.map(|text| text.clone().into_bytes()).collect()
    }

    /// Returns the spelling of the values of one column.
    #[must_use]
    pub(super) fn text_of(&self, column: &str) -> TextFormat {
        match self.column_timestamps.get(column) {
            Some(timestamps) => TextFormat { timestamps: timestamps.clone(), ..self.text.clone() },
            None => self.text.clone(),
        }
    }
}
