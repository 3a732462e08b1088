//! One connection to the listener that speaks the attach protocol over a WebSocket: as much of that as the benchmarks need,
//! which is short text messages, one at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::failure::Failure;

/// See the module.
pub(super) struct Socket {
    out: TcpStream,
    input: BufReader<TcpStream>,
}

fn broken(source: std::io::Error) -> Failure {
    Failure::Start {
        program: "a connection to the daemon's listener".to_owned(),
        source,
    }
}

fn odd(why: impl Into<String>) -> Failure {
    Failure::Answer {
        program: "the daemon's listener".to_owned(),
        why: why.into(),
    }
}

/// The first byte of a whole text message, and the bit of a masked one in the second.
const TEXT: u8 = 0x81;
const MASKED: u8 = 0x80;

/// From here on a length has two bytes of its own.
const LONG: usize = 126;

impl Socket {
    /// Connects with a token, and greets.
    pub(super) fn new(address: &str, secret: &str) -> Result<Self, Failure> {
        let out = TcpStream::connect(address).map_err(broken)?;
        out.set_nodelay(true).map_err(broken)?;
        let input = BufReader::new(out.try_clone().map_err(broken)?);
        let mut socket = Self { out, input };
        let head = format!(
            "GET /attach HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {secret}\r\n\
             connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        socket.out.write_all(head.as_bytes()).map_err(broken)?;
        let mut line = String::new();
        socket.input.read_line(&mut line).map_err(broken)?;
        if !line.contains(" 101 ") {
            return Err(odd(line));
        }
        while line.trim_end() != "" {
            line.clear();
            socket.input.read_line(&mut line).map_err(broken)?;
        }
        let hello = json!({ "type": "hello", "version": 1, "features": [], "program": "bench" });
        socket.ask(&hello)?;
        Ok(socket)
    }

    /// Says a frame, and gives the one that answers it.
    pub(super) fn ask(&mut self, frame: &Value) -> Result<Value, Failure> {
        let text = frame.to_string();
        let length = u16::try_from(text.len()).map_err(|_long| odd("a frame is too long"))?;
        let mut bytes = vec![TEXT];
        if text.len() < LONG {
            bytes.push(MASKED | length.to_be_bytes()[1]);
        } else {
            bytes.push(MASKED | 126);
            bytes.extend(length.to_be_bytes());
        }
        // A mask of zeros changes nothing.
        bytes.extend([0; 4]);
        bytes.extend(text.as_bytes());
        self.out.write_all(&bytes).map_err(broken)?;
        let mut head = [0; 2];
        self.input.read_exact(&mut head).map_err(broken)?;
        let mut length = usize::from(head[1]);
        if length == LONG {
            let mut long = [0; 2];
            self.input.read_exact(&mut long).map_err(broken)?;
            length = usize::from(u16::from_be_bytes(long));
        }
        if head[0] != TEXT || length > usize::from(u16::MAX) {
            return Err(odd(format!("a message that begins with {head:?}")));
        }
        let mut text = vec![0; length];
        self.input.read_exact(&mut text).map_err(broken)?;
        serde_json::from_slice(&text).map_err(|fault| odd(fault.to_string()))
    }
}
