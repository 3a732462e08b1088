//! What differs between dialects and providers on the way through the HTTP shell: addresses, headers, ends, error bodies.

use std::sync::Arc;
use std::time::Duration;

use attache_model::{
    Delta, Deltas, Dialect, ErrorKind, Model, Providers, ResolveError, StreamStep,
};

use crate::http::{Play, answer, ask, model, serve, stream};
use crate::replies::{GEMINI, RESPONSES};
use crate::support::{completion, run};

const CHAT: [&str; 3] = [
    r#"{"choices":[{"delta":{"content":"Hi"}}]}"#,
    r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    "[DONE]",
];

/// A model that is known by name, with these variables set.
fn preset(
    name: &str,
    variables: &'static [(&'static str, &'static str)],
    address: (&'static str, String),
) -> Arc<dyn Model> {
    let lookup = move |wanted: &str| {
        if wanted == address.0 {
            return Some(address.1.clone());
        }
        let found = variables.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| (*value).to_owned())
    };
    Providers::new(lookup, Vec::new()).resolve(name).unwrap()
}

// G-03: a connection that is held open after the terminal event is not waited for.
#[tokio::test]
async fn responses_go_to_their_own_address_and_end_at_their_terminal_event() {
    let server = serve(vec![Play::Hold(stream(&RESPONSES))]).await;
    let model = model(Dialect::OpenAiResponses, &format!("{}/v1", server.address));
    let (deltas, end) = run(&*model, ask()).await;
    assert_eq!(end, Ok(()));
    assert_eq!(completion(&deltas).calls().count(), 2);
    let seen = &server.seen.await.unwrap()[0];
    assert!(seen.head.starts_with("post /v1/responses http/1.1"));
    assert!(seen.head.contains("authorization: bearer key-of-the-test"));
    assert_eq!(seen.body["store"], false);
    assert_eq!(seen.body["model"], "some/model");
}

#[tokio::test]
async fn the_key_of_gemini_is_in_a_header_and_the_model_in_the_address() {
    let server = serve(vec![Play::Close(stream(&GEMINI))]).await;
    let (deltas, end) = run(&*model(Dialect::Gemini, &server.address), ask()).await;
    assert_eq!(end, Ok(()));
    assert_eq!(completion(&deltas).text(), "Let me look 那🌍.");
    let seen = &server.seen.await.unwrap()[0];
    let line = seen.head.lines().next().unwrap();
    assert_eq!(
        line,
        "post /v1beta/models/some%2fmodel:streamgeneratecontent?alt=sse http/1.1"
    );
    assert!(seen.head.contains("x-goog-api-key: key-of-the-test"));
    assert!(!seen.head.contains("authorization"));
    assert_eq!(seen.body.get("model"), None);
}

// G-03, where the dialect has no terminal event: what may follow is waited for, but not for long.
#[tokio::test]
async fn gemini_that_keeps_the_connection_is_done_after_two_seconds() {
    let server = serve(vec![Play::Hold(stream(&GEMINI))]).await;
    let mut stream = model(Dialect::Gemini, &server.address).start(ask());
    let mut out = Deltas::new();
    while !out
        .as_slice()
        .iter()
        .any(|delta| matches!(delta, Delta::Usage(usage) if usage.output.is_some()))
    {
        assert_eq!(stream.next(&mut out).await, StreamStep::Bytes);
    }
    tokio::time::pause();
    let then = tokio::time::timeout(Duration::from_secs(3), stream.next(&mut out)).await;
    assert_eq!(then, Ok(StreamStep::End));
    assert!(matches!(out.as_slice().last(), Some(Delta::Stop(_))));
    server.seen.await.unwrap();
}

// G-03, run 1
#[tokio::test]
async fn a_cut_inside_a_call_is_truncated_in_the_new_dialects() {
    for (dialect, events) in [
        (Dialect::OpenAiResponses, &RESPONSES[..18]),
        (Dialect::Gemini, &GEMINI[..4]),
    ] {
        let server = serve(vec![Play::Close(stream(events))]).await;
        let (deltas, end) = run(&*model(dialect, &server.address), ask()).await;
        let error = end.unwrap_err();
        assert_eq!(
            (error.kind, error.retryable),
            (ErrorKind::Truncated, true),
            "{error}"
        );
        assert_eq!(completion(&deltas).text(), "Let me look 那🌍.");
    }
}

// G-12, G-13
#[tokio::test]
async fn google_says_in_the_body_how_long_to_wait() {
    let body = r#"[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"7s"}]}}]"#;
    for (headers, want) in [("", 7), ("retry-after: 2\r\n", 2)] {
        let refusal = answer("429 Too Many Requests", headers, body);
        let server = serve(vec![Play::Close(refusal)]).await;
        let (_, end) = run(&*model(Dialect::Gemini, &server.address), ask()).await;
        let error = end.unwrap_err();
        assert_eq!(
            (error.kind, error.retry_after),
            (ErrorKind::Overloaded, Some(Duration::from_secs(want)))
        );
        server.seen.await.unwrap();
    }
}

#[tokio::test]
async fn azure_wants_its_own_header_and_path() {
    let server = serve(vec![Play::Hold(stream(&CHAT))]).await;
    let model = preset(
        "azure/my-gpt",
        &[("AZURE_OPENAI_API_KEY", "key-of-azure")],
        ("AZURE_OPENAI_ENDPOINT", format!("{}/", server.address)),
    );
    let (_, end) = run(&*model, ask()).await;
    assert_eq!(end, Ok(()));
    let seen = &server.seen.await.unwrap()[0];
    assert!(
        seen.head
            .starts_with("post /openai/v1/chat/completions http/1.1"),
        "{}",
        seen.head
    );
    assert!(seen.head.contains("\r\napi-key: key-of-azure"));
    assert!(!seen.head.contains("authorization"));
}

#[tokio::test]
async fn openai_elsewhere_speaks_chat_completions() {
    let server = serve(vec![Play::Hold(stream(&CHAT))]).await;
    let base = format!("{}/v1", server.address);
    let (_, end) = run(&*preset("openai/m", &[], ("OPENAI_BASE_URL", base)), ask()).await;
    assert_eq!(end, Ok(()));
    let seen = &server.seen.await.unwrap()[0];
    assert!(seen.head.starts_with("post /v1/chat/completions http/1.1"));
}

#[test]
fn presets_say_what_they_lack() {
    let fault = |name: &str| {
        let providers = Providers::new(|_| None, Vec::new());
        providers.resolve(name).err().map(|fault| fault.to_string())
    };
    assert!(fault("azure/m").unwrap().contains("AZURE_OPENAI_ENDPOINT"));
    assert!(fault("gemini/m").unwrap().contains("GEMINI_API_KEY"));
    for local in ["vllm/m", "llama.cpp/m", "ollama/m"] {
        assert_eq!(fault(local), None);
    }
    // A server of one's own elsewhere may do without a key.
    let remote = |name: &str| (name == "VLLM_BASE_URL").then(|| "http://gpu.lan/v1".to_owned());
    assert!(Providers::new(remote, Vec::new()).resolve("vllm/m").is_ok());
    let azure =
        |name: &str| (name == "AZURE_OPENAI_ENDPOINT").then(|| "https://r.example".to_owned());
    assert!(matches!(
        Providers::new(azure, Vec::new()).resolve("azure/m").err(),
        Some(ResolveError::MissingKey { .. })
    ));
}
