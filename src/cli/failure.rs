//! Reasons why a command does not exit with 0.

use std::io::{self, Write};
use std::path::Path;

use evenkeel::TableError;
use evenkeel::bounded::message;
use evenkeel::capacity::CapacityError;
use evenkeel::compact::CompactionError;
use evenkeel::delta::DeltaError;
use evenkeel::evaluate::EvaluateError;
use evenkeel::ingest::IngestError;
use evenkeel::lint::LintError;
use evenkeel::masked_path::masked_paths;
use evenkeel::query::QueryError;
use evenkeel::repartition::RepartitionError;
use evenkeel::sink::SinkError;
use evenkeel::spanner::simulate::SimulateError;

/// Exit code after Ctrl-C: 128 + SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;
/// Exit code if a result meets a threshold.
const THRESHOLD: u8 = 3;

/// Reason why a command does not exit with 0.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments do not fit together or do not parse.
    Usage(anyhow::Error),
    /// The work failed.
    Failed(anyhow::Error),
    /// The work is done, and a `--fail-on` threshold was met.
    Threshold(String),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        // A refused declaration is wrong usage, not a failure of the work.
        let refused = matches!(
            error.downcast_ref(),
            Some(
                TableError::Spec(_)
                    | TableError::Repartition(RepartitionError::Nothing { .. })
                    | TableError::Delta(DeltaError::UnknownColumn { .. } | DeltaError::NoColumns)
            )
        );
        if refused { Self::Usage(error) } else { Self::Failed(error) }
    }
}

impl Failure {
    /// Creates a failure of the arguments.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::Usage(error.into())
    }

    /// Creates a failure of the arguments from a message.
    pub(crate) fn wrong_usage(message: impl Into<String>) -> Self {
        Self::Usage(anyhow::anyhow!(message.into()))
    }

    /// Classifies wrong parameters and an empty query as wrong usage.
    pub(crate) fn from_query(error: QueryError) -> Self {
        match error {
            QueryError::Param(_) | QueryError::Empty => Self::usage(error),
            error => Self::from(error),
        }
    }

    /// Hides the values of folders in the paths of the message.
    pub(crate) fn with_masked_paths(self) -> Self {
        let masked = |error: anyhow::Error| anyhow::anyhow!(masked_paths(&error.to_string(), true));
        match self {
            Self::Usage(error) => Self::Usage(masked(error)),
            Self::Failed(error) if !is_interrupt(&error) && !is_closed_pipe(&error) => {
                Self::Failed(masked(error))
            }
            other => other,
        }
    }

    /// Adds the path of the output file if writing it failed.
    pub(crate) fn with_output_path(self, path: &Path) -> Self {
        match self {
            Self::Failed(error) if error.is::<SinkError>() => {
                Self::Failed(anyhow::anyhow!("{}: {error}", path.display()))
            }
            other => other,
        }
    }

    /// Adds a hint if a damaged file of the table in `dir` may be the cause.
    pub(crate) fn with_hint_of_damage(self, dir: &Path) -> Self {
        match self {
            Self::Failed(error) if may_be_damage(&error) => {
                let dir = dir.display();
                Self::Failed(anyhow::anyhow!(
                    "{error}. A file of the table may be damaged, or was deleted by a cleaning while it \
                        was read: 'evenkeel check {dir}' finds out; 'evenkeel query {dir} --skip-damaged' reads the rest"
                ))
            }
            other => other,
        }
    }

    /// Prefixes the message with the place of the failure, such as a file and a line.
    pub(crate) fn at(self, place: &str) -> Self {
        let placed = |error: anyhow::Error| anyhow::anyhow!("{place}: {error}");
        match self {
            Self::Usage(error) => Self::Usage(placed(error)),
            Self::Failed(error) => Self::Failed(placed(error)),
            threshold @ Self::Threshold(_) => threshold,
        }
    }

    /// Adds the hint that `hint` returns, if any.
    pub(crate) fn with_hint(self, hint: impl Fn(&anyhow::Error) -> Option<String>) -> Self {
        let hinted = |error: anyhow::Error| match hint(&error) {
            Some(hint) => anyhow::anyhow!("{error}. {hint}"),
            None => error,
        };
        match self {
            Self::Usage(error) => Self::Usage(hinted(error)),
            Self::Failed(error) => Self::Failed(hinted(error)),
            threshold @ Self::Threshold(_) => threshold,
        }
    }

    /// Whether the work was interrupted.
    pub(crate) fn is_interrupt(&self) -> bool {
        matches!(self, Self::Failed(error) if is_interrupt(error))
    }

    /// Prints the failure and returns the exit code. A closed pipe, as left by `head`, is no
    /// failure.
    pub(crate) fn report(&self) -> u8 {
        let (error, code) = match self {
            Self::Threshold(crossings) => {
                let _ = writeln!(io::stderr(), "{crossings}");
                return THRESHOLD;
            }
            Self::Usage(error) => (error, 2),
            Self::Failed(error) if is_interrupt(error) => (error, INTERRUPTED),
            Self::Failed(error) => (error, 1),
        };
        if is_closed_pipe(error) {
            return 0;
        }
        // If standard error is closed too, nothing can be reported. `message` limits the text,
        // since libraries quote input of any form.
        let _ = writeln!(io::stderr(), "error: {}", message(&error.to_string()));
        code
    }
}

/// Whether reading a file failed, rather than the query.
fn may_be_damage(error: &anyhow::Error) -> bool {
    let query = match error.downcast_ref() {
        Some(TableError::Query(query)) => Some(query),
        _ => error.downcast_ref::<QueryError>(),
    };
    query.is_some_and(QueryError::is_file_error)
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_closed = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_closed))
}

/// Whether the work was interrupted. The error of each kind of work is either by itself or within
/// that of a table.
fn is_interrupt(error: &anyhow::Error) -> bool {
    let (ingest, compaction, repartition) = match error.downcast_ref() {
        Some(TableError::Ingest(error)) => (Some(error), None, None),
        Some(TableError::Compaction(error)) => (None, Some(error), None),
        Some(TableError::Repartition(error)) => (None, None, Some(error)),
        _ => (error.downcast_ref(), error.downcast_ref(), error.downcast_ref()),
    };
    matches!(ingest, Some(IngestError::Interrupted))
        || matches!(compaction, Some(CompactionError::Interrupted))
        || matches!(repartition, Some(RepartitionError::Ingest(IngestError::Interrupted)))
        || matches!(error.downcast_ref(), Some(EvaluateError::Interrupted))
        || matches!(error.downcast_ref(), Some(LintError::Interrupted))
        || matches!(error.downcast_ref(), Some(SimulateError::Interrupted))
        || matches!(error.downcast_ref(), Some(CapacityError::Interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(failure: &Failure) -> String {
        match failure {
            Failure::Usage(error) => format!("usage: {error}"),
            Failure::Failed(error) => format!("failed: {error}"),
            Failure::Threshold(text) => format!("threshold: {text}"),
        }
    }

    #[test]
    fn a_hint_keeps_the_kind_of_the_failure() {
        let hinted = |failure: Failure| text(&failure.with_hint(|_| Some("try again".to_owned())));
        assert_eq!(hinted(Failure::wrong_usage("no column 'x'")), "usage: no column 'x'. try again");
        assert_eq!(hinted(anyhow::anyhow!("disk full").into()), "failed: disk full. try again");
        assert_eq!(hinted(Failure::Threshold("met".to_owned())), "threshold: met");
        assert_eq!(text(&Failure::wrong_usage("x").with_hint(|_| None)), "usage: x");
    }

    #[test]
    fn a_hint_of_damage_needs_a_query_that_failed_on_a_file() {
        let other = Failure::from(anyhow::anyhow!("disk full")).with_hint_of_damage(Path::new("events"));
        assert_eq!(text(&other), "failed: disk full");
    }

    #[test]
    fn interrupts_of_every_kind_of_work_are_recognized() {
        for error in [
            anyhow::Error::from(TableError::Ingest(IngestError::Interrupted)),
            IngestError::Interrupted.into(),
            anyhow::Error::from(IngestError::Interrupted).context("executors may still be running"),
            TableError::Compaction(CompactionError::Interrupted).into(),
            CompactionError::Interrupted.into(),
            TableError::Repartition(IngestError::Interrupted.into()).into(),
            RepartitionError::from(IngestError::Interrupted).into(),
            EvaluateError::Interrupted.into(),
            LintError::Interrupted.into(),
            SimulateError::Interrupted.into(),
            CapacityError::Interrupted.into(),
        ] {
            assert!(is_interrupt(&error), "{error:?}");
        }
        assert!(!is_interrupt(&anyhow::anyhow!("interrupted")));
        let nothing = || RepartitionError::Nothing { table: "t".to_owned() };
        assert!(!is_interrupt(&nothing().into()));
        assert!(!is_interrupt(&TableError::Repartition(nothing()).into()));
    }
}
