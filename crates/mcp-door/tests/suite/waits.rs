//! A wait: progress while it lasts, and its end when the client gives it up.

use attache_mcp_door::SessionId;
use attache_testkit::Gate;
use rmcp::model::{CallToolRequest, CancelledNotificationParam, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::json;

use crate::desk::{VERSIONS, ask, client, id, request, world};

#[tokio::test(start_paused = true)]
async fn a_wait_shows_progress_and_ends_when_it_is_given_up() {
    let gate = Gate::default();
    let world = world(&gate).await;
    for version in &VERSIONS {
        let (client, _served) = client(&world, version, None).await;
        let made = ask(
            &client,
            "agent_session_create",
            json!({ "initial_message": "slow" }),
        )
        .await;
        let root: SessionId = made["root_session_id"].as_str().unwrap().parse().unwrap();
        gate.reached().await;
        let wait = json!({
            "session_id": id(&made), "wait_for_idle": true, "timeout_seconds": 300,
        });
        // The library gives each request a progress token of its own.
        let wait = ClientRequest::CallToolRequest(CallToolRequest::new(request(
            "agent_session_wait",
            wait,
        )));
        let options = PeerRequestOptions::no_options();
        let under_way = client
            .send_cancellable_request(wait, options)
            .await
            .unwrap();
        client.service().heard("progress 0").await;
        client.service().heard("progress 5").await;
        assert_eq!(world.engine.waiting_for(root).len(), 1, "{version}");
        let cancel = CancelledNotificationParam::new(Some(under_way.id.clone()), None);
        client.notify_cancelled(cancel).await.unwrap();
        while !world.engine.waiting_for(root).is_empty() {
            tokio::task::yield_now().await;
        }
        // The connection goes on.
        let got = ask(
            &client,
            "agent_session_get",
            json!({ "session_id": id(&made) }),
        )
        .await;
        assert_eq!(got["status"], "running");
    }
    gate.open();
}
