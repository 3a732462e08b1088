//! Our reading of an answer, through the HTTP shell as a turn uses it.

use std::sync::Arc;

use attache_model::{
    Assembler, Deltas, Dialect, ErrorKind, Message, ModelError, Options, Part, ProviderConfig,
    ProviderTerms, Providers, Quirks, Request, Secret, StopReason, StreamStep, ToolSet,
};
use serde_json::Value;

use crate::reading::Reading;

/// Asks the server at this address.
pub(crate) async fn read(dialect: Dialect, address: &str) -> Reading {
    let config = ProviderConfig {
        key_variable: None,
        key_command: false,
        name: "stub".into(),
        dialect,
        base_url: address.into(),
        api_key: Some(Secret::new("key")),
        headers: Vec::new(),
        quirks: Quirks::default(),
        terms: ProviderTerms::default(),
    };
    let model = Providers::new(|_| None, vec![config])
        .resolve("stub/m")
        .expect("the provider is configured");
    let mut stream = model.start(Request {
        model: "m".into(),
        system: None,
        messages: vec![Message::User(vec![Part::text("hi")])],
        tools: Arc::<ToolSet>::default(),
        tools_allowed: true,
        options: Arc::<Options>::default(),
    });
    let mut out = Deltas::new();
    let failure = loop {
        match stream.next(&mut out).await {
            StreamStep::Bytes => {}
            StreamStep::End => break None,
            StreamStep::Failed(error) => break Some(error),
        }
    };
    let mut assembler = Assembler::new();
    for delta in out.drain() {
        assembler.push(&delta);
    }
    let done = assembler.finish();
    let reasoning = done.parts.iter().filter_map(|part| match part {
        Part::Reasoning { text, .. } => Some(&**text),
        _ => None,
    });
    let calls = done.calls().map(|call| {
        let arguments = match call.input() {
            Ok(json) => json.to_value(),
            Err(_) => Value::String(call.arguments.to_string()),
        };
        (call.name.to_string(), arguments)
    });
    Reading {
        text: done.text(),
        reasoning: reasoning.collect(),
        calls: calls.collect(),
        input: done.usage.input,
        output: done.usage.output,
        cached: done.usage.cache_read,
        reasoned: done.usage.reasoning,
        failed: failure.is_some(),
        end: end(done.stop, failure),
    }
}

fn end(stop: Option<StopReason>, failure: Option<ModelError>) -> String {
    if let Some(failure) = failure {
        return match (failure.kind, failure.status) {
            (ErrorKind::Truncated, _) => "truncated".to_owned(),
            (_, Some(status)) => format!("failed with {status}"),
            (_, None) => "failed".to_owned(),
        };
    }
    match stop {
        Some(StopReason::EndTurn) => "complete".to_owned(),
        Some(StopReason::ToolCalls) => "calls".to_owned(),
        Some(StopReason::Length) => "length".to_owned(),
        Some(StopReason::ContentFilter) => "filtered".to_owned(),
        Some(StopReason::Refusal) => "refused".to_owned(),
        Some(StopReason::Other(word)) => word,
        None => "no reason".to_owned(),
    }
}
