//! Commands of the program, with their results captured, and the program itself.

use std::ffi::OsString;

use evenkeel::cli::{Capture, capture};
use pyo3::prelude::*;

use crate::errors::{failed, of_command, usage};
use crate::report::{Report, report};
use crate::waiting::wait;

/// Runs a command, such as `["skew", "events"]`.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None))]
pub(crate) fn run(
    py: Python<'_>,
    arguments: Vec<OsString>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Report> {
    let state = Capture::new();
    let of_command_run = std::sync::Arc::clone(&state);
    let ended = wait(py, &state, progress.as_ref(), move || capture(arguments, of_command_run))?;
    ended.map(report).map_err(|error| of_command(py, error))
}

/// Runs the program in this process and returns its exit code. The first argument is its name.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| evenkeel::cli::main(arguments))
}

/// Compares two evaluations, both as JSON, and returns the figures that differ, as JSON.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, before: &str, now: &str) -> PyResult<String> {
    let parsed =
        |text: &str| serde_json::from_str(text).map_err(|error| usage(py, format!("not JSON: {error}")));
    let drifts = evenkeel::evaluate::compare(&parsed(before)?, &parsed(now)?);
    let drifts = drifts.map_err(|error| usage(py, error))?;
    serde_json::to_string(&drifts).map_err(|error| failed(py, error.into()))
}
