//! TLS and a token for all traffic between processes of a cluster.
//!
//! The token is sent in the user agent of each request: of all values that a client can set on
//! every link, including links between executors, it is the only one that a server sees.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::extension::EndpointOverrideFn;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, ServerTlsConfig};
use tonic::{Request, Status};

use crate::{CONNECT_TIMEOUT, ClusterError};
use evenkeel_model::bounded::{CREDENTIALS, read_bytes};
use evenkeel_model::secret_files::{SHARED_WITH_THE_GROUP, mode_beyond};

/// Time limit of a request, after which its connection counts as lost.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval of keep-alive pings, and the time limit of their answers.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Minimum number of characters of a token.
const MIN_TOKEN: usize = 16;

/// Secret that a request must carry to be served. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(...)")
    }
}

impl Token {
    /// Creates a token of at least 16 visible ASCII characters, without surrounding blanks.
    ///
    /// # Errors
    /// The reason why the text is not a token.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < MIN_TOKEN {
            return Err(format!(
                "a token has at least {MIN_TOKEN} characters; 'openssl rand -hex 32' generates one"
            ));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token has only letters, digits and signs of ASCII, without blanks".to_owned());
        }
        Ok(Self(text.into()))
    }

    fn agent(&self) -> String {
        format!("evenkeel/{}", self.0)
    }
}

/// Security of connections to servers.
#[derive(Debug, Clone, Default)]
pub struct ClientSecurity {
    /// CA certificates to verify servers against, as PEM; `None` for plain connections.
    pub authority: Option<Vec<u8>>,
    /// Name in the certificates of all servers; `None` for the host of each server.
    pub server_name: Option<String>,
    /// Token to send.
    pub token: Option<Token>,
}

/// Protection of a server.
#[derive(Clone, Default)]
pub struct ServerSecurity {
    /// Certificate and private key of the server, as PEM; `None` for plain connections.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Token that requests must carry; if `None`, all requests are served.
    pub token: Option<Token>,
}

impl fmt::Debug for ServerSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identity = self.identity.as_ref().map(|_| "...");
        f.debug_struct("ServerSecurity").field("identity", &identity).field("token", &self.token).finish()
    }
}

/// Reads a file of certificates or keys.
///
/// # Errors
/// [`ClusterError::Read`] if it cannot be read, and [`ClusterError::File`] if it is not PEM.
pub fn read_pem(path: &Path) -> Result<Vec<u8>, ClusterError> {
    let bytes = read_bytes(path, CREDENTIALS)?;
    if bytes.windows(10).any(|window| window == b"-----BEGIN") {
        Ok(bytes)
    } else {
        Err(ClusterError::File { path: path.display().to_string(), reason: "is not a PEM file".to_owned() })
    }
}

/// Refuses a file with a key or a token that other users can read.
///
/// # Errors
/// [`ClusterError::Readable`] with its permissions.
pub fn check_secret(path: &Path) -> Result<(), ClusterError> {
    match mode_beyond(path, SHARED_WITH_THE_GROUP) {
        Some(mode) => Err(ClusterError::Readable { path: path.display().to_string(), mode }),
        None => Ok(()),
    }
}

impl ClientSecurity {
    /// Whether connections are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.authority.is_some()
    }

    /// Returns a warning if connecting to a URL is unsafe.
    #[must_use]
    pub fn warning(&self, url: &str) -> Option<String> {
        let host = url.split("://").last()?.rsplit_once(':')?.0;
        let here = host == "localhost"
            || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let open = self.token.is_some() && self.authority.is_none() && !here;
        open.then(|| {
            format!("the token is sent to {host} unencrypted, so others can read it; --tls-ca encrypts it")
        })
    }

    /// Returns a hook that applies the settings to every connection.
    pub(super) fn hook(&self) -> EndpointOverrideFn {
        let security = self.clone();
        Arc::new(move |endpoint| security.apply(endpoint).map_err(Into::into))
    }

    /// Returns an endpoint with the settings of all connections.
    pub(super) fn apply(&self, endpoint: Endpoint) -> Result<Endpoint, tonic::transport::Error> {
        let mut endpoint = endpoint;
        if let Some(authority) = &self.authority {
            if endpoint.uri().scheme_str() != Some("https") {
                // On a plain address, TLS settings are silently ignored.
                let host = endpoint.uri().authority().map(|authority| authority.as_str().to_owned());
                endpoint = Endpoint::from_shared(format!("https://{}", host.unwrap_or_default()))?;
            }
            let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority));
            endpoint = endpoint.tls_config(match &self.server_name {
                Some(name) => tls.domain_name(name),
                None => tls,
            })?;
        }
        if let Some(token) = &self.token {
            endpoint = endpoint.user_agent(token.agent())?;
        }
        Ok(endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .keep_alive_while_idle(true)
            .initial_connection_window_size(64u32 << 20)
            .initial_stream_window_size(16u32 << 20))
    }
}

impl ServerSecurity {
    /// Returns a warning if a server that other machines can reach lacks protection.
    #[must_use]
    pub fn warning(&self, address: SocketAddr) -> Option<String> {
        if address.ip().is_loopback() {
            return None;
        }
        let missing = match (&self.identity, &self.token) {
            (Some(_), Some(_)) => return None,
            (None, None) => "neither encrypted nor protected by a token",
            (None, Some(_)) => "not encrypted: its token can be read on the way",
            (Some(_), None) => "not protected by a token",
        };
        Some(format!(
            "{address} is open to other machines and {missing}. Anyone who connects can read and write whatever this process can; \
             --tls-cert, --tls-key and --token-file close it"
        ))
    }

    pub(super) fn tls(&self) -> Option<ServerTlsConfig> {
        let (certificate, key) = self.identity.as_ref()?;
        Some(ServerTlsConfig::new().identity(Identity::from_pem(certificate, key)).timeout(CONNECT_TIMEOUT))
    }

    pub(super) fn check(&self) -> TokenCheck {
        TokenCheck { agent: self.token.as_ref().map(|token| token.agent().into()) }
    }
}

/// Passes only requests that carry the token.
#[derive(Clone)]
pub(super) struct TokenCheck {
    agent: Option<Arc<str>>,
}

impl tonic::service::Interceptor for TokenCheck {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(wanted) = &self.agent else { return Ok(request) };
        let agent =
            request.metadata().get("user-agent").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let token = agent.split(' ').next().unwrap_or_default();
        match is_same(token.as_bytes(), wanted.as_bytes()) {
            true => Ok(request),
            false => Err(Status::unauthenticated("the token is missing or wrong")),
        }
    }
}

/// Compares in constant time, which reveals nothing about the content.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::service::Interceptor;

    #[test]
    fn only_requests_with_the_token_pass() {
        let token = Token::new(" 0123456789abcdef\n").unwrap();
        assert!(!format!("{token:?}").contains("0123"));
        let mut check = ServerSecurity { token: Some(token.clone()), identity: None }.check();
        let mut passes = |agent: Option<&str>| {
            let mut request = Request::new(());
            if let Some(agent) = agent {
                request.metadata_mut().insert("user-agent", agent.parse().unwrap());
            }
            check.call(request).is_ok()
        };
        assert!(passes(Some("evenkeel/0123456789abcdef tonic/0.14.9")));
        for agent in [
            None,
            Some(""),
            Some("evenkeel/0123456789abcdeg tonic/0.14.9"),
            Some("evenkeel/"),
            Some("tonic/0.14.9"),
        ] {
            assert!(!passes(agent), "{agent:?}");
        }
        assert!(Token::new("short").is_err() && Token::new("0123456789 abcdef").is_err());
    }

    #[test]
    fn servers_that_others_reach_are_warned_of() {
        let (local, open) = ("127.0.0.1:1".parse().unwrap(), "0.0.0.0:1".parse().unwrap());
        let token = Some(Token::new("0123456789abcdef").unwrap());
        let client = ClientSecurity { token: token.clone(), ..ClientSecurity::default() };
        assert!(client.warning("http://10.0.0.5:50050").unwrap().contains("unencrypted"));
        assert!(
            ["http://127.0.0.1:1", "localhost:1", "http://[::1]:1"]
                .iter()
                .all(|url| client.warning(url).is_none())
        );
        let server = ServerSecurity { identity: Some((b"certificate".to_vec(), b"key".to_vec())), token };
        assert!(!format!("{server:?}").contains("107"));
        let plain = ServerSecurity::default();
        assert_eq!(plain.warning(local), None);
        assert!(plain.warning(open).unwrap().contains("neither encrypted nor protected"));
    }
}
