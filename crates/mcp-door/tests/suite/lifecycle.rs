//! A client of each version of the protocol delegates, comes back after its connection broke, and
//! sees nothing of another one's sessions.

use attache_mcp_door::SessionId;
use attache_testkit::Gate;
use serde_json::json;

use crate::desk::{VERSIONS, ask, client, id, request, told, world};

#[tokio::test(start_paused = true)]
async fn the_nine_tools_are_offered_with_two_more_parameters() {
    let world = world(&Gate::default()).await;
    for version in &VERSIONS {
        let (client, _served) = client(&world, version, None).await;
        let tools = client.list_all_tools().await.unwrap();
        assert_eq!(tools.len(), 9, "{version}");
        for tool in tools {
            let schema = &tool.input_schema;
            assert!(tool.name.starts_with("agent_session_"));
            assert_eq!(
                schema["additionalProperties"],
                json!(false),
                "{}",
                tool.name
            );
            assert_eq!(schema["properties"]["acknowledge"]["type"], "array");
            assert_eq!(schema["properties"]["root_session_id"]["type"], "string");
            let looks = ["get", "list", "read_events", "wait"];
            let looks = looks.iter().any(|name| tool.name.ends_with(name));
            let hint = tool.annotations.unwrap().read_only_hint;
            assert_eq!(hint, Some(looks), "{}", tool.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_delegates_waits_and_reads() {
    let world = world(&Gate::default()).await;
    for version in &VERSIONS {
        let (client, _served) = client(&world, version, None).await;
        let made = ask(
            &client,
            "agent_session_create",
            json!({ "initial_message": "hello" }),
        )
        .await;
        assert_eq!(made["status"], "running", "{version}");
        let child = id(&made);
        let wait = json!({ "session_id": child, "wait_for_idle": true });
        let waited = ask(&client, "agent_session_wait", wait).await;
        assert_eq!(waited["result_preview"], "answer to hello");
        let listed = ask(&client, "agent_session_list", json!({})).await;
        assert_eq!(listed["sessions"][0]["session_id"], made["session_id"]);
        let send = json!({ "session_id": child, "text": "more" });
        assert_eq!(ask(&client, "agent_session_send", send).await["ok"], true);
        let wait = json!({ "session_id": child, "wait_for_idle": true });
        ask(&client, "agent_session_wait", wait).await;
        let read = json!({ "session_id": child, "event_types": ["assistant"] });
        let read = ask(&client, "agent_session_read_events", read).await;
        assert_eq!(read["total_matching"], 2);
        let stop = json!({ "session_id": child, "dispose": true });
        assert_eq!(
            ask(&client, "agent_session_stop", stop).await["was_running"],
            false
        );
        let acquire = json!({ "session_id": child });
        let acquired = ask(&client, "agent_session_acquire", acquire).await;
        assert_eq!(acquired["already_acquired"], false);
        for result in [made, waited, listed, read, acquired] {
            let root: SessionId = result["root_session_id"].as_str().unwrap().parse().unwrap();
            assert!(!world.row(root).view.summary.runs_turns);
            assert!(result["notices"].is_array());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_a_result_that_says_so() {
    let world = world(&Gate::default()).await;
    for version in &VERSIONS {
        let (client, _served) = client(&world, version, None).await;
        for (tool, arguments, code) in [
            (
                "agent_session_get",
                json!({ "session_id": "x" }),
                "unknown-session",
            ),
            (
                "agent_session_get",
                json!({ "other": 1 }),
                "invalid-arguments",
            ),
            ("agent_session_send", json!({}), "invalid-arguments"),
            (
                "agent_session_wait",
                json!({ "session_id": "." }),
                "self-wait",
            ),
            (
                "agent_session_send",
                json!({ "session_id": ".", "text": "x" }),
                "no-user-input",
            ),
            (
                "agent_session_list",
                json!({ "acknowledge": "x" }),
                "invalid-arguments",
            ),
            (
                "agent_session_list",
                json!({ "root_session_id": "x" }),
                "unknown-session",
            ),
        ] {
            let refused = ask(&client, tool, arguments.clone()).await;
            assert_eq!(refused["error"]["code"], code, "{tool} {arguments}");
            assert!(refused["error"]["message"].is_string());
        }
        // What is not offered is no result.
        let refused = client.call_tool(request("read_file", json!({}))).await;
        assert!(refused.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_outlive_the_connection_and_are_found_again() {
    let gate = Gate::default();
    let world = world(&gate).await;
    for version in &VERSIONS {
        let (first, served) = client(&world, version, None).await;
        let create = json!({ "initial_message": "slow work" });
        let made = ask(&first, "agent_session_create", create).await;
        let watch = json!({ "session_id": id(&made), "message": "mine has ended" });
        ask(&first, "agent_session_on_complete", watch).await;
        served.abort();
        drop(first);
        gate.open();

        // Named in a call, and from then on without a name.
        let (second, _served) = client(&world, version, None).await;
        let again = json!({ "root_session_id": made["root_session_id"] });
        let listed = ask(&second, "agent_session_list", again).await;
        assert_eq!(listed["sessions"][0]["session_id"], made["session_id"]);
        let wait = json!({ "session_id": id(&made), "wait_for_idle": true });
        let waited = ask(&second, "agent_session_wait", wait).await;
        assert_eq!(waited["result_preview"], "thinking done", "{version}");
        assert_eq!(waited["notices"][0]["message"], "mine has ended");

        // Named when the door was opened.
        let root = made["root_session_id"].as_str().unwrap().parse().unwrap();
        let (third, _served) = client(&world, version, Some(root)).await;
        let listed = ask(&third, "agent_session_list", json!({})).await;
        assert_eq!(listed["root_session_id"], made["root_session_id"]);
    }
}

#[tokio::test(start_paused = true)]
async fn two_clients_do_not_see_each_others_sessions() {
    let world = world(&Gate::default()).await;
    for version in &VERSIONS {
        let (one, _served_one) = client(&world, version, None).await;
        let (two, _served_two) = client(&world, version, None).await;
        let made = ask(
            &one,
            "agent_session_create",
            json!({ "initial_message": "hello" }),
        )
        .await;
        let child = id(&made);
        let listed = ask(&two, "agent_session_list", json!({ "recursive": true })).await;
        assert_eq!(listed["sessions"], json!([]));
        assert_ne!(listed["root_session_id"], made["root_session_id"]);
        for (tool, more) in [
            ("agent_session_get", json!({})),
            ("agent_session_wait", json!({})),
            ("agent_session_read_events", json!({})),
            ("agent_session_stop", json!({ "dispose": true })),
            ("agent_session_send", json!({ "text": "x" })),
            ("agent_session_on_complete", json!({})),
            ("agent_session_acquire", json!({})),
        ] {
            let ask_for = |id: &str| {
                let mut arguments = more.clone();
                arguments["session_id"] = json!(id);
                request(tool, arguments)
            };
            let theirs = told(&two.call_tool(ask_for(&child)).await.unwrap());
            let nobodys = uuid::Uuid::from_u128(7).to_string();
            let unknown = told(&two.call_tool(ask_for(&nobodys)).await.unwrap());
            assert_eq!(theirs["error"]["code"], "unknown-session", "{tool}");
            assert_eq!(unknown["error"]["code"], "unknown-session");
        }
        // A session that runs turns is nobody's root.
        let named = json!({ "root_session_id": child });
        let refused = ask(&two, "agent_session_list", named).await;
        assert_eq!(refused["error"]["code"], "unknown-session");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_named_creates_once() {
    let world = world(&Gate::default()).await;
    let (client, _served) = client(&world, &VERSIONS[1], None).await;
    let mut made = Vec::new();
    for name in ["a", "a", "b"] {
        let mut call = request("agent_session_create", json!({}));
        let meta = json!({ "attache/call-id": name });
        call.meta = Some(serde_json::from_value(meta).unwrap());
        made.push(id(&told(&client.call_tool(call).await.unwrap())));
    }
    assert_eq!(made[0], made[1]);
    assert_ne!(made[0], made[2]);
}
