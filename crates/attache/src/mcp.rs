//! Puts the MCP door and the host together: how a connection that asks for it is served, where the
//! roots of its clients come from, and the route for clients over HTTP.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use attache_host::web::{Body, HeaderMap, Incoming, Request, Response, Route};
use attache_host::{Door as HostDoor, DoorFuture, Doors, Host, OpenDoor, OutsideRoot, Service};
use attache_mcp_door::{Door, EngineError, HttpDoor, RootFuture, Roots, SessionId, Token, serve};

use crate::fail::{Failure, NOT_FOUND};
use crate::link;
use crate::places::Places;

/// The name of the door in the frame that opens it.
pub(crate) const DOOR: &str = "mcp";

/// The doors of other protocols that a host has.
pub(crate) fn doors() -> Doors {
    Doors::from([(DOOR, Arc::new(McpDoor) as Arc<dyn HostDoor>)])
}

/// Roots of one client, or of all clients over HTTP.
struct HostRoots {
    host: Host,
    root: OutsideRoot,
}

impl Roots for HostRoots {
    fn make<'a>(&'a self, client: &'a str) -> RootFuture<'a, SessionId> {
        Box::pin(self.host.create_outside(&self.root, client))
    }

    fn go_on<'a>(&'a self, root: SessionId) -> RootFuture<'a, ()> {
        Box::pin(self.host.go_on_outside(root, &self.root.environment))
    }
}

struct McpDoor;

impl HostDoor for McpDoor {
    fn open<'a>(
        &'a self,
        host: &'a Host,
        open: OpenDoor,
    ) -> DoorFuture<'a, Result<Service, EngineError>> {
        Box::pin(async move {
            let OpenDoor {
                version: _,
                program: _,
                door: _,
                agent,
                model,
                root_session_id,
                working_directory,
                environment,
            } = open;
            let door = door(host)?;
            let root = OutsideRoot {
                agent,
                model,
                working_directory,
                environment,
            };
            host.check_outside(&root)?;
            let host = host.clone();
            let earlier = root_session_id
                .map(|id| host.outside_root(&id))
                .transpose()?;
            let roots = Arc::new(HostRoots { host, root });
            let service: Service = Box::new(move |stream| {
                Box::pin(async move { serve(&door, roots, earlier, stream).await })
            });
            Ok(service)
        })
    }
}

fn door(host: &Host) -> Result<Door, EngineError> {
    Door::new(host.engine().clone(), "attache", env!("CARGO_PKG_VERSION"))
}

/// The MCP door as a route of the listener.
struct McpRoute(HttpDoor);

impl Route for McpRoute {
    fn knows(&self, headers: &HeaderMap) -> bool {
        self.0.knows(headers)
    }

    fn answer<'a>(&'a self, request: Request<Incoming>) -> DoorFuture<'a, Response<Body>> {
        Box::pin(self.0.answer(request))
    }

    fn end(&self) {
        self.0.end();
    }
}

/// The route for clients over HTTP, who have to bring the token of the state folder.
pub(crate) fn route(host: &Host, places: &Places) -> Result<Arc<dyn Route>, Failure> {
    let mut fresh = [0; 32];
    getrandom::fill(&mut fresh)
        .map_err(|fault| Failure::internal(format!("there is no chance to be had: {fault}")))?;
    // Sessions in memory need no state folder, and the token does.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&places.state)
        .map_err(|fault| {
            let text = format!("{}: {fault}", places.state.display());
            Failure::new(NOT_FOUND, "internal", text)
        })?;
    let token = Token::of(&places.state, &fresh)
        .map_err(|error| Failure::new(NOT_FOUND, "internal", error.to_string()))?;
    let root = OutsideRoot {
        agent: None,
        model: None,
        working_directory: link::working_directory()?.display().to_string(),
        // The host's own variables are there for every session.
        environment: BTreeMap::new(),
    };
    let roots = Arc::new(HostRoots {
        host: host.clone(),
        root,
    });
    let door = door(host).map_err(|error| Failure::internal(error.message))?;
    Ok(Arc::new(McpRoute(HttpDoor::new(&door, roots, token))))
}
