//! Credentials of the machine itself, which virtual machines receive from their provider; used if
//! the environment names no others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use object_store::{BackoffConfig, CredentialProvider, Error, Result, RetryConfig};

use crate::error::brief;
use crate::no_credentials::NoCredentials;

/// Timeout for the first response of a provider's credentials service. It answers its own machines
/// in milliseconds; elsewhere nothing answers, and users should not have to wait for that.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Returns the retry policy until such a service is known to exist.
fn quick_retry() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_millis(400),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: 2, retry_timeout: Duration::from_secs(2) }
}

/// Whether a service responded that it cannot answer now.
fn is_overloaded(error: &object_store::Error) -> bool {
    let text = error.to_string();
    ["429", "500", "502", "503", "504"].iter().any(|code| text.contains(&format!("status code: {code}")))
}

type Provider<C> = Arc<dyn CredentialProvider<Credential = C>>;

/// Requests credentials from the provider of a virtual machine; if it has none, the error names the
/// settings.
#[derive(Debug)]
pub(super) struct MachineCredentials<C> {
    /// Finds out whether there are any credentials.
    quick: Provider<C>,
    /// Renews credentials once there were some, even if the service is slow for a while.
    patient: Provider<C>,
    given: AtomicBool,
    store: String,
    settings: &'static str,
}

impl<C> MachineCredentials<C> {
    /// Provides the credentials of `store` through the result of `provider`; `settings` names the
    /// settings that override them.
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
impl<C: std::fmt::Debug + Send + Sync> CredentialProvider for MachineCredentials<C> {
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
            // A service that exists but is overloaded may answer the next time.
            Ok(Err(error)) if is_overloaded(&error) => return Err(error),
            Ok(Err(error)) => brief(&error),
            Err(_) => format!("no answer within {} s", ANSWER_WITHIN.as_secs()),
        };
        let missing = NoCredentials { store: self.store.clone(), settings: self.settings, reason };
        Err(Error::Unauthenticated { path: self.store.clone(), source: Box::new(missing) })
    }
}
