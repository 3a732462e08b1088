//! A door over an engine in memory, and clients of it.

use std::sync::{Arc, Mutex, PoisonError};

use attache_mcp_door::{Door, RootFuture, Roots, SessionId};
use attache_testkit::{Gate, Piece, Puppet, World, text};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ProgressNotificationParam, ProtocolVersion,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, NotificationContext, RunningService};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use tokio::sync::Notify;

/// What the puppet says: a run that begins with `slow` waits at the gate.
pub(crate) async fn world(gate: &Gate) -> Arc<World> {
    let gate = gate.clone();
    let puppet = Puppet::new(move |request| {
        let input = Puppet::last_user(request);
        if input.starts_with("slow") {
            vec![
                Piece::Text("thinking ".to_owned()),
                Piece::Wait(gate.clone()),
                Piece::Text("done".to_owned()),
            ]
        } else {
            text(&format!("answer to {input}"))
        }
    });
    let store = Arc::new(attache_engine::parts::MemoryStore::new());
    Arc::new(World::with(store, puppet, attache_tools::built_in(), Vec::new()).await)
}

/// Roots of the engine itself, with the puppet for a model.
pub(crate) struct WorldRoots(pub(crate) Arc<World>, pub(crate) &'static str);

impl Roots for WorldRoots {
    fn make<'a>(&'a self, _client: &'a str) -> RootFuture<'a, SessionId> {
        Box::pin(async move { Ok(self.0.turnless_root(self.1).await) })
    }

    fn go_on<'a>(&'a self, root: SessionId) -> RootFuture<'a, ()> {
        Box::pin(async move { self.0.engine.start(root, None).await.map(drop) })
    }
}

pub(crate) fn door(world: &World) -> Door {
    Door::new(world.engine.clone(), "attache", "0").unwrap()
}

/// The versions of the protocol that are walked through.
pub(crate) const VERSIONS: [ProtocolVersion; 3] = [
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// What a client was told without having asked.
#[derive(Clone, Default)]
pub(crate) struct Ears {
    heard: Arc<Mutex<Vec<String>>>,
    bell: Arc<Notify>,
    version: Option<ProtocolVersion>,
}

impl Ears {
    pub(crate) fn of(version: &ProtocolVersion) -> Self {
        Self {
            version: Some(version.clone()),
            ..Self::default()
        }
    }

    pub(crate) fn hears(&self, what: String) {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(what);
        self.bell.notify_one();
    }

    /// Waits until this was told.
    pub(crate) async fn heard(&self, what: &str) {
        loop {
            let heard = |all: &Vec<String>| all.iter().any(|it| it == what);
            if heard(&self.heard.lock().unwrap_or_else(PoisonError::into_inner)) {
                return;
            }
            self.bell.notified().await;
        }
    }
}

impl ClientHandler for Ears {
    fn get_info(&self) -> rmcp::model::ClientConfig {
        let mut info = rmcp::model::ClientConfig::default();
        if let Some(version) = &self.version {
            info.protocol_version = version.clone();
        }
        info
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hears(format!("progress {}", params.progress));
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hears(params.uri);
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.hears("list".to_owned());
    }
}

pub(crate) type Client = RunningService<RoleClient, Ears>;

/// How a client of a version begins.
pub(crate) fn lifecycle(version: &ProtocolVersion) -> ClientLifecycleMode {
    if *version == ProtocolVersion::V_2026_07_28 {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![version.clone()],
        }
    } else {
        ClientLifecycleMode::Initialize
    }
}

/// A client over a stream of bytes. Aborting the task is a connection that breaks.
pub(crate) async fn client(
    world: &Arc<World>,
    version: &ProtocolVersion,
    root: Option<SessionId>,
) -> (Client, tokio::task::JoinHandle<()>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let door = door(world);
    let roots = Arc::new(WorldRoots(Arc::clone(world), "puppet/puppet"));
    let served =
        tokio::spawn(async move { attache_mcp_door::serve(&door, roots, root, far).await });
    let ears = Ears::of(version);
    let client = ears.serve_with_lifecycle(near, lifecycle(version));
    (client.await.unwrap(), served)
}

/// What a call came to: its structured content. The text says the same.
pub(crate) fn told(result: &CallToolResult) -> Value {
    let structured = result.structured_content.clone().unwrap();
    let text = result.content[0].as_text().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text.text).unwrap(),
        structured
    );
    assert_eq!(
        result.is_error == Some(true),
        structured.get("error").is_some()
    );
    structured
}

pub(crate) fn request(tool: &str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool.to_owned())
        .with_arguments(arguments.as_object().cloned().unwrap())
}

/// Calls a tool.
pub(crate) async fn ask(client: &Client, tool: &str, arguments: Value) -> Value {
    told(&client.call_tool(request(tool, arguments)).await.unwrap())
}

/// The id of a session that a result names.
pub(crate) fn id(result: &Value) -> String {
    result["session_id"].as_str().unwrap().to_owned()
}
