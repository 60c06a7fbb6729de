//! Errors of ours on their way through Ballista, which turns every error of a task into a text of its own.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::error::DataFusionError;
use serde::{Deserialize, Serialize};

/// An error of a task, as it is told to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskError {
    /// The message.
    pub(super) message: String,
    /// Whether the same may succeed when it is done again.
    pub(super) again: bool,
    /// Whether a number of a key is too large for a system that keys are placed for.
    pub(super) too_large: bool,
}

impl TaskError {
    /// What a machine could not do, and another one, or a later time, may.
    pub(super) fn passing(message: String) -> Self {
        Self { message, again: true, too_large: false }
    }
}

const OPEN: &str = "EVENKEEL[";

impl TaskError {
    /// The error as one that passes through Ballista whole.
    pub(super) fn pack(&self) -> DataFusionError {
        let json = serde_json::to_vec(self).unwrap_or_default();
        DataFusionError::Execution(format!("{OPEN}{}]", STANDARD.encode(json)))
    }

    /// The error in the text of a failed job. What is none of ours is told as it is; whether it may pass is guessed from it.
    pub(super) fn of_job(text: &str) -> Self {
        let packed = text.split_once(OPEN).and_then(|(_, rest)| rest.split_once(']'));
        let told = packed
            .and_then(|(base64, _)| STANDARD.decode(base64).ok())
            .and_then(|json| serde_json::from_slice(&json).ok());
        told.unwrap_or_else(|| {
            let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
            // Ballista tells errors of DataFusion as programs see them; the innermost one says what is wrong.
            let innermost = whole.rsplit_once("Error(\"").and_then(|(_, rest)| rest.split_once("\")"));
            let message =
                innermost.map_or_else(|| whole.clone(), |(message, _)| message.replace("\\\"", "\""));
            Self { again: is_passing(&whole), message, too_large: false }
        })
    }
}

/// Whether a text speaks of machines and connections rather than of the query.
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
        let told = TaskError {
            message: "a.csv, line 7, column 'x': \"y\" [is] no number".into(),
            again: false,
            too_large: true,
        };
        let text = format!("Job x failed: stage 1 failed: {:?}\n", told.pack());
        assert_eq!(TaskError::of_job(&text), told);
        assert!(TaskError::of_job("Job x failed: Cancelled").again);
        let text = r#"stage 1 failed: DataFusionError(Shared(External(ArrowError(CastError("no \"number\" here")))))"#;
        let query = TaskError::of_job(text);
        assert_eq!((query.again, query.message.as_str()), (false, "no \"number\" here"));
    }
}
