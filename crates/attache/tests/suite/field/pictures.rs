//! A picture that the model looks at, in the shape of each dialect, over a restart, and at servers whose model has no
//! eyes.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::overflow::{DIALECTS, calls, says};
use super::{Scene, diagnosed, fault_of};
use crate::stub::{Reply, Stub, chat_calls, chat_text};

/// A PNG of one dot.
const DOT: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\rIDATx\xdacd\xf8\xcfP\x0f\0\x03\x86\x01\x80Z4}k\0\0\0\0IEND\xaeB`\x82";

/// The same in base64.
const BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What stands in the place of the picture.
const LEFT_OUT: &str = "[A picture is left out here: image/png, 70 bytes.";

fn dot(scene: &Scene) {
    let place = scene.house.file("dot.txt", "");
    std::fs::write(place, DOT).unwrap();
}

fn arguments() -> Value {
    json!({ "path": "dot.txt" })
}

/// Whether a value stands somewhere in another.
fn holds(all: &Value, wanted: &Value) -> bool {
    all == wanted
        || match all {
            Value::Array(list) => list.iter().any(|one| holds(one, wanted)),
            Value::Object(members) => members.values().any(|one| holds(one, wanted)),
            _ => false,
        }
}

/// The picture as a dialect has it.
fn shape(dialect: &str) -> Value {
    let url = format!("data:image/png;base64,{BASE64}");
    match dialect {
        "openai-chat" => json!({ "type": "image_url", "image_url": { "url": url } }),
        "openai-responses" => json!({ "type": "input_image", "image_url": url }),
        "anthropic" => json!({ "type": "image", "source":
            { "type": "base64", "media_type": "image/png", "data": BASE64 } }),
        _ => json!({ "inlineData": { "mimeType": "image/png", "data": BASE64 } }),
    }
}

#[test]
fn a_picture_is_shown_to_the_model_in_every_dialect_and_over_a_restart() {
    for dialect in DIALECTS {
        let asked = AtomicUsize::new(0);
        let stub = Stub::new(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => calls(dialect, "read_file", &arguments()),
            1 => says(dialect, "a dot"),
            _ => says(dialect, "alive"),
        });
        let scene = Scene::of(stub).provider_of(dialect, "");
        dot(&scene);
        let told = scene.run_as("field/m", "look at it");
        assert_eq!(told.deltas, "a dot", "{dialect}: {}", told.result);
        scene.restart();
        scene.alive(&told.id);
        let requests = scene.stub.requests();
        assert_eq!(requests.len(), 3, "{dialect}");
        for request in &requests[1..] {
            assert!(holds(request, &shape(dialect)), "{dialect}: {request}");
            assert_eq!(request.to_string().matches(BASE64).count(), 1, "{dialect}");
        }
        if dialect == "openai-chat" {
            assert_eq!(requests.iter().find_map(fault_of), None);
        }
        // Whoever looks at the session is told of it, and gets no base64.
        let shown = scene.show(&told.id);
        let events = scene.events(&told.id);
        let result = events
            .iter()
            .find(|event| event["event_type"] == "tool_result");
        assert_eq!(
            result.unwrap()["pictures"],
            json!([{ "media_type": "image/png", "bytes": 70 }])
        );
        assert_eq!(
            result.unwrap()["text"],
            json!({ "path": "dot.txt", "picture": { "media_type": "image/png", "bytes": 70 } })
                .to_string()
        );
        let plain = scene.house.run(&["show", &told.id]).well().out;
        assert!(
            plain.contains("[a picture: image/png, 70 bytes]"),
            "{plain}"
        );
        for said in [shown.to_string(), json!(events).to_string(), plain] {
            assert!(!said.contains(BASE64), "{said}");
        }
    }
}

#[test]
fn a_session_with_a_picture_lives_on_at_a_model_that_takes_none() {
    for (status, message) in [
        (400, "this model does not support image input"),
        (
            400,
            "Failed to deserialize the JSON body: messages[3]: unknown variant `image_url`, expected `text`",
        ),
        (404, "No endpoints found that support image input"),
        (500, "image input is not supported by this server"),
    ] {
        let stub = Stub::new(move |request| {
            let said = request["messages"].to_string();
            if said.contains("image_url") {
                let error = json!({ "error": { "message": message } });
                return Reply::Status(status, error.to_string());
            }
            if said.contains("still there?") {
                chat_text(&["alive"])
            } else if said.contains("call_0") {
                chat_text(&["cannot see it"])
            } else {
                chat_calls(&[("read_file", arguments())])
            }
        });
        let scene = Scene::of(stub);
        dot(&scene);
        let told = scene.run();
        assert_eq!(told.deltas, "cannot see it", "{message}: {}", told.result);
        assert_eq!(told.result["end_reason"], "completed", "{message}");
        diagnosed(&scene, &told.id, message);
        scene.alive(&told.id);
        let requests = scene.stub.requests();
        // Asked, refused, asked without; and the same in the next run.
        let pictures: Vec<bool> = requests
            .iter()
            .map(|it| it.to_string().contains(BASE64))
            .collect();
        assert_eq!(pictures, [false, true, false, true, false], "{message}");
        for at in [2, 4] {
            assert!(requests[at].to_string().contains(LEFT_OUT), "{message}");
        }
        assert_eq!(scene.texts(&told.id, "diagnostic").len(), 1, "told once");
    }
}

#[test]
fn a_provider_set_to_take_no_pictures_is_sent_none() {
    let asked = AtomicUsize::new(0);
    let scene = Scene::of(Stub::new(move |_| {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => chat_calls(&[("read_file", arguments())]),
            1 => chat_text(&["cannot see it"]),
            _ => chat_text(&["alive"]),
        }
    }));
    let scene = scene.provider("[providers.field.quirks]\nimages = false");
    dot(&scene);
    let told = scene.run_as("field/m", "look at it");
    assert_eq!(told.deltas, "cannot see it", "{}", told.result);
    scene.alive(&told.id);
    let requests = scene.stub.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests[1..] {
        let said = request.to_string();
        assert!(said.contains(LEFT_OUT) && !said.contains(BASE64), "{said}");
    }
    diagnosed(&scene, &told.id, "quirk `images`");
    assert_eq!(scene.texts(&told.id, "diagnostic").len(), 1, "told once");
}
