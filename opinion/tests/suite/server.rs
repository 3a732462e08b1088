//! A server of a few lines: it reads one request, answers with the bytes it was given, and hangs up.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

/// One that plays this answer once: where it listens, and its end.
pub(crate) fn play(answer: Vec<u8>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    let address = listener.local_addr().expect("it is bound");
    let served = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client");
        let mut input = BufReader::new(socket.try_clone().expect("a second handle"));
        let mut length = 0;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if input.read_line(&mut line).expect("a head") == 0 {
                return;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body).expect("a body");
        // One that has read enough may hang up before the end.
        let _written = socket.write_all(&answer);
    });
    (format!("http://{address}"), served)
}
