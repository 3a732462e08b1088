//! The true program's listener for viewers elsewhere: tokens are made and revoked by command, and a WebSocket is attached
//! with one.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

use crate::house::House;
use crate::mcp::Listening;

/// A viewer with a token; none where it is not let in.
fn viewer(served: &Listening, secret: &str) -> Option<WebSocket<TcpStream>> {
    let wire = TcpStream::connect(&served.address).unwrap();
    let uri = format!("ws://{}/attach", served.address);
    let mut request = uri.into_client_request().unwrap();
    let bearer = format!("Bearer {secret}").parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    let (mut socket, _) = tungstenite::client(request, wire).ok()?;
    let hello = json!({ "type": "hello", "version": 1, "features": [], "program": "test" });
    say(&mut socket, &hello);
    assert_eq!(hear(&mut socket).unwrap()["type"], "hello");
    Some(socket)
}

fn say(socket: &mut WebSocket<TcpStream>, frame: &Value) {
    socket.send(Message::text(frame.to_string())).unwrap();
}

/// The next frame; none when the host has closed.
fn hear(socket: &mut WebSocket<TcpStream>) -> Option<Value> {
    match socket.read() {
        Ok(Message::Text(text)) => Some(serde_json::from_str(&text).unwrap()),
        _closed => None,
    }
}

#[test]
fn a_viewer_elsewhere_comes_with_a_token_until_it_is_revoked() {
    let house = House::new();
    // A token is made without a daemon, and leaves none behind.
    let made = house.run(&["token", "create", "--name", "early", "--json"]);
    let early = made.well().json()["secret"].as_str().unwrap().to_owned();
    assert_eq!(house.daemon(), None);
    let file = house.state().join("tokens.json");
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(
        kept.contains("early") && !kept.contains(&early[8..]),
        "{kept}"
    );

    let served = Listening::start(&house, &[]);
    let run = ["run", "--detach", "--model", "echo/any", "x"];
    let id = house.run(&run).well().out.trim().to_owned();
    house.run(&["wait", &id]).well();
    let confined = ["token", "create", "--session", &id[26..]];
    let secret = house.run(&confined).well();
    assert!(secret.err.contains("shown this once"), "{secret:?}");
    let secret = secret.out.trim().to_owned();
    let other = house.run(&run).well().out.trim().to_owned();

    assert!(viewer(&served, "attache_0").is_none());
    let mut all = viewer(&served, &early).unwrap();
    let mut one = viewer(&served, &secret).unwrap();
    let attach = |id: &str| {
        json!({ "type": "command", "command-id": "a",
        "body": { "kind": "attach", "session-id": id } })
    };
    say(&mut one, &attach(&other));
    assert_eq!(hear(&mut one).unwrap()["error"]["code"], "unknown-session");
    for socket in [&mut one, &mut all] {
        say(socket, &attach(&id));
        assert_eq!(hear(socket).unwrap()["body"]["kind"], "attached");
        // The other one's coming may be told behind it.
        let snapshot = hear(socket).unwrap();
        assert_eq!(snapshot["sessions"][0]["session-id"], id.as_str());
    }
    let listed = house.run(&["token", "list"]).well().out;
    assert!(
        listed.contains("token-1") && listed.contains(&id[28..]),
        "{listed}"
    );
    assert!(!listed.contains(&secret), "{listed}");
    house.run(&["token", "revoke", "token-1"]).well();
    // What was on its way comes first; behind the reason comes nothing.
    let told: Vec<Value> = std::iter::from_fn(|| hear(&mut one)).collect();
    assert_eq!(told.last().unwrap()["error"]["code"], "not-permitted");
    assert!(viewer(&served, &secret).is_none());
    let missing = house.run(&["token", "revoke", "token-1"]);
    assert_eq!(missing.code, 3, "{missing:?}");
    // The next life knows those that are left.
    drop((served, all));
    let served = Listening::start(&house, &[]);
    assert!(viewer(&served, &early).is_some());
    assert!(viewer(&served, &secret).is_none());
}

#[test]
fn others_are_let_near_only_by_tls_and_with_a_token() {
    let house = House::new();
    let open = ["serve", "--listen", "0.0.0.0:0"];
    let with_tls = [
        &open[..],
        &["--tls-cert", "box.pem", "--tls-key", "box.key"],
    ]
    .concat();
    // Files come first: nothing is opened for a listener that cannot be.
    let refused = house.run(&with_tls);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("box.pem"), "{refused:?}");
    let made = rcgen::generate_simple_self_signed(vec!["box.example".to_owned()]).unwrap();
    house.file("box.pem", &made.cert.pem());
    house.file("box.key", &made.signing_key.serialize_pem());
    let refused = house.run(&with_tls);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("attache token create"), "{refused:?}");
    house.run(&["token", "create"]).well();
    let refused = house.run(&open);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("--tls-cert"), "{refused:?}");
    assert!(!house.state().join("mcp-token").exists());
    let mut daemon = house.spawn(&with_tls);
    let mut line = String::new();
    let mut lines = BufReader::new(daemon.stderr.take().unwrap());
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("https://0.0.0.0:"), "{line}");
    crate::house::signal(daemon.id(), "TERM");
    daemon.wait().unwrap();
}
