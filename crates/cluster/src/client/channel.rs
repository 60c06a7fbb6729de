//! Connections to schedulers, and reasons why they fail.

use tonic::transport::{Channel, Endpoint};

use crate::{CONNECT_TIMEOUT, ClientSecurity, ClusterError};

/// Creates a connection to a scheduler.
pub(crate) async fn channel(url: &str, security: &ClientSecurity) -> Result<Channel, ClusterError> {
    let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let wrong = |reason: String| ClusterError::Url { url: url.to_owned(), reason };
    if full.starts_with("https://") && !security.is_encrypted() {
        return Err(wrong(
            "https:// is encrypted; name the certificates to check it against with --tls-ca, such as \
                --tls-ca ca.pem, or write http:// if the scheduler is not encrypted"
                .to_owned(),
        ));
    }
    let endpoint = Endpoint::from_shared(full).map_err(|error| wrong(error.to_string()))?;
    if !matches!(endpoint.uri().scheme_str(), Some("http" | "https")) || endpoint.uri().port().is_none() {
        return Err(wrong(
            "write http://HOST:PORT, such as http://127.0.0.1:50050, or https://HOST:PORT with --tls-ca"
                .to_owned(),
        ));
    }
    let endpoint = security.apply(endpoint).map_err(|error| wrong(reason_of(&error)))?;
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, endpoint.connect()).await;
    let refused = |reason: String| ClusterError::NoScheduler { url: url.to_owned(), reason };
    match connected {
        Ok(connected) => connected.map_err(|error| refused(reason_of(&error))),
        Err(_) => Err(refused(format!("no response within {} s", CONNECT_TIMEOUT.as_secs()))),
    }
}

/// Returns the innermost cause of an error as text.
fn reason_of(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Converts the error status of the scheduler at `url`.
pub(crate) fn refused(url: &str, status: &tonic::Status) -> ClusterError {
    let reason = status.message().split_whitespace().collect::<Vec<_>>().join(" ");
    match status.code() {
        tonic::Code::Unauthenticated => {
            let reason = format!(
                "{reason}; set the token of the scheduler with --token-file or \
                    EVENKEEL_CLUSTER_TOKEN"
            );
            ClusterError::Refused { url: url.to_owned(), reason }
        }
        _ if ["h2 protocol error", "operation was canceled"].iter().any(|sign| reason.contains(sign)) => {
            let reason =
                "it does not speak this protocol; if it is encrypted, write https:// and name --tls-ca";
            ClusterError::NoScheduler { url: url.to_owned(), reason: reason.to_owned() }
        }
        tonic::Code::Unavailable | tonic::Code::DeadlineExceeded | tonic::Code::Unknown => {
            ClusterError::NoScheduler { url: url.to_owned(), reason }
        }
        _ => ClusterError::Refused { url: url.to_owned(), reason },
    }
}
