//! The append: everything that one decision of one session writes, as one value. A backend checks
//! all of it before its first write, inside one transaction, and then writes all of it or nothing.

use std::future::Future;
use std::pin::Pin;

use attache_session::{
    Birth, Expect, Generation, Json, MailId, NewMail, Position, SessionId, Stamped, Summary,
};
use uuid::Uuid;

use crate::entity::{Entity, EntityPut};
use crate::read::Partial;
use crate::refused::Refused;

/// What one session writes at once. It never touches another living session's log.
#[derive(Clone, Debug)]
pub struct Append {
    /// The session that appends.
    pub session: SessionId,
    /// The ownership generation that it believes to hold. A session that does not exist yet is
    /// born with this generation.
    pub generation: Generation,
    /// The position of its newest stored event; 0 when it does not exist yet.
    pub expected: Position,
    /// Its events, in order, with strictly increasing times.
    pub events: Vec<Stamped>,
    /// Its summary after these events.
    pub summary: Summary,
    /// Mail to others; a receiver must exist.
    pub mail: Vec<NewMail>,
    /// Unread mail of this session that the append takes; each must still lie there.
    pub taken: Vec<MailId>,
    /// Changes of quota counters; refused as a whole, naming the first that does not fit.
    pub charges: Vec<Charge>,
    /// Sessions that are born, whose logs must be empty.
    pub births: Vec<Born>,
    /// Sessions that get this one as a further parent, in order, those just born included. None of
    /// them may be this session or an ancestor of it.
    pub links: Vec<SessionId>,
    /// The command that caused the append, so that a repeat gets the same answer.
    pub command: Option<CommandRecord>,
    /// What else must be true.
    pub expects: Vec<Expect>,
}

/// A session that is born in another one's append, or of its own accord.
#[derive(Clone, Debug)]
pub struct Born {
    /// The session.
    pub session: SessionId,
    /// Its generation from birth on.
    pub generation: Generation,
    /// Its first events; the very first is `Created`.
    pub events: Vec<Stamped>,
    /// Its summary after them.
    pub summary: Summary,
}

impl Born {
    /// A birth as `session` decided it; none when its first event is not `Created`.
    #[must_use]
    pub fn of(birth: &Birth, generation: Generation) -> Option<Self> {
        let summary = Summary::of(&birth.state)?;
        Some(Self {
            session: birth.session,
            generation,
            events: birth.events.clone(),
            summary,
        })
    }
}

/// A change of one quota counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Charge {
    /// The session whose counter it is.
    pub session: SessionId,
    /// The counter, for example `agents`.
    pub key: String,
    /// What is added; negative gives back. A counter never goes below zero.
    pub amount: i64,
    /// The counter may not exceed this after the charge; none is no limit.
    pub limit: Option<i64>,
}

/// A command of a viewer, remembered with what it caused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandRecord {
    /// The id that the viewer gave it, unique within the session.
    pub id: Uuid,
    /// Digest of its content: a repeat with other content is refused.
    pub digest: [u8; 32],
    /// What the viewer was answered.
    pub answer: Json,
}

/// A write that is under way. It is durable when this is `Ok`; dropping it takes nothing back.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Refused>> + Send>>;

/// The writing side of a store.
pub trait Writes: Send + Sync {
    /// Appends; the answer is the position of the last event written (or `expected` when the
    /// append had no events). The order of calls from one caller is the order of the appends.
    ///
    /// The future fails with [`Refused`]; then nothing of the append is stored.
    fn commit(&self, append: Append) -> Pending<Position>;

    /// Creates or replaces an entity; the answer is the entity as it is stored. Refused when its
    /// concurrency tag is not the expected one.
    fn put_entity(&self, put: EntityPut) -> Pending<Entity>;

    /// Raises the ownership generation of a session from `from`; the answer is the new generation.
    fn claim(&self, session: SessionId, from: Generation) -> Pending<Generation>;

    /// Remembers the streamed text of a running item, one row per session, as a free rider of the
    /// next group: lost when nothing else is written before a crash. Cleared by the append that
    /// records what was said or ends the turn.
    fn checkpoint(&self, session: SessionId, partial: Partial);

    /// Deletes a session with its log, mail, links and counters: marked first, so that it is gone
    /// for every reader at once, then removed in small groups.
    fn delete(&self, session: SessionId) -> Pending<()>;

    /// Forgets command records of appends that are older than `before` (microseconds, Unix epoch).
    fn sweep_commands(&self, before: i64) -> Pending<u64>;
}
