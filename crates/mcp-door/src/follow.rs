//! Who has subscribed to sessions, and how changes reach them: by a connection that lasts, or by one
//! long request. Of many changes of a session a client is told once; it reads what is there then.

use std::collections::{HashMap, HashSet};
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
pub(crate) struct Wanted(Arc<Mutex<Followed>>);

#[derive(Default)]
struct Followed {
    sessions: HashSet<SessionId>,
    /// The tree whose new sessions are told of.
    tree: Option<SessionId>,
}

impl Wanted {
    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows a session; false when the client follows too many.
    pub(crate) fn add(&self, session: SessionId) -> bool {
        let mut followed = self.lock();
        let room = followed.sessions.len() < FOLLOWED;
        room && {
            followed.sessions.insert(session);
            true
        }
    }

    /// Follows a session no longer.
    pub(crate) fn remove(&self, session: SessionId) {
        self.lock().sessions.remove(&session);
    }

    /// Tells of new sessions in a tree.
    pub(crate) fn watch_tree(&self, root: SessionId) {
        self.lock().tree = Some(root);
    }

    fn has(&self, session: SessionId) -> bool {
        self.lock().sessions.contains(&session)
    }
}

/// Tells of changes until nobody listens.
pub(crate) async fn follow(engine: EngineHandle, mut feed: TreeFeed, wanted: Wanted, sink: Sink) {
    // Whether a session belongs to the tree that is watched; a new one is told of once.
    let mut known: HashMap<SessionId, ()> = HashMap::new();
    let mut tree = None;
    loop {
        for session in feed.next().await {
            let root = wanted.lock().tree;
            if root.is_some() && root != tree {
                tree = root;
                known.clear();
            }
            if let Some(root) = root
                && !known.contains_key(&session)
            {
                if known.len() >= REMEMBERED {
                    known.clear();
                }
                known.insert(session, ());
                let row = engine.row(session);
                let joined = row.is_ok_and(|row| row.root == root && row.session != root);
                if joined && !sink.list_changed().await {
                    return;
                }
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
    pub(crate) fn start(&self, engine: &EngineHandle, wanted: &Wanted, peer: &Peer<RoleServer>) {
        let mut task = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let sink = Sink::Peer(peer.clone());
        let feed = engine.tree_feed();
        *task = Some(tokio::spawn(follow(
            engine.clone(),
            feed,
            wanted.clone(),
            sink,
        )));
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
