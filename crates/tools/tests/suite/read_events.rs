//! `agent_session_read_events`: pages, filters and previews of a history.

use attache_session::SessionId;
use attache_testkit::{Piece, Puppet, World, call, text};
use serde_json::{Value, json};

use crate::kit::{column, has_members, on};

const READ: &str = "agent_session_read_events";

/// A child that was told something, made a call, and said something.
async fn storied() -> (World, SessionId, SessionId) {
    let world = World::new().await;
    world.puppet.teach(|request| {
        if Puppet::after_tools(request) {
            return text("found it");
        }
        let mut pieces = text("let me look");
        pieces.insert(0, Piece::Reasoning("secret thought".to_owned()));
        pieces.extend(call("agent_session_list", &json!({ "limit": 7 })));
        pieces
    });
    let root = world.root(None).await;
    let child = world.child(root, Some("find it")).await;
    world.quiet(child).await;
    (world, root, child)
}

async fn read(world: &World, caller: SessionId, target: SessionId, arguments: Value) -> Value {
    let mut arguments = arguments;
    arguments["session_id"] = json!(target.to_string());
    world.ask(caller, READ, arguments).await
}

#[tokio::test]
async fn agent_session_read_events_returns_history() {
    let (world, root, child) = storied().await;
    let page = read(&world, root, child, json!({})).await;
    has_members(&page, &["events", "total_matching", "next_cursor"]);
    assert_eq!(page["total_matching"], 5);
    assert_eq!(page["next_cursor"], Value::Null);
    let events = page["events"].as_array().unwrap();
    let brief: Vec<Value> = events
        .iter()
        .map(|e| {
            json!([
                e["event_type"],
                e["role"],
                e["content_preview"],
                e["has_more_content"]
            ])
        })
        .collect();
    assert_eq!(
        brief,
        [
            json!(["user", "user", "find it", false]),
            json!(["assistant", "assistant", "let me look", false]),
            json!([
                "tool_call",
                "assistant",
                "agent_session_list {\"limit\":7}",
                false
            ]),
            json!(["tool_result", "tool", "[]", false]),
            json!(["assistant", "assistant", "found it", false]),
        ]
    );
    let members = [
        "timestamp",
        "event_type",
        "role",
        "content_preview",
        "has_more_content",
    ];
    for event in &events[1..] {
        has_members(event, &members);
    }
    // What another session wrote carries its origin.
    assert_eq!(events[0]["origin_session_id"], root.to_string());
    assert!(column(&page["events"], "timestamp").is_sorted_by(|a, b| a < b));
    assert!(!page.to_string().contains("secret thought"));
}

#[tokio::test]
async fn agent_session_read_events_dot_session_id_returns_self_history() {
    let (world, root, child) = storied().await;
    let dot = world.ask(child, READ, json!({ "session_id": "." })).await;
    assert_eq!(dot, world.ask(child, READ, json!({})).await);
    assert_eq!(dot, read(&world, root, child, json!({})).await);
    assert_eq!(dot["events"][0]["content_preview"], "find it");
    // The root itself was told nothing yet.
    let own = world.ask(root, READ, json!({ "session_id": "." })).await;
    assert_eq!(
        own,
        json!({ "events": [], "total_matching": 0, "next_cursor": null })
    );
}

#[tokio::test]
async fn agent_session_read_events_self_reference_returns_parent_history() {
    let world = World::new().await;
    world
        .puppet
        .teach(|request| match Puppet::task(request).as_str() {
            "parent task" if !Puppet::after_tools(request) => {
                call(READ, &json!({ "session_id": "." }))
            }
            _ => text("done"),
        });
    let root = world.root(None).await;
    let child = world.child(root, Some("child task")).await;
    world.quiet(child).await;
    let send = json!({ "session_id": ".", "text": "parent task" });
    world.ask(root, "agent_session_send", send).await;
    world.quiet(root).await;
    let last = world.puppet.requests().pop().unwrap();
    let seen: Value = serde_json::from_str(&Puppet::results(&last)[0]).unwrap();
    let first = &seen["events"][0];
    assert_eq!(
        (&first["event_type"], &first["content_preview"]),
        (&json!("user"), &json!("parent task"))
    );
    assert!(!seen.to_string().contains("child task"));
}

#[tokio::test]
async fn agent_session_read_events_after_timestamp_filters_correctly() {
    let (world, root, child) = storied().await;
    let all = read(&world, root, child, json!({})).await;
    let all = all["events"].as_array().unwrap();
    for (index, event) in all.iter().enumerate() {
        let after = json!({ "after_timestamp": event["timestamp"] });
        let page = read(&world, root, child, after).await;
        assert_eq!(page["events"].as_array().unwrap()[..], all[index + 1..]);
        assert_eq!(page["total_matching"], all.len() - index - 1);
    }
    // Pages of every size give each event once, and the last cursor is null exactly at the end.
    for limit in 1..=6 {
        let mut seen = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let arguments = json!({ "after_timestamp": cursor, "limit": limit });
            let page = read(&world, root, child, arguments).await;
            seen.extend(page["events"].as_array().unwrap().iter().cloned());
            cursor = page["next_cursor"].clone();
            assert_eq!(cursor.is_null(), seen.len() == all.len());
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(seen, *all, "{limit}");
    }
}

#[tokio::test]
async fn agent_session_read_events_event_type_filter_returns_only_matching_types() {
    let (world, root, child) = storied().await;
    let rows: [(&[&str], &[&str]); 6] = [
        (&["user"], &["find it"]),
        (&["assistant"], &["let me look", "found it"]),
        (&["tool_call"], &["agent_session_list {\"limit\":7}"]),
        (&["tool_result"], &["[]"]),
        (&["diagnostic"], &[]),
        (&["user", "tool_result"], &["find it", "[]"]),
    ];
    for (types, texts) in rows {
        let page = read(&world, root, child, json!({ "event_types": types })).await;
        assert_eq!(column(&page["events"], "content_preview"), texts);
        assert_eq!(page["total_matching"], texts.len());
        for found in column(&page["events"], "event_type") {
            assert!(types.contains(&found.as_str()));
        }
    }
}

#[tokio::test]
async fn agent_session_read_events_with_filters_returns_filtered_events() {
    let (world, root, child) = storied().await;
    let rows = [
        (
            json!({ "event_types": ["assistant"], "search": "FOUND" }),
            vec!["found it"],
        ),
        (
            json!({ "event_types": ["user"], "search": "it" }),
            vec!["find it"],
        ),
        (json!({ "event_types": ["user"], "search": "look" }), vec![]),
        (
            json!({ "search": "\"limit\"" }),
            vec!["agent_session_list {\"limit\":7}"],
        ),
        (json!({ "search": "secret" }), vec![]),
    ];
    for (arguments, texts) in rows {
        let page = read(&world, root, child, arguments.clone()).await;
        assert_eq!(
            column(&page["events"], "content_preview"),
            texts,
            "{arguments}"
        );
        assert_eq!(page["total_matching"], texts.len());
    }
}

/// A child that was told texts, one after the other, and answers `ok`.
async fn told(texts: &[String]) -> (World, SessionId, SessionId) {
    let world = World::new().await;
    world.puppet.teach(|_| text("ok"));
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    for text in texts {
        let send = json!({ "session_id": child.to_string(), "text": text });
        world.ask(root, "agent_session_send", send).await;
        world.quiet(child).await;
        // The clock is turned back, as often happens when a host is set right.
        world.time.wind(-1_000);
    }
    (world, root, child)
}

#[tokio::test]
async fn g59_events_of_the_same_moment_page_exactly() {
    let texts: Vec<String> = (0..5).map(|n| format!("text {n}")).collect();
    let (world, root, child) = told(&texts).await;
    for filter in [
        json!({}),
        json!({ "event_types": ["user"], "search": "text" }),
    ] {
        let wanted = if filter == json!({}) { 10 } else { 5 };
        let mut seen = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let mut arguments = filter.clone();
            arguments["limit"] = json!(2);
            arguments["after_timestamp"] = cursor;
            let page = read(&world, root, child, arguments).await;
            seen.extend(column(&page["events"], "timestamp"));
            cursor = page["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(seen.len(), wanted);
        assert!(seen.is_sorted_by(|a, b| a < b), "each once: {seen:?}");
    }
    // What joins between two pages is on a later one.
    let first = read(&world, root, child, json!({ "limit": 9 })).await;
    let send = json!({ "session_id": child.to_string(), "text": "late" });
    world.ask(root, "agent_session_send", send).await;
    world.quiet(child).await;
    let rest = json!({ "after_timestamp": first["next_cursor"] });
    let rest = read(&world, root, child, rest).await;
    assert_eq!(
        column(&rest["events"], "content_preview"),
        ["ok", "late", "ok"]
    );
}

#[tokio::test]
async fn g52_previews_are_cut_between_characters_and_say_so_exactly() {
    for unit in ["a", "é", "🙏"] {
        for length in [499, 500, 501, 502] {
            let long = unit.repeat(length);
            let (world, root, child) = told(std::slice::from_ref(&long)).await;
            let page = read(&world, root, child, json!({ "event_types": ["user"] })).await;
            let event = &page["events"][0];
            assert_eq!(event["content_preview"], unit.repeat(length.min(500)));
            assert_eq!(event["has_more_content"], length > 500);
            let full = json!({ "event_types": ["user"], "full": true });
            let page = read(&world, root, child, full).await;
            let event = &page["events"][0];
            assert_eq!(event["content_preview"], long);
            assert_eq!(event["has_more_content"], false);
        }
    }
}

#[tokio::test]
async fn a_full_text_is_whole_as_long_as_it_can_be_sent() {
    let longest = "x".repeat(1024 * 1024);
    let (world, root, child) = told(std::slice::from_ref(&longest)).await;
    let full = json!({ "event_types": ["user"], "full": true });
    let page = read(&world, root, child, full).await;
    let event = &page["events"][0];
    assert!(event["content_preview"] == longest);
    assert_eq!(event["has_more_content"], false);
}

#[tokio::test]
async fn a_search_sees_text_behind_the_preview() {
    let long = "x".repeat(600) + " Needle";
    let (world, root, child) = told(&[long, "other".to_owned()]).await;
    let page = read(&world, root, child, json!({ "search": "needle" })).await;
    assert_eq!(page["total_matching"], 1);
    assert_eq!(page["events"][0]["has_more_content"], true);
    assert_eq!(page["events"][0]["content_preview"], "x".repeat(500));
}

#[tokio::test]
async fn limits_are_clamped_and_named() {
    // Each text and its answer: more than the largest page.
    let texts: Vec<String> = (0..101).map(|n| n.to_string()).collect();
    let (world, root, child) = told(&texts).await;
    let rows = [
        (json!({}), 20, None),
        (json!({ "limit": 200 }), 200, None),
        (json!({ "limit": 0 }), 1, Some(1)),
        (json!({ "limit": 201 }), 200, Some(200)),
        (json!({ "limit": 5_000 }), 200, Some(200)),
        (json!({ "full": true }), 5, None),
        (json!({ "limit": 5, "full": true }), 5, None),
        (json!({ "limit": 6, "full": true }), 5, Some(5)),
    ];
    for (arguments, events, adjusted) in rows {
        let page = read(&world, root, child, arguments.clone()).await;
        assert_eq!(page["events"].as_array().unwrap().len(), events);
        let adjusted = adjusted.map(|limit: u32| json!({ "limit": limit }));
        assert_eq!(page.get("adjusted"), adjusted.as_ref(), "{arguments}");
        assert_eq!(page["total_matching"], 202);
    }
}

#[tokio::test]
async fn a_foreign_history_reads_like_one_that_does_not_exist() {
    let (world, root, child) = storied().await;
    let stranger = world.root(None).await.to_string();
    let nobody = "01890000-0000-7000-8000-000000000003";
    let unknown = world
        .call(child, READ, json!({ "session_id": nobody }))
        .await;
    assert!(unknown.is_error);
    for real in [root.to_string(), stranger] {
        let other = world.call(child, READ, json!({ "session_id": real })).await;
        assert_eq!(other.content.replace(&real, nobody), unknown.content);
    }
    let shown = on(&world, root, "get", child).await;
    assert_eq!(shown["status"], "idle");
}
