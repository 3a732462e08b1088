//! The connections of the process: which client serves which address, and the line before each provider.

use std::collections::HashMap;
use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::error::{ErrorKind, ModelError};
use crate::gate::{Gate, GateLimits};

/// Connections to one provider that are kept for the next request.
const KEPT: usize = 64;
/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The connections of the whole process. Made at first use; share one between all [`crate::Providers`].
#[derive(Default)]
pub struct HttpClient {
    /// For `http` on this machine: no trust roots are loaded and no proxy is asked.
    loopback: OnceLock<reqwest::Client>,
    /// For `http` elsewhere: no trust roots are loaded.
    plain: OnceLock<reqwest::Client>,
    /// For `https`.
    tls: OnceLock<reqwest::Client>,
    gates: Mutex<HashMap<(String, GateLimits), Arc<Gate>>>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

impl HttpClient {
    /// A client that has not connected to anything and loaded nothing.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn for_url(&self, url: &reqwest::Url) -> Result<reqwest::Client, ModelError> {
        let loopback = is_loopback(url);
        let (cell, make): (_, fn() -> Result<reqwest::Client, reqwest::Error>) =
            match (url.scheme(), loopback) {
                ("https", _) => (&self.tls, || builder(tls_with_roots()).build()),
                (_, true) => (&self.loopback, || {
                    builder(Some(tls_without_roots())).no_proxy().build()
                }),
                (_, false) => (&self.plain, || builder(Some(tls_without_roots())).build()),
            };
        if let Some(client) = cell.get() {
            return Ok(client.clone());
        }
        let client = make().map_err(|fault| {
            ModelError::new(
                ErrorKind::Unreachable,
                format!("no HTTP client could be made: {}", causes(&fault)),
            )
        })?;
        Ok(cell.get_or_init(|| client).clone())
    }

    /// The line before one provider, by its address and what it takes; `name` is for people.
    pub(crate) fn gate(&self, name: &str, address: &str, limits: &GateLimits) -> Arc<Gate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (format!("{name} {address}"), limits.clone());
        if let Some(known) = gates.get(&key) {
            return Arc::clone(known);
        }
        gates.retain(|_, gate| Arc::strong_count(gate) > 1);
        let gate = Arc::new(Gate::new(name, limits));
        gates.insert(key, Arc::clone(&gate));
        gate
    }
}

fn builder(tls: Option<rustls::ClientConfig>) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(KEPT);
    match tls {
        Some(tls) => builder.tls_backend_preconfigured(tls),
        None => builder,
    }
}

/// `None`: the library makes its usual configuration, with the system's roots, from the provider installed here.
fn tls_with_roots() -> Option<rustls::ClientConfig> {
    // Fails when another part of the process has installed a provider already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    None
}

/// A configuration that trusts nobody and costs nothing, for clients that never speak TLS.
fn tls_without_roots() -> rustls::ClientConfig {
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

/// Whether an address is on this machine.
pub(crate) fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// The deepest cause, which says more than "error sending request".
pub(super) fn causes(fault: &reqwest::Error) -> String {
    if fault.is_timeout() {
        return "no connection in time".to_owned();
    }
    let mut cause = fault.source();
    while let Some(deeper) = cause.and_then(|cause| cause.source()) {
        cause = Some(deeper);
    }
    cause.map_or_else(
        || "no cause given".to_owned(),
        |cause| crate::text::clipped(&cause.to_string(), 200),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_this_machine() {
        for (url, want) in [
            ("http://localhost:1/v1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://a.localhost", true),
            ("http://localhost.example", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(
                is_loopback(&reqwest::Url::parse(url).unwrap()),
                want,
                "{url}"
            );
        }
    }

    #[test]
    fn a_line_is_shared_by_name_address_and_limits_and_forgotten_when_unused() {
        let client = HttpClient::new();
        let limits = GateLimits::default();
        let narrow = GateLimits {
            in_flight: 1,
            ..GateLimits::default()
        };
        let first = client.gate("a", "u", &limits);
        assert!(Arc::ptr_eq(&first, &client.gate("a", "u", &limits)));
        assert!(!Arc::ptr_eq(&first, &client.gate("a", "u", &narrow)));
        client.gate("b", "u", &limits);
        client.gate("c", "u", &limits);
        assert_eq!(client.gates.lock().unwrap().len(), 2, "b is forgotten");
    }

    #[test]
    fn no_roots_are_loaded_for_plain_addresses() {
        let client = HttpClient::new();
        for url in ["http://127.0.0.1:1", "http://model.example"] {
            client.for_url(&reqwest::Url::parse(url).unwrap()).unwrap();
        }
        assert!(client.loopback.get().is_some() && client.plain.get().is_some());
        assert!(client.tls.get().is_none());
    }
}
