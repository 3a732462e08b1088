//! A model server on loopback that plays replies in order, by what the request holds: enough HTTP
//! for one client, bytes as the test gives them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::Since;
use crate::house::House;

/// What the server does with a request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// An event stream of these data lines, each flushed by itself.
    Events(Vec<String>),
    /// A status with a body.
    Status(u16, String),
    /// An event stream that begins and then says nothing more.
    Silence(Vec<String>),
    /// A status with more headers and a body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// An event stream of exactly these writes, each flushed by itself, and then what `After` says.
    Writes(Vec<Vec<u8>>, After),
}

/// What the server does behind its last write.
#[derive(Clone)]
pub(crate) enum After {
    /// Closes the connection in good order.
    Close,
    /// Holds it open and says nothing more.
    Hold,
    /// Writes this for ever, with this much time in between.
    Repeat(Vec<u8>, Duration),
    /// Writes this so often, with this much time in between, then that, and closes.
    Slowly(Vec<u8>, Duration, usize, Vec<u8>),
}

type Say = dyn Fn(&Value) -> Reply + Send + Sync;

/// See the module.
pub(crate) struct Stub {
    port: u16,
    requests: Arc<Mutex<Vec<Value>>>,
    times: Arc<Mutex<Vec<Since>>>,
    answering: Arc<AtomicUsize>,
}

impl Stub {
    pub(crate) fn new(say: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let seen = Arc::clone(&requests);
        let times: Arc<Mutex<Vec<Since>>> = Arc::default();
        let came = Arc::clone(&times);
        let answering: Arc<AtomicUsize> = Arc::default();
        let now = Arc::clone(&answering);
        let say: Arc<Say> = Arc::new(say);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (say, seen, now) = (Arc::clone(&say), Arc::clone(&seen), Arc::clone(&now));
                let came = Arc::clone(&came);
                let seen = move |request| {
                    came.lock().unwrap().push(Since::now());
                    seen.lock().unwrap().push(request);
                };
                std::thread::spawn(move || serve(stream, &*say, &seen, &now));
            }
        });
        Self {
            port,
            requests,
            times,
            answering,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// A house whose preset `openai` is this server.
    pub(crate) fn house(&self) -> House {
        House::new()
            .with("OPENAI_API_KEY", "sk-test")
            .with("OPENAI_BASE_URL", &self.url("/v1"))
    }

    /// How many requests are being answered.
    pub(crate) fn answering(&self) -> usize {
        self.answering.load(Ordering::SeqCst)
    }

    /// When each request came.
    pub(crate) fn times(&self) -> Vec<Since> {
        self.times.lock().unwrap().clone()
    }

    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, say: &Say, seen: &dyn Fn(Value), answering: &AtomicUsize) {
    stream.set_nodelay(true).unwrap();
    let mut out = stream.try_clone().unwrap();
    let mut input = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut first = true;
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
            first = false;
        }
        assert!(!first, "a request begins with its line");
        let mut body = vec![0; length];
        input.read_exact(&mut body).unwrap();
        let request: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let reply = say(&request);
        seen(request);
        answering.fetch_add(1, Ordering::SeqCst);
        let played = play(&mut out, reply);
        answering.fetch_sub(1, Ordering::SeqCst);
        if played.is_err() {
            return;
        }
    }
}

fn play(out: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::Status(status, body) => answer(out, status, &[], &body),
        Reply::Answer(status, headers, body) => answer(out, status, &headers, &body),
        Reply::Writes(writes, after) => {
            // Its end is the end of the connection: a close in the middle is nothing that HTTP would notice.
            out.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")?;
            out.write_all(b"connection: close\r\n\r\n")?;
            for bytes in writes {
                out.write_all(&bytes)?;
                out.flush()?;
            }
            follow(out, after)
        }
        Reply::Events(events) => {
            stream(out, events)?;
            out.write_all(b"0\r\n\r\n")?;
            out.flush()
        }
        Reply::Silence(events) => {
            stream(out, events)?;
            // Until the other end closes.
            let mut nothing = [0; 1];
            let _closed = out.read(&mut nothing);
            Err(std::io::ErrorKind::ConnectionAborted.into())
        }
    }
}

fn answer(
    out: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    body: &str,
) -> std::io::Result<()> {
    let length = body.len();
    write!(
        out,
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n"
    )?;
    for (name, value) in headers {
        write!(out, "{name}: {value}\r\n")?;
    }
    write!(out, "content-length: {length}\r\n\r\n{body}")?;
    out.flush()
}

/// Goes on as told, until the other end has closed.
fn follow(out: &mut TcpStream, after: After) -> std::io::Result<()> {
    match after {
        After::Close => {}
        After::Hold => {
            let _closed = out.read(&mut [0; 1]);
        }
        After::Repeat(bytes, between) => repeat(out, &bytes, between, usize::MAX)?,
        After::Slowly(bytes, between, times, last) => {
            repeat(out, &bytes, between, times)?;
            out.write_all(&last)?;
        }
    }
    Err(std::io::ErrorKind::ConnectionAborted.into())
}

fn repeat(
    out: &mut TcpStream,
    bytes: &[u8],
    between: Duration,
    times: usize,
) -> std::io::Result<()> {
    out.set_read_timeout(Some(between))?;
    for _ in 0..times {
        // A read that runs out of time means that the other end is still there.
        match out.read(&mut [0; 1]) {
            Err(fault) if is_late(&fault) => out.write_all(bytes)?,
            _ => return Err(std::io::ErrorKind::ConnectionAborted.into()),
        }
    }
    Ok(())
}

fn is_late(fault: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(fault.kind(), TimedOut | WouldBlock)
}

fn stream(out: &mut TcpStream, events: Vec<String>) -> std::io::Result<()> {
    out.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")?;
    out.write_all(b"transfer-encoding: chunked\r\n\r\n")?;
    for event in events {
        write!(out, "{:x}\r\n{event}\r\n", event.len())?;
        out.flush()?;
    }
    Ok(())
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// A Chat Completions stream of texts.
pub(crate) fn chat_text(pieces: &[&str]) -> Reply {
    let mut events: Vec<String> = pieces
        .iter()
        .map(|text| data(&chunk(&json!({ "content": text }), None)))
        .collect();
    events.push(data(&chunk(&json!({}), Some("stop"))));
    events.push(usage());
    events.push("data: [DONE]\n\n".to_owned());
    Reply::Events(events)
}

/// A Chat Completions stream of calls.
pub(crate) fn chat_calls(calls: &[(&str, Value)]) -> Reply {
    let mut events: Vec<String> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            let call = json!({
                "index": index, "id": format!("call_{index}"), "type": "function",
                "function": { "name": name, "arguments": arguments.to_string() },
            });
            data(&chunk(&json!({ "tool_calls": [call] }), None))
        })
        .collect();
    events.push(data(&chunk(&json!({}), Some("tool_calls"))));
    events.push(usage());
    events.push("data: [DONE]\n\n".to_owned());
    Reply::Events(events)
}

/// The beginning of a Chat Completions stream.
pub(crate) fn chat_piece(text: &str) -> String {
    data(&chunk(&json!({ "content": text }), None))
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

fn usage() -> String {
    let usage = json!({
        "prompt_tokens": 30, "completion_tokens": 7,
        "prompt_tokens_details": { "cached_tokens": 10 },
    });
    data(&json!({ "choices": [], "usage": usage }))
}

/// Whether the newest message of a Chat Completions request is a tool's result.
pub(crate) fn after_tools(request: &Value) -> bool {
    request["messages"]
        .as_array()
        .and_then(|all| all.last())
        .is_some_and(|m| m["role"] == "tool")
}

/// The text of the last user message of a Chat Completions request.
pub(crate) fn last_user(request: &Value) -> String {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let last = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "user");
    last.map(|message| message["content"].to_string())
        .unwrap_or_default()
}

/// Each call is answered exactly once, right behind its message.
pub(crate) fn well_formed(request: &Value) {
    let messages = request["messages"].as_array().unwrap();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message["role"].as_str().unwrap() {
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap();
                assert_eq!(open.first().map(String::as_str), Some(id), "{request}");
                open.remove(0);
            }
            _ => assert!(open.is_empty(), "a call without its result: {request}"),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().unwrap().to_owned());
        }
    }
    assert!(open.is_empty(), "{request}");
}

/// The first id that stands behind `session_id` in a text.
pub(crate) fn session_named(text: &str) -> Option<String> {
    let (_, behind) = text.split_once("session_id")?;
    let id = behind.chars().skip_while(|c| !c.is_ascii_digit());
    Some(
        id.take_while(|c| c.is_ascii_hexdigit() || *c == '-')
            .collect(),
    )
}

/// An Anthropic stream of one text.
pub(crate) fn anthropic_text(text: &str) -> Reply {
    let start = json!({ "type": "message_start", "message": {
        "id": "m", "type": "message", "role": "assistant", "model": "x", "content": [],
        "usage": { "input_tokens": 12, "output_tokens": 1 } } });
    let block = json!({ "type": "content_block_start", "index": 0,
        "content_block": { "type": "text", "text": "" } });
    let delta = json!({ "type": "content_block_delta", "index": 0,
        "delta": { "type": "text_delta", "text": text } });
    anthropic(&[start, block, delta], "end_turn")
}

/// An Anthropic stream of one call.
pub(crate) fn anthropic_call(name: &str, arguments: &Value) -> Reply {
    let start = json!({ "type": "message_start", "message": {
        "id": "m", "type": "message", "role": "assistant", "model": "x", "content": [],
        "usage": { "input_tokens": 12, "output_tokens": 1 } } });
    let block = json!({ "type": "content_block_start", "index": 0,
        "content_block": { "type": "tool_use", "id": "toolu_1", "name": name, "input": {} } });
    let delta = json!({ "type": "content_block_delta", "index": 0,
        "delta": { "type": "input_json_delta", "partial_json": arguments.to_string() } });
    anthropic(&[start, block, delta], "tool_use")
}

fn anthropic(events: &[Value], stop: &str) -> Reply {
    let end = [
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop },
            "usage": { "output_tokens": 9 } }),
        json!({ "type": "message_stop" }),
    ];
    let event = |value: &Value| {
        format!(
            "event: {}\ndata: {value}\n\n",
            value["type"].as_str().unwrap()
        )
    };
    Reply::Events(events.iter().chain(&end).map(event).collect())
}
