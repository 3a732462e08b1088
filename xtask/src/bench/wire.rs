//! One connection that speaks the attach protocol: frames as lines of JSON, a command and its answer at a time. It knows
//! no more of the frames than the benchmarks need.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::house::Daemon;
use crate::failure::Failure;

/// See the module.
pub(super) struct Wire {
    out: UnixStream,
    input: BufReader<UnixStream>,
    commands: u64,
    line: String,
}

fn broken(source: std::io::Error) -> Failure {
    Failure::Start {
        program: "a connection to the daemon".to_owned(),
        source,
    }
}

impl Wire {
    /// Connects and greets.
    pub(super) fn new(daemon: &Daemon) -> Result<Self, Failure> {
        Self::over(daemon.connect().map_err(broken)?)
    }

    /// Greets over a socket.
    pub(super) fn over(socket: UnixStream) -> Result<Self, Failure> {
        let out = socket.try_clone().map_err(broken)?;
        let mut wire = Self {
            out,
            input: BufReader::new(socket),
            commands: 0,
            line: String::new(),
        };
        wire.say(&json!({ "type": "hello", "version": 1, "features": [], "program": "bench" }))?;
        wire.hear()?;
        Ok(wire)
    }

    fn say(&mut self, frame: &Value) -> Result<(), Failure> {
        writeln!(self.out, "{frame}").map_err(broken)
    }

    /// The next frame.
    pub(super) fn hear(&mut self) -> Result<Value, Failure> {
        self.line.clear();
        self.input.read_line(&mut self.line).map_err(broken)?;
        serde_json::from_str(&self.line).map_err(|fault| Failure::Answer {
            program: "the daemon".to_owned(),
            why: format!("{fault}: {}", self.line),
        })
    }

    /// Bytes of the frame that was heard last.
    pub(super) fn read(&self) -> usize {
        self.line.len()
    }

    /// The next frame that is a snapshot.
    pub(super) fn hear_snapshot(&mut self) -> Result<Value, Failure> {
        loop {
            let frame = self.hear()?;
            if frame["type"] == "snapshot" {
                return Ok(frame);
            }
        }
    }

    /// Carries a command out; the body of its answer.
    pub(super) fn ask(&mut self, body: &Value) -> Result<Value, Failure> {
        self.commands += 1;
        let id = uuid(self.commands);
        self.say(&json!({ "type": "command", "command-id": id, "body": body }))?;
        loop {
            let frame = self.hear()?;
            if frame["command-id"] != json!(id) {
                continue;
            }
            if frame["type"] == "answer" {
                return Ok(frame["body"].clone());
            }
            return Err(Failure::Answer {
                program: "the daemon".to_owned(),
                why: frame.to_string(),
            });
        }
    }

    /// Creates a session that goes on by itself; its id.
    pub(super) fn create(
        &mut self,
        model: &str,
        work: &Path,
        text: &str,
    ) -> Result<String, Failure> {
        let id = uuid(self.commands);
        self.ask(&json!({
            "kind": "create-session", "session-id": id, "agent": null, "model": model,
            "parameters": {}, "working-directory": work, "name": null, "first-message": text,
            "environment": {}, "detached": true,
        }))?;
        Ok(id)
    }

    /// Attaches to a session; the frames that follow its snapshot, with what else comes over this connection.
    pub(super) fn attach(
        mut self,
        session: &str,
    ) -> Result<impl BufRead + Send + 'static, Failure> {
        self.ask(&json!({ "kind": "attach", "session-id": session }))?;
        self.hear()?;
        Ok(self.input)
    }

    /// Waits until a session has settled.
    pub(super) fn settled(&mut self, session: &str) -> Result<(), Failure> {
        self.ask(&json!({
            "kind": "wait", "session-id": session, "reach": "itself", "timeout-seconds": 60,
        }))
        .map(|_| ())
    }
}

/// A UUIDv7 of now; `number` keeps those of one program apart.
fn uuid(number: u64) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "ids of the benchmarks hold the time, as ids of viewers do"
    )]
    let now = SystemTime::now();
    let millis = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |time| time.as_millis());
    let own = u64::from(std::process::id());
    format!(
        "{:08x}-{:04x}-7{:03x}-8{:03x}-{:012x}",
        (millis >> 16) & 0xffff_ffff,
        millis & 0xffff,
        own & 0xfff,
        (own >> 12) & 0xfff,
        number & 0xffff_ffff_ffff,
    )
}
