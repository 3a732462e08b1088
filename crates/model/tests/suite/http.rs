//! The HTTP shell against a server of a few lines that plays bytes.

use std::time::Duration;

use attache_model::{
    Delta, Deltas, Dialect, ErrorKind, Json, Message, Model, ModelError, Part, ProviderConfig,
    ProviderTerms, Providers, Quirks, Request, ResolveError, Secret, StreamStep, ToolSet, ToolSpec,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::support::{completion, request, run, user};

/// What the server does after a request.
pub(crate) enum Play {
    /// Sends these bytes and closes.
    Close(String),
    /// Sends these bytes, then waits for the other side to close.
    Hold(String),
    /// Sends these bytes one by one and closes.
    Trickle(String),
}

/// A request as it came: its head, and its body.
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Value,
}

pub(crate) struct Server {
    pub(crate) address: String,
    /// The requests; done when every play has been played and the connections are closed.
    pub(crate) seen: JoinHandle<Vec<Seen>>,
    /// Raised when a request has come whole.
    asked: Arc<Notify>,
}

/// Plays one play a connection.
pub(crate) async fn serve(plays: Vec<Play>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Notify::new());
    let raise = Arc::clone(&asked);
    let seen = tokio::spawn(async move {
        let mut seen = Vec::new();
        for play in plays {
            let (mut socket, _) = listener.accept().await.unwrap();
            seen.push(read_request(&mut socket).await);
            raise.notify_one();
            match play {
                Play::Close(bytes) => socket.write_all(bytes.as_bytes()).await.unwrap(),
                Play::Trickle(bytes) => {
                    socket.set_nodelay(true).unwrap();
                    for byte in bytes.as_bytes() {
                        // Whoever has read the end hangs up.
                        if socket.write_all(&[*byte]).await.is_err() {
                            break;
                        }
                    }
                }
                Play::Hold(bytes) => {
                    socket.write_all(bytes.as_bytes()).await.unwrap();
                    let mut byte = [0];
                    // A close or a reset: the other side is gone.
                    assert!(
                        !matches!(socket.read(&mut byte).await, Ok(1..)),
                        "no second request was expected"
                    );
                }
            }
        }
        seen
    });
    Server {
        address,
        seen,
        asked,
    }
}

async fn read_request(socket: &mut TcpStream) -> Seen {
    let mut bytes = Vec::new();
    loop {
        socket.read_buf(&mut bytes).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length: usize = head
            .lines()
            .find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")
                    .map(|n| n.parse().unwrap())
            })
            .unwrap();
        if body.len() >= length {
            return Seen {
                head: head.to_lowercase(),
                body: serde_json::from_str(body).unwrap(),
            };
        }
    }
}

pub(crate) fn stream(events: &[&str]) -> String {
    let events: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{events}")
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn config(dialect: Dialect, base_url: &str) -> ProviderConfig {
    ProviderConfig {
        key_variable: None,
        key_command: false,
        name: "stub".into(),
        dialect,
        base_url: base_url.into(),
        api_key: Some(Secret::new("key-of-the-test")),
        headers: vec![("x-extra".into(), "extra-of-the-test".into())],
        quirks: Quirks::default(),
        terms: ProviderTerms::default(),
    }
}

pub(crate) fn model(dialect: Dialect, base_url: &str) -> Arc<dyn Model> {
    Providers::new(|_| None, vec![config(dialect, base_url)])
        .resolve("stub/some/model")
        .unwrap()
}

pub(crate) fn ask() -> Request {
    Request {
        model: "some/model".into(),
        ..request(vec![user("hi")])
    }
}

const TEXT: &str = r#"{"choices":[{"delta":{"content":"Hello"}}]}"#;
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;

/// The failure of one request that is answered with these bytes.
async fn failure(bytes: String) -> ModelError {
    let server = serve(vec![Play::Close(bytes)]).await;
    let (_, end) = run(
        &*model(Dialect::OpenAiChat, &format!("{}/v1", server.address)),
        ask(),
    )
    .await;
    server.seen.await.unwrap();
    end.unwrap_err()
}

// G-03: the end of the reply ends the connection.
#[tokio::test]
async fn a_reply_is_streamed_and_the_connection_closed_at_done() {
    let server = serve(vec![Play::Hold(stream(&[TEXT, STOP, USAGE, "[DONE]"]))]).await;
    let model = model(Dialect::OpenAiChat, &format!("{}/v1/", server.address));
    assert_eq!((model.provider(), model.id()), ("stub", "some/model"));
    let (deltas, end) = run(&*model, ask()).await;
    assert_eq!(end, Ok(()));
    let done = completion(&deltas);
    assert_eq!(
        (done.text(), done.usage.input),
        ("Hello".to_owned(), Some(3))
    );
    // The server waits until we hang up, although the model is still there.
    let seen = server.seen.await.unwrap();
    let head = &seen[0].head;
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1"),
        "{head}"
    );
    for line in [
        "authorization: bearer key-of-the-test",
        "x-extra: extra-of-the-test",
        "content-type: application/json",
    ] {
        assert!(head.contains(line), "{head}");
    }
    assert_eq!(
        seen[0].body,
        json!({
            "model": "some/model",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[tokio::test]
async fn messages_go_to_their_own_address_with_their_own_headers() {
    let events = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":5,"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let server = serve(vec![Play::Hold(stream(&events))]).await;
    let (deltas, end) = run(&*model(Dialect::Anthropic, &server.address), ask()).await;
    assert_eq!((end, completion(&deltas).text()), (Ok(()), "Hi".to_owned()));
    let seen = server.seen.await.unwrap();
    assert!(seen[0].head.starts_with("post /v1/messages http/1.1"));
    assert!(
        seen[0].head.contains("x-api-key: key-of-the-test")
            && seen[0].head.contains("anthropic-version: 2023")
    );
    assert_eq!(seen[0].body["max_tokens"], 8192);
}

#[tokio::test]
async fn usage_that_does_not_come_is_waited_for_two_seconds() {
    let server = serve(vec![Play::Hold(stream(&[TEXT, STOP]))]).await;
    let model = model(Dialect::OpenAiChat, &server.address);
    let mut stream = model.start(ask());
    let mut out = Deltas::new();
    while !out
        .as_slice()
        .iter()
        .any(|delta| matches!(delta, Delta::Stop(_)))
    {
        assert_eq!(stream.next(&mut out).await, StreamStep::Bytes);
    }
    tokio::time::pause();
    let soon = tokio::time::timeout(Duration::from_secs(1), stream.next(&mut out)).await;
    assert!(soon.is_err(), "usage may still come");
    let then = tokio::time::timeout(Duration::from_secs(2), stream.next(&mut out)).await;
    assert_eq!(then, Ok(StreamStep::End));
    assert_eq!(stream.next(&mut out).await, StreamStep::End);
    server.seen.await.unwrap();
}

// G-03
#[tokio::test]
async fn a_stream_that_is_cut_is_truncated_and_keeps_what_came() {
    for events in [vec![TEXT], vec![TEXT, r#"{"choices":[{"delta":{"con"#]] {
        let mut bytes = stream(&events);
        bytes.truncate(bytes.trim_end().len());
        let server = serve(vec![Play::Close(bytes)]).await;
        let (deltas, end) = run(&*model(Dialect::OpenAiChat, &server.address), ask()).await;
        let error = end.unwrap_err();
        assert_eq!(
            (error.kind, error.retryable),
            (ErrorKind::Truncated, true),
            "{error}"
        );
        assert_eq!(completion(&deltas).text(), "Hello");
    }
    // A promised length that does not come is a broken connection.
    let chunked = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\ndata: {}\n\n";
    assert_eq!(failure(chunked.to_owned()).await.kind, ErrorKind::Truncated);
    // Without the last empty line a finished reply is finished.
    let mut bytes = stream(&[TEXT, STOP]);
    bytes.truncate(bytes.trim_end().len());
    let server = serve(vec![Play::Close(bytes)]).await;
    let (_, end) = run(&*model(Dialect::OpenAiChat, &server.address), ask()).await;
    assert_eq!(end, Ok(()));
}

// G-12, G-13, G-14
#[tokio::test]
async fn statuses_become_errors_that_say_what_to_do() {
    let key = r#"{"error":{"message":"Incorrect API key provided: key-of-the-test","code":"invalid_api_key"}}"#;
    let error = failure(answer("401 Unauthorized", "", key)).await;
    assert_eq!(
        (error.kind, error.status, error.retryable),
        (ErrorKind::Auth, Some(401), false)
    );
    assert!(
        !error.message.contains("key-of-the-test") && error.message.contains("check the key"),
        "{error}"
    );

    let slow = r#"{"error":{"message":"slow down"}}"#;
    let error = failure(answer("429 Too Many Requests", "retry-after: 7\r\n", slow)).await;
    assert_eq!(
        (error.kind, error.retry_after),
        (ErrorKind::Overloaded, Some(Duration::from_secs(7)))
    );
    assert!(error.retryable && error.message.contains("slow down"));

    let dates =
        "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:49:40 GMT\r\n";
    let error = failure(answer("503 Service Unavailable", dates, "")).await;
    assert_eq!(
        (error.kind, error.retry_after),
        (ErrorKind::Overloaded, Some(Duration::from_secs(3)))
    );
    let error = failure(answer(
        "429 Too Many Requests",
        "retry-after: 2abc\r\n",
        slow,
    ))
    .await;
    assert_eq!(error.retry_after, None);

    let none =
        r#"{"error":{"message":"The model `some/model` does not exist","code":"model_not_found"}}"#;
    let error = failure(answer("404 Not Found", "", none)).await;
    assert_eq!(error.kind, ErrorKind::ModelUnknown);
    assert!(
        error.message.contains("does not exist") && error.message.contains("/v1"),
        "{error}"
    );

    let error = failure(answer(
        "307 Temporary Redirect",
        "location: http://127.0.0.1:1/\r\n",
        "",
    ))
    .await;
    assert!(
        error.kind == ErrorKind::Refused && error.message.contains("redirect"),
        "{error}"
    );

    let error = failure(answer(
        "500 Internal Server Error",
        "",
        &"x".repeat(200_000),
    ))
    .await;
    assert!(error.retryable && error.message.len() < 1000);
}

// G-12, G-14
#[tokio::test]
async fn answers_that_are_no_stream_are_explained() {
    let error = failure(answer(
        "200 OK",
        "content-type: text/html\r\n",
        "<html>Welcome</html>",
    ))
    .await;
    assert_eq!(error.kind, ErrorKind::Malformed);
    assert!(
        error.message.contains("a web page") && error.message.contains("/v1"),
        "{error}"
    );
    let body = r#"{"error":{"message":"maximum context length is 10 tokens"}}"#;
    let error = failure(answer(
        "200 OK",
        "content-type: application/json; charset=utf-8\r\n",
        body,
    ))
    .await;
    assert_eq!(error.kind, ErrorKind::ContextOverflow);
    let error = failure(stream(&[
        r#"{"error":{"message":"bad key-of-the-test field","code":400}}"#,
    ]))
    .await;
    assert_eq!(
        (error.kind, &*error.message),
        (ErrorKind::Refused, "bad *** field")
    );
}

#[tokio::test]
async fn a_refused_connection_says_what_to_check() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let (_, end) = run(&*model(Dialect::OpenAiChat, &base), ask()).await;
    let error = end.unwrap_err();
    assert_eq!(
        (error.kind, error.retryable),
        (ErrorKind::Unreachable, true)
    );
    assert!(
        error.message.contains(&base)
            && error.message.contains("refused")
            && error.message.contains("check"),
        "{error}"
    );
}

// G-04: an interrupt drops the stream.
#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let server = serve(vec![Play::Hold(stream(&[TEXT]))]).await;
    let model = model(Dialect::OpenAiChat, &server.address);
    let mut stream = model.start(ask());
    let mut out = Deltas::new();
    while out.is_empty() {
        assert_eq!(stream.next(&mut out).await, StreamStep::Bytes);
    }
    drop(stream);
    server.seen.await.unwrap();
    // Also while the answer's head has not come yet, and with a wait that was given up before.
    let server = serve(vec![Play::Hold(String::new())]).await;
    let model = self::model(Dialect::OpenAiChat, &server.address);
    let mut stream = model.start(ask());
    tokio::select! {
        step = stream.next(&mut out) => panic!("nothing was sent, but {step:?} came"),
        () = server.asked.notified() => {}
    }
    drop(stream);
    server.seen.await.unwrap();
}

// G-11
#[tokio::test]
async fn an_adapted_tool_is_named_once_the_answer_begins() {
    let server = serve(vec![Play::Hold(stream(&[TEXT, STOP, "[DONE]"]))]).await;
    let schema = r#"{"type":"object","properties":{"p":{"type":"string"}},"required":["p"],"anyOf":[{"required":["a"]}]}"#;
    let spec = ToolSpec {
        name: "odd".into(),
        description: "d".into(),
        input_schema: Json::parse(schema).unwrap(),
    };
    let mut request = ask();
    request.tools = Arc::new(ToolSet::new(vec![spec]));
    let (deltas, _) = run(&*model(Dialect::OpenAiChat, &server.address), request).await;
    assert!(
        matches!(&deltas[0], Delta::Notice(text) if text.contains("odd")),
        "{deltas:?}"
    );
    let body = &server.seen.await.unwrap()[0].body;
    let parameters = &body["tools"][0]["function"]["parameters"];
    assert_eq!(
        *parameters,
        json!({"type": "object", "properties": {"p": {"type": "string"}}, "required": ["p"]})
    );
}

#[tokio::test]
async fn echo_answers_with_what_was_said() {
    let echo = Providers::new(|_| None, Vec::new())
        .resolve("echo/x")
        .unwrap();
    let messages = vec![
        user("first"),
        Message::Assistant(vec![Part::text("a")]),
        user("say this back"),
    ];
    let (deltas, end) = run(&*echo, request(messages)).await;
    let done = completion(&deltas);
    assert_eq!((end, done.text()), (Ok(()), "say this back".to_owned()));
    assert!(deltas.len() > 3);
    assert_eq!((done.usage.input, done.usage.output), (Some(5), Some(4)));
}

#[test]
fn names_that_do_not_resolve_say_what_to_do() {
    let providers = Providers::new(|_| None, Vec::new());
    let fault = |name: &str| providers.resolve(name).err().unwrap();
    for (name, variable) in [
        ("openai/gpt", "OPENAI_API_KEY"),
        ("anthropic/claude", "ANTHROPIC_API_KEY"),
    ] {
        let missing = fault(name);
        assert!(matches!(missing, ResolveError::MissingKey { .. }));
        assert!(
            missing.to_string().contains(&format!("set {variable}")),
            "{missing}"
        );
    }
    let unknown = fault("opnai/gpt").to_string();
    assert!(
        unknown.contains(
            "anthropic, azure, echo, gemini, llama.cpp, ollama, openai, openrouter, scripted, vllm"
        ),
        "{unknown}"
    );
    for name in ["gpt", "/x", "x/", ""] {
        assert!(
            matches!(fault(name), ResolveError::NotAModel { .. }),
            "{name}"
        );
    }
    let bad = Providers::new(
        |_| None,
        vec![config(Dialect::OpenAiChat, "localhost:8080/v1")],
    );
    assert!(matches!(
        bad.resolve("stub/x").err(),
        Some(ResolveError::BadBaseUrl { .. })
    ));
    let printed = format!(
        "{:?} {}",
        config(Dialect::Anthropic, ""),
        Secret::new("key-of-the-test")
    );
    assert!(
        !printed.contains("of-the-test") && printed.contains("x-extra"),
        "{printed}"
    );
}

#[test]
fn the_environment_sets_addresses_and_keys() {
    for (name, variables) in [
        ("openai/m", &[("OPENAI_API_KEY", "k")][..]),
        ("openai/m", &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")]),
        (
            "anthropic/m",
            &[
                ("ANTHROPIC_BASE_URL", "http://localhost:9"),
                ("ANTHROPIC_API_KEY", ""),
            ],
        ),
        ("ollama/m", &[]),
        ("ollama/m", &[("OLLAMA_HOST", "0.0.0.0")]),
        ("openrouter/a/b", &[("OPENROUTER_API_KEY", "k")]),
    ] {
        let lookup = |wanted: &str| {
            variables
                .iter()
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| (*value).to_owned())
        };
        assert!(
            Providers::new(lookup, Vec::new()).resolve(name).is_ok(),
            "{name}"
        );
    }
    let remote =
        |name: &str| (name == "OPENAI_BASE_URL").then(|| "https://models.example/v1".to_owned());
    let fault = Providers::new(remote, Vec::new()).resolve("openai/m").err();
    assert!(matches!(fault, Some(ResolveError::MissingKey { .. })));
}
