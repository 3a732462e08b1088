//! Who has subscribed to sessions, and how changes reach them: by a connection that lasts, or by one
//! long request. Of many changes of a session a client is told once; it reads what is there then.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_engine::{EngineHandle, TreeFeed};
use attache_session::SessionId;
use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSink};
use tokio::task::JoinHandle;

use crate::resources::address;

/// Most sessions that one client follows at once.
const FOLLOWED: usize = 1_000;

/// Sessions of which it is remembered whose they are.
const REMEMBERED: usize = 10_000;

/// Where changes go.
pub(crate) enum Sink {
    /// To a connection that lasts.
    Peer(Peer<RoleServer>),
    /// Into the answer of a long request.
    Request(SubscriptionSink),
}

impl Sink {
    /// Tells of a session; false when nobody listens any more.
    async fn updated(&self, session: SessionId) -> bool {
        let uri = address(session);
        match self {
            Self::Peer(peer) => {
                let update = ResourceUpdatedNotificationParam::new(uri);
                peer.notify_resource_updated(update).await.is_ok()
            }
            Self::Request(sink) => sink.notify_resource_updated(uri).await.is_ok(),
        }
    }

    /// Tells that there is one more session.
    async fn list_changed(&self) -> bool {
        match self {
            Self::Peer(peer) => peer.notify_resource_list_changed().await.is_ok(),
            Self::Request(sink) => sink.notify_resource_list_changed().await.is_ok(),
        }
    }
}

/// What a client follows.
#[derive(Clone, Default)]
pub(crate) struct Wanted(Arc<Mutex<HashSet<SessionId>>>);

impl Wanted {
    fn lock(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows a session; false when the client follows too many.
    pub(crate) fn add(&self, session: SessionId) -> bool {
        let mut followed = self.lock();
        let room = followed.len() < FOLLOWED;
        if room {
            followed.insert(session);
        }
        room
    }

    /// Follows a session no longer.
    pub(crate) fn remove(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    fn has(&self, session: SessionId) -> bool {
        self.lock().contains(&session)
    }
}

/// The tree of a client, once it has one.
#[derive(Clone, Default)]
pub(crate) struct Tree(Arc<Mutex<Option<SessionId>>>);

impl Tree {
    /// The root.
    pub(crate) fn root(&self) -> Option<SessionId> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says which it is from now on.
    pub(crate) fn set(&self, root: Option<SessionId>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = root;
    }
}

/// Tells of changes until nobody listens. With a tree, it tells of new sessions in it too.
pub(crate) async fn follow(
    engine: EngineHandle,
    mut feed: TreeFeed,
    wanted: Wanted,
    tree: Option<Tree>,
    sink: Sink,
) {
    // Sessions of which it was looked whether they belong to the tree: a new one is told of once.
    let mut known = HashSet::new();
    let mut of = None;
    loop {
        for session in feed.next().await {
            let root = tree.as_ref().and_then(Tree::root);
            if root != of || known.len() >= REMEMBERED {
                of = root;
                known.clear();
            }
            if let Some(root) = root
                && known.insert(session)
                && engine.row(session).is_ok_and(|row| row.root == root)
                && !sink.list_changed().await
            {
                return;
            }
            if wanted.has(session) && !sink.updated(session).await {
                return;
            }
        }
    }
}

/// The one task that tells a connection of changes, started when there is something to tell.
#[derive(Default)]
pub(crate) struct Teller(Mutex<Option<JoinHandle<()>>>);

impl Teller {
    /// Starts it, unless it runs.
    pub(crate) fn start(
        &self,
        engine: &EngineHandle,
        wanted: &Wanted,
        tree: &Tree,
        peer: &Peer<RoleServer>,
    ) {
        let mut task = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let sink = Sink::Peer(peer.clone());
        let feed = engine.tree_feed();
        let tree = Some(tree.clone());
        let follow = follow(engine.clone(), feed, wanted.clone(), tree, sink);
        *task = Some(tokio::spawn(follow));
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        let task = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task.take() {
            task.abort();
        }
    }
}
