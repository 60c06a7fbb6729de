//! Carries our errors through Ballista, which flattens every task error into a string.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::error::DataFusionError;
use serde::{Deserialize, Serialize};

/// Error of a task, as reported to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskError {
    /// Message of the error.
    pub(super) message: String,
    /// Whether another attempt may succeed.
    pub(super) again: bool,
    /// Whether a number of a key is too large for a system that keys are placed for.
    pub(super) too_large: bool,
}

impl TaskError {
    /// Creates an error that may not occur on another machine or later.
    pub(super) fn passing(message: String) -> Self {
        Self { message, again: true, too_large: false }
    }
}

const OPEN: &str = "EVENKEEL[";

impl TaskError {
    /// Packs the error so that it passes through Ballista intact.
    pub(super) fn pack(&self) -> DataFusionError {
        let json = serde_json::to_vec(self).unwrap_or_default();
        DataFusionError::Execution(format!("{OPEN}{}]", STANDARD.encode(json)))
    }

    /// Extracts the error from the text of a failed job. Any other error keeps its text, which
    /// decides whether another attempt may succeed.
    pub(super) fn from_job(text: &str) -> Self {
        let packed = text.split_once(OPEN).and_then(|(_, rest)| rest.split_once(']'));
        let error = packed
            .and_then(|(base64, _)| STANDARD.decode(base64).ok())
            .and_then(|json| serde_json::from_slice(&json).ok());
        error.unwrap_or_else(|| {
            let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
            // Ballista prints errors of DataFusion in debug form; the innermost one names the
            // problem.
            let innermost = whole.rsplit_once("Error(\"").and_then(|(_, rest)| rest.split_once("\")"));
            let message =
                innermost.map_or_else(|| whole.clone(), |(message, _)| message.replace("\\\"", "\""));
            Self { again: is_passing(&whole), message, too_large: false }
        })
    }
}

/// Causes of failures that the scheduler itself writes.
const OF_SCHEDULER: [&str; 2] = [
    "all executors were lost and no executor re-registered",
    "task could not be prepared or was rejected by executor",
];

/// Text of the scheduler before the error of a task, in debug form.
const OF_TASK: &str = "Task failed due to runtime execution error: ";

/// Whether the text of a failed job is about machines and connections rather than about the query.
fn is_passing(text: &str) -> bool {
    // The scheduler cancels the jobs of lost executors.
    if text == "Cancelled" || OF_SCHEDULER.iter().any(|cause| text.starts_with(cause)) {
        return true;
    }
    let stage = text.strip_prefix("Job failed due to stage ").and_then(|rest| rest.split_once(" failed: "));
    let Some((_, reason)) = stage else { return false };
    reason.strip_prefix(OF_TASK).map_or_else(|| is_of_repeatable_parts(reason), is_of_machines)
}

/// Whether a stage failed because parts of it did that Ballista would repeat: results of other
/// executors that are gone, and errors of input and output.
fn is_of_repeatable_parts(reason: &str) -> bool {
    let Some((what, _)) = reason.split_once(", most recent failure reason: ") else { return false };
    (what.starts_with("Stage ") && what.ends_with(" times"))
        || (what.starts_with("Task") && what.ends_with(" times, fail the stage"))
}

/// Whether the debug form of an error of Ballista is that of machines, connections and stores. An
/// executor packs most of these itself.
fn is_of_machines(debug: &str) -> bool {
    const WRAPPERS: [&str; 5] = ["DataFusionError(", "External(", "Shared(", "ArrowError(", "ExternalError("];
    const ERRORS: [&str; 9] = [
        "FetchFailed(",
        "GrpcConnectionError(",
        "GrpcActionError(",
        "TonicError(",
        "GrpcError(Status { code: Unavailable,",
        "GrpcError(Status { code: Unknown,",
        "GrpcError(Status { code: Cancelled,",
        "TokioError(JoinError::Cancelled(",
        "ObjectStore(",
    ];
    match WRAPPERS.iter().find_map(|wrapper| debug.strip_prefix(wrapper)) {
        Some(inner) => is_of_machines(inner),
        None => debug == "Cancelled" || ERRORS.iter().any(|error| debug.starts_with(error)),
    }
}

#[cfg(test)]
#[path = "task_error_tests.rs"]
mod tests;
