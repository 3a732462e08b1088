//! Which root a request belongs to, and which sessions a client may see.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use attache_engine::{EngineError, EngineHandle};
use attache_session::SessionId;

use crate::door::Roots;
use crate::follow::Tree;

/// Roots beside its own that a client has named and whose resources it may read.
const NAMED: usize = 64;

/// A client's place: its root, once it has one.
pub(crate) struct Seat {
    roots: Arc<dyn Roots>,
    own: tokio::sync::Mutex<Own>,
    named: Mutex<HashSet<SessionId>>,
    /// The tree of the own root, for those who follow it.
    pub(crate) tree: Tree,
    /// Whether it is shared by all that bring the same token and keep no connection.
    is_shared: bool,
}

/// The own root, and whether it has been gone on with.
#[derive(Default)]
struct Own {
    root: Option<SessionId>,
    ready: bool,
}

impl Seat {
    /// A seat of one client; `root` is one that it was opened with.
    pub(crate) fn new(roots: Arc<dyn Roots>, root: Option<SessionId>) -> Self {
        Self {
            roots,
            own: tokio::sync::Mutex::new(Own { root, ready: false }),
            named: Mutex::default(),
            tree: Tree::default(),
            is_shared: false,
        }
    }

    /// A seat of all clients that keep no connection.
    pub(crate) fn shared(roots: Arc<dyn Roots>) -> Self {
        Self {
            is_shared: true,
            ..Self::new(roots, None)
        }
    }

    /// The root of a request: the one that it names, else the own one, which is made at first use. The
    /// first one that a client names becomes its own if it has none.
    pub(crate) async fn root(
        &self,
        engine: &EngineHandle,
        client: &str,
        named: Option<SessionId>,
    ) -> Result<SessionId, EngineError> {
        let root = self.find_root(engine, client, named).await;
        self.tree.set(self.own.lock().await.root);
        root
    }

    /// The own root, if there is one yet: looking makes none.
    pub(crate) async fn own_root(
        &self,
        engine: &EngineHandle,
    ) -> Result<Option<SessionId>, EngineError> {
        match self.own.lock().await.root {
            Some(_) => {}
            None => return Ok(None),
        }
        self.root(engine, "", None).await.map(Some)
    }

    async fn find_root(
        &self,
        engine: &EngineHandle,
        client: &str,
        named: Option<SessionId>,
    ) -> Result<SessionId, EngineError> {
        if let Some(root) = named {
            engine.outside_root(root)?;
            if self.is_shared {
                self.roots.go_on(root).await?;
                return Ok(root);
            }
            let mut own = self.own.lock().await;
            if own.root == Some(root) && own.ready && engine.is_started(root) {
                return Ok(root);
            }
            self.roots.go_on(root).await?;
            if own.root.is_none() || own.root == Some(root) {
                *own = Own {
                    root: Some(root),
                    ready: true,
                };
            } else {
                let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
                if named.len() < NAMED {
                    named.insert(root);
                }
            }
            return Ok(root);
        }
        // Two first requests at once make one root.
        let mut own = self.own.lock().await;
        match own.root {
            Some(root) if own.ready && engine.is_started(root) => Ok(root),
            Some(root) => {
                match engine.outside_root(root) {
                    Ok(_) => {}
                    // Removed by somebody since: the next request gets a new one, if it was not named.
                    Err(error) if own.ready => {
                        *own = Own::default();
                        return Err(error);
                    }
                    Err(error) => return Err(error),
                }
                self.roots.go_on(root).await?;
                own.ready = true;
                Ok(root)
            }
            None => {
                let root = self.roots.make(client).await?;
                *own = Own {
                    root: Some(root),
                    ready: true,
                };
                Ok(root)
            }
        }
    }

    /// Whether a client may see sessions below a root.
    pub(crate) async fn sees(&self, engine: &EngineHandle, root: SessionId) -> bool {
        if self.is_shared {
            // A request without a connection cannot have named its root before: the resource that it
            // asks for names it.
            return engine.outside_root(root).is_ok();
        }
        if self.own.lock().await.root == Some(root) {
            return true;
        }
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.contains(&root)
    }
}
