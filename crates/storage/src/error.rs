//! Errors of storage, with the message of a store in one line.

use std::path::PathBuf;

use thiserror::Error;

#[cfg(feature = "cloud")]
use crate::no_credentials;

/// Error while reading or writing a file of a table.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum StorageError {
    #[error("there is no table in {0}: there is no such directory. Declare one with 'evenkeel create {0} ...'", path.display())]
    NoDirectory { path: PathBuf },
    #[error("{url}: this build has no object stores; build it with 'cargo build --release --features cloud'")]
    NoCloud { url: String },
    #[error("{url}: {reason}")]
    Url { url: String, reason: String },
    #[error("{url}: the store cannot be reached with the settings in the environment: {}", brief(source))]
    Client { url: String, source: object_store::Error },
    #[error("there are no credentials of AWS: {reason}")]
    Profile { reason: String },
    #[error("{url}: names a whole bucket; name a prefix in it for the table, such as {url}/events")]
    WholeBucket { url: String },
    #[error("{} is a file; name the directory of a table, which comes before any inputs", path.display())]
    File { path: PathBuf },
    #[error("{} lies within the table {}; choose another place", path.display(), table.display())]
    InsideTable { path: PathBuf, table: PathBuf },
    #[error("cannot use directory {}: {source}", path.display())]
    Directory { path: PathBuf, source: std::io::Error },
    #[error("{table}: '{path}' cannot be used as a path: {source}")]
    Path { table: String, path: String, source: object_store::path::Error },
    #[error("{table}: cannot {action} {path}: {}", brief(source))]
    Store { table: String, action: &'static str, path: String, source: object_store::Error },
}

impl StorageError {
    /// Whether the store denied the request, so that nothing was done.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        use object_store::Error::{PermissionDenied, Unauthenticated};
        matches!(self, Self::Store { source: PermissionDenied { .. } | Unauthenticated { .. }, .. })
    }

    /// Whether the error is that a file does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Store { source: object_store::Error::NotFound { .. }, .. })
    }
}

/// Summarizes an error of a store in one line: the code and message of an XML response, or the text
/// of any other error. If the store was not contacted because there are no credentials, names the
/// settings.
#[must_use]
pub fn brief(error: &object_store::Error) -> String {
    #[cfg(feature = "cloud")]
    if let Some(missing) = no_credentials::message(error) {
        return missing;
    }
    let text = error.to_string();
    let between = |open: &str, close: &str| Some(text.split_once(open)?.1.split_once(close)?.0);
    let hint = match between("<Code>", "</Code>") {
        Some("NoSuchBucket") => "; create the bucket first, or check the region and the endpoint",
        Some("AccessDenied" | "InvalidAccessKeyId" | "SignatureDoesNotMatch") => {
            "; check the credentials in the environment"
        }
        _ => "",
    };
    match (between("<Code>", "</Code>"), between("<Message>", "</Message>")) {
        (Some(code), Some(message)) => format!("{code}: {message}{hint}"),
        _ => text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.into() }
    }

    #[test]
    fn an_xml_response_becomes_its_code_its_message_and_a_hint() {
        let xml = |code: &str| format!("<Error>\n<Code>{code}</Code><Message>as it is</Message></Error>");
        for (code, expected) in [
            (
                "NoSuchBucket",
                "NoSuchBucket: as it is; create the bucket first, or check the region and the endpoint",
            ),
            ("AccessDenied", "AccessDenied: as it is; check the credentials in the environment"),
            ("SlowDown", "SlowDown: as it is"),
        ] {
            assert_eq!(brief(&response(&xml(code))), expected);
        }
    }

    #[test]
    fn any_other_error_is_one_line_of_its_own_text() {
        for text in ["connection\n  refused", "<Code>Half</Code>\nof a response", "</Code> then <Code>"] {
            let line = brief(&response(text));
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(line.ends_with(&words) && !line.contains('\n'), "{line}");
        }
    }

    #[test]
    fn a_refusal_is_a_denied_request_and_nothing_else() {
        let error =
            |source| StorageError::Store { table: "t".into(), action: "write", path: "f".into(), source };
        let denied = object_store::Error::PermissionDenied { path: "f".into(), source: "no".into() };
        let absent = object_store::Error::NotFound { path: "f".into(), source: "no".into() };
        let kind = |error: StorageError| (error.is_refusal(), error.is_not_found());
        assert_eq!(kind(error(denied)), (true, false));
        assert_eq!(kind(error(absent)), (false, true));
        assert_eq!(kind(error(response("timeout"))), (false, false));
    }
}
