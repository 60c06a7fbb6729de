//! Arguments that control how inputs are read.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use evenkeel::source::{InputFormat, InputOptions};
use evenkeel::text_value::TextFormat;

use crate::cli::Failure;

/// Format of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormatArg {
    Parquet,
    Csv,
    Ndjson,
    Arrow,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reading inputs")]
pub(crate) struct InputArgs {
    /// Format of the inputs [default: detected from name and content].
    #[arg(long, value_enum, value_name = "FORMAT")]
    input_format: Option<InputFormatArg>,

    /// Format of points in time in text: unix-s, unix-ms, unix-us, unix-ns, or a strftime format
    /// such as '%d/%m/%Y %H:%M:%S'; for a single column COLUMN=FORMAT, repeatable [default: RFC
    /// 3339 and its relatives]. Times without a zone are UTC.
    #[arg(long = "timestamp-format", value_name = "[COLUMN=]FORMAT")]
    timestamp_formats: Vec<String>,

    /// Read numbers in text that are written as 1.234,56.
    #[arg(long)]
    decimal_comma: bool,

    /// Delimiter of CSV fields [default: a comma; a tab in .tsv files].
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<String>,

    /// CSV field that stands for NULL; repeatable [default: the empty field].
    #[arg(long = "null-value", value_name = "TEXT")]
    null_values: Vec<String>,
}

impl InputArgs {
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
        self.null_values.iter().for_each(|text| pair("--null-value", text));
        if self.decimal_comma {
            words.push("--decimal-comma".to_owned());
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
            rows: None,
            places: Vec::new(),
            format: self.input_format.map(|format| match format {
                InputFormatArg::Parquet => InputFormat::Parquet,
                InputFormatArg::Csv => InputFormat::Csv,
                InputFormatArg::Ndjson => InputFormat::Ndjson,
                InputFormatArg::Arrow => InputFormat::Arrow,
            }),
            column_timestamps,
            unprojected: defaults.unprojected,
            views: defaults.views,
            text: TextFormat {
                timestamps: timestamps.unwrap_or_default(),
                decimal_comma: self.decimal_comma,
            },
            delimiter,
            null_values: if self.null_values.is_empty() {
                defaults.null_values
            } else {
                self.null_values.clone()
            },
            batch_rows: defaults.batch_rows,
        })
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
