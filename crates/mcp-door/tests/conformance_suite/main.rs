//! The door as the official conformance suite wants to find it: with tools and resources of certain
//! names beside its own. It has these for what the door offers, tools and resources, and for nothing
//! else; what the suite misses beyond that is in the list of expected failures.
//!
//! It serves without a token, because the suite has none to bring, and prints its address.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]
#![expect(clippy::print_stdout, reason = "the runner reads the address")]

use std::convert::Infallible;
use std::sync::Arc;

use attache_mcp_door::{Door, McpClient, RootFuture, Roots, SessionId, clients};
use attache_testkit::{Puppet, World, text};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};

/// A red dot, and silence.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const WATCHED: &str = "test://watched-resource";

struct WorldRoots(Arc<World>);

impl Roots for WorldRoots {
    fn make<'a>(&'a self, _client: &'a str) -> RootFuture<'a, SessionId> {
        Box::pin(async move { Ok(self.0.turnless_root("puppet/puppet").await) })
    }

    fn go_on<'a>(&'a self, root: SessionId) -> RootFuture<'a, ()> {
        Box::pin(async move { self.0.engine.start(root, None).await.map(drop) })
    }
}

/// The door with the fixtures beside it.
struct Fixtures(McpClient);

fn fixture(name: &str) -> Tool {
    let schema = json!({ "type": "object", "properties": {} });
    Tool::new(
        name.to_owned(),
        "A fixture of the conformance suite",
        Arc::new(schema.as_object().cloned().unwrap()),
    )
}

/// The tool whose schema must come through as it is.
fn schema_tool() -> Tool {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    Tool::new(
        "json_schema_2020_12_tool",
        "Tool with JSON Schema 2020-12 features",
        Arc::new(schema.as_object().cloned().unwrap()),
    )
}

/// The tool with parameters that are repeated in headers.
fn header_tool(name: &'static str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "priority": { "type": "integer", "x-mcp-header": "Priority" },
            "verbose": { "type": "boolean", "x-mcp-header": "Verbose" },
            "query": { "type": "string" },
        },
    });
    Tool::new(
        name,
        "A fixture of the conformance suite",
        Arc::new(schema.as_object().cloned().unwrap()),
    )
}

fn content(name: &str) -> Option<Vec<ContentBlock>> {
    let resource = |uri: &str, text: &str| {
        ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type("text/plain"))
    };
    Some(match name {
        "test_simple_text" => vec![ContentBlock::text(
            "This is a simple text response for testing.",
        )],
        "test_image_content" => vec![ContentBlock::image(PNG, "image/png")],
        "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
        "test_embedded_resource" => vec![resource(
            "test://embedded-resource",
            "This is an embedded resource content.",
        )],
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(PNG, "image/png"),
            resource(
                "test://mixed-content-resource",
                "{\"test\":\"data\",\"value\":123}",
            ),
        ],
        "json_schema_2020_12_tool" | "test_custom_headers" => vec![ContentBlock::text("ok")],
        _ => return None,
    })
}

const FIXTURES: [&str; 7] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
];

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        self.0.get_info()
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == "test_custom_headers").then(|| header_tool("test_custom_headers"))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.0.list_tools(request, context).await?;
        listed.tools.extend(FIXTURES.map(fixture));
        listed
            .tools
            .extend([schema_tool(), header_tool("test_custom_headers")]);
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(content) = content(&request.name) {
            return Ok(CallToolResult::success(content).into());
        }
        match &*request.name {
            "test_error_handling" => {
                let text = "This tool intentionally returns an error for testing";
                Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into())
            }
            "test_tool_with_progress" => {
                if let Some(token) = context.meta.get_progress_token() {
                    for progress in [0.0, 50.0, 100.0] {
                        let told = ProgressNotificationParam::new(token.clone(), progress);
                        let _told = context.peer.notify_progress(told.with_total(100.0)).await;
                    }
                }
                Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
            }
            _ => self.0.call_tool(request, context).await,
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.0.list_resources(request, context).await?;
        for (uri, kind) in [
            ("test://static-text", "text/plain"),
            ("test://static-binary", "image/png"),
            (WATCHED, "text/plain"),
        ] {
            let resource = Resource::new(uri, uri).with_mime_type(kind);
            listed.resources.push(resource);
        }
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = self.0.list_resource_templates(request, context).await?;
        listed
            .resource_templates
            .push(ResourceTemplate::new("test://template/{id}/data", "data"));
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let contents = match uri.as_str() {
            "test://static-text" | WATCHED => {
                ResourceContents::text("This is the content of the static text resource.", uri)
            }
            "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
            "test://template/123/data" => {
                let data: Value = json!({ "id": "123", "templateTest": true });
                ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
            }
            _ => return self.0.read_resource(request, context).await,
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    #[expect(deprecated, reason = "clients of the older protocol subscribe by it")]
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if request.uri == WATCHED {
            return Ok(());
        }
        self.0.subscribe(request, context).await
    }

    #[expect(deprecated, reason = "clients of the older protocol unsubscribe by it")]
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.unsubscribe(request, context).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.0.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.listen(context).await
    }
}

#[tokio::main]
async fn main() {
    let store = Arc::new(attache_engine::parts::MemoryStore::new());
    let puppet = Puppet::new(|_request| text("done"));
    let world = World::with(store, puppet, attache_tools::built_in(), Vec::new()).await;
    let world = Arc::new(world);
    let door = Door::new(world.engine.clone(), "attache", env!("CARGO_PKG_VERSION")).unwrap();
    let clients = clients(&door, Arc::new(WorldRoots(world)));
    let client = move || Ok(Fixtures(clients()));
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*"])
        .enforce_origin_validation();
    let manager: Arc<LocalSessionManager> = Arc::default();
    let service = StreamableHttpService::new(client, manager, config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}/mcp", listener.local_addr().unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            let _served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}
