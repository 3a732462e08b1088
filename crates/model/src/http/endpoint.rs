//! One provider as an address: what a request to it carries, and what an answer that is not a stream means.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::client::causes;
use crate::clock;
use crate::dialect::Dialect;
use crate::encode::Quirks;
use crate::error::{ErrorKind, ModelError};
use crate::fault;
use crate::provider::Secret;
use crate::terms::ProviderTerms;

/// Most bytes of an error body that are read.
const ERROR_BODY_LIMIT: usize = 64 * 1024;

/// A provider that is reached over HTTP, ready for requests.
pub(crate) struct Endpoint {
    pub(crate) provider: Arc<str>,
    pub(crate) dialect: Dialect,
    pub(crate) base_url: String,
    /// Where to look when the address is wrong.
    pub(crate) base_url_from: String,
    pub(crate) api_key: Option<Secret>,
    /// Where to look when the key is wrong.
    pub(crate) api_key_from: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) quirks: Quirks,
    pub(crate) terms: ProviderTerms,
}

impl Endpoint {
    pub(super) fn url(&self, model: &str) -> Result<reqwest::Url, ModelError> {
        let address = self.dialect.endpoint(&self.base_url, model, &self.quirks);
        reqwest::Url::parse(&address).map_err(|fault| {
            ModelError::new(
                ErrorKind::Unreachable,
                format!(
                    "the base URL of provider {} is not a URL ({fault}): check {}",
                    self.provider, self.base_url_from
                ),
            )
        })
    }

    pub(super) fn header_map(&self) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("accept", HeaderValue::from_static("text/event-stream"));
        let wrong = |what: &str| {
            ModelError::new(
                ErrorKind::Auth,
                format!(
                    "the {what} of provider {} has characters that cannot be sent",
                    self.provider
                ),
            )
        };
        if let Some(key) = &self.api_key {
            let own = Some(&*self.quirks.key_header).filter(|name| !name.is_empty());
            let (name, value) = match (own, self.dialect) {
                (Some(name), _) => (name, key.expose().to_owned()),
                (None, Dialect::OpenAiChat | Dialect::OpenAiResponses) => {
                    ("authorization", format!("Bearer {}", key.expose()))
                }
                (None, Dialect::Anthropic) => ("x-api-key", key.expose().to_owned()),
                // The key may also stand in the address, where every log on the way would keep it.
                (None, Dialect::Gemini) => ("x-goog-api-key", key.expose().to_owned()),
            };
            let name = HeaderName::try_from(name).map_err(|_| wrong("key_header"))?;
            headers.insert(name, secret_value(&value).ok_or_else(|| wrong("key"))?);
        }
        if self.dialect == Dialect::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        for (name, value) in &self.headers {
            let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong("header names"))?;
            headers.insert(name, secret_value(value).ok_or_else(|| wrong("headers"))?);
        }
        Ok(headers)
    }

    /// The base URL without a user and password.
    fn shown_base(&self) -> String {
        match reqwest::Url::parse(&self.base_url) {
            Ok(mut url) => {
                let _ = url.set_username("");
                let _ = url.set_password(None);
                url.set_query(None);
                url.to_string()
            }
            Err(_) => "an invalid URL".to_owned(),
        }
    }

    pub(super) fn not_sent(&self, fault: &reqwest::Error) -> ModelError {
        let message = format!(
            "{} cannot be reached at {} ({}): check that the server runs and that the address is right ({})",
            self.provider,
            self.shown_base(),
            causes(fault),
            self.base_url_from,
        );
        self.named(ModelError::new(ErrorKind::Unreachable, message))
    }

    /// The error that an answer amounts to which is not a stream.
    pub(super) async fn refused(&self, mut response: Response) -> ModelError {
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let mut body = Vec::new();
        while body.len() < ERROR_BODY_LIMIT
            && let Ok(Some(bytes)) = response.chunk().await
        {
            body.extend_from_slice(&bytes[..bytes.len().min(ERROR_BODY_LIMIT - body.len())]);
        }
        if response.status().is_redirection() {
            let message = format!(
                "{} answered with a redirect, which is not followed: check the address ({})",
                self.shown_base(),
                self.base_url_from
            );
            return ModelError::new(ErrorKind::Refused, message).with_status(status);
        }
        if response.status().is_success() {
            return self.not_a_stream(status, &body);
        }
        let mut error = fault::from_answer(status, &body);
        error.retry_after = wanted_wait(&headers).or(error.retry_after);
        match error.kind {
            ErrorKind::Auth => {
                let hint = format!(
                    " (check the key of provider {}: {})",
                    self.provider, self.api_key_from
                );
                error.message.push_str(&hint);
            }
            ErrorKind::ModelUnknown if status == 404 => {
                let hint = format!(
                    " (check the model's name and the address {})",
                    self.shown_base()
                );
                error.message.push_str(&hint);
            }
            _ => {}
        }
        self.named(error)
    }

    fn not_a_stream(&self, status: u16, body: &[u8]) -> ModelError {
        let complaint = serde_json::from_slice(body)
            .ok()
            .as_ref()
            .and_then(fault::Complaint::read)
            .map(|complaint| complaint.sort(None));
        if let Some(error) = complaint {
            return self.named(error);
        }
        let what = if body.trim_ascii_start().starts_with(b"<") {
            "a web page"
        } else {
            "an answer that is no stream"
        };
        let message = format!(
            "{} answered with {what} instead of a model's reply: check the address ({}); most servers want a base URL that ends with /v1",
            self.shown_base(),
            self.base_url_from,
        );
        ModelError::new(ErrorKind::Malformed, message).with_status(status)
    }

    /// Makes sure that the key is not in the text.
    pub(super) fn named(&self, mut error: ModelError) -> ModelError {
        let secrets = self
            .api_key
            .iter()
            .map(Secret::expose)
            .chain(self.headers.iter().map(|(_, value)| value.as_str()));
        for secret in secrets.filter(|secret| secret.len() >= 6) {
            if error.message.contains(secret) {
                error.message = error.message.replace(secret, "***");
            }
        }
        error
    }
}

fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// How long the provider asks us to wait. Dates count from the provider's own clock when it tells it.
fn wanted_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(millis) = text("retry-after-ms").and_then(|value| value.trim().parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let now = text("date")
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or_else(clock::wall);
    fault::retry_after(text("retry-after")?, now)
}
