//! The MCP server: the nine `agent_session_*` tools for agents that live elsewhere, over a byte
//! stream and over HTTP.
//!
//! What such an agent creates hangs on a root session that runs no turns and stands for it. This
//! crate speaks the protocol, finds the root of a request, and shows notices; what the tools do,
//! what may be seen and what is stored is the engine's. How a root is made is the host's business,
//! which hands it in as [`Roots`].

mod answer;
mod arguments;
mod call;
mod door;
mod follow;
mod handler;
mod http;
mod notices;
mod resources;
mod seat;
mod stream;
mod token;

pub use attache_engine::EngineError;
pub use attache_session::SessionId;
pub use door::{Door, RootFuture, Roots};
pub use handler::McpClient;
pub use http::{HttpDoor, clients};
pub use stream::serve;
pub use token::{Token, TokenError};
