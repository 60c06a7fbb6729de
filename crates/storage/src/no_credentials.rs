//! The error that neither the environment nor the machine has credentials.

use std::error::Error as StdError;

use thiserror::Error;

/// Neither the environment nor the machine has credentials.
#[derive(Debug, Error)]
#[error("no credentials for {store}: set {settings}. The provider of this machine has none either: {reason}")]
pub(super) struct NoCredentials {
    pub(super) store: String,
    pub(super) settings: &'static str,
    pub(super) reason: String,
}

/// Returns the message about missing credentials, if they are why a request failed.
pub(super) fn message(error: &object_store::Error) -> Option<String> {
    let mut cause: &(dyn StdError + 'static) = error;
    loop {
        if let Some(missing) = cause.downcast_ref::<NoCredentials>() {
            return Some(missing.to_string());
        }
        cause = cause.source()?;
    }
}
