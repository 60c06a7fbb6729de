//! Reasons why a schema cannot be read.

use thiserror::Error;

use evenkeel_model::bounded::{names, quote};

/// Reasons why a schema cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum SchemaError {
    #[error("line {line}, column {column}: {message}")]
    Text { line: u64, column: u64, message: String },
    #[error("line {line}, column {column}: expected {expected}, found {found}, in {statement}")]
    Unexpected { line: u64, column: u64, expected: &'static str, found: String, statement: String },
    #[error("line {line}, column {column}: {statement}: {problem}; {next}")]
    Refused { line: u64, column: u64, statement: String, problem: String, next: String },
    #[error("there is no CREATE TABLE")]
    NoTable,
    #[error("there is no table '{name}'; there are: {}", names(known), name = quote(name))]
    UnknownTable { name: String, known: Vec<String> },
    #[error("there are several tables: {}; name one with --table", names(known))]
    SeveralTables { known: Vec<String> },
}
