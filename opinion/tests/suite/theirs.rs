//! The other library's reading of an answer.

use std::sync::Arc;

use attache_model::Dialect;
use futures_util::StreamExt;
use rig_core::completion::{CompletionRequest, CompletionResponse, FinishReason};
use rig_core::error::ProviderError;
use rig_core::message::AssistantContent;
use rig_core::providers::anthropic::AnthropicConfig;
use rig_core::providers::gemini::GeminiConfig;
use rig_core::providers::openai::OpenAIConfig;
use rig_core::streaming::CompletionStream;
use rig_reqwest::ReqwestClient;
use serde_json::Value;

use crate::reading::Reading;

/// Asks the server at this address. The models' names are ones that the library knows, since it looks some things up.
pub(crate) async fn read(dialect: Dialect, address: &str) -> Reading {
    let http = client();
    let ask = CompletionRequest::new("hi");
    let opened = match dialect {
        Dialect::OpenAiChat => OpenAIConfig::new("key")
            .with_base_url(address)
            .connect(http)
            .chat("gpt-4o")
            .stream(ask),
        Dialect::OpenAiResponses => OpenAIConfig::new("key")
            .with_base_url(address)
            .connect(http)
            .responses("gpt-4o")
            .stream(ask),
        Dialect::Anthropic => AnthropicConfig::new("key")
            .with_base_url(address)
            .connect(http)
            .completion("claude-sonnet-4-5")
            .stream(ask),
        Dialect::Gemini => GeminiConfig::new("key")
            .with_base_url(address)
            .connect(http)
            .completion("gemini-2.5-pro")
            .stream(ask),
    };
    let mut stream: CompletionStream = opened.expect("the request can be written");
    let mut failure = None;
    while let Some(item) = stream.next().await {
        failure = item.err().or(failure);
    }
    let partial = stream.partial();
    match failure {
        Some(failure) => reading(&partial, Some(failure)),
        None => match stream.finish().await {
            Ok(whole) => reading(&whole, None),
            Err(failure) => reading(&partial, Some(failure)),
        },
    }
}

/// A client that speaks no TLS and asks no proxy.
fn client() -> ReqwestClient {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .build();
    client.expect("a client without TLS").into()
}

fn reading(reply: &CompletionResponse, failure: Option<ProviderError>) -> Reading {
    let mut reading = Reading {
        input: reply.usage.input_tokens,
        output: reply.usage.output_tokens,
        cached: reply.usage.cached_input_tokens,
        reasoned: reply.usage.reasoning_tokens,
        failed: failure.is_some(),
        end: end(reply, failure),
        ..Reading::default()
    };
    for part in &reply.choice {
        match part {
            AssistantContent::Text(text) => reading.text.push_str(&text.text),
            AssistantContent::Reasoning(reasoning) => reading.reasoning.push_str(&reasoning.text),
            AssistantContent::ToolCall(call) => {
                let arguments = match &call.function.invalid_arguments {
                    Some(text) => Value::String(text.clone()),
                    None => Value::Object(call.function.arguments.clone()),
                };
                reading
                    .calls
                    .push((call.function.name.to_string(), arguments));
            }
            // Pictures, and what it does not read itself.
            _ => {}
        }
    }
    reading
}

fn end(reply: &CompletionResponse, failure: Option<ProviderError>) -> String {
    match failure {
        Some(ProviderError::Truncated) => return "truncated".to_owned(),
        Some(failure) => {
            return match failure.report().http_status {
                Some(status) => format!("failed with {}", status),
                None => "failed".to_owned(),
            };
        }
        None => {}
    }
    match reply.finish_reason() {
        Some(FinishReason::Stop) => "complete".to_owned(),
        Some(FinishReason::ToolCalls) => "calls".to_owned(),
        Some(FinishReason::Length) => "length".to_owned(),
        Some(FinishReason::ContentFilter) => "filtered".to_owned(),
        Some(FinishReason::Other(word)) => word,
        Some(_) => "another reason".to_owned(),
        None => "no reason".to_owned(),
    }
}
