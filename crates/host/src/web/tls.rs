//! TLS of the listener, from certificate files. There is one implementation of it, and no setting of ours.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::listener::WebError;

/// What a listener shows of itself, and proves.
#[derive(Clone)]
pub struct Tls(pub(super) TlsAcceptor);

impl Tls {
    /// Reads a PEM file with a certificate, and those that vouch for it, and one with its key.
    ///
    /// # Errors
    ///
    /// [`WebError::Tls`] when one of them holds no such thing, or when they do not belong together.
    pub fn of_files(certificate: &Path, key: &Path) -> Result<Self, WebError> {
        let fault = |path: &Path, why: String| WebError::Tls {
            path: path.to_path_buf(),
            why,
        };
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
        let chain = chain.map_err(|why| fault(certificate, why.to_string()))?;
        if chain.is_empty() {
            let why = "there is no certificate in it".to_owned();
            return Err(fault(certificate, why));
        }
        let secret =
            PrivateKeyDer::from_pem_file(key).map_err(|why| fault(key, why.to_string()))?;
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(chain, secret)
            });
        let mut config = config.map_err(|why| fault(key, why.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}
