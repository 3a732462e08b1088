//! The server over a stream of bytes: one message a line, until the other end is gone.

use std::sync::Arc;

use attache_session::SessionId;
use rmcp::ServiceExt;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::door::{Door, Roots};
use crate::handler::McpClient;

/// Serves one client until it is gone. Dropping this ends it: what it created stays.
pub async fn serve<S>(door: &Door, roots: Arc<dyn Roots>, root: Option<SessionId>, stream: S)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let client = McpClient::new(door, roots, root);
    // A client that never says hello has nobody to tell.
    if let Ok(running) = client.serve(stream).await {
        let _ended = running.waiting().await;
    }
}
