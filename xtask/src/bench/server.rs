//! A model server on loopback: enough HTTP for one client, a thread a connection. What it says is decided elsewhere, by
//! the text of the request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use super::replies;
use crate::failure::Failure;

/// A server that serves until this program ends; its address, as providers are given it.
pub(super) fn start() -> Result<String, Failure> {
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
            std::thread::spawn(move || {
                // A client that goes away ends its thread, whatever was being said.
                let _served = serve(stream);
            });
        }
    });
    Ok(format!("http://127.0.0.1:{port}/v1"))
}

fn serve(stream: TcpStream) -> std::io::Result<()> {
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
        let pieces = replies::to(&String::from_utf8_lossy(&body));
        let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                          transfer-encoding: chunked\r\n\r\n"
            .to_vec();
        let last = pieces.len().saturating_sub(1);
        for (number, piece) in pieces.iter().enumerate() {
            write!(bytes, "{:x}\r\n{piece}\r\n", piece.len())?;
            if number == last {
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
}
