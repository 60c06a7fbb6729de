//! Errors of ours on their way through Ballista, which turns every error of a task into a text of its own.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::error::DataFusionError;
use serde::{Deserialize, Serialize};

/// An error of a task, as it is told to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Told {
    /// The message.
    pub(super) message: String,
    /// Whether the same may succeed when it is done again.
    pub(super) again: bool,
}

const OPEN: &str = "EVENKEEL[";

impl Told {
    /// An error that comes again whenever it is tried.
    pub(super) fn lasting(error: impl std::fmt::Display) -> DataFusionError {
        Self { message: error.to_string(), again: false }.pack()
    }

    /// An error of a store or a machine, which may be gone the next time.
    pub(super) fn passing(error: impl std::fmt::Display) -> DataFusionError {
        Self { message: error.to_string(), again: true }.pack()
    }

    fn pack(&self) -> DataFusionError {
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
            Self { again: is_passing(&whole), message }
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
        let message = "a.csv, line 7, column 'x': \"y\" [is] no number";
        let text = format!("Job x failed: stage 1 failed: {:?}\n", Told::lasting(message));
        assert_eq!(Told::of_job(&text), Told { message: message.into(), again: false });
        assert!(Told::of_job(&format!("{:?}", Told::passing("503"))).again);
        assert!(Told::of_job("Job x failed: Cancelled").again);
        let text = r#"stage 1 failed: DataFusionError(Shared(External(ArrowError(CastError("no \"number\" here")))))"#;
        let query = Told::of_job(text);
        assert_eq!((query.again, query.message.as_str()), (false, "no \"number\" here"));
    }
}
