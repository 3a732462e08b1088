//! Puts the MCP door and the host together: how a connection that asks for it is served, where the
//! roots of its clients come from, and the listener for clients over HTTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use attache_host::{Door as HostDoor, DoorFuture, Doors, Host, OpenDoor, OutsideRoot, Service};
use attache_mcp_door::{Door, EngineError, HttpDoor, RootFuture, Roots, SessionId, Token, serve};
use tokio::net::TcpListener;

use crate::fail::{Failure, NOT_FOUND};
use crate::link;
use crate::output::Output;
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

/// The listener for clients over HTTP, with the token that they have to bring.
pub(crate) async fn http(
    host: &Host,
    places: &Places,
    address: SocketAddr,
    output: &Output,
) -> Result<(HttpDoor, TcpListener), Failure> {
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
    let listener = TcpListener::bind(address).await.map_err(|fault| {
        Failure::new(
            NOT_FOUND,
            "internal",
            format!("cannot listen on {address}: {fault}"),
        )
    })?;
    let bound = listener.local_addr().unwrap_or(address);
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
    output.note(&format!(
        "attache serves http://{bound}/mcp; clients bring the token in {}",
        places.state.join("mcp-token").display()
    ));
    Ok((HttpDoor::new(&door, roots, token), listener))
}
