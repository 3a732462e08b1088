//! A stream that breathes and says nothing, one that is silent, and one that is only slow. G-04.

use std::time::Duration;

use serde_json::json;

use super::{DONE, Scene, beside, delta, diagnosed, finish};
use crate::clock::Since;
use crate::house::until;
use crate::stub::{After, Reply, chat_text, last_user};

/// One piece of the answer, and then what `after` says.
fn begun(after: After) -> Reply {
    let first = delta(&json!({ "content": "one" }));
    Reply::Writes(vec![first.into_bytes()], after)
}

fn pings() -> After {
    let between = Duration::from_millis(40);
    After::Repeat(b": ping\n\n".to_vec(), between)
}

/// Limits as in the case, a tenth as long; what is silent ends before what makes no progress.
fn short(reply: Reply) -> Scene {
    Scene::new(move |_| reply.clone())
        .with("ATTACHE_REQUEST__SILENCE_SECONDS", "0.5")
        .with("ATTACHE_REQUEST__NO_PROGRESS_SECONDS", "0.8")
}

#[test]
fn g04_each_wedged_stream_ends_by_its_own_limit() {
    let cases = [
        (
            pings(),
            "the connection is alive, but no piece of the reply came for 0.8 s",
        ),
        (After::Hold, "nothing came for 0.5 s"),
    ];
    beside(cases, |(after, wanted)| {
        let scene = short(begun(after));
        let told = scene.run();
        assert_eq!(told.deltas, "one");
        assert_eq!(told.result["end_reason"], "provider-error");
        diagnosed(&scene, &told.id, wanted);
        // What was shown is not asked for a second time.
        assert_eq!(scene.stub.requests().len(), 1);
        until("the connection is dropped", || scene.stub.answering() == 0);
        scene.alive(&told.id);
    });
}

#[test]
fn g04_with_nothing_shown_a_wedged_stream_is_tried_again() {
    beside([pings(), After::Hold], |after| {
        let reply = Reply::Writes(vec![b": hello\n\n".to_vec()], after);
        let scene = short(reply).with("ATTACHE_REQUEST__RETRIES", "1");
        let told = scene.run();
        assert_eq!(told.result["end_reason"], "provider-error");
        assert_eq!(scene.stub.requests().len(), 2);
        scene.alive(&told.id);
    });
}

#[test]
fn g04_a_slow_stream_is_not_cut_and_reasoning_is_progress() {
    let between = Duration::from_millis(150);
    let pieces = [
        json!({ "content": "." }),
        json!({ "reasoning_content": "hm" }),
    ];
    beside(pieces, |piece| {
        let end = delta(&json!({ "content": "!" })) + &finish("stop") + DONE;
        // Twice as long as the limit without progress.
        let slow = delta(&piece).into_bytes();
        let scene = short(begun(After::Slowly(slow, between, 12, end.into_bytes())));
        let told = scene.run();
        assert_eq!(told.result["end_reason"], "completed", "{}", told.result);
        let text = if piece["content"].is_null() {
            "one!".to_owned()
        } else {
            format!("one{}!", ".".repeat(12))
        };
        assert_eq!(told.deltas, text);
        assert_eq!(scene.stub.requests().len(), 1);
    });
}

#[test]
fn g04_an_interrupt_acts_within_a_second_and_the_queued_message_runs() {
    for after in [pings(), After::Hold] {
        let reply = begun(after);
        let scene = Scene::new(move |request| {
            if last_user(request).contains("next please") {
                chat_text(&["next"])
            } else {
                reply.clone()
            }
        });
        let id = scene.start("go");
        scene.answering();
        scene.house.run(&["send", &id, "next please"]).well();
        let since = Since::now();
        scene.house.run(&["interrupt", &id]).well();
        scene.wait(&id);
        assert!(
            since.passed() < Duration::from_secs(1),
            "{:?}",
            since.passed()
        );
        let said = scene.texts(&id, "assistant");
        assert_eq!(said.last().map(String::as_str), Some("next"), "{said:?}");
        assert_eq!(scene.show(&id)["end_reason"], "completed");
        scene.alive(&id);
    }
}
