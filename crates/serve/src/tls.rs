//! Certificate and key of the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenkeel_model::bounded::quote_path;
use evenkeel_model::secret_files::{SHARED_WITH_THE_GROUP, mode_beyond};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, ServerConfig};
use x509_certificate::CapturedX509Certificate;

/// Error in a certificate or a key.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum TlsError {
    #[error("{path}: cannot be read as PEM: {reason}", path = quote_path(path))]
    Pem { path: PathBuf, reason: String },
    #[error(
        "{path}: other users can read or replace this key (mode {mode:03o}); run 'chmod 600 {shown}'",
        path = quote_path(path), shown = path.display()
    )]
    Readable { path: PathBuf, mode: u32 },
    #[error("{path}: has no certificate", path = quote_path(path))]
    NoCertificate { path: PathBuf },
    #[error("{path}: the certificate is valid from {from} to {to} only", path = quote_path(path))]
    Expired { path: PathBuf, from: String, to: String },
    #[error("{path}: cannot serve with this certificate and key: {source}", path = quote_path(path))]
    Unusable { path: PathBuf, source: rustls::Error },
}

/// Encryption of connections.
#[derive(Clone)]
pub struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// Certificates as PEM, to bind passwords to the connection.
    pub(crate) certificates: Arc<Vec<u8>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads a chain of certificates, the server's first, and its key, both as PEM.
    ///
    /// # Errors
    /// [`TlsError`] if one cannot be read, they do not belong together, the certificate is not
    /// valid now, or other users can read the key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        if let Some(mode) = mode_beyond(key, SHARED_WITH_THE_GROUP) {
            return Err(TlsError::Readable { path: key.to_owned(), mode });
        }
        let unreadable = |path: &Path, reason: String| TlsError::Pem { path: path.to_owned(), reason };
        let pem = std::fs::read(certificate).map_err(|error| unreadable(certificate, error.to_string()))?;
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable(certificate, error.to_string()))?;
        let first = chain.first().ok_or_else(|| TlsError::NoCertificate { path: certificate.to_owned() })?;
        let parsed = CapturedX509Certificate::from_der(first.to_vec())
            .map_err(|error| unreadable(certificate, error.to_string()))?;
        let (from, to, now) = (parsed.validity_not_before(), parsed.validity_not_after(), chrono::Utc::now());
        if now < from || now > to {
            let (from, to) = (from.to_rfc3339(), to.to_rfc3339());
            return Err(TlsError::Expired { path: certificate.to_owned(), from, to });
        }
        let key_der =
            PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error.to_string()))?;
        let unusable = |source| TlsError::Unusable { path: certificate.to_owned(), source };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key_der)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificates: Arc::new(pem) })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_that_others_can_read_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("key.pem");
        std::fs::write(&key, "no key").unwrap();
        for (mode, is_refused) in
            [(0o600, false), (0o400, false), (0o640, false), (0o644, true), (0o660, true), (0o604, true)]
        {
            std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
            let refused = matches!(Tls::read(&key, &key), Err(TlsError::Readable { .. }));
            assert_eq!(refused, is_refused, "{mode:o}");
        }
    }
}
