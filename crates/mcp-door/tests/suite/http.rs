//! The door over HTTP: both lifecycles, and who is refused.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use attache_host::web::{
    Body, HeaderMap, Incoming, Listen, Listener, Request, Response, Route, Site,
};
use attache_mcp_door::{HttpDoor, Token};
use attache_testkit::{Gate, World};
use reqwest::StatusCode;
use rmcp::model::ProtocolVersion;
use rmcp::service::ClientServiceExt;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::json;
use tokio::sync::oneshot;

use crate::desk::{Client, Ears, VERSIONS, WorldRoots, ask, door, id, lifecycle, world};

const TOKEN: &str = "0707070707070707070707070707070707070707070707070707070707070707";

struct Served {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

/// The door as a route of the listener.
struct McpRoute(HttpDoor);

impl Route for McpRoute {
    fn knows(&self, headers: &HeaderMap) -> bool {
        self.0.knows(headers)
    }

    fn answer<'a>(
        &'a self,
        request: Request<Incoming>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>> {
        Box::pin(self.0.answer(request))
    }

    fn end(&self) {
        self.0.end();
    }
}

async fn serve(world: &Arc<World>) -> Served {
    // Only one of several tests in a process can be the first.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let token = Token::of(folder.path(), &[7; 32]).unwrap();
    let roots = Arc::new(WorldRoots(Arc::clone(world), "puppet/puppet"));
    let http = HttpDoor::new(&door(world), roots, token);
    let listen = Listen {
        address: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        has_tokens: false,
    };
    let listener = Listener::bind(listen).await.unwrap();
    let address = listener.address();
    let (stop, stopped) = oneshot::channel();
    let site = Site::new(&[]).with("/mcp", Arc::new(McpRoute(http)));
    tokio::spawn(listener.serve(site, async move { drop(stopped.await) }));
    Served {
        address,
        _stop: stop,
    }
}

async fn client(served: &Served, version: &ProtocolVersion) -> Client {
    let uri = format!("http://{}/mcp", served.address);
    let config = StreamableHttpClientTransportConfig::with_uri(uri).auth_header(TOKEN);
    let transport = StreamableHttpClientTransport::from_config(config);
    let ears = Ears::of(version);
    ears.serve_with_lifecycle(transport, lifecycle(version))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_client_delegates_over_http() {
    let world = world(&Gate::default()).await;
    let served = serve(&world).await;
    for version in &VERSIONS {
        let one = client(&served, version).await;
        assert_eq!(one.list_all_tools().await.unwrap().len(), 9);
        let made = ask(
            &one,
            "agent_session_create",
            json!({ "initial_message": "hello" }),
        )
        .await;
        let wait = json!({ "session_id": id(&made), "wait_for_idle": true });
        let waited = ask(&one, "agent_session_wait", wait).await;
        assert_eq!(waited["result_preview"], "answer to hello", "{version}");
        assert_eq!(waited["root_session_id"], made["root_session_id"]);

        // Another one finds it by the root's name, and without that only where nothing tells the two
        // apart but the token.
        let two = client(&served, version).await;
        let alone = ask(&two, "agent_session_list", json!({})).await;
        let same = *version == ProtocolVersion::V_2026_07_28;
        assert_eq!(alone["root_session_id"] == made["root_session_id"], same);
        let named = json!({ "root_session_id": made["root_session_id"] });
        let listed = ask(&two, "agent_session_list", named).await;
        assert_eq!(listed["sessions"][0]["session_id"], made["session_id"]);
        let uri = format!("attache://session/{}", id(&made));
        let params = rmcp::model::ReadResourceRequestParams::new(uri);
        assert!(two.read_resource(params).await.is_ok());
    }
}

#[tokio::test]
async fn who_has_no_business_here_is_refused() {
    let world = world(&Gate::default()).await;
    let served = serve(&world).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" },
        },
    });
    let right = format!("Bearer {TOKEN}");
    let wrong = format!("Bearer {}", TOKEN.replace('7', "8"));
    let path = "/mcp";
    for (path, token, header, status) in [
        (path, Some(&right), None, StatusCode::OK),
        (path, None, None, StatusCode::UNAUTHORIZED),
        (path, Some(&wrong), None, StatusCode::UNAUTHORIZED),
        ("/other", None, None, StatusCode::UNAUTHORIZED),
        ("/other", Some(&right), None, StatusCode::NOT_FOUND),
        (
            path,
            Some(&right),
            Some(("host", "evil.example")),
            StatusCode::FORBIDDEN,
        ),
        (
            path,
            Some(&right),
            Some(("host", "localhost:1")),
            StatusCode::OK,
        ),
        (
            path,
            Some(&right),
            Some(("origin", "http://evil.example")),
            StatusCode::FORBIDDEN,
        ),
        (
            path,
            Some(&right),
            Some(("origin", "null")),
            StatusCode::FORBIDDEN,
        ),
        (
            path,
            Some(&right),
            Some(("origin", "http://localhost:3000")),
            StatusCode::OK,
        ),
    ] {
        let mut post = http
            .post(format!("http://{}{path}", served.address))
            .header("accept", "application/json, text/event-stream")
            .json(&hello);
        if let Some(token) = token {
            post = post.header("authorization", token);
        }
        if let Some((name, value)) = header {
            post = post.header(name, value);
        }
        let answered = post.send().await.unwrap();
        assert_eq!(answered.status(), status, "{path} {token:?} {header:?}");
        if status == StatusCode::UNAUTHORIZED {
            assert_eq!(answered.headers()["www-authenticate"], "Bearer");
        }
    }
    let large = json!({ "x": "x".repeat(9 * 1024 * 1024) }).to_string();
    let answered = http
        .post(format!("http://{}/mcp", served.address))
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("authorization", &right)
        .body(large)
        .send()
        .await;
    // It may be told, or cut while it still sends.
    assert!(answered.is_err() || answered.unwrap().status() == StatusCode::PAYLOAD_TOO_LARGE);
}
