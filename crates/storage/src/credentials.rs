//! Credentials of the machine itself: what virtual machines are given where nothing in the environment names others.

use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use object_store::{BackoffConfig, CredentialProvider, Error, Result, RetryConfig};
use thiserror::Error;

use crate::brief;

/// A service of the provider answers its own machines in milliseconds; elsewhere nothing answers, and nobody shall wait for that.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How often such a service is asked before it is known to be there.
fn quick_retry() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_millis(400),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: 2, retry_timeout: Duration::from_secs(2) }
}

/// Neither the environment nor the machine has credentials.
#[derive(Debug, Error)]
#[error(
    "no credentials for {store}: set {settings}. Nor does this machine get any from its provider: {reason}"
)]
struct NoCredentials {
    store: String,
    settings: &'static str,
    reason: String,
}

/// That there are no credentials, where this is why a request failed.
pub(super) fn missing(error: &object_store::Error) -> Option<String> {
    let mut cause: &(dyn StdError + 'static) = error;
    loop {
        if let Some(missing) = cause.downcast_ref::<NoCredentials>() {
            return Some(missing.to_string());
        }
        cause = cause.source()?;
    }
}

/// Whether a service answered that it cannot answer now.
fn is_overloaded(error: &object_store::Error) -> bool {
    let text = error.to_string();
    ["429", "500", "502", "503", "504"].iter().any(|code| text.contains(&format!("status code: {code}")))
}

type Provider<C> = Arc<dyn CredentialProvider<Credential = C>>;

/// Asks the provider of a virtual machine, and says what to set where it has nothing to give.
#[derive(Debug)]
pub(super) struct OfMachine<C> {
    /// Finds out whether there are any.
    quick: Provider<C>,
    /// Gets the next ones once there were some, also where the service is slow for a while.
    patient: Provider<C>,
    given: AtomicBool,
    store: String,
    settings: &'static str,
}

impl<C> OfMachine<C> {
    /// Credentials of `store` by what `provider` makes; `settings` are those that would name others.
    pub(super) fn new(
        provider: impl Fn(RetryConfig) -> Result<Provider<C>>,
        retry: &RetryConfig,
        store: &str,
        settings: &'static str,
    ) -> Result<Arc<Self>> {
        let (quick, patient) = (provider(quick_retry())?, provider(retry.clone())?);
        Ok(Arc::new(Self {
            quick,
            patient,
            given: AtomicBool::new(false),
            store: store.to_owned(),
            settings,
        }))
    }
}

#[async_trait]
impl<C: std::fmt::Debug + Send + Sync> CredentialProvider for OfMachine<C> {
    type Credential = C;

    async fn get_credential(&self) -> Result<Arc<C>> {
        if self.given.load(Ordering::Relaxed) {
            return self.patient.get_credential().await;
        }
        let reason = match tokio::time::timeout(ANSWER_WITHIN, self.quick.get_credential()).await {
            Ok(Ok(credential)) => {
                self.given.store(true, Ordering::Relaxed);
                return Ok(credential);
            }
            // One that is there and overloaded may answer the next time.
            Ok(Err(error)) if is_overloaded(&error) => return Err(error),
            Ok(Err(error)) => brief(&error),
            Err(_) => format!("no answer within {} s", ANSWER_WITHIN.as_secs()),
        };
        let missing = NoCredentials { store: self.store.clone(), settings: self.settings, reason };
        Err(Error::Unauthenticated { path: self.store.clone(), source: Box::new(missing) })
    }
}
