//! Clients of object stores. Their whole configuration comes from the environment and the files
//! that it names, as with the tools of each vendor; none of it ever becomes part of a table, a plan
//! or a message.

use std::collections::HashMap;
use std::path::Path as FsPath;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::SpawnedReqwestConnector;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use url::{Host, Url};

use crate::credentials::MachineCredentials;
use crate::error::StorageError;
use crate::profile::Profile;

/// Seconds for which a request is retried while the store is overloaded or unreachable, unless
/// `EVENKEEL_STORE_TIMEOUT` is set.
const RETRY_SECONDS: u64 = 60;
/// Environment variable that overrides `RETRY_SECONDS`.
const TIMEOUT_VARIABLE: &str = "EVENKEEL_STORE_TIMEOUT";

/// Settings that name credentials of S3, for error messages.
const SETTINGS_OF_AMAZON: &str = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; for a public bucket AWS_SKIP_SIGNATURE=true";
/// Settings that name credentials of Google, for error messages.
const SETTINGS_OF_GOOGLE: &str = "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT to a file with a key, or run \
                                  'gcloud auth application-default login'; for a public bucket GOOGLE_SKIP_SIGNATURE=true";
/// Settings that name credentials of Azure, for error messages.
const SETTINGS_OF_AZURE: &str = "AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, or AZURE_USE_AZURE_CLI=true after 'az login'; for a \
                                 public container AZURE_SKIP_SIGNATURE=true";

/// Clients by scheme, account and bucket.
static CLIENTS: LazyLock<Mutex<HashMap<String, Arc<dyn ObjectStore>>>> = LazyLock::new(Mutex::default);

/// Returns the client of a URL's store, and the path in it.
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
    let connector = SpawnedReqwestConnector::new(crate::io::handle().map_err(no_thread)?.clone());
    let store = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
    // The builders have the same methods but no common trait.
    macro_rules! client {
        ($builder:expr, $asks_machine:path, $settings:expr) => {{
            let mut builder = $builder.with_http_connector(connector);
            if $asks_machine(&builder) {
                let provider =
                    |retry| Ok(Arc::clone(builder.clone().with_retry(retry).build()?.credentials()));
                let machine = MachineCredentials::new(provider, &retry, &store, $settings);
                builder = builder.with_credentials(machine.map_err(error)?);
            }
            Arc::new(builder.with_retry(retry).build().map_err(error)?)
        }};
    }
    Ok(match url.scheme() {
        "s3" | "s3a" => client!(amazon(url)?, amazon_asks_machine, SETTINGS_OF_AMAZON),
        "gs" => {
            let google = GoogleCloudStorageBuilder::from_env().with_url(url.as_str());
            client!(google, google_asks_machine, SETTINGS_OF_GOOGLE)
        }
        _ => client!(azure(url)?, azure_asks_machine, SETTINGS_OF_AZURE),
    })
}

/// Whether a flag of a client is set.
fn is_on(flag: Option<String>) -> bool {
    flag.is_some_and(|flag| ["1", "true", "on", "yes", "y"].contains(&flag.to_ascii_lowercase().as_str()))
}

/// Whether only the instance can supply keys of S3: no variable names a key, a web identity token
/// or a credentials service of a container.
fn amazon_asks_machine(builder: &AmazonS3Builder) -> bool {
    use AmazonS3ConfigKey::{
        AccessKeyId, ContainerAuthorizationTokenFile, ContainerCredentialsFullUri,
        ContainerCredentialsRelativeUri, RoleArn, SecretAccessKey, WebIdentityTokenFile,
    };
    let all = |keys: &[AmazonS3ConfigKey]| keys.iter().all(|key| builder.get_config_value(key).is_some());
    let named = [
        [AccessKeyId].as_slice(),
        &[SecretAccessKey],
        &[WebIdentityTokenFile, RoleArn],
        &[ContainerCredentialsRelativeUri],
        &[ContainerCredentialsFullUri, ContainerAuthorizationTokenFile],
    ];
    !named.into_iter().any(all)
}

/// Whether only the machine can supply keys of Google: no variable names a key, and there is no
/// credentials file of the `gcloud` tool.
fn google_asks_machine(builder: &GoogleCloudStorageBuilder) -> bool {
    use GoogleConfigKey::{ApplicationCredentials, ServiceAccount, ServiceAccountKey};
    let (home, below) = match cfg!(windows) {
        true => ("APPDATA", "gcloud"),
        false => ("HOME", ".config/gcloud"),
    };
    let of_tool = std::env::var_os(home).map(|home| FsPath::new(&home).join(below));
    let is_file = |folder: std::path::PathBuf| folder.join("application_default_credentials.json").exists();
    let keys = [ApplicationCredentials, ServiceAccount, ServiceAccountKey];
    keys.iter().all(|key| builder.get_config_value(key).is_none()) && !of_tool.is_some_and(is_file)
}

/// Whether only the machine can supply keys of Azure: no variable names a key, a signature, a token
/// or an application, or enables the `az` tool or the emulator.
fn azure_asks_machine(builder: &MicrosoftAzureBuilder) -> bool {
    use AzureConfigKey::{
        AccessKey, ClientSecret, FabricTokenServiceUrl, FederatedTokenFile, SasKey, Token, UseAzureCli,
        UseEmulator,
    };
    let keys = [AccessKey, SasKey, Token, ClientSecret, FederatedTokenFile, FabricTokenServiceUrl];
    let flags = [UseAzureCli, UseEmulator];
    keys.iter().all(|key| builder.get_config_value(key).is_none())
        && !flags.iter().any(|flag| is_on(builder.get_config_value(flag)))
}

/// Builds a client of Azure. The URL or the environment must name the account.
fn azure(url: &Url) -> Result<MicrosoftAzureBuilder, StorageError> {
    let builder = MicrosoftAzureBuilder::from_env().with_url(url.as_str());
    let is_named = !url.username().is_empty()
        || builder.get_config_value(&AzureConfigKey::AccountName).is_some()
        || is_on(builder.get_config_value(&AzureConfigKey::UseEmulator));
    match is_named {
        true => Ok(builder),
        false => Err(StorageError::Url {
            url: url.to_string(),
            reason: "the account of the container is not known; set AZURE_STORAGE_ACCOUNT_NAME".to_owned(),
        }),
    }
}

/// Builds a client of S3 from the `AWS_*` variables, then from the profile in the shared files.
fn amazon(url: &Url) -> Result<AmazonS3Builder, StorageError> {
    let mut builder = AmazonS3Builder::from_env().with_url(url.as_str());
    let is_set = |builder: &AmazonS3Builder, key: AmazonS3ConfigKey| builder.get_config_value(&key).is_some();
    let profile = Profile::from_environment()?;
    let has_keys = is_set(&builder, AmazonS3ConfigKey::AccessKeyId);
    // A profile that is named explicitly takes precedence over the credentials that a container or
    // a cluster gives its processes.
    let is_profile_next = profile.is_named() || amazon_asks_machine(&builder);
    if !has_keys && is_profile_next && !is_on(builder.get_config_value(&AmazonS3ConfigKey::SkipSignature)) {
        profile.check_keys()?;
    }
    let values = [
        (AmazonS3ConfigKey::AccessKeyId, "aws_access_key_id", true),
        (AmazonS3ConfigKey::SecretAccessKey, "aws_secret_access_key", true),
        (AmazonS3ConfigKey::Token, "aws_session_token", true),
        (AmazonS3ConfigKey::Region, "region", false),
        (AmazonS3ConfigKey::Endpoint, "endpoint_url", false),
    ];
    for (key, name, secret) in values {
        // Secrets of a profile do not belong to a key from the environment.
        if let Some(value) = profile.get(name).filter(|_| !(secret && has_keys))
            && !is_set(&builder, key)
        {
            builder = builder.with_config(key, value);
        }
    }
    // The variable of the AWS tools for S3 only.
    if let Ok(endpoint) = std::env::var("AWS_ENDPOINT_URL_S3") {
        builder = builder.with_endpoint(endpoint);
    }
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    if let Some(endpoint) = endpoint.filter(|endpoint| is_on_this_machine(endpoint)) {
        builder = builder.with_endpoint(endpoint).with_allow_http(true);
    }
    Ok(builder)
}

/// Whether an endpoint is on this machine, so that requests to it need no encryption.
fn is_on_this_machine(endpoint: &str) -> bool {
    let Ok(url) = Url::parse(endpoint) else { return false };
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Returns the retry policy: exponential backoff with a time limit.
fn retry(url: &Url) -> Result<RetryConfig, StorageError> {
    let seconds = match std::env::var(TIMEOUT_VARIABLE) {
        Ok(text) => text.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| StorageError::Url {
            url: url.to_string(),
            reason: format!("{TIMEOUT_VARIABLE} is '{text}'; set it to a number of seconds"),
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
