//! Sorting of providers' failures into [`ModelError`]: by status, by code, and by wording where codes say nothing.
//! It sends nothing and decides nothing about retries beyond "may succeed later".

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::error::{ErrorKind, MESSAGE_LIMIT, ModelError};
use crate::overflow::is_overflow;
use crate::pictures::takes_no_pictures;
use crate::text::clipped;

/// What a provider says in an error body or an error event.
#[derive(Default, Debug)]
pub(crate) struct Complaint {
    /// The status-like number of the body itself.
    pub(crate) status: Option<u16>,
    /// Its code or type, in words.
    pub(crate) codes: Vec<String>,
    /// Its text.
    pub(crate) message: String,
    /// How long it asks us to wait.
    pub(crate) retry_after: Option<Duration>,
}

impl Complaint {
    /// Reads the shapes that are in use: `{"error": {...}}`, `{"error": "text"}`, `{"type": "error", "error": {...}}`,
    /// `{"object": "error", "message": ...}`, `{"detail": ...}`, and these inside a list. `None` when it is none of them.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let value = match value {
            Value::Array(list) => list.first()?,
            other => other,
        };
        let object = value.as_object()?;
        let mut complaint = Self::default();
        match object.get("error") {
            Some(Value::Object(inner)) => {
                complaint.take(inner);
                // Routers put the true provider's words one level deeper.
                let raw = inner
                    .get("metadata")
                    .and_then(|meta| meta.get("raw"))
                    .and_then(Value::as_str);
                if let Some(raw) = raw {
                    complaint.message = format!("{}: {raw}", complaint.message);
                }
            }
            Some(Value::String(text)) => complaint.message.clone_from(text),
            Some(Value::Null) | None => {
                let named = object.get("object").and_then(Value::as_str) == Some("error")
                    || object.get("type").and_then(Value::as_str) == Some("error");
                if named || object.contains_key("detail") {
                    complaint.take(object);
                } else {
                    return None;
                }
            }
            Some(_) => return None,
        }
        Some(complaint)
    }

    fn take(&mut self, object: &serde_json::Map<String, Value>) {
        for key in ["code", "type", "status"] {
            match object.get(key) {
                Some(Value::Number(number)) => self.take_status(number.as_u64()),
                Some(Value::String(text)) => match text.parse() {
                    Ok(number) => self.take_status(Some(number)),
                    Err(_) => self.codes.push(text.clone()),
                },
                _ => {}
            }
        }
        for detail in object
            .get("details")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if let Some(reason) = detail["reason"].as_str() {
                self.codes.push(reason.to_owned());
            }
            let delay = detail["retryDelay"].as_str().and_then(seconds);
            self.retry_after = self.retry_after.or(delay);
        }
        for key in ["message", "detail"] {
            match object.get(key) {
                Some(Value::String(text)) if self.message.is_empty() => {
                    self.message.clone_from(text)
                }
                Some(other @ (Value::Array(_) | Value::Object(_))) if self.message.is_empty() => {
                    self.message = other.to_string();
                }
                _ => {}
            }
        }
    }

    fn take_status(&mut self, number: Option<u64>) {
        if let Some(number) = number.and_then(|n| u16::try_from(n).ok())
            && (400..600).contains(&number)
        {
            self.status.get_or_insert(number);
        }
    }

    /// The error that this complaint amounts to. `status` is that of the HTTP answer when it was not a success.
    pub(crate) fn sort(self, status: Option<u16>) -> ModelError {
        let status = status.or(self.status);
        let lower = self.message.to_lowercase();
        let coded = |words: &[&str]| {
            self.codes
                .iter()
                .any(|code| words.iter().any(|word| code.contains(word)))
        };
        let kind = if is_overflow(&lower, &self.codes) || status == Some(413) {
            ErrorKind::ContextOverflow
        } else if coded(&["insufficient_quota", "billing", "credit"]) || status == Some(402) {
            ErrorKind::Refused
        } else if coded(&[
            "authentication",
            "permission",
            "invalid_api_key",
            "API_KEY_INVALID",
            "UNAUTHENTICATED",
            "PERMISSION_DENIED",
        ]) || matches!(status, Some(401 | 403))
        {
            ErrorKind::Auth
        } else if coded(&["model_not_found", "DeploymentNotFound"])
            || is_model_unknown(status, &lower) && !takes_no_pictures(&lower)
        {
            ErrorKind::ModelUnknown
        } else if coded(&[
            "overloaded",
            "rate_limit",
            "too_many_requests",
            "RESOURCE_EXHAUSTED",
            "UNAVAILABLE",
        ]) || matches!(status, Some(429 | 503 | 529))
        {
            ErrorKind::Overloaded
        } else if matches!(status, Some(502 | 504)) {
            ErrorKind::Unreachable
        } else {
            ErrorKind::Refused
        };
        let message = match (self.message.trim(), status) {
            ("", Some(status)) => {
                format!("the provider answered with status {status} and no reason")
            }
            ("", None) => match self.codes.first() {
                Some(code) => format!("the provider reported {code}"),
                None => "the provider reported an error without a reason".to_owned(),
            },
            (text, _) => text.to_owned(),
        };
        let mut error = ModelError::new(kind, without_keys(&message));
        error.status = status;
        error.retry_after = self.retry_after;
        if kind == ErrorKind::Refused {
            error.retryable = matches!(status, Some(408 | 409 | 425 | 500..=599))
                || coded(&["server_error", "api_error", "timeout_error", "INTERNAL"]);
            // Some servers say so with a status of a fault that passes; this one does not.
            error.retryable &= !takes_no_pictures(&lower);
        }
        error
    }
}

/// The error for an HTTP answer that is not a success. `body` is its beginning.
pub(crate) fn from_answer(status: u16, body: &[u8]) -> ModelError {
    let complaint = serde_json::from_slice(body)
        .ok()
        .as_ref()
        .and_then(Complaint::read);
    let complaint = complaint.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        // A page, or brackets without a word in them, says nothing to a person.
        let says = text.contains(char::is_alphanumeric) && !text.starts_with('<');
        let message = if !says {
            String::new()
        } else {
            clipped(text, MESSAGE_LIMIT)
        };
        Complaint {
            message,
            ..Complaint::default()
        }
    });
    complaint.sort(Some(status))
}

fn is_model_unknown(status: Option<u16>, lower: &str) -> bool {
    let says_so = lower.contains("model")
        && [
            "not found",
            "does not exist",
            "not exist",
            "unknown model",
            "not a valid model",
            "no such model",
        ]
        .iter()
        .any(|text| lower.contains(text));
    match status {
        Some(404) => true,
        Some(400 | 422) | None => says_so,
        Some(_) => false,
    }
}

/// Providers quote a part of a wrong key; no key and no part of one goes on.
fn without_keys(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = ["sk-", "AIza"]
        .iter()
        .filter_map(|key| rest.find(key))
        .min()
    {
        let inside_word = rest[..at]
            .chars()
            .next_back()
            .is_some_and(|c| c.is_ascii_alphanumeric());
        let length = rest[at..]
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*' | '.')))
            .unwrap_or(rest.len() - at);
        out.push_str(&rest[..at]);
        out.push_str(if inside_word {
            &rest[at..at + length]
        } else {
            "***"
        });
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out
}

/// Reads a length of time as Google writes it, such as `34.5s`.
fn seconds(text: &str) -> Option<Duration> {
    let number: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(number).ok()
}

/// Reads `Retry-After`: whole seconds, or an HTTP date after `now`. Anything else is as good as no header.
pub(crate) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    until
        .duration_since(now)
        .ok()
        .filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn g14_each_way_to_say_too_long_is_understood() {
        for body in [
            json!({"error": {"code": "context_length_exceeded", "message": "too big"}}),
            json!({"error": {"code": 400, "message": "This model's maximum context length is 131072 tokens, however you requested about 140000"}}),
            json!({"object": "error", "message": "The prompt contains at least 131073 input tokens", "code": 400}),
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 > 200000"}}),
            json!({"error": {"type": "invalid_request_error", "code": "context_length_exceeded", "param": "input",
                "message": "Your input exceeds the context window of this model. Please adjust your input and try again."}}),
            json!({"type": "error", "code": "context_length_exceeded", "message": "Your input exceeds the context window"}),
            json!({"error": {"code": 400, "status": "INVALID_ARGUMENT",
                "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}),
            json!([{"error": {"code": 400, "status": "INVALID_ARGUMENT",
                "message": "The input token count exceeds the maximum number of tokens allowed 1048576."}}]),
            json!({"error": {"code": 400, "type": "exceed_context_size_error",
                "message": "the request exceeds the available context size, try increasing it"}}),
            json!({"error": "This model's maximum prompt length is 131072 but the request contains 140000 tokens."}),
        ] {
            let error = from_answer(400, body.to_string().as_bytes());
            assert_eq!(
                (error.kind, error.retryable),
                (ErrorKind::ContextOverflow, false),
                "{body}"
            );
            assert_eq!(
                Complaint::read(&body).unwrap().sort(None).kind,
                ErrorKind::ContextOverflow,
                "in stream: {body}"
            );
        }
    }

    #[test]
    fn statuses_sort_into_kinds() {
        use ErrorKind::{Auth, ModelUnknown, Overloaded, Refused, Unreachable};
        for (status, body, kind, retryable) in [
            (401, "{}", Auth, false),
            (403, "", Auth, false),
            (
                404,
                r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#,
                ModelUnknown,
                false,
            ),
            (
                400,
                r#"{"error":"model 'x' not found"}"#,
                ModelUnknown,
                false,
            ),
            (
                400,
                r#"{"detail":[{"loc":["body"],"msg":"bad"}]}"#,
                Refused,
                false,
            ),
            (
                429,
                r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#,
                Overloaded,
                true,
            ),
            (
                429,
                r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#,
                Refused,
                false,
            ),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Overloaded,
                true,
            ),
            (503, "<html>busy</html>", Overloaded, true),
            (500, "oops", Refused, true),
            (502, "", Unreachable, true),
            (413, "{}", ErrorKind::ContextOverflow, false),
            (418, "short and stout", Refused, false),
        ] {
            let error = from_answer(status, body.as_bytes());
            assert_eq!(
                (error.kind, error.retryable),
                (kind, retryable),
                "{status} {body}"
            );
            assert_eq!(error.status, Some(status));
            assert!(!error.message.is_empty() && !error.message.contains('<'));
        }
    }

    #[test]
    fn bodies_of_responses_and_gemini() {
        use ErrorKind::{Auth, ModelUnknown, Overloaded, Refused};
        let google = |code: u16, status: &str, message: &str, details: Value| json!({"error": {"code": code, "status": status, "message": message, "details": details}});
        for (status, body, kind, retryable, wait) in [
            (
                400,
                google(
                    400,
                    "INVALID_ARGUMENT",
                    "API key not valid. Please pass a valid API key.",
                    json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]),
                ),
                Auth,
                false,
                None,
            ),
            (
                403,
                google(403, "PERMISSION_DENIED", "Method blocked", json!([])),
                Auth,
                false,
                None,
            ),
            (
                404,
                google(
                    404,
                    "NOT_FOUND",
                    "models/nope is not found for API version v1beta",
                    Value::Null,
                ),
                ModelUnknown,
                false,
                None,
            ),
            (
                429,
                google(
                    429,
                    "RESOURCE_EXHAUSTED",
                    "You exceeded your current quota",
                    json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]),
                ),
                Overloaded,
                true,
                Some(Duration::from_millis(34_500)),
            ),
            (
                503,
                google(503, "UNAVAILABLE", "The model is overloaded.", Value::Null),
                Overloaded,
                true,
                None,
            ),
            (
                500,
                google(500, "INTERNAL", "An internal error", Value::Null),
                Refused,
                true,
                None,
            ),
            (
                400,
                json!({"error": {"message": "Encrypted content is not supported with this model.",
                    "type": "invalid_request_error", "param": "include", "code": null}}),
                Refused,
                false,
                None,
            ),
            (
                401,
                json!({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}),
                Auth,
                false,
                None,
            ),
            (
                400,
                json!({"error": {"message": "The requested model 'nope' does not exist.", "code": "model_not_found"}}),
                ModelUnknown,
                false,
                None,
            ),
            (
                429,
                json!({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}),
                Overloaded,
                true,
                None,
            ),
            (
                404,
                json!({"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}),
                ModelUnknown,
                false,
                None,
            ),
        ] {
            for list in [false, true] {
                let body = if list { json!([body]) } else { body.clone() };
                let error = from_answer(status, body.to_string().as_bytes());
                assert_eq!(
                    (error.kind, error.retryable, error.retry_after),
                    (kind, retryable, wait),
                    "{body}"
                );
            }
        }
        // Inside a stream there is no status but that of the body.
        for (body, kind, retryable) in [
            (
                google(503, "UNAVAILABLE", "overloaded", Value::Null),
                Overloaded,
                true,
            ),
            (
                json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": null}),
                Overloaded,
                true,
            ),
            (
                json!({"error": {"code": "server_error", "message": "sorry"}}),
                Refused,
                true,
            ),
            (
                json!({"error": {"code": "invalid_prompt", "message": "no"}}),
                Refused,
                false,
            ),
        ] {
            let error = Complaint::read(&body).unwrap().sort(None);
            assert_eq!((error.kind, error.retryable), (kind, retryable), "{body}");
        }
    }

    #[test]
    fn g12_an_error_inside_a_stream_keeps_its_code_and_text() {
        let value = json!({"error": {"message": "bad field", "code": 400}});
        let error = Complaint::read(&value).unwrap().sort(None);
        assert_eq!(
            (error.kind, error.status, error.retryable),
            (ErrorKind::Refused, Some(400), false)
        );
        assert_eq!(error.message, "bad field");
        let value = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        assert_eq!(
            Complaint::read(&value).unwrap().sort(None).kind,
            ErrorKind::Overloaded
        );
        assert!(Complaint::read(&json!({"choices": [], "error": null})).is_none());
        assert!(Complaint::read(&json!({"type": "ping"})).is_none());
    }

    #[test]
    fn keys_are_never_repeated_and_messages_are_bounded() {
        let body = json!({"error": {"message": "Incorrect API key provided: sk-proj-abc***xyz. See task-list."}});
        let error = from_answer(401, body.to_string().as_bytes());
        assert_eq!(
            error.message,
            "Incorrect API key provided: *** See task-list."
        );
        let error = from_answer(
            400,
            br#"{"error":{"message":"Consumer 'api_key:AIzaSyX-1_y' has been suspended."}}"#,
        );
        assert_eq!(error.message, "Consumer 'api_key:***' has been suspended.");
        let error = from_answer(400, "é".repeat(40_000).as_bytes());
        assert!(error.message.len() <= MESSAGE_LIMIT + 8);
    }

    #[test]
    fn g13_retry_after_in_all_spellings() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (value, want) in [
            ("2", Some(2)),
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("999999", Some(999_999)),
            ("Sun, 06 Nov 1994 08:49:40 GMT", Some(3)),
            ("Sun, 06 Nov 1994 08:49:30 GMT", None),
            ("2abc", None),
            ("-1", None),
            ("1.5", None),
            ("", None),
        ] {
            assert_eq!(
                retry_after(value, now),
                want.map(Duration::from_secs),
                "{value}"
            );
        }
        assert_eq!(
            retry_after("99999999999999999999999", now),
            Some(Duration::from_secs(u64::MAX))
        );
    }
}
