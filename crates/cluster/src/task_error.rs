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

/// Whether a text is about machines and connections rather than about the query.
fn is_passing(text: &str) -> bool {
    const SIGNS: [&str; 12] = [
        "Cancelled",
        "executor",
        "Executor",
        "FetchFailed",
        "fetch",
        "Fetch",
        "connect",
        "Connection",
        "transport",
        "ObjectStore(",
        "Object Store error",
        "Unavailable",
    ];
    SIGNS.iter().any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_survives_the_texts_of_others() {
        let error = TaskError {
            message: "a.csv, line 7, column 'x': \"y\" [is] no number".into(),
            again: false,
            too_large: true,
        };
        let text = format!("Job x failed: stage 1 failed: {:?}\n", error.pack());
        assert_eq!(TaskError::from_job(&text), error);
        assert!(TaskError::from_job("Job x failed: Cancelled").again);
        let text = r#"stage 1 failed: DataFusionError(Shared(External(ArrowError(CastError("no \"number\" here")))))"#;
        let query = TaskError::from_job(text);
        assert_eq!((query.again, query.message.as_str()), (false, "no \"number\" here"));
    }
}
