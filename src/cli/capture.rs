//! Commands that run inside another program, which gets their result instead of a terminal.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel::TableError;
use evenkeel::bounded::message;
use evenkeel::capacity::CapacityError;
use evenkeel::evaluate::EvaluateError;
use evenkeel::ingest::IngestError;
use evenkeel::query::QueryError;
use evenkeel::source::{Reading, Reject, RowPosition, SourceError};
use evenkeel::spanner::simulate::SimulateError;
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::Value;

use crate::cli::{Cli, Command, Failure, Interrupt, Output, query};

/// Everything that a command reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Captured {
    /// The result, as `--format json` prints it; `Null` if the command has no such form.
    pub value: Value,
    /// The result as text for people.
    pub text: String,
    /// The report as a page of HTML, if the command has one.
    pub page: Option<String>,
    /// The most important part of that page, to be shown within another one.
    pub fragment: Option<String>,
    /// Notes beside the result, one sentence each.
    pub notes: Vec<String>,
}

/// Reason why a captured command did not succeed.
#[derive(Debug)]
pub enum CaptureError {
    /// The arguments are wrong.
    Usage(anyhow::Error),
    /// The work failed.
    Failed(anyhow::Error),
    /// The work was stopped.
    Interrupted,
    /// The work is done, and its result meets thresholds.
    Threshold {
        /// A line for each threshold that is met.
        crossings: String,
        /// The result.
        captured: Box<Captured>,
    },
}

/// Where in its inputs an error occurred, as far as that is known.
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
    pub fn of(error: &anyhow::Error) -> Self {
        let of_ingest = match error.downcast_ref() {
            Some(TableError::Ingest(error)) => Some(error),
            _ => None,
        };
        match of_ingest {
            Some(IngestError::Row { reject } | IngestError::AllRejected { first: reject, .. }) => {
                return Self::of_reject(reject);
            }
            Some(IngestError::Source(source)) => return Self::of_source(source),
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
        let of_source =
            error.downcast_ref().or_else(of_evaluation).or_else(of_capacity).or_else(of_simulation);
        of_source.map_or_else(Self::default, Self::of_source)
    }

    fn of_source(error: &SourceError) -> Self {
        match error.reject() {
            Some(reject) => Self::of_reject(reject),
            None => Self { file: error.file().map(str::to_owned), ..Self::default() },
        }
    }

    fn of_reject(reject: &Reject) -> Self {
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
        query::failure(error).into()
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

/// State of a captured command, for the thread that waits for it.
#[derive(Debug, Default)]
pub struct Capture {
    interrupt: Arc<Interrupt>,
    reported: Mutex<Captured>,
    bar: Mutex<Option<Bar>>,
}

/// Progress of a step of a command.
#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    reading: Option<Reading>,
    unit: String,
}

/// How far a step of a command is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Steps that are done.
    pub done: u64,
    /// Unit of the steps, such as `rows`.
    pub unit: String,
    /// Share of the step that is done, from 0 to 1, if its size is known.
    pub share: Option<f64>,
    /// Current input or part of the work, if the command names it.
    pub message: String,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Capture {
    /// Creates the state of a command that has not started.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Asks the command to stop. Returns whether it will end by itself, as soon as it has cleaned
    /// up; otherwise its future is to be dropped.
    pub fn interrupt(&self) -> bool {
        self.interrupt.press()
    }

    /// Returns how far the current step is; `None` between steps.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        let current = locked(&self.bar);
        let Bar { bar, reading, unit } = current.as_ref().filter(|current| !current.bar.is_finished())?;
        let done = bar.position();
        let of_length = bar.length().filter(|length| *length > 0).map(|length| done as f64 / length as f64);
        let share = reading.as_ref().map(Reading::share).or(of_length);
        Some(Progress { done, unit: unit.clone(), share, message: bar.message() })
    }

    /// Records text that is printed.
    pub(super) fn text(&self, text: &str) {
        locked(&self.reported).text.push_str(text);
    }

    /// Records a result.
    pub(super) fn value(&self, value: Value) {
        locked(&self.reported).value = value;
    }

    /// Records a page of HTML, and the part of it that fits in another page.
    pub(super) fn page(&self, page: Option<String>, fragment: Option<String>) {
        let mut reported = locked(&self.reported);
        reported.page = page;
        reported.fragment = fragment;
    }

    /// Records a note.
    pub(super) fn note(&self, text: &str) {
        locked(&self.reported).notes.push(text.to_owned());
    }

    /// Creates a bar that is shown nowhere, and makes it the current one.
    pub(super) fn bar(&self, length: Option<u64>, unit: &str, reading: Option<Reading>) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
        *locked(&self.bar) = Some(Bar { bar: bar.clone(), reading, unit: unit.to_owned() });
        bar
    }

    fn take(&self) -> Captured {
        std::mem::take(&mut *locked(&self.reported))
    }
}

/// Runs a command of the program, such as `["skew", "events"]`, and returns what it reports. Commands
/// that talk to a person or to a network, or that stream rows, are refused. To be run on
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
        let refused = "this command talks to a person or streams rows; run it as a program of its own";
        return Err(CaptureError::Usage(anyhow::anyhow!(refused)));
    }
    let mut output = Output::captured(Arc::clone(&capture), Arc::clone(&capture.interrupt));
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
    /// Whether everything that the command does is its result.
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
        assert!(error.to_string().contains("as a program of its own"), "{error}");
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
