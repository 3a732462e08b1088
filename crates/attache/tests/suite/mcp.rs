//! The MCP door of the true program: standard input and output of another agent, and HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::Since;
use crate::house::{House, ended, until};

const SCRIPT: &str = "rules:\n  - reply:\n      - text: what the child found\n";

/// A client over standard input and output.
struct Client {
    child: Child,
    input: ChildStdin,
    lines: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    fn start(house: &House, more: &[&str]) -> Self {
        let mut line = vec!["mcp"];
        line.extend(more);
        let mut child = house.command(&line).stdin(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self {
            child,
            input,
            lines,
            next: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "walker", "version": "1" },
        });
        let greeted = client.ask("initialize", &hello);
        assert_eq!(greeted["serverInfo"]["name"], "attache");
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// Asks, and gives the result. Every line that comes is a message of the protocol.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "it goes on");
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0");
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask("tools/call", &params)["structuredContent"].clone()
    }

    /// The agent closes its end.
    fn leave(self) -> crate::house::Ended {
        let Self {
            child,
            input,
            mut lines,
            next: _,
        } = self;
        drop(input);
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        ended(child.wait_with_output().unwrap())
    }
}

/// Creates a sub-agent, waits for it, and gives its root and its id.
fn delegate(client: &mut Client) -> (String, String) {
    let made = client.call(
        "agent_session_create",
        &json!({ "initial_message": "look" }),
    );
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    let (root, session) = (text("root_session_id"), text("session_id"));
    let wait = json!({ "session_id": session, "wait_for_idle": true });
    let waited = client.call("agent_session_wait", &wait);
    assert_eq!(waited["result_preview"], "what the child found", "{waited}");
    (root, session)
}

#[test]
fn an_agent_delegates_goes_and_comes_back() {
    let house = House::new();
    let script = house.file("script.yaml", SCRIPT);
    // A path of the client's own folder.
    let mut client = Client::start(&house, &["--model", "scripted/script.yaml"]);
    let (root, session) = delegate(&mut client);
    client.call(
        "agent_session_on_complete",
        &json!({ "session_id": session }),
    );
    // It is cut off, as by a crash of the agent.
    client.child.kill().unwrap();
    client.child.wait().unwrap();

    let model = format!("scripted/{}", script.display());
    let mut client = Client::start(
        &house,
        &["--root", &root[root.len() - 8..], "--model", &model],
    );
    let listed = client.call("agent_session_list", &json!({}));
    assert_eq!(listed["root_session_id"], root.as_str());
    assert_eq!(listed["sessions"][0]["session_id"], session.as_str());
    assert_eq!(listed["notices"][0]["session_id"], session.as_str());
    let left = client.leave();
    assert_eq!((left.code, left.err.as_str()), (0, ""), "{left:?}");

    // After a restart of the daemon everything reads stopped, and the client goes on all the same.
    house.run(&["restart"]).well();
    let mut client = Client::start(&house, &["--model", &model]);
    let named = json!({ "root_session_id": root });
    let listed = client.call("agent_session_list", &named);
    assert_eq!(listed["sessions"][0]["status"], "stopped");
    assert_eq!(listed["notices"][0]["outcome"], "succeeded");
    let acquire = json!({ "session_id": session });
    assert_eq!(
        client.call("agent_session_acquire", &acquire)["status"],
        "idle"
    );
    // People see the root, and have no way to write into it.
    let row = house.run(&["show", &root, "--json"]).well().json();
    assert_eq!(
        (&row["status"], &row["name"]),
        (&json!("idle"), &json!("walker (mcp)"))
    );
    let refused = house.run(&["send", &root, "hello"]);
    assert!(refused.err.contains("takes no input"), "{refused:?}");
}

#[test]
fn without_a_model_the_server_answers_and_says_what_is_missing() {
    let house = House::new();
    let mut client = Client::start(&house, &[]);
    let tools = client.ask("tools/list", &json!({}));
    assert_eq!(tools["tools"].as_array().unwrap().len(), 9);
    let refused = client.call("agent_session_create", &json!({}));
    assert_eq!(refused["error"]["code"], "model-unknown");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("ATTACHE_MODEL"), "{message}");
    // Once the settings name one, the same client is served.
    let script = house.file("script.yaml", SCRIPT);
    std::fs::create_dir_all(house.config()).unwrap();
    let settings = format!("model = \"scripted/{}\"\n", script.display());
    std::fs::write(house.config().join("config.toml"), settings).unwrap();
    delegate(&mut client);
}

#[test]
fn what_it_is_started_with_is_checked_before_the_protocol_begins() {
    let house = House::new();
    let usual = house
        .run(&["run", "--detach", "--model", "echo/any", "x"])
        .well()
        .out;
    for (line, code, says) in [
        (vec!["mcp", "--agent", "nobody"], 3, "nobody"),
        (
            vec!["mcp", "--root", "nothing-here"],
            3,
            "there is no session",
        ),
        // A session that runs turns stands for no client.
        (
            vec!["mcp", "--root", usual.trim()],
            3,
            "there is no session",
        ),
        (vec!["mcp", "--json"], 2, "protocol"),
        (vec!["mcp", "more"], 2, "more"),
    ] {
        let refused = house.run(&line);
        assert_eq!(refused.code, code, "{line:?}: {refused:?}");
        assert!(refused.err.contains(says), "{line:?}: {refused:?}");
        assert_eq!(refused.out, "", "{line:?}");
    }
}

#[test]
fn an_open_client_keeps_the_daemon() {
    let house = House::new().with("ATTACHE_DAEMON__IDLE_SECONDS", "1");
    let mut client = Client::start(&house, &[]);
    let daemon = house.daemon().unwrap();
    // Longer than a daemon stays that nobody needs.
    let since = Since::now();
    until("it has been idle", || {
        since.passed() > Duration::from_secs(3)
    });
    client.call("agent_session_list", &json!({}));
    assert_eq!(house.daemon(), Some(daemon), "it is the same one");
    client.leave();
    until("the daemon leaves", || crate::house::gone(daemon));
}

/// A daemon in the foreground that listens, and where.
pub(crate) struct Listening {
    daemon: Child,
    pub(crate) address: String,
}

impl Listening {
    pub(crate) fn start(house: &House, more: &[&str]) -> Self {
        Self::at(house, "127.0.0.1:0", more)
    }

    pub(crate) fn at(house: &House, address: &str, more: &[&str]) -> Self {
        let mut line = vec!["serve", "--listen", address];
        line.extend(more);
        let mut daemon = house.spawn(&line);
        let mut lines = BufReader::new(daemon.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let address = line.split("://").nth(1).unwrap();
        let address = address.split('/').next().unwrap().to_owned();
        Self { daemon, address }
    }

    /// Kills it: nothing is told to anybody.
    pub(crate) fn kill(mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
    }

    /// Sends a message, and gives the status and the body of the answer.
    fn post(&self, token: &str, host: &str, body: &Value) -> (u16, String) {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // One that was killed has ended already.
        if self.daemon.try_wait().unwrap().is_none() {
            crate::house::signal(self.daemon.id(), "TERM");
            self.daemon.wait().unwrap();
        }
    }
}

#[test]
fn the_daemon_listens_for_those_who_bring_the_token() {
    let house = House::new();
    let served = Listening::start(&house, &[]);
    let file = house.state().join("mcp-token");
    let token = std::fs::read_to_string(&file).unwrap();
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = token.trim();
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "walker", "version": "1" },
        },
    });
    let host = &served.address;
    let (status, answer) = served.post(token, host, &hello);
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("\"name\":\"attache\""), "{answer}");
    assert_eq!(served.post("x", host, &hello).0, 401);
    assert_eq!(served.post(token, "evil.example", &hello).0, 403);
    drop(served);
    // The next life has the same token.
    let served = Listening::start(&house, &["--store", "memory:"]);
    assert_eq!(served.post(token, "localhost", &hello).0, 200);
}

#[test]
fn sessions_in_memory_need_no_state_folder_but_the_token_does() {
    let house = House::new();
    std::fs::remove_dir(house.state()).unwrap();
    let _served = Listening::start(&house, &["--store", "memory:"]);
    assert!(house.state().join("mcp-token").exists());
    let mode = house.state().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn addresses_that_others_can_reach_are_refused() {
    let house = House::new();
    for address in [
        "0.0.0.0:7433",
        "[::]:7433",
        "192.0.2.1:7433",
        "nowhere",
        "127.0.0.1",
        ":1",
    ] {
        let refused = house.run(&["serve", "--listen", address]);
        assert_eq!(refused.code, 2, "{address}: {refused:?}");
        assert_eq!(refused.out, "");
    }
    assert!(!house.state().join("mcp-token").exists());
}
