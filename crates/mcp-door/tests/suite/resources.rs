//! Resources: a client's sessions are listed, read and followed, and nobody else's.

use attache_testkit::Gate;
use rmcp::model::{
    ReadResourceRequestParams, ResourceContents, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use serde_json::{Value, json};

use crate::desk::{Client, VERSIONS, ask, client, id, world};

fn uri(session: &str) -> String {
    format!("attache://session/{session}")
}

async fn read(client: &Client, session: &str) -> Result<Value, rmcp::ServiceError> {
    let params = ReadResourceRequestParams::new(uri(session));
    let read = client.read_resource(params).await?;
    match &read.contents[0] {
        ResourceContents::TextResourceContents {
            text, mime_type, ..
        } => {
            assert_eq!(mime_type.as_deref(), Some("application/json"));
            Ok(serde_json::from_str(text).unwrap())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_clients_sessions_are_listed_and_read() {
    let world = world(&Gate::default()).await;
    for version in &VERSIONS {
        let (client, _served) = client(&world, version, None).await;
        let made = ask(
            &client,
            "agent_session_create",
            json!({ "initial_message": "hello" }),
        )
        .await;
        let (child, root) = (id(&made), made["root_session_id"].as_str().unwrap());
        let wait = json!({ "session_id": child, "wait_for_idle": true });
        ask(&client, "agent_session_wait", wait).await;
        let listed = client.list_all_resources().await.unwrap();
        let listed: Vec<_> = listed.into_iter().map(|resource| resource.uri).collect();
        assert_eq!(listed, [uri(root), uri(&child)], "{version}");
        let shown = read(&client, &child).await.unwrap();
        let got = ask(&client, "agent_session_get", json!({ "session_id": child })).await;
        for (key, value) in shown.as_object().unwrap() {
            if key != "history" {
                assert_eq!(got[key], *value, "{key}");
            }
        }
        let history = shown["history"].as_array().unwrap();
        assert_eq!(history[0]["content_preview"], "hello");
        assert_eq!(
            history.last().unwrap()["content_preview"],
            "answer to hello"
        );
        let shown = read(&client, root).await.unwrap();
        assert_eq!(shown["notices"], json!([]));
        assert_eq!(shown["status"], "idle");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_looks_leaves_nothing_behind() {
    let world = world(&Gate::default()).await;
    for version in &VERSIONS {
        let (client, _served) = client(&world, version, None).await;
        client.list_all_tools().await.unwrap();
        assert!(client.list_all_resources().await.unwrap().is_empty());
        client.list_all_resource_templates().await.unwrap();
    }
    let all = attache_engine::parts::RowFilter::All;
    assert!(world.engine.rows(all).unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_theirs_is_like_what_does_not_exist() {
    let world = world(&Gate::default()).await;
    for version in &VERSIONS {
        let (one, _served_one) = client(&world, version, None).await;
        let (two, _served_two) = client(&world, version, None).await;
        let made = ask(&one, "agent_session_create", json!({})).await;
        let usual = world.root(None).await.to_string();
        let nobodys = uuid::Uuid::from_u128(7).to_string();
        let mut errors = Vec::new();
        let root = made["root_session_id"].as_str().unwrap();
        for session in [id(&made).as_str(), root, &usual, &nobodys, "x"] {
            let refused = read(&two, session).await.unwrap_err();
            let rmcp::ServiceError::McpError(error) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!(error.data.unwrap()["code"], "unknown-session");
            errors.push((error.code, error.message));
        }
        errors.dedup();
        assert_eq!(errors.len(), 1, "{errors:?}");
        // Whoever names the root may see what is below it.
        let named = json!({ "root_session_id": root });
        ask(&two, "agent_session_list", named).await;
        assert!(read(&two, &id(&made)).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
#[expect(deprecated, reason = "clients of the older protocol subscribe by it")]
async fn a_client_with_a_connection_follows_what_it_subscribed_to() {
    let gate = Gate::default();
    let world = world(&gate).await;
    let (client, _served) = client(&world, &VERSIONS[1], None).await;
    client.list_all_resources().await.unwrap();
    let made = ask(
        &client,
        "agent_session_create",
        json!({ "initial_message": "slow" }),
    )
    .await;
    let (child, root) = (id(&made), made["root_session_id"].as_str().unwrap());
    client.service().heard("list").await;
    for session in [&child, root] {
        let subscribe = SubscribeRequestParams::new(uri(session));
        client.subscribe(subscribe).await.unwrap();
    }
    let nobodys = uri(&uuid::Uuid::from_u128(7).to_string());
    let refused = client.subscribe(SubscribeRequestParams::new(nobodys)).await;
    assert!(refused.is_err());
    ask(
        &client,
        "agent_session_on_complete",
        json!({ "session_id": child }),
    )
    .await;
    gate.open();
    client.service().heard(&uri(&child)).await;
    client.service().heard(&uri(root)).await;
    let unsubscribe = UnsubscribeRequestParams::new(uri(&child));
    client.unsubscribe(unsubscribe).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_without_one_listens_by_a_long_request() {
    let gate = Gate::default();
    let world = world(&gate).await;
    let (client, _served) = client(&world, &VERSIONS[2], None).await;
    let made = ask(
        &client,
        "agent_session_create",
        json!({ "initial_message": "slow" }),
    )
    .await;
    let filter = SubscriptionFilter::builder()
        .resources_list_changed()
        .resource_subscriptions([uri(&id(&made))])
        .build();
    let mut told = client.listen(filter).await.unwrap();
    gate.open();
    let ask_more = ask(&client, "agent_session_create", json!({}));
    let mut heard = Vec::new();
    let listen = async {
        while heard.len() < 2 {
            let notification = told.next().await.unwrap().unwrap();
            let text = serde_json::to_value(&notification).unwrap();
            let method = text["method"].as_str().unwrap().to_owned();
            if !heard.contains(&method) {
                heard.push(method);
            }
        }
    };
    tokio::join!(ask_more, listen);
    heard.sort();
    let both = [
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    ];
    assert_eq!(heard, both);
}
