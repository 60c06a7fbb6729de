//! Clients of object stores. Everything about them comes from the environment and from the files that it names, as for the tools of
//! each vendor; nothing of it is ever part of a table, a plan or a message.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::SpawnedReqwestConnector;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use url::{Host, Url};

use crate::storage::StorageError;
use crate::storage::profile::Profile;

/// How long a request is repeated where the store is overloaded or cannot be reached; `EVENKEEL_STORE_TIMEOUT` sets other seconds.
const RETRY_SECONDS: u64 = 60;
/// The variable that sets other seconds.
const TIMEOUT_VARIABLE: &str = "EVENKEEL_STORE_TIMEOUT";

/// Clients by scheme, account and bucket.
static CLIENTS: LazyLock<Mutex<HashMap<String, Arc<dyn ObjectStore>>>> = LazyLock::new(Mutex::default);

/// The client of a URL's store, and the path in it.
pub(super) fn store_of(url: &Url) -> Result<(Arc<dyn ObjectStore>, Path), StorageError> {
    let wrong = |reason: String| StorageError::Url { url: url.to_string(), reason };
    let path = Path::from_url_path(url.path()).map_err(|error| wrong(error.to_string()))?;
    let name = format!("{}://{}", url.scheme(), url.authority());
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&name) {
        return Ok((Arc::clone(client), path));
    }
    let client = connect(url)?;
    clients.insert(name, Arc::clone(&client));
    Ok((client, path))
}

fn connect(url: &Url) -> Result<Arc<dyn ObjectStore>, StorageError> {
    let error = |source: object_store::Error| StorageError::Client { url: url.to_string(), source };
    let retry = retry(url)?;
    let no_thread =
        |source| error(object_store::Error::Generic { store: "client", source: Box::new(source) });
    let connector = SpawnedReqwestConnector::new(super::io::handle().map_err(no_thread)?.clone());
    Ok(match url.scheme() {
        "s3" | "s3a" => {
            Arc::new(amazon(url)?.with_retry(retry).with_http_connector(connector).build().map_err(error)?)
        }
        "gs" => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(url.as_str());
            Arc::new(builder.with_retry(retry).with_http_connector(connector).build().map_err(error)?)
        }
        _ => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(url.as_str());
            Arc::new(builder.with_retry(retry).with_http_connector(connector).build().map_err(error)?)
        }
    })
}

/// A client of S3: the variables `AWS_*`, then the profile of the shared files.
fn amazon(url: &Url) -> Result<AmazonS3Builder, StorageError> {
    let mut builder = AmazonS3Builder::from_env().with_url(url.as_str());
    let is_set = |builder: &AmazonS3Builder, key: AmazonS3ConfigKey| builder.get_config_value(&key).is_some();
    let profile = Profile::of_environment()?;
    let has_keys = is_set(&builder, AmazonS3ConfigKey::AccessKeyId);
    let values = [
        (AmazonS3ConfigKey::AccessKeyId, "aws_access_key_id", true),
        (AmazonS3ConfigKey::SecretAccessKey, "aws_secret_access_key", true),
        (AmazonS3ConfigKey::Token, "aws_session_token", true),
        (AmazonS3ConfigKey::Region, "region", false),
        (AmazonS3ConfigKey::Endpoint, "endpoint_url", false),
    ];
    for (key, name, secret) in values {
        // A session token of a profile does not belong to a key of the environment.
        if let Some(value) = profile.get(name).filter(|_| !(secret && has_keys))
            && !is_set(&builder, key)
        {
            builder = builder.with_config(key, value);
        }
    }
    // The spelling of the AWS tools, for S3 alone.
    if let Ok(endpoint) = std::env::var("AWS_ENDPOINT_URL_S3") {
        builder = builder.with_endpoint(endpoint);
    }
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    if let Some(endpoint) = endpoint.filter(|endpoint| is_on_this_machine(endpoint)) {
        builder = builder.with_endpoint(endpoint).with_allow_http(true);
    }
    Ok(builder)
}

/// Whether requests to an endpoint never leave the machine, so that they need no encryption.
fn is_on_this_machine(endpoint: &str) -> bool {
    let Ok(url) = Url::parse(endpoint) else { return false };
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// How requests are repeated: at most so long, with growing pauses.
fn retry(url: &Url) -> Result<RetryConfig, StorageError> {
    let seconds = match std::env::var(TIMEOUT_VARIABLE) {
        Ok(text) => text.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| StorageError::Url {
            url: url.to_string(),
            reason: format!("{TIMEOUT_VARIABLE} is '{text}'; it takes a number of seconds"),
        })?,
        Err(_) => RETRY_SECONDS,
    };
    Ok(RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(10),
            base: 2.0,
        },
        max_retries: 20,
        retry_timeout: Duration::from_secs(seconds),
    })
}
