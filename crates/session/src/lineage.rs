//! Who is whose parent, who holds whom, and who wants to be told when a session has settled.

use std::sync::Arc;

use crate::id::{SessionId, WatchId};

/// A parent as its child sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parent {
    /// The parent.
    pub id: SessionId,
    /// Whether it still holds the child. A child whose last holder has gone ends.
    pub holds: bool,
}

/// A child as its parent sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Child {
    /// The child.
    pub id: SessionId,
    /// Whether this parent still holds it: false after a dispose, until it is acquired again.
    pub held: bool,
}

/// A registration of this session on another one (or on itself).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// Its id.
    pub id: WatchId,
    /// The session that is watched.
    pub target: SessionId,
}

/// Another session's registration on this one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watcher {
    /// The registration.
    pub watch: WatchId,
    /// Who is told.
    pub session: SessionId,
    /// The text that the watcher chose; none is the default line.
    pub message: Option<Arc<str>>,
}
