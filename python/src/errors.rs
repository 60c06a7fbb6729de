//! Exceptions, whose classes are written in Python.

use arrow::error::ArrowError;
use evenkeel::TableError;
use evenkeel::bounded::message;
use evenkeel::cli::{CaptureError, ErrorPlace};
use evenkeel::ingest::IngestError;
use evenkeel::query::QueryError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use thiserror::Error;

use crate::report::report;

/// Module of the exceptions.
const MODULE: &str = "evenkeel._errors";

/// Text that is not UTF-8, which other libraries hand over unchecked.
#[derive(Debug, Error)]
#[error("row {row}, column '{column}': text is not UTF-8")]
pub(crate) struct BrokenText {
    /// Row of the source, from 1.
    pub(crate) row: u64,
    pub(crate) column: String,
}

/// Creates an exception of a class of [`MODULE`].
pub(crate) fn exception(py: Python<'_>, class: &str, text: &str, place: &ErrorPlace) -> PyErr {
    let text = text.lines().map(message).collect::<Vec<_>>().join("\n");
    let create = || {
        let details = PyDict::new(py);
        details.set_item("file", place.file.as_deref())?;
        details.set_item("line", place.line)?;
        details.set_item("row", place.row)?;
        details.set_item("column", place.column.as_deref())?;
        py.import(MODULE)?.getattr(class)?.call((text,), Some(&details))
    };
    create().map_or_else(|error| error, PyErr::from_value)
}

/// Creates the exception for work that failed.
pub(crate) fn failed(py: Python<'_>, error: anyhow::Error) -> PyErr {
    exception(py, "Error", &error.to_string(), &ErrorPlace::from_error(&error))
}

/// Creates the exception for wrong arguments.
pub(crate) fn usage(py: Python<'_>, error: impl std::fmt::Display) -> PyErr {
    exception(py, "UsageError", &error.to_string(), &ErrorPlace::default())
}

/// Converts the failure of work on a table; wrong usage has an exception of its own.
pub(crate) fn of_table(py: Python<'_>, error: TableError) -> PyErr {
    match error {
        TableError::Stream(error) => match error.downcast::<ArrowError>() {
            Ok(error) => of_source(py, *error),
            Err(error) => failed(py, anyhow::anyhow!("{error}")),
        },
        TableError::Query(error) => of_query(py, error),
        TableError::Ingest(error @ IngestError::Memory { .. }) => usage(py, error),
        error => of_command(py, error.into()),
    }
}

/// Converts the failure of a source of rows.
pub(crate) fn of_source(py: Python<'_>, error: ArrowError) -> PyErr {
    if let ArrowError::ExternalError(cause) = &error
        && let Some(BrokenText { row, column }) = cause.downcast_ref()
    {
        let place = ErrorPlace { row: Some(*row), column: Some(column.clone()), ..ErrorPlace::default() };
        return exception(py, "Error", &format!("{cause}. Nothing was committed"), &place);
    }
    // Other libraries add the traceback of an exception in Python.
    let text = error.to_string();
    let text = text.split(". Detail: Python exception").next().unwrap_or_default();
    let text = text.strip_prefix("C Data interface error: ").unwrap_or(text);
    failed(py, anyhow::anyhow!("the source of the rows failed: {text}"))
}

/// Converts the failure of a query; wrong usage has an exception of its own.
pub(crate) fn of_query(py: Python<'_>, error: QueryError) -> PyErr {
    of_command(py, error.into())
}

/// Converts the failure of a command.
pub(crate) fn of_command(py: Python<'_>, error: CaptureError) -> PyErr {
    match error {
        CaptureError::Usage(error) => {
            exception(py, "UsageError", &error.to_string(), &ErrorPlace::from_error(&error))
        }
        CaptureError::Failed(error) => failed(py, error),
        CaptureError::Interrupted => PyKeyboardInterrupt::new_err(()),
        CaptureError::Threshold { crossings, captured } => {
            let error = exception(py, "ThresholdError", &crossings, &ErrorPlace::default());
            let attached = report(*captured)
                .into_pyobject(py)
                .and_then(|report| error.value(py).setattr("_report", report));
            attached.err().unwrap_or(error)
        }
    }
}
