//! A host in memory whose model says one thing slowly, and connections to it: lines, or a WebSocket.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use attache_engine::parts::Toolsets;
use attache_host::{Channel, Host, HostConfig, Storage};
use attache_protocol::{
    Answer, Command, FromHost, FromViewer, NewSession, QueueRef, Snapshot, VERSION,
};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Definitions that sessions of these tests are of.
const DEFINITIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/definitions");

/// What the model says to everything, and how slowly: 40 pieces, one each hundredth of a second.
const SCRIPT: &str = r#"
rules:
  - when: {user: '^think for ever'}
    reply:
      - text: "hm"
      - silence: true
  - when: {user: '^delegate', step: 0}
    reply:
      - call: agent_session_create
        arguments: {initial_message: "child: work for ten seconds"}
  - when: {user: '^delegate and watch', step: 1}
    capture:
      child: {tool: agent_session_create, pointer: /session_id}
    reply:
      - call: agent_session_on_complete
        arguments: {session_id: "${child}"}
  - when: {user: '^delegate'}
    reply:
      - text: "somebody else does it"
  - when: {user: '^ask', step: 0}
    reply:
      - call: ask_user
        arguments: {question: "Which one?", choices: ["this", "that"]}
  - when: {user: '^ask', step: 1}
    capture:
      result: {tool: ask_user, pointer: ""}
    reply:
      - text: "heard ${result}"
  - when: {user: '^fill in', step: 0}
    reply:
      - call: ask_user
        arguments: {question: "How many?", schema: {type: object, required: [count], properties: {count: {type: integer, minimum: 1}}}}
  - when: {user: '^fill in', step: 1}
    capture:
      result: {tool: ask_user, pointer: ""}
    reply:
      - text: "heard ${result}"
  - when: {user: '^relay', step: 0}
    reply:
      - call: agent_session_create
        arguments: {initial_message: "ask it", name: "asker"}
  - when: {user: '^deep', step: 0}
    reply:
      - call: agent_session_create
        arguments: {initial_message: "relay it", name: "middle"}
  - when: {user: '^(relay|deep)'}
    reply:
      - text: "somebody below asks"
  - when: {user: '^wait', step: 0}
    reply:
      - call: agent_session_create
        arguments: {initial_message: "ask it", name: "asker"}
  - when: {user: '^wait', step: 1}
    capture:
      child: {tool: agent_session_create, pointer: /session_id}
    reply:
      - call: agent_session_wait
        arguments: {session_id: "${child}", wait_for_idle: true, timeout_seconds: 300}
  - when: {user: '^wait', step: 2}
    capture:
      why: {tool: agent_session_wait, pointer: /ended_by}
      child: {tool: agent_session_create, pointer: /session_id}
    reply:
      - text: "first ${why}"
      - call: agent_session_wait
        arguments: {session_id: "${child}", wait_for_idle: true, timeout_seconds: 300}
  - when: {user: '^wait', step: 3}
    capture:
      why: {tool: agent_session_wait, pointer: /ended_by}
    reply:
      - text: "then ${why}"
  - when: {user: '^strict', step: 0}
    reply:
      - call: agent_session_create
        arguments: {initial_message: "ask it", definition: {name: strict, instructions: "x", tools: [ask], limits: {questions: deny}}}
  - when: {user: '^strict', step: 1}
    reply:
      - call: agent_session_create
        arguments: {initial_message: "ask it", definition: {name: modest, instructions: "x", tools: [ask], limits: {questions: ask-parent}}}
  - when: {user: 'asks you'}
    reply:
      - text: "I was asked"
  - when: {user: '^strict'}
    reply:
      - text: "they ask"
  - when: {user: '^two at once', step: 0}
    reply:
      - call: ask_kind
        arguments: {kind: permission, text: "first"}
      - call: ask_kind
        arguments: {kind: permission, text: "second"}
  - when: {user: '^kind permission', step: 0}
    reply:
      - call: ask_kind
        arguments: {kind: permission, text: "May I?", body: "the body"}
  - when: {user: '^kind plan', step: 0}
    reply:
      - call: ask_kind
        arguments: {kind: plan, text: "Like this?", body: "the body", choices: [slowly, fast]}
  - when: {user: '^kind sign-in', step: 0}
    reply:
      - call: ask_kind
        arguments: {kind: sign-in, text: "Sign in, please", body: "the body"}
  - when: {user: '^(kind|two)', step: 1}
    capture:
      result: {tool: ask_kind, pointer: ""}
    reply:
      - text: "heard ${result}"
  - when: {user: '^child'}
    reply:
      - delay_ms: 10000
      - text: "done"
  - when: {user: 'has settled'}
    reply:
      - delay_ms: 5000
      - text: "read"
  - when: {user: '^bear', step: 0}
    reply:
      - call: agent_session_create
        arguments: {name: "child"}
  - when: {user: '^bear', step: 1}
    reply:
      - text: "done"
  - when: {user: '^adopt (?<id>\S+)', step: 0}
    reply:
      - call: agent_session_acquire
        arguments: {session_id: "${id}"}
  - when: {user: '^adopt', step: 1}
    reply:
      - text: "done"
  - when: {user: '^long'}
    reply:
      - text: "${long}"
        piece: 4000
        every_ms: 1
    capture:
      long: {from: user}
  - reply:
      - text: "What you say is heard, and it takes a while to say all that there is to say of it, word by word by word. That is all of it, then."
        piece: 4
        every_ms: 10
"#;

pub(crate) async fn host() -> Host {
    let toolsets = attache_tools::built_in().with(Arc::new(attache_testkit::AskKinds));
    host_that_plays(SCRIPT, toolsets).await
}

/// The same with a model of its own, which is `scripted/slow` too, and with tools of its own.
pub(crate) async fn host_that_plays(script: &str, toolsets: Toolsets) -> Host {
    let config = HostConfig {
        storage: Storage::Memory,
        state_folder: PathBuf::from("/nowhere"),
        settings_file: None,
        definitions: Some(PathBuf::from(DEFINITIONS)),
        toolsets,
        scripts: vec![("slow".to_owned(), script.to_owned())],
        environment: attache_host::environment(BTreeMap::new(), &[]),
        identity: attache_host::identity("ada".to_owned(), "engine".to_owned(), None),
        program: "tests".to_owned(),
        doors: attache_host::Doors::new(),
    };
    Host::open(config).await.unwrap()
}

/// A runtime of its own, in which time stands still while there is work.
pub(crate) fn life<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(work)
}

/// How frames get to the host and back.
enum Way {
    Lines {
        out: WriteHalf<DuplexStream>,
        lines: BufReader<ReadHalf<DuplexStream>>,
    },
    Socket(Box<WebSocketStream<Box<dyn Channel>>>),
}
static LINES: AtomicU32 = AtomicU32::new(1);

/// A connection that greets, asks and hears.
pub(crate) struct Line {
    way: Way,
    /// What came while something else was waited for.
    heard: Vec<FromHost>,
    /// Begins its command ids.
    name: u32,
    next: u32,
}

impl Line {
    pub(crate) async fn to(host: &Host) -> Self {
        Self::through(host, 64 * 1024).await
    }

    /// Over a pipe that takes so many bytes before somebody reads them.
    pub(crate) async fn through(host: &Host, pipe: usize) -> Self {
        let (ours, theirs) = tokio::io::duplex(pipe);
        let host = host.clone();
        tokio::spawn(async move { host.serve(theirs).await });
        let (read, out) = tokio::io::split(ours);
        let lines = BufReader::new(read);
        Self::greeted(Way::Lines { out, lines }).await
    }

    /// Over a WebSocket that stands.
    pub(crate) async fn over(socket: WebSocketStream<Box<dyn Channel>>) -> Self {
        Self::greeted(Way::Socket(Box::new(socket))).await
    }

    async fn greeted(way: Way) -> Self {
        let mut line = Self {
            way,
            heard: Vec::new(),
            name: LINES.fetch_add(1, Ordering::Relaxed),
            next: 0,
        };
        line.say(&FromViewer::Hello {
            version: VERSION,
            features: Vec::new(),
            program: "test".to_owned(),
        })
        .await;
        assert!(matches!(line.hear().await, FromHost::Hello { .. }));
        line
    }

    pub(crate) async fn say(&mut self, frame: &FromViewer) {
        self.say_bytes(attache_protocol::encode(frame)).await;
    }

    /// Says bytes as one frame, whatever they are.
    pub(crate) async fn say_bytes(&mut self, mut bytes: Vec<u8>) {
        match &mut self.way {
            Way::Lines { out, .. } => {
                bytes.push(b'\n');
                out.write_all(&bytes).await.unwrap();
            }
            Way::Socket(socket) => {
                let text = String::from_utf8(bytes).unwrap();
                socket.send(Message::text(text)).await.unwrap();
            }
        }
    }

    pub(crate) async fn hear(&mut self) -> FromHost {
        let bytes = self.hear_bytes().await.expect("the host says something");
        attache_protocol::decode(&bytes).unwrap()
    }

    /// The next frame as it came; none when the host has closed.
    pub(crate) async fn hear_bytes(&mut self) -> Option<Vec<u8>> {
        match &mut self.way {
            Way::Lines { lines, .. } => {
                let mut line = Vec::new();
                lines.read_until(b'\n', &mut line).await.unwrap();
                line.pop().map(|_end| line)
            }
            Way::Socket(socket) => loop {
                match socket.next().await {
                    Some(Ok(Message::Text(text))) => return Some(text.as_bytes().to_vec()),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    _closed => return None,
                }
            },
        }
    }

    /// The WebSocket below, for what is no frame.
    pub(crate) fn socket(&mut self) -> &mut WebSocketStream<Box<dyn Channel>> {
        match &mut self.way {
            Way::Socket(socket) => socket,
            Way::Lines { .. } => panic!("this one has lines"),
        }
    }

    /// The same, and nothing else is left.
    pub(crate) fn into_socket(self) -> WebSocketStream<Box<dyn Channel>> {
        match self.way {
            Way::Socket(socket) => *socket,
            Way::Lines { .. } => panic!("this one has lines"),
        }
    }

    /// Asks under an id of its own; what comes meanwhile is kept.
    pub(crate) async fn ask(&mut self, body: Command) -> Result<Answer, String> {
        self.next += 1;
        let id = format!("line {}, {}", self.name, self.next);
        self.ask_as(&id, body).await
    }

    /// The same under a given id. An error is told by its code.
    pub(crate) async fn ask_as(&mut self, id: &str, body: Command) -> Result<Answer, String> {
        self.say(&FromViewer::command(id, body)).await;
        loop {
            match self.hear().await {
                FromHost::Answer { command_id, body } if command_id == id => return Ok(*body),
                FromHost::OperationError {
                    command_id: Some(command_id),
                    error,
                } if command_id == id => {
                    let revision = error.current_revision.map(|it| format!(" {it}"));
                    return Err(error.code + &revision.unwrap_or_default());
                }
                frame => self.heard.push(frame),
            }
        }
    }

    /// The same, and what answers it as it came.
    pub(crate) async fn ask_bytes(&mut self, id: &str, body: Command) -> String {
        self.say(&FromViewer::command(id, body)).await;
        let bytes = self.hear_bytes().await.expect("an answer");
        String::from_utf8(bytes).unwrap()
    }

    /// The next snapshot; what comes before it is kept.
    pub(crate) async fn snapshot(&mut self) -> Snapshot {
        loop {
            match self.hear().await {
                FromHost::Snapshot(snapshot) => return *snapshot,
                frame => self.heard.push(frame),
            }
        }
    }

    /// What comes until nothing has come for a second.
    pub(crate) async fn rest(&mut self) -> Vec<FromHost> {
        let mut heard = std::mem::take(&mut self.heard);
        while let Ok(frame) = tokio::time::timeout(Duration::from_secs(1), self.hear()).await {
            heard.push(frame);
        }
        heard
    }

    /// A session that works by itself.
    pub(crate) async fn create(&mut self, number: u32) -> String {
        self.create_one(number, true).await
    }

    /// A session that goes with this connection.
    pub(crate) async fn create_for_me(&mut self, number: u32) -> String {
        self.create_one(number, false).await
    }

    /// A session of the root that runs a definition in a folder of this host.
    pub(crate) async fn create_with(&mut self, number: u32, agent: &str) -> String {
        self.create_of(number, true, Some(agent), &BTreeMap::new())
            .await
    }

    /// A session whose definition is as long as this.
    pub(crate) async fn create_large(&mut self, number: u32, more: String) -> String {
        let parameters = BTreeMap::from([("more".to_owned(), more)]);
        self.create_of(number, true, Some("large"), &parameters)
            .await
    }

    async fn create_one(&mut self, number: u32, detached: bool) -> String {
        self.create_of(number, detached, None, &BTreeMap::new())
            .await
    }

    async fn create_of(
        &mut self,
        number: u32,
        detached: bool,
        agent: Option<&str>,
        parameters: &BTreeMap<String, String>,
    ) -> String {
        let id = format!("01931f2e-0000-7000-8000-{number:012x}");
        let new = NewSession {
            session_id: id.clone(),
            agent: agent.map(str::to_owned),
            model: Some("scripted/slow".to_owned()),
            parameters: parameters.clone(),
            working_directory: "/".to_owned(),
            name: None,
            first_message: None,
            environment: BTreeMap::new(),
            detached,
            budget: None,
        };
        self.ask(Command::CreateSession(Box::new(new)))
            .await
            .unwrap();
        id
    }
}

/// Input for a session.
pub(crate) fn enqueue(session: &str, queue: QueueRef, text: &str) -> Command {
    Command::Enqueue {
        session_id: session.to_owned(),
        queue,
        text: text.to_owned(),
        start: true,
        environment: BTreeMap::new(),
    }
}
