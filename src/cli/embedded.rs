//! Commands that run inside another program, which gets their result instead of a terminal.

use std::ffi::OsString;
use std::sync::Arc;

use evenkeel::TableError;
use evenkeel::bounded::message;
use evenkeel::capacity::CapacityError;
use evenkeel::evaluate::EvaluateError;
use evenkeel::ingest::IngestError;
use evenkeel::query::QueryError;
use evenkeel::source::{Reject, RowPosition, SourceError};
use evenkeel::spanner::simulate::SimulateError;

use crate::cli::capture::{Capture, Captured};
use crate::cli::{Cli, Command, Failure, Output};

/// Reason why a captured command did not succeed.
#[derive(Debug)]
pub enum CaptureError {
    /// The arguments are wrong.
    Usage(anyhow::Error),
    /// The work failed.
    Failed(anyhow::Error),
    /// The work was stopped.
    Interrupted,
    /// The command succeeded, but its result meets a threshold.
    Threshold {
        /// A line for each threshold that is met.
        crossings: String,
        /// The result.
        captured: Box<Captured>,
    },
}

/// Place of an error in the inputs, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorPlace {
    /// Name of the input.
    pub file: Option<String>,
    /// Line of a text file, from 1.
    pub line: Option<u64>,
    /// Row of a columnar file or a stream, from 1.
    pub row: Option<u64>,
    /// Name of the column.
    pub column: Option<String>,
}

impl ErrorPlace {
    /// Returns the place of an error of this library.
    #[must_use]
    pub fn from_error(error: &anyhow::Error) -> Self {
        let of_ingest = match error.downcast_ref() {
            Some(TableError::Ingest(error)) => Some(error),
            _ => None,
        };
        match of_ingest {
            Some(IngestError::Row { reject } | IngestError::AllRejected { first: reject, .. }) => {
                return Self::from_reject(reject);
            }
            Some(IngestError::Source(source)) => return Self::from_source(source),
            _ => {}
        }
        let of_evaluation = || match error.downcast_ref()? {
            EvaluateError::Source(source) => Some(source),
            _ => None,
        };
        let of_capacity = || match error.downcast_ref()? {
            CapacityError::Source(source) => Some(source),
            _ => None,
        };
        let of_simulation = || match error.downcast_ref()? {
            SimulateError::Source(source) => Some(source),
            _ => None,
        };
        let source = error.downcast_ref().or_else(of_evaluation).or_else(of_capacity).or_else(of_simulation);
        source.map_or_else(Self::default, Self::from_source)
    }

    fn from_source(error: &SourceError) -> Self {
        match error.reject() {
            Some(reject) => Self::from_reject(reject),
            None => Self { file: error.file().map(str::to_owned), ..Self::default() },
        }
    }

    fn from_reject(reject: &Reject) -> Self {
        let (line, row) = match reject.position {
            RowPosition::Line(line) => (Some(line), None),
            RowPosition::Row(row) => (None, Some(row)),
        };
        Self { file: Some(reject.file.clone()), line, row, column: reject.column.clone() }
    }
}

impl From<TableError> for CaptureError {
    fn from(error: TableError) -> Self {
        Failure::from(error).into()
    }
}

impl From<QueryError> for CaptureError {
    fn from(error: QueryError) -> Self {
        Failure::from_query(error).into()
    }
}

impl From<Failure> for CaptureError {
    fn from(failure: Failure) -> Self {
        match failure {
            failure if failure.is_interrupt() => Self::Interrupted,
            Failure::Usage(error) => Self::Usage(error),
            Failure::Failed(error) => Self::Failed(error),
            Failure::Threshold(crossings) => Self::Threshold { crossings, captured: Box::default() },
        }
    }
}

/// Runs a command of the program, such as `["skew", "events"]`, and returns its output. Commands
/// that are interactive, serve a network or stream rows are refused. To be run on
/// [`runtime`](crate::cli::runtime), since expressions are evaluated recursively.
///
/// # Errors
/// [`CaptureError`], after which the command has cleaned up.
pub async fn capture(
    arguments: impl IntoIterator<Item = OsString>,
    capture: Arc<Capture>,
) -> Result<Captured, CaptureError> {
    let arguments = std::iter::once(OsString::from("evenkeel")).chain(arguments);
    let cli = Cli::read(arguments).map_err(|error| CaptureError::Usage(anyhow::anyhow!(short(&error))))?;
    if !cli.command.is_captured() {
        let refused = "this command is interactive or streams rows; run it as a separate program";
        return Err(CaptureError::Usage(anyhow::anyhow!(refused)));
    }
    let mut output = Output::captured(Arc::clone(&capture), capture.interrupts());
    let ended = cli.run(&mut output).await;
    let captured = capture.take();
    match ended.map_err(CaptureError::from) {
        Ok(()) => Ok(captured),
        Err(CaptureError::Threshold { crossings, .. }) => {
            Err(CaptureError::Threshold { crossings, captured: Box::new(captured) })
        }
        Err(error) => Err(error),
    }
}

/// Returns the first paragraph of an error in arguments, on one line, without the usage that
/// follows.
fn short(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    message(line.strip_prefix("error: ").unwrap_or(&line))
}

impl Command {
    /// Whether the entire effect of the command is its result.
    fn is_captured(&self) -> bool {
        match self {
            Self::Demo(_) | Self::Query(_) | Self::Sql(_) | Self::Completions(_) | Self::Man(_) => false,
            #[cfg(feature = "serve")]
            Self::Serve(_) => false,
            #[cfg(feature = "cluster")]
            Self::Cluster(_) => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arguments: &[&str]) -> Result<Captured, CaptureError> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        crate::cli::runtime().unwrap().block_on(capture(arguments, Capture::new()))
    }

    #[test]
    fn a_result_is_a_value_and_text() {
        let placed = run(&["place", "--partitions", "64", "--types", "uint64", "42"]).unwrap();
        assert!(placed.text.contains("45"), "{placed:?}");
        assert!(placed.value.to_string().contains("45"), "{placed:?}");
    }

    #[test]
    fn errors_are_told_apart_and_quote_no_usage() {
        let Err(CaptureError::Usage(error)) = run(&["place", "--no-such-option"]) else { panic!("accepted") };
        assert_eq!(error.to_string(), "unexpected argument '--no-such-option' found");
        let Err(CaptureError::Usage(error)) = run(&["query", "events", "SELECT 1"]) else { panic!("ran") };
        assert!(error.to_string().contains("as a separate program"), "{error}");
        assert!(matches!(run(&["skew", "/no/such/table"]), Err(CaptureError::Failed(_))));
    }

    #[test]
    fn a_met_threshold_comes_with_the_result() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("few.csv");
        std::fs::write(&file, "id,n\n1,2\n2,2\n3,2\n").unwrap();
        let file = file.display().to_string();
        let met = run(&["evaluate", &file, "--fail-on", "rows>2"]);
        let Err(CaptureError::Threshold { crossings, captured }) = met else { panic!("{met:?}") };
        assert!(crossings.contains("rows is 3"), "{crossings}");
        assert!(captured.page.unwrap().starts_with("<!doctype html>"));
        assert!(!captured.fragment.unwrap().contains("<body"));
    }
}
