//! Arguments that control how inputs are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use evenkeel::bounded::{SQL, read_text};
use evenkeel::source::{
    DeclaredTable, Export, InputFormat, InputOptions, InputPath, Inputs, find_inputs, read_ddl, read_describe,
};
use evenkeel::table::ColumnType;
use evenkeel::text_value::TextFormat;

use crate::cli::local_path::LocalPath;
use crate::cli::{Failure, Output};

/// Format of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormatArg {
    Parquet,
    /// Fields separated by commas or another character, with quotes.
    Csv,
    /// Fields separated by tabs, with backslash escapes, as COPY, ClickHouse and MySQL write them.
    Tsv,
    Ndjson,
    Arrow,
    Avro,
    Orc,
}

/// Arguments about the format of inputs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reading inputs")]
pub(crate) struct FormatArgs {
    /// Format of the inputs [default: detected from name and content].
    #[arg(long, value_enum, value_name = "FORMAT")]
    input_format: Option<InputFormatArg>,

    /// Format of points in time in text: unix-s, unix-ms, unix-us, unix-ns, or a strftime format
    /// such as '%d/%m/%Y %H:%M:%S'; for a single column COLUMN=FORMAT, repeatable [default: RFC
    /// 3339 and similar]. Times without a zone are UTC.
    #[arg(long = "timestamp-format", value_name = "[COLUMN=]FORMAT")]
    timestamp_formats: Vec<String>,

    /// Read numbers in text that are written as 1.234,56; JSON numbers always have points.
    #[arg(long)]
    decimal_comma: bool,

    /// Delimiter of CSV fields [default: a comma, or the semicolon, tab or | that separates every
    /// line into the same number of fields].
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<String>,

    /// Names of the columns, in order, of text files without a header line.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "header")]
    names: Vec<String>,

    /// Treat the first line of text files as the header even if it looks like a row.
    #[arg(long)]
    header: bool,

    /// CSV field that means NULL; repeatable [default: the empty field, and \N].
    #[arg(long = "null-value", value_name = "TEXT")]
    null_values: Vec<String>,

    /// A CSV field in quotes is never NULL: "" is empty text, and only a field without quotes is
    /// NULL, as PostgreSQL's COPY ... CSV does.
    #[arg(long)]
    quoted_empty: bool,

    /// Character that escapes a quote within a quoted CSV field: '\' for files written by cqlsh and
    /// dsbulk.
    #[arg(long, value_name = "CHARACTER")]
    escape: Option<String>,
}

impl FormatArgs {
    /// Returns the arguments as they would be written on a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut pair = |name: &str, value: &str| words.extend([name.to_owned(), value.to_owned()]);
        if let Some(name) = self.input_format.as_ref().and_then(ValueEnum::to_possible_value) {
            pair("--input-format", name.get_name());
        }
        self.timestamp_formats.iter().for_each(|format| pair("--timestamp-format", format));
        if let Some(delimiter) = &self.delimiter {
            pair("--delimiter", delimiter);
        }
        if !self.names.is_empty() {
            pair("--names", &self.names.join(","));
        }
        self.null_values.iter().for_each(|text| pair("--null-value", text));
        if self.decimal_comma {
            words.push("--decimal-comma".to_owned());
        }
        if let Some(escape) = &self.escape {
            words.extend(["--escape".to_owned(), escape.clone()]);
        }
        if self.quoted_empty {
            words.push("--quoted-empty".to_owned());
        }
        if self.header {
            words.push("--header".to_owned());
        }
        words
    }

    /// Checks the arguments and returns the options.
    pub(crate) fn options(&self) -> Result<InputOptions, Failure> {
        let defaults = InputOptions::default();
        let delimiter = self.delimiter.as_deref().map(delimiter).transpose()?;
        let mut timestamps = None;
        let mut column_timestamps = BTreeMap::new();
        for text in &self.timestamp_formats {
            match text.split_once('=').filter(|(column, _)| !column.contains('%')) {
                Some((column, format)) => {
                    column_timestamps.insert(column.to_owned(), format.parse().map_err(Failure::usage)?);
                }
                None if timestamps.is_some() => {
                    return Err(Failure::wrong_usage(
                        "--timestamp-format is given twice for all columns; write COLUMN=FORMAT for one of them",
                    ));
                }
                None => timestamps = Some(text.parse().map_err(Failure::usage)?),
            }
        }
        Ok(InputOptions {
            names: self.names.iter().map(|name| name.trim().to_owned()).collect(),
            header_given: self.header,
            quoted_empty: self.quoted_empty,
            escape: self.escape.as_deref().map(escape).transpose()?,
            format: self.input_format.map(|format| match format {
                InputFormatArg::Parquet => InputFormat::Parquet,
                InputFormatArg::Csv => InputFormat::Csv,
                InputFormatArg::Tsv => InputFormat::Tsv,
                InputFormatArg::Ndjson => InputFormat::Ndjson,
                InputFormatArg::Arrow => InputFormat::Arrow,
                InputFormatArg::Avro => InputFormat::Avro,
                InputFormatArg::Orc => InputFormat::Orc,
            }),
            column_timestamps,
            text: TextFormat {
                timestamps: timestamps.unwrap_or_default(),
                decimal_comma: self.decimal_comma,
            },
            delimiter,
            null_values: if self.null_values.is_empty() {
                defaults.null_values.clone()
            } else {
                self.null_values.clone()
            },
            ..defaults
        })
    }
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reading inputs")]
pub(crate) struct InputArgs {
    #[command(flatten)]
    format: FormatArgs,

    /// Table of a dump of several tables, such as ads/events, or of --ddl.
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,
}

impl InputArgs {
    /// Returns the arguments as they would be written on a command line.
    fn words(&self) -> Vec<String> {
        let table = self.table.iter().flat_map(|table| ["--table".to_owned(), table.clone()]);
        self.format.words().into_iter().chain(table).collect()
    }

    /// Checks the arguments and returns the options.
    pub(crate) fn options(&self) -> Result<InputOptions, Failure> {
        self.format.options()
    }
}

/// Arguments that control how exports are read, with the statement that declares their table.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReadingArgs {
    #[command(flatten)]
    input: InputArgs,

    /// File with the CREATE TABLE statement of the exported table, in the syntax of PostgreSQL,
    /// Citus, Greenplum, MySQL, ClickHouse, Doris, Cassandra, Spanner or YDB: names and types for
    /// text files, with or without a header, and the keys to judge. Also the description of a table
    /// by YDB, as proto-json-base64.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "header"], help_heading = "Reading inputs")]
    ddl: Option<LocalPath>,
}

impl ReadingArgs {
    /// Finds the inputs that the arguments name, prints notes on them, and returns them with the
    /// options for reading them.
    pub(crate) fn find(&self, arguments: &[String], out: &Output) -> Result<(Inputs, InputOptions), Failure> {
        let (inputs, options) = self.find_silently(arguments)?;
        inputs.notes.iter().for_each(|note| out.note(note.text()));
        Ok((inputs, options))
    }

    /// Like [`ReadingArgs::find`], but leaves the notes to the caller.
    pub(crate) fn find_silently(&self, arguments: &[String]) -> Result<(Inputs, InputOptions), Failure> {
        let statement = self.statement()?;
        // With statements, the name refers to a table in them.
        let table = self.input.table.as_deref().filter(|_| self.ddl.is_none());
        let mut inputs = find_inputs(arguments, table)?;
        if let (Some(declared), true) = (&inputs.declared, statement.is_some()) {
            return Err(Failure::wrong_usage(format!(
                "{} declares the table already; omit --ddl",
                declared.file
            )));
        }
        inputs.declared = inputs.declared.or(statement);
        if let (Some(declared), true) = (&inputs.declared, inputs.paths.is_empty()) {
            return Err(anyhow::anyhow!("{}: has no data files next to it", declared.file).into());
        }
        let options = inputs.options(self.input.options()?);
        Ok((inputs, options))
    }

    /// Returns the table that is named.
    pub(crate) fn table(&self) -> Option<&str> {
        self.input.table.as_deref()
    }

    /// Whether the table is declared by --ddl.
    pub(crate) fn has_statement(&self) -> bool {
        self.ddl.is_some()
    }

    /// Reads the table that --ddl declares.
    fn statement(&self) -> Result<Option<DeclaredTable>, Failure> {
        let Some(file) = &self.ddl else { return Ok(None) };
        let text = read_text(file, SQL)?;
        if text.trim_start().starts_with('{') {
            let table = read_describe(&text, &file.display().to_string());
            return table
                .map(Some)
                .map_err(|error| Failure::wrong_usage(format!("{}: {error}", file.display())));
        }
        let table = read_ddl(&text, &file.display().to_string(), self.table());
        table.map(Some).map_err(|error| Failure::wrong_usage(format!("{}: {error}", file.display())))
    }

    /// Returns the arguments as they would be written on a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let ddl = self.ddl.iter().flat_map(|file| ["--ddl".to_owned(), file.display().to_string()]);
        self.input.words().into_iter().chain(ddl).collect()
    }

    /// Checks the arguments and returns the options for files that declare nothing.
    pub(crate) fn options(&self) -> Result<InputOptions, Failure> {
        self.input.options()
    }
}

/// Opens an export, with the given types or else the inferred ones.
pub(crate) async fn open_export(
    inputs: Vec<InputPath>,
    options: InputOptions,
    types: BTreeMap<String, ColumnType>,
) -> Result<Arc<Export>, Failure> {
    let export = tokio::task::spawn_blocking(move || Export::open(&inputs, options, &types));
    Ok(Arc::new(export.await??))
}

fn escape(text: &str) -> Result<u8, Failure> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() && *byte != b'"' => Ok(*byte),
        br"\\" => Ok(b'\\'),
        _ => Err(Failure::wrong_usage(format!(
            "--escape '{text}' is not one ASCII character other than a quote"
        ))),
    }
}

fn delimiter(text: &str) -> Result<u8, Failure> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ if text == "\\t" || text.eq_ignore_ascii_case("tab") => Ok(b'\t'),
        _ => Err(Failure::wrong_usage(format!(
            "--delimiter '{text}' is not one ASCII character; write for example ';' or tab"
        ))),
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
