//! Reasons why an input cannot be read, with hints at the likely cause.

use arrow::error::ArrowError;
use thiserror::Error;

use crate::source::format::{InputFormat, MAX_RECORD_BYTES};
use crate::source::reject::Reject;
use crate::source::scheme_error::SchemeError;
use evenkeel_model::bounded::{names, quote};
use evenkeel_model::table::ColumnType;
use evenkeel_storage::StorageError;

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
         .arrows, .feather, .avro, .orc; each also with .gz or .zst){}",
        others(path, other)
    )]
    EmptyFolder { path: String, other: Option<String> },
    #[error("standard input (-) can be given only once")]
    StdinTwice,
    #[error("{file}: cannot read: {source}")]
    Read { file: String, source: std::io::Error },
    #[error(
        "{file}: is one of {count} parts, of which {missing} {} missing, such as part {first:05}; add them, or \
        name the individual files to read", if *missing == 1 { "is" } else { "are" }
    )]
    MissingParts { file: String, count: u64, missing: u64, first: u64 },
    #[error("{file}: {problem}; {advice}")]
    Refused { file: String, problem: String, advice: String },
    #[error("{file}: is empty")]
    Empty { file: String },
    #[error(
        "{file}: cannot tell the format from its name or content; name it with --input-format parquet|csv|tsv|ndjson|arrow|avro|orc"
    )]
    UnknownFormat { file: String },
    #[error("{file}: is not readable as {format}: {reason}")]
    Format { file: String, format: InputFormat, reason: String },
    #[error("{file}: is one JSON array, not one object per line; turn it into lines with: jq -c '.[]' FILE")]
    JsonArray { file: String },
    #[error("{file}: the header names column '{column}' twice; rename one of the two", column = quote(column))]
    RepeatedColumn { file: String, column: String },
    #[error("{file}: has no column '{column}', which is NOT NULL in the table; the file has: {}{}", names(found), similar(column, found), column = quote(column))]
    MissingColumn { file: String, column: String, found: Vec<String> },
    #[error("{file}: has no column '{column}', which marks deletes; the file has: {}{}", names(found), similar(column, found), column = quote(column))]
    DeleteColumn { file: String, column: String, found: Vec<String> },
    #[error(
        "{file}: the column that marks deletes has type {found}; it must be text, whole numbers, booleans or times"
    )]
    DeleteColumnType { file: String, found: String },
    #[error("{file}: no row has a value in column '{column}', which marks deletes", column = quote(column))]
    NoDeleteValue { file: String, column: String },
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
    #[error("{file}: its first line looks like a row: '{name}' would be the name of a column of {column_type}. If there \
        is no header, name the columns with --names id,user_id,...; if these are names, add --header", name = quote(name))]
    HeaderLikeRow { file: String, name: String, column_type: ColumnType },
    #[error("{file}: its first line has some of the given names but also '{unknown}'; given are: {}. Correct the names, or \
        remove the line", names(given), unknown = quote(unknown))]
    OtherHeader { file: String, unknown: String, given: Vec<String> },
    #[error(
        "{file}, line {line}: are backslashes escapes? Fields such as \\N say so, and quotes or other backslashes of the file \
        do not; say --input-format tsv if they are, or --input-format csv if they are not"
    )]
    DoubtfulEscapes { file: String, line: u64 },
    #[error("{file}: has no record from which types could be detected")]
    NoRecord { file: String },
    #[error("{file}: is {what}, which is not read; {advice}")]
    Foreign { file: String, what: String, advice: String },
    #[error("{path} is a dump of {} tables; name one of them with --table: {}", tables.len(), names(tables))]
    SeveralTables { path: String, tables: Vec<String> },
    #[error("{path}: has no table '{table}'; there {}", if found.is_empty() { "is none".to_owned() } else { format!("are: {}", names(found)) }, table = quote(table))]
    NoSuchTable { path: String, table: String, found: Vec<String> },
    #[error("--table {}: the inputs are plain files, not a dump of several tables", quote(table))]
    NotSeveralTables { table: String },
    #[error("{file}: is not the schema of a table: {source}")]
    Scheme { file: String, source: SchemeError },
    #[error("{other}: is not of the table that {first} declares; give only files of one table")]
    OtherTable { first: String, other: String },
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

impl SourceError {
    /// Returns the row at fault, if the error is about one.
    #[must_use]
    pub fn reject(&self) -> Option<&Reject> {
        match self {
            Self::Unreadable { reject } => Some(reject),
            _ => None,
        }
    }

    /// Returns the input at fault, if the error is about one.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Read { file, .. }
            | Self::MissingParts { file, .. }
            | Self::Refused { file, .. }
            | Self::Empty { file, .. }
            | Self::UnknownFormat { file, .. }
            | Self::Format { file, .. }
            | Self::JsonArray { file, .. }
            | Self::RepeatedColumn { file, .. }
            | Self::MissingColumn { file, .. }
            | Self::DeleteColumn { file, .. }
            | Self::DeleteColumnType { file, .. }
            | Self::NoDeleteValue { file, .. }
            | Self::NoCommonColumn { file, .. }
            | Self::ColumnType { file, .. }
            | Self::Infer { file, .. }
            | Self::HeaderLikeRow { file, .. }
            | Self::OtherHeader { file, .. }
            | Self::DoubtfulEscapes { file, .. }
            | Self::NoRecord { file, .. }
            | Self::Foreign { file, .. }
            | Self::Scheme { file, .. }
            | Self::UnclosedQuote { file, .. }
            | Self::RecordTooLong { file, .. }
            | Self::Changed { file, .. }
            | Self::Arrow { file, .. } => Some(file),
            Self::NotFound { path } | Self::Table { path } => Some(path),
            Self::Unreadable { reject } => Some(&reject.file),
            _ => None,
        }
    }
}

/// Returns advice about the files of a folder with other names; `other` is one of them.
fn others(folder: &str, other: &Option<String>) -> String {
    match other {
        None => String::new(),
        Some(dump) if dump.ends_with(".sql") => format!("; name a dump itself, such as {dump}"),
        Some(_) => format!(
            "; name files of other names by a pattern, such as '{}/*', with --input-format",
            folder.trim_end_matches('/')
        ),
    }
}

/// Returns a hint if a name differs only in case.
fn similar(column: &str, columns: &[String]) -> String {
    columns
        .iter()
        .find(|name| name.eq_ignore_ascii_case(column))
        .map(|name| format!(" (names are case-sensitive: '{name}' is not '{column}')"))
        .unwrap_or_default()
}

/// Returns the separator that a single heading seems to be written with.
pub(super) fn wrong_separator(names: &[String]) -> Option<&'static str> {
    let [only] = names else { return None };
    let separator = [";", "\t", "|"].into_iter().find(|separator| only.contains(separator))?;
    Some(if separator == "\t" { "tab" } else { separator })
}

/// Returns a hint if names differ from the declared ones only in case, or if the separator is
/// another one.
fn wrong_names(declared: &[String], columns: &[String]) -> String {
    if let Some(separator) = wrong_separator(columns) {
        return format!(" (is the delimiter a different one? Try --delimiter '{separator}')");
    }
    declared.iter().map(|column| similar(column, columns)).find(|hint| !hint.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn no_common_column(found: &[&str], declared: &[&str]) -> String {
        let (found, declared) = (strings(found), strings(declared));
        SourceError::NoCommonColumn { file: "x.csv".to_owned(), found, declared }.to_string()
    }

    #[test]
    fn a_name_that_differs_only_in_case_gives_a_hint() {
        let error = SourceError::MissingColumn {
            file: "x.csv".to_owned(),
            column: "ID".to_owned(),
            found: strings(&["id", "n"]),
        };
        assert!(error.to_string().ends_with("(names are case-sensitive: 'id' is not 'ID')"), "{error}");
        let hint = "(names are case-sensitive: 'n' is not 'N')";
        assert!(no_common_column(&["id", "n"], &["x", "N"]).ends_with(hint));
        assert!(!no_common_column(&["id", "n"], &["x", "y"]).contains("case-sensitive"));
    }

    #[test]
    fn a_single_heading_with_another_separator_gives_a_hint() {
        for (heading, separator) in [("id;n", ";"), ("id\tn", "tab"), ("id|n", "|")] {
            let text = no_common_column(&[heading], &["id", "n"]);
            assert!(text.contains(&format!("Try --delimiter '{separator}'")), "{text}");
        }
        // A semicolon in one of several headings separates nothing.
        assert!(!no_common_column(&["a;b", "c"], &["id"]).contains("--delimiter"));
        assert!(!no_common_column(&[], &["id"]).contains("--delimiter"));
    }
}
