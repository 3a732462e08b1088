//! `attache doctor` with a model: each of its lines with the thing in order, and with the thing broken.

use serde_json::{Value, json};

use crate::house::House;
use crate::stub::{Reply, Stub, chat_text};

/// The lines of a model, and the exit code.
fn looked(house: &House, model: &str) -> (Vec<(String, bool, String)>, u8) {
    let ended = house.run(&["doctor", "--model", model, "--json"]);
    let value: Value = ended.json();
    let checks = value["checks"].as_array().unwrap().iter();
    let prefix = format!("{model}: ");
    let lines = checks.filter_map(|check| {
        let name = check["name"].as_str()?.strip_prefix(&prefix)?.to_owned();
        let ok = check["ok"].as_bool()?;
        assert!(ok == check["hint"].is_null() || name == "set up", "{check}");
        Some((name, ok, check["detail"].as_str()?.to_owned()))
    });
    (lines.collect(), u8::try_from(ended.code).unwrap())
}

fn names(lines: &[(String, bool, String)]) -> Vec<(&str, bool)> {
    lines
        .iter()
        .map(|(name, ok, _)| (name.as_str(), *ok))
        .collect()
}

#[test]
fn a_model_in_order_is_reached_known_and_streams_for_a_few_tokens() {
    let stub = Stub::new(|_| chat_text(&["rea", "dy"]));
    let house = stub.house();
    let (lines, code) = looked(&house, "openai/m");
    assert_eq!(code, 0);
    assert_eq!(
        names(&lines),
        [
            ("reachable", true),
            ("key", true),
            ("model", true),
            ("streaming", true)
        ]
    );
    assert!(lines[3].2.contains("the first word after"), "{lines:?}");
    let requests = stub.requests();
    assert_eq!(requests.len(), 1, "one small request");
    assert_eq!(requests[0]["max_tokens"], 16);
    assert!(requests[0]["tools"].is_null());
    // The chosen model is the one that is looked at, and nobody is asked offline.
    let house = house.with("ATTACHE_MODEL", "openai/m");
    let shown = house.run(&["doctor"]).well().out;
    assert!(shown.contains("ok    openai/m: streaming"), "{shown}");
    let shown = house.run(&["doctor", "--offline"]).well().out;
    assert!(!shown.contains("streaming"), "{shown}");
    assert_eq!(stub.requests().len(), 2);
}

/// What is broken, the server's answer, the lines, and what the last one says.
type Case = (
    &'static str,
    Reply,
    &'static [(&'static str, bool)],
    &'static str,
);

#[test]
fn each_thing_that_is_broken_has_its_line() {
    let page = "<!doctype html><p>hello";
    let openai_error = |code: &str, message: &str| {
        json!({ "error": { "code": code, "message": message, "type": "invalid_request_error" } })
            .to_string()
    };
    let cases: Vec<Case> = vec![
        (
            "a web page",
            Reply::Status(200, page.to_owned()),
            &[("reachable", false)],
            "web page",
        ),
        (
            "a wrong key",
            Reply::Status(
                401,
                openai_error("invalid_api_key", "Incorrect API key provided"),
            ),
            &[("reachable", true), ("key", false)],
            "Incorrect API key",
        ),
        (
            "an unknown model",
            Reply::Status(
                404,
                openai_error("model_not_found", "The model `m` does not exist"),
            ),
            &[("reachable", true), ("key", true), ("model", false)],
            "does not exist",
        ),
        (
            "an empty stream",
            Reply::Events(Vec::new()),
            &[("reachable", true), ("key", true), ("streaming", false)],
            "ended before",
        ),
        (
            "a stream that breaks off",
            Reply::Events(vec![
                json!({ "choices": [{ "delta": { "content": "re" } }] }).to_string(),
            ]),
            &[("reachable", true), ("key", true), ("streaming", false)],
            "ended before",
        ),
        (
            "an overloaded server",
            Reply::Status(503, "{}".to_owned()),
            &[("reachable", true), ("key", true), ("streaming", false)],
            "503",
        ),
        (
            "a request that is refused",
            Reply::Status(400, openai_error("bad", "no such parameter")),
            &[("reachable", true), ("key", true), ("model", false)],
            "no such parameter",
        ),
    ];
    for (case, reply, want, said) in cases {
        let stub = Stub::new(move |_| reply.clone());
        let (lines, code) = looked(&stub.house(), "openai/m");
        assert_eq!(code, 1, "{case}");
        assert_eq!(names(&lines), want, "{case}");
        assert!(lines.last().unwrap().2.contains(said), "{case}: {lines:?}");
        assert_eq!(stub.requests().len(), 1, "{case}: nothing is tried again");
        let text = stub.house().run(&["doctor", "--model", "openai/m"]);
        assert!(
            text.out.contains("FAIL  openai/m: "),
            "{case}: {}",
            text.out
        );
        assert!(!text.out.contains("sk-test"), "{case}: {}", text.out);
    }
    // Nobody is there.
    let house = House::new()
        .with("OPENAI_API_KEY", "k")
        .with("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let (lines, code) = looked(&house, "openai/m");
    assert_eq!((names(&lines), code), (vec![("reachable", false)], 1));
    // What is not set up is not asked.
    let house = House::new();
    for (model, wanted) in [
        ("anthropic/m", "ANTHROPIC_API_KEY"),
        ("gopher/m", "there is no provider"),
        ("nothing", "PROVIDER/MODEL"),
        ("scripted/none.yaml", "cannot be read"),
    ] {
        let (lines, code) = looked(&house, model);
        assert_eq!(
            (names(&lines), code),
            (vec![("set up", false)], 1),
            "{model}"
        );
        assert!(lines[0].2.contains(wanted), "{model}: {lines:?}");
    }
    let (lines, code) = looked(&house, "echo/any");
    assert_eq!((names(&lines), code), (vec![("set up", true)], 0));
}
