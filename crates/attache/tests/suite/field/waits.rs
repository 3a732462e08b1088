//! Waits that a provider asks for: Retry-After in all its spellings. G-13.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{Scene, beside, diagnosed};
use crate::clock::Since;
use crate::house::until;
use crate::stub::{Reply, after_tools, chat_calls, chat_text, last_user};

fn busy(after: Option<&str>) -> Reply {
    let body = json!({ "error": { "message": "slow down", "type": "rate_limit_error" } });
    let headers = after.map(|after| ("retry-after", after.to_owned()));
    Reply::Answer(429, headers.into_iter().collect(), body.to_string())
}

/// The first request is told to wait, the second is answered; what lay between them.
fn waited(reply: Reply) -> Duration {
    let asked = AtomicUsize::new(0);
    let scene = Scene::new(move |_| {
        if asked.fetch_add(1, Ordering::SeqCst) == 0 {
            reply.clone()
        } else {
            chat_text(&["answered"])
        }
    });
    let told = scene.run();
    assert_eq!(told.deltas, "answered");
    assert_eq!(scene.texts(&told.id, "diagnostic"), [""; 0]);
    let times = scene.stub.times();
    assert_eq!(times.len(), 2);
    times[1].behind(&times[0])
}

#[test]
fn g13_what_is_asked_is_waited_for() {
    let waited = waited(busy(Some("2")));
    assert!(
        waited >= Duration::from_secs(2) && waited < Duration::from_secs(4),
        "{waited:?}"
    );
}

#[test]
fn g13_a_date_is_waited_for() {
    // It has whole seconds, and counts from the clock of the server where that tells it.
    let body = json!({ "error": { "message": "slow down" } }).to_string();
    let headers = [
        ("date", "Fri, 15 Jan 2027 08:00:00 GMT"),
        ("retry-after", "Fri, 15 Jan 2027 08:00:03 GMT"),
    ];
    let headers = headers
        .map(|(name, value)| (name, value.to_owned()))
        .to_vec();
    let waited = waited(Reply::Answer(429, headers, body));
    assert!(
        waited >= Duration::from_secs(3) && waited < Duration::from_secs(5),
        "{waited:?}"
    );
}

#[test]
fn g13_other_forms_fall_back_to_our_own_back_off() {
    let forms = [
        Some("0"),
        Some("Thu, 01 Jan 2015 00:00:00 GMT"),
        Some("2abc"),
        Some("-1"),
        Some(""),
        None,
    ];
    beside(forms, |after| {
        let waited = waited(busy(after));
        let own = Duration::from_millis(500)..Duration::from_millis(1_500);
        assert!(own.contains(&waited), "{after:?}: {waited:?}");
    });
}

#[test]
fn g13_beyond_the_cap_it_fails_at_once_and_says_when_to_come_back() {
    for (after, wanted) in [
        ("999999", "come back in 999999 s"),
        ("99999999999999999999999", "come back in"),
        ("61", "come back in 61 s"),
    ] {
        let scene = Scene::new(move |_| busy(Some(after)));
        let since = Since::now();
        let told = scene.run();
        assert!(since.passed() < Duration::from_secs(2));
        assert_eq!(told.result["end_reason"], "provider-error");
        assert_eq!(scene.stub.requests().len(), 1);
        diagnosed(&scene, &told.id, wanted);
        diagnosed(&scene, &told.id, "slow down");
        scene.alive(&told.id);
    }
    let scene =
        Scene::new(move |_| busy(Some("2"))).with("ATTACHE_REQUEST__LONGEST_WAIT_SECONDS", "1");
    let told = scene.run();
    assert_eq!(scene.stub.requests().len(), 1);
    diagnosed(&scene, &told.id, "longer than is waited for here: 1 s");
}

#[test]
fn g13_an_interrupt_ends_the_wait_within_a_second() {
    let scene = Scene::new(move |_| busy(Some("30")));
    let id = scene.start("go");
    until("it waits", || {
        scene.show(&id)["note"]
            .to_string()
            .contains("retrying in 30 s")
    });
    let since = Since::now();
    scene.house.run(&["interrupt", &id]).well();
    scene.wait(&id);
    assert!(
        since.passed() < Duration::from_secs(1),
        "{:?}",
        since.passed()
    );
    assert_eq!(scene.show(&id)["outcome"], "interrupted");
    scene.alive(&id);
}

#[test]
fn g13_a_child_that_waits_holds_up_nobody_else() {
    let scene = Scene::new(|request| {
        let user = last_user(request);
        if user.contains("patient") {
            busy(Some("30"))
        } else if user.contains("hasty") {
            chat_text(&["at once"])
        } else if after_tools(request) {
            chat_text(&["made"])
        } else {
            let child = |first: &str| ("agent_session_create", json!({ "initial_message": first }));
            chat_calls(&[child("be patient"), child("be hasty")])
        }
    });
    let id = scene.start("go");
    let children = || -> Vec<_> {
        let rows = scene.house.ls();
        let own = rows
            .iter()
            .filter(|row| row["parent_session_ids"].to_string().contains(&id));
        own.cloned().collect()
    };
    until("the hasty one has answered", || {
        children()
            .iter()
            .any(|row| row["result_preview"] == "at once")
    });
    let own = scene.show(&id);
    assert_eq!(own["outcome"], "succeeded", "the parent neither");
    let waits: Vec<_> = children()
        .into_iter()
        .filter(|row| row["status"] == "running")
        .collect();
    assert_eq!(waits.len(), 1, "{waits:?}");
    let child = waits[0]["session_id"].as_str().unwrap();
    let since = Since::now();
    scene.house.run(&["interrupt", child]).well();
    scene.wait(&id);
    assert!(
        since.passed() < Duration::from_secs(1),
        "{:?}",
        since.passed()
    );
}
