//! The attach protocol over WebSockets: the same frames as by lines, what is no frame, and ends that vanish.

use std::sync::Arc;
use std::time::Duration;

use attache_host::web::Tls;
use attache_protocol::{
    Answer, Command, FRAME_LIMIT, FromHost, FromViewer, OpenDoor, QueueRef, Resume, StreamPlace,
    TokenScope, VERSION, WireError,
};
use attache_testkit::pass;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use yawc::{Frame, HttpRequest, Options, WebSocket};

use crate::kit::{Line, enqueue, host, life};
use crate::web_kit::{knock, listen, request, socket, token, wire};

/// The frames of a session's stream.
fn stream(frames: Vec<FromHost>) -> Vec<FromHost> {
    let is_stream = |frame: &FromHost| matches!(frame, FromHost::Snapshot(_) | FromHost::Delta(_));
    frames.into_iter().filter(is_stream).collect()
}

fn hello() -> FromViewer {
    FromViewer::Hello {
        version: VERSION,
        features: Vec::new(),
        program: "test".to_owned(),
    }
}

/// The error that is told of something that is no command.
async fn refusal(line: &mut Line) -> WireError {
    match line.hear().await {
        FromHost::OperationError {
            command_id: None,
            error,
        } => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_viewer_by_lines_and_one_by_a_websocket_see_the_same_frames() {
    life(async {
        let host = host().await;
        let mut lines = Line::to(&host).await;
        let id = lines.create(1).await;
        let secret = token(&host, TokenScope::Write, None).await;
        let mut message = socket(&host, &secret).await;
        lines.ask(Command::attach(id.clone())).await.unwrap();
        message.ask(Command::attach(id.clone())).await.unwrap();
        // Each begins with a snapshot of its own moment, and is told of the other.
        for line in [&mut lines, &mut message] {
            let begun = stream(line.rest().await);
            assert!(matches!(begun[0], FromHost::Snapshot(_)), "{begun:?}");
        }
        message
            .ask(enqueue(&id, QueueRef::Default {}, "one"))
            .await
            .unwrap();
        let (one, two) = (stream(lines.rest().await), stream(message.rest().await));
        assert!(one.len() > 10, "{one:#?}");
        assert_eq!(one, two);
    });
}

#[test]
fn a_viewer_comes_back_over_a_websocket_and_goes_on_where_it_stood() {
    life(async {
        let host = host().await;
        let mut owner = Line::to(&host).await;
        let id = owner.create(1).await;
        let secret = token(&host, TokenScope::Read, None).await;
        let mut line = socket(&host, &secret).await;
        let Ok(Answer::Attached { attachment, .. }) = line.ask(Command::attach(id.clone())).await
        else {
            panic!("it is attached");
        };
        let seen = stream(line.rest().await);
        let FromHost::Snapshot(snapshot) = &seen[0] else {
            panic!("{seen:?}");
        };
        drop(line);
        owner
            .ask(enqueue(&id, QueueRef::Default {}, "one"))
            .await
            .unwrap();
        let mut line = socket(&host, &secret).await;
        let back = Command::Attach {
            session_id: id,
            resume: Some(Resume {
                attachment: attachment.clone(),
                place: Some(StreamPlace {
                    epoch: snapshot.epoch.clone(),
                    sequence: snapshot.sequence,
                }),
            }),
            read_only: false,
        };
        let expected = Answer::Attached {
            attachment,
            replays: true,
        };
        assert_eq!(line.ask(back).await, Ok(expected));
        let missed = stream(line.rest().await);
        assert!(
            matches!(&missed[0], FromHost::Delta(delta) if delta.sequence == snapshot.sequence)
        );
    });
}

#[test]
fn what_is_no_frame_is_refused_and_the_connection_goes_on() {
    life(async {
        let host = host().await;
        let secret = token(&host, TokenScope::Admin, None).await;
        let mut line = socket(&host, &secret).await;
        for text in ["", "{", "null", r#"{"type":"shout"}"#, &"[".repeat(100)] {
            line.say_bytes(text.as_bytes().to_vec()).await;
            assert_eq!(refusal(&mut line).await.code, "invalid-message", "{text}");
        }
        let binary = attache_protocol::encode(&hello());
        line.socket().send(Message::binary(binary)).await.unwrap();
        assert_eq!(refusal(&mut line).await.code, "invalid-message");
        // A door of another protocol is opened over the local socket only.
        let open = OpenDoor {
            version: VERSION,
            program: "test".to_owned(),
            door: "mcp".to_owned(),
            agent: None,
            model: None,
            root_session_id: None,
            working_directory: "/".to_owned(),
            environment: std::collections::BTreeMap::new(),
        };
        line.say(&FromViewer::OpenDoor(Box::new(open.clone())))
            .await;
        assert_eq!(refusal(&mut line).await.code, "invalid-message");
        assert!(line.ask(Command::HostStatus {}).await.is_ok());
        // Also as the first frame.
        let bearer = format!("Bearer {secret}");
        let plain = request("ws://localhost/attach", &[("authorization", &bearer)]);
        let mut bare = knock(wire(&host), plain).await.unwrap();
        let open = attache_protocol::encode(&FromViewer::OpenDoor(Box::new(open)));
        let open = String::from_utf8(open).unwrap();
        bare.send(Message::text(open)).await.unwrap();
        let told = bare.next().await.unwrap().unwrap().into_text().unwrap();
        assert!(told.contains("invalid-message"), "{told}");
    });
}

#[test]
fn a_frame_beyond_the_limit_is_refused_by_name_and_ends_the_connection() {
    life(async {
        let host = host().await;
        let secret = token(&host, TokenScope::Admin, None).await;
        // The largest one is read: it is refused for what it says.
        let mut line = socket(&host, &secret).await;
        line.say_bytes(vec![b' '; FRAME_LIMIT]).await;
        assert_eq!(refusal(&mut line).await.code, "invalid-message");
        assert!(line.ask(Command::HostStatus {}).await.is_ok());
        for length in [FRAME_LIMIT + 1, 8 * FRAME_LIMIT] {
            // It may be cut while it is on its way.
            let large = Message::text(" ".repeat(length));
            let line = socket(&host, &secret).await;
            let (mut out, mut back) = line.into_socket().split();
            let sent = tokio::spawn(async move { drop(out.send(large).await) });
            let told = back.next().await.unwrap().unwrap().into_text().unwrap();
            assert!(
                told.contains("invalid-message") && told.contains("1 MiB"),
                "{told}"
            );
            let Some(Ok(Message::Close(Some(goodbye)))) = back.next().await else {
                panic!("it says goodbye");
            };
            assert_eq!(goodbye.code, CloseCode::Size);
            sent.await.unwrap();
        }
    });
}

#[test]
fn a_viewer_that_vanished_is_found_within_ninety_seconds() {
    life(async {
        let host = host().await;
        let secret = token(&host, TokenScope::Read, None).await;
        // It neither reads nor closes.
        let _vanished = socket(&host, &secret).await;
        pass(Duration::from_secs(89)).await;
        assert!(!host.is_idle());
        pass(Duration::from_secs(3)).await;
        assert!(host.is_idle(), "nobody is connected any more");
    });
}

#[test]
fn a_viewer_that_vanished_under_a_stream_is_found_as_soon() {
    life(async {
        let host = host().await;
        let mut owner = Line::to(&host).await;
        let id = owner.create(1).await;
        let secret = token(&host, TokenScope::Read, None).await;
        let mut vanished = socket(&host, &secret).await;
        vanished.ask(Command::attach(id.clone())).await.unwrap();
        let long = format!("long {}", "x".repeat(200 * 1024));
        owner
            .ask(enqueue(&id, QueueRef::Default {}, &long))
            .await
            .unwrap();
        drop(owner);
        pass(Duration::from_secs(89)).await;
        assert!(!host.is_idle());
        // It is let go as one that vanished: its attachment waits a while for it.
        pass(Duration::from_secs(8)).await;
        assert!(host.is_idle(), "nobody is connected any more");
    });
}

#[test]
fn a_viewer_that_is_there_is_kept_however_long_nothing_happens() {
    life(async {
        let host = host().await;
        let secret = token(&host, TokenScope::Read, None).await;
        let mut line = socket(&host, &secret).await;
        let hour = Duration::from_secs(3_600);
        let nothing = tokio::time::timeout(hour, line.hear_bytes()).await;
        assert!(nothing.is_err(), "{nothing:?}");
        assert!(line.ask(Command::HostStatus {}).await.is_ok());
        // Whoever closes in good order is gone at once.
        line.socket().close(None).await.unwrap();
        assert_eq!(line.hear_bytes().await, None);
        pass(Duration::from_millis(1)).await;
        assert!(host.is_idle());
    });
}

#[test]
fn one_that_asks_whether_we_are_here_is_answered_once_for_each_question() {
    life(async {
        let host = host().await;
        let secret = token(&host, TokenScope::Read, None).await;
        let mut line = socket(&host, &secret).await;
        for number in 0..1_000_u32 {
            let question = number.to_be_bytes().to_vec();
            line.socket()
                .send(Message::Ping(question.clone().into()))
                .await
                .unwrap();
            let answered = line.socket().next().await.unwrap().unwrap();
            assert_eq!(answered, Message::Pong(question.into()));
        }
    });
}

#[test]
fn what_the_host_says_is_compressed_for_who_can_read_that() {
    life(async {
        let host = host().await;
        let mut owner = Line::to(&host).await;
        let id = owner.create(1).await;
        let text = "the same words again and again, ".repeat(1_000);
        owner
            .ask(enqueue(&id, QueueRef::Default {}, &text))
            .await
            .unwrap();
        owner.rest().await;
        let secret = token(&host, TokenScope::Read, None).await;
        let mut sizes = Vec::new();
        for compresses in [false, true] {
            let (near, middle) = tokio::io::duplex(64 * 1024);
            let (mut from_near, mut to_near) = tokio::io::split(middle);
            let (mut from_far, mut to_far) = tokio::io::split(wire(&host));
            // Either end may go first.
            tokio::spawn(async move { drop(tokio::io::copy(&mut from_near, &mut to_far).await) });
            let counted = tokio::spawn(async move {
                let (mut count, mut bytes) = (0, [0; 4_096]);
                loop {
                    let read = from_far.read(&mut bytes).await.unwrap_or(0);
                    count += read;
                    if read == 0 || to_near.write_all(&bytes[..read]).await.is_err() {
                        return count;
                    }
                }
            });
            let options = match compresses {
                false => Options::default().without_compression(),
                true => Options::default().with_low_latency_compression(),
            };
            let bearer = format!("Bearer {secret}");
            let head = HttpRequest::builder().header("authorization", bearer);
            let uri = "ws://localhost/attach".parse().unwrap();
            let socket = WebSocket::handshake_with_request(uri, near, options, head).await;
            let mut socket = socket.unwrap();
            let attach = FromViewer::command("a", Command::attach(id.clone()));
            for frame in [hello(), attach] {
                let frame = Frame::text(attache_protocol::encode(&frame));
                socket.send(frame).await.unwrap();
            }
            let mut heard = Vec::new();
            while heard.len() < 3 {
                let frame = socket.next().await.unwrap();
                heard.push(attache_protocol::decode::<FromHost>(frame.payload()).unwrap());
            }
            assert!(matches!(heard[2], FromHost::Snapshot(_)), "{heard:?}");
            socket.close().await.unwrap();
            drop(socket);
            sizes.push(counted.await.unwrap());
        }
        assert!(sizes[1] * 5 < sizes[0], "{sizes:?}");
    });
}

#[tokio::test]
async fn a_true_listener_serves_several_at_once() {
    let host = host().await;
    let secret = token(&host, TokenScope::Write, None).await;
    let served = listen(&host, None).await;
    assert!(served.address.ip().is_loopback());
    let mut one = served.socket(&secret).await;
    let mut two = served.socket(&secret).await;
    let id = one.create(1).await;
    two.ask(Command::attach(id.clone())).await.unwrap();
    one.ask(enqueue(&id, QueueRef::Default {}, "one"))
        .await
        .unwrap();
    loop {
        let frame = format!("{:?}", two.hear().await);
        if frame.contains("That is all of it, then.") && frame.contains("ItemPut") {
            break;
        }
    }
    host.shutdown("tests end").await;
    loop {
        if let FromHost::GoingAway { reason } = two.hear().await {
            assert_eq!(reason, "tests end");
            break;
        }
    }
}

#[tokio::test]
async fn a_listener_with_a_certificate_speaks_tls_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let [certificate, key] = ["box.pem", "box.key"].map(|name| folder.path().join(name));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = Tls::of_files(&certificate, &key).unwrap();
    let host = host().await;
    let secret = token(&host, TokenScope::Read, None).await;
    let served = listen(&host, Some(tls)).await;
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let tcp = TcpStream::connect(served.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector.connect(name, tcp).await.unwrap();
    let bearer = format!("Bearer {secret}");
    let origin = format!("https://localhost:{}", served.address.port());
    let uri = format!("wss://localhost:{}/attach", served.address.port());
    let more = [("authorization", &*bearer), ("origin", &*origin)];
    let mut line = Line::over(knock(stream, request(&uri, &more)).await.unwrap()).await;
    assert!(line.ask(Command::HostStatus {}).await.is_ok());
    // Without TLS nothing is said.
    let mut plain = TcpStream::connect(served.address).await.unwrap();
    let head = b"GET /attach HTTP/1.1\r\nhost: localhost\r\n\r\n";
    plain.write_all(head).await.unwrap();
    let mut said = Vec::new();
    // It may be reset, or closed with a word of TLS.
    let _closed = plain.read_to_end(&mut said).await;
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    // Files that hold no such thing are named.
    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    for (text, path, named) in [
        ("nothing", &key, "box.key"),
        (&*other, &key, "box.key"),
        ("nothing", &certificate, "box.pem"),
    ] {
        std::fs::write(path, text).unwrap();
        let Err(refused) = Tls::of_files(&certificate, &key) else {
            panic!("{text:?} is good for nothing");
        };
        assert!(refused.to_string().contains(named), "{refused}");
    }
}
