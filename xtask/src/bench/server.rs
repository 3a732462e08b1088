//! A model server on loopback: enough HTTP for one client, a thread a connection. What it says is decided elsewhere, by
//! the text of the request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use super::replies;
use crate::failure::Failure;

/// A server of the replies of `replies`, each piece of which is written by itself.
pub(super) fn start() -> Result<String, Failure> {
    start_with(|request, reply| {
        let mut pieces = replies::to(request);
        let last = pieces.pop().unwrap_or_default();
        pieces.iter().try_for_each(|piece| reply.write(piece))?;
        reply.end(&last)
    })
}

/// A server that serves until this program ends; its address, as providers are given it. Each request is answered by what
/// `say` writes, which is given its body and ends the answer.
pub(super) fn start_with(
    say: impl Fn(&str, &mut Reply<'_>) -> std::io::Result<()> + Send + Sync + 'static,
) -> Result<String, Failure> {
    let say = Arc::new(say);
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| {
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    });
    let (listener, port) = bound.map_err(|source| Failure::Start {
        program: "a server on loopback".to_owned(),
        source,
    })?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let say = Arc::clone(&say);
            std::thread::spawn(move || {
                // A client that goes away ends its thread, whatever was being said.
                let _served = serve(stream, &*say);
            });
        }
    });
    Ok(format!("http://127.0.0.1:{port}/v1"))
}

/// An answer that is on its way.
pub(super) struct Reply<'a> {
    out: &'a mut TcpStream,
    bytes: Vec<u8>,
}

impl Reply<'_> {
    /// Writes a piece of an event stream.
    pub(super) fn write(&mut self, piece: &str) -> std::io::Result<()> {
        write!(self.bytes, "{:x}\r\n{piece}\r\n", piece.len())?;
        self.out.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    /// Writes the last piece and the end at once, so that whoever reads it whole may keep the connection.
    pub(super) fn end(&mut self, piece: &str) -> std::io::Result<()> {
        write!(self.bytes, "{:x}\r\n{piece}\r\n0\r\n\r\n", piece.len())?;
        self.out.write_all(&self.bytes)
    }
}

fn serve(
    stream: TcpStream,
    say: &impl Fn(&str, &mut Reply<'_>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    let mut body = Vec::new();
    loop {
        let mut length = 0;
        loop {
            line.clear();
            if input.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        body.resize(length, 0);
        input.read_exact(&mut body)?;
        // The head leaves with the first piece.
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                      transfer-encoding: chunked\r\n\r\n"
            .to_vec();
        let mut reply = Reply {
            out: &mut out,
            bytes,
        };
        say(&String::from_utf8_lossy(&body), &mut reply)?;
    }
}
