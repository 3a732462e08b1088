//! Entities: named things beside the sessions, each with a concurrency tag.

use attache_session::{Json, Timestamp};
use uuid::Uuid;

/// What an entity is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EntityKind {
    /// An agent definition.
    Definition,
    /// A trust profile.
    TrustProfile,
    /// A person's login.
    User,
    /// A machine.
    Computer,
    /// The pair of user and machine that owns sessions.
    Profile,
    /// A session as `get_current_session` shows it.
    AgentSession,
}

/// An entity as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entity {
    /// Its id for ever.
    pub id: Uuid,
    /// What it is.
    pub kind: EntityKind,
    /// Its name, unique within its kind.
    pub name: String,
    /// Goes up by one with each change, from 1.
    pub tag: u64,
    /// When it was last changed.
    pub modified_at: Timestamp,
    /// Names the last change.
    pub change: Uuid,
    /// What it says: a JSON object.
    pub data: Json,
}

/// An entity as it is to be stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntityPut {
    /// Its id.
    pub id: Uuid,
    /// What it is.
    pub kind: EntityKind,
    /// Its name, unique within its kind.
    pub name: String,
    /// The tag that it must have; none creates it.
    pub expected: Option<u64>,
    /// When.
    pub at: Timestamp,
    /// Names this change.
    pub change: Uuid,
    /// What it says: a JSON object.
    pub data: Json,
}
