//! Target `probe`: whether the time of an answer tells a session that a token may not see from one that does not exist. Both
//! are asked for in turn, so that whatever else the machine does falls on both.

use serde_json::json;

use super::house::{House, Program};
use super::report::{Figure, middle, millis};
use super::socket::Socket;
use super::wire::Wire;
use crate::failure::Failure;
use crate::shell::Stopwatch;

/// Probes of each kind.
const PROBES: usize = 1_000;

/// How far the middles may lie apart, in hundredths.
const APART: f64 = 20.0;

/// Measures it.
pub(super) fn run(program: &Program) -> Result<(), Failure> {
    let house = House::new(program, "http://127.0.0.1:9/v1")?;
    let (daemon, address) = house.listening()?;
    let mut wire = Wire::new(&daemon)?;
    let own = wire.create("echo/any", &house.work(), "mine")?;
    let forbidden = wire.create("echo/any", &house.work(), "another's")?;
    wire.settled(&own)?;
    wire.settled(&forbidden)?;
    let made = wire.ask(&json!({
        "kind": "create-token", "name": null, "scope": "write", "session-id": own,
    }))?;
    let secret = made["secret"].as_str().unwrap_or_default();
    let mut socket = Socket::new(&address, secret)?;
    // Of the same form and the same length.
    let unknown = format!("{}{}", &forbidden[..24], "ffffffffffff");
    for kind in ["get-session", "page-history", "attach", "terminate"] {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..PROBES {
            for (session, times) in [&unknown, &forbidden].into_iter().zip(&mut times) {
                let mut body = json!({ "kind": kind, "session-id": session });
                match kind {
                    "attach" => body["resume"] = json!(null),
                    "page-history" => {
                        body["query"] = json!({
                            "after": null, "kinds": [], "search": null, "limit": 1, "newest": true,
                        });
                    }
                    _ => {}
                }
                let frame = json!({ "type": "command", "command-id": "p", "body": body });
                let watch = Stopwatch::start();
                let answer = socket.ask(&frame)?;
                times.push(millis(watch.elapsed()));
                if answer["error"]["code"] != "unknown-session" {
                    return Err(Failure::Answer {
                        program: "the daemon".to_owned(),
                        why: answer.to_string(),
                    });
                }
            }
        }
        let [unknown, forbidden] = times.map(middle);
        Figure {
            name: &format!("{kind}: forbidden against unknown"),
            value: (forbidden / unknown - 1.0).abs() * 100.0,
            unit: "% apart",
            goal: Some(APART),
            runs: PROBES,
            beside: &format!("{forbidden:.4} ms and {unknown:.4} ms"),
        }
        .print();
    }
    Ok(())
}
