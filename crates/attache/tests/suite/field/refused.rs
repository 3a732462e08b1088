//! A failure told inside of a stream that began well, and the same told by a status. G-12.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{DONE, Scene, Told, beside, both, delta, diagnosed, events, finish};
use crate::stub::{Reply, chat_text};

const OVERLOADED: &str = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";

/// Plays `reply` so often, then answers.
fn first(times: usize, reply: Reply) -> Scene {
    let asked = AtomicUsize::new(0);
    Scene::new(move |_| {
        if asked.fetch_add(1, Ordering::SeqCst) < times {
            reply.clone()
        } else {
            chat_text(&["answered"])
        }
    })
}

fn unseen(scene: &Scene, told: &Told) {
    assert_eq!(told.deltas, "answered");
    assert_eq!(told.result["outcome"], "succeeded");
    assert_eq!(scene.texts(&told.id, "assistant"), ["answered"]);
    assert_eq!(scene.texts(&told.id, "diagnostic"), [""; 0]);
}

#[test]
fn g12_a_failure_before_the_first_content_is_tried_again_with_back_off_and_unseen() {
    let body = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let in_stream = events(&[OVERLOADED.to_owned()]);
    let by_status = [Reply::Status(529, body.to_string())];
    beside(both(&in_stream).into_iter().chain(by_status), |reply| {
        let scene = first(2, reply.clone());
        let told = scene.run();
        unseen(&scene, &told);
        let times = scene.stub.times();
        assert_eq!(times.len(), 3);
        let waits: Vec<Duration> = times.windows(2).map(|two| two[1].behind(&two[0])).collect();
        assert!(
            waits[0] >= Duration::from_millis(500) && waits[1] >= Duration::from_secs(1),
            "{waits:?}"
        );
        scene.alive(&told.id);
        // Up to a cap.
        let scene = first(9, reply).with("ATTACHE_REQUEST__RETRIES", "1");
        let told = scene.run();
        assert_eq!(told.result["end_reason"], "provider-error");
        assert_eq!(scene.stub.requests().len(), 2);
        assert_eq!(told.deltas, "");
        diagnosed(&scene, &told.id, "Overloaded (tried 2 times)");
        scene.alive(&told.id);
    });
}

#[test]
fn g12_what_was_seen_is_there_once_and_the_turn_has_failed() {
    let list = [
        delta(&json!({ "content": "Partial" })),
        OVERLOADED.to_owned(),
    ];
    for reply in both(&events(&list)) {
        let scene = first(1, reply);
        let told = scene.run();
        assert_eq!(told.deltas, "Partial");
        assert_eq!(told.result["end_reason"], "provider-error");
        assert_eq!(scene.texts(&told.id, "assistant"), ["Partial"]);
        assert_eq!(scene.stub.requests().len(), 1);
        diagnosed(&scene, &told.id, "Overloaded");
        scene.alive(&told.id);
        let again = scene.stub.requests()[1]["messages"].to_string();
        assert_eq!(again.matches("Partial").count(), 1, "{again}");
        scene.restart();
        assert_eq!(scene.texts(&told.id, "assistant"), ["Partial", "alive"]);
    }
}

#[test]
fn g12_a_refusal_is_not_tried_again_and_its_words_are_kept() {
    let data = "data: {\"error\":{\"message\":\"bad field\",\"code\":400}}\n\n";
    for before in [
        None,
        Some(delta(&json!({ "role": "assistant", "content": "" }))),
    ] {
        let mut list: Vec<String> = before.into_iter().collect();
        list.push(data.to_owned());
        for reply in both(&events(&list)) {
            let scene = first(1, reply);
            let told = scene.run();
            assert_eq!(told.result["outcome"], "failed");
            assert_eq!(told.result["end_reason"], "provider-error");
            assert_eq!(scene.stub.requests().len(), 1);
            diagnosed(&scene, &told.id, "bad field");
            scene.alive(&told.id);
        }
    }
}

#[test]
fn a_session_whose_provider_fails_in_one_way_after_the_other_is_alive_afterwards() {
    let replies = [
        Reply::Status(500, "oops".to_owned()),
        Reply::Status(401, "{}".to_owned()),
        Reply::Status(200, "{}".to_owned()),
        events(&[OVERLOADED.to_owned()]),
        events(&["data: {not json\n\n".to_owned()]),
        events(&["data: 7\n\n".to_owned()]),
        events(&[delta(&json!({ "content": "half" }))]),
        events(&[DONE.to_owned()]),
        events(&[finish("length"), DONE.to_owned()]),
        events(&[finish("content_filter"), DONE.to_owned()]),
        events(&[]),
    ];
    let count = replies.len();
    let asked = AtomicUsize::new(0);
    let scene = Scene::new(move |_| {
        let at = asked.fetch_add(1, Ordering::SeqCst);
        replies
            .get(at)
            .cloned()
            .unwrap_or_else(|| chat_text(&["?"]))
    })
    .with("ATTACHE_REQUEST__RETRIES", "0");
    let id = scene.start("go");
    for number in 1..=count {
        scene.wait(&id);
        assert_eq!(scene.show(&id)["outcome"], "failed", "{number}");
        scene.alive(&id);
        if number < count {
            scene.house.run(&["send", &id, "go"]).well();
        }
    }
}
