//! Viewers' attachments, by the secret name that brings a viewer back: who holds each, and what it follows. What an
//! attachment may do is decided in `protocol`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_protocol::{Attachment, GRACE_MILLIS, StreamPlace};
use attache_session::SessionId;
use tokio::time::{Duration, Instant};

use crate::clock;
use crate::streams::{Follower, Pump, SharedStream};

/// How long an attachment waits for its viewer.
pub(crate) const GRACE: Duration = Duration::from_millis(GRACE_MILLIS);

/// See the module.
pub(crate) struct Attachments {
    begun: Instant,
    known: Mutex<HashMap<String, Entry>>,
}

struct Entry {
    state: Attachment,
    /// The connection that holds it, or held it last.
    connection: u64,
    stream: Arc<SharedStream>,
    pump: Option<Pump>,
}

impl Attachments {
    pub(crate) fn new() -> Self {
        Self {
            begun: clock::instant(),
            known: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from((clock::instant() - self.begun).as_millis()).unwrap_or(u64::MAX)
    }

    /// A viewer comes back over this connection: what it followed, and where it goes on unless it needs a snapshot. None
    /// when there is no such attachment any more. Whoever held it before is told nothing from here on.
    pub(crate) fn returns(
        &self,
        name: &str,
        session: SessionId,
        place: Option<&StreamPlace>,
        connection: u64,
    ) -> Option<Option<Follower>> {
        let now = self.now();
        let mut known = self.lock();
        let entry = known.get_mut(name)?;
        if entry.stream.session() != session {
            return None;
        }
        entry.state = entry.state.returns(now)?;
        entry.connection = connection;
        entry.pump = None;
        let stream = Arc::clone(&entry.stream);
        drop(known);
        let next = place.and_then(|place| stream.resumes(place));
        Some(next.map(|next| Follower { stream, next }))
    }

    /// A viewer follows a stream under this name.
    pub(crate) fn reserve(&self, name: String, connection: u64, follower: &Follower) {
        let entry = Entry {
            state: Attachment::Reserved,
            connection,
            stream: Arc::clone(&follower.stream),
            pump: None,
        };
        self.lock().insert(name, entry);
    }

    /// A viewer was too slow and goes on in this stream.
    pub(crate) fn moved(&self, name: &str, connection: u64, stream: &Arc<SharedStream>) {
        if let Some(entry) = self.lock().get_mut(name)
            && entry.connection == connection
        {
            entry.stream = Arc::clone(stream);
        }
    }

    /// Whether a viewer is there who is attached to a session: one whose connection was lost is not.
    pub(crate) fn is_followed(&self, session: SessionId) -> bool {
        let is_there =
            |entry: &Entry| matches!(entry.state, Attachment::Reserved | Attachment::Attached);
        let known = self.lock();
        known
            .values()
            .any(|entry| is_there(entry) && entry.stream.session() == session)
    }

    /// The beginning of the stream was sent, and this sends the rest.
    pub(crate) fn sent(&self, name: &str, connection: u64, pump: Pump) {
        // One that went to another connection meanwhile has its own.
        if let Some(entry) = self.lock().get_mut(name)
            && entry.connection == connection
        {
            entry.state = entry.state.sent();
            entry.pump = Some(pump);
        }
    }

    /// The viewer leaves, or has been told the end of its session.
    pub(crate) fn release(&self, name: &str, connection: u64) -> bool {
        let mut known = self.lock();
        let is_held = |entry: &Entry| entry.connection == connection;
        known.get(name).is_some_and(is_held) && known.remove(name).is_some()
    }

    /// The connection ended without a word.
    pub(crate) fn lost(&self, names: &[String], connection: u64) {
        let now = self.now();
        let mut known = self.lock();
        for name in names {
            if let Some(entry) = known.get_mut(name)
                && entry.connection == connection
            {
                entry.state = entry.state.lost(now);
                if let Some(pump) = entry.pump.take() {
                    pump.abort();
                }
            }
        }
        known.retain(|_, entry| entry.state.counts());
    }

    /// Time has passed: whoever has not come back in time is let go.
    pub(crate) fn look(&self) {
        let now = self.now();
        self.lock().retain(|_, entry| {
            entry.state = entry.state.passed(now);
            entry.state.counts()
        });
    }
}
