//! Viewers' attachments, by the secret name that brings a viewer back: who holds each, and what it follows. What an
//! attachment may do is decided in `protocol`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_protocol::{Attachment, GRACE_MILLIS, StreamPlace, ViewerView};
use attache_session::SessionId;
use tokio::time::{Duration, Instant};

use crate::clock;
use crate::streams::{Follower, Pump, SharedStream};

/// How long an attachment waits for its viewer.
pub(crate) const GRACE: Duration = Duration::from_millis(GRACE_MILLIS);

/// Most viewers that others are told of: those that came first.
const VIEWERS: usize = 200;

/// See the module.
pub(crate) struct Attachments {
    begun: Instant,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    entries: HashMap<String, Entry>,
    /// How many attachments there were.
    count: u64,
    /// Counts what viewers are told of each other.
    version: u64,
}

/// Who attaches.
pub(crate) struct Who {
    /// The connection.
    pub(crate) connection: u64,
    /// Name and version of its program.
    pub(crate) program: Arc<str>,
    /// Whether it only looks.
    pub(crate) read_only: bool,
}

struct Entry {
    state: Attachment,
    number: u64,
    /// Who holds it, or held it last.
    who: Who,
    stream: Arc<SharedStream>,
    pump: Option<Pump>,
}

/// A stream whose viewers are to be told who looks on.
type News = Option<(Arc<SharedStream>, u64, Vec<ViewerView>)>;

impl Known {
    fn viewers(&self, session: SessionId) -> Vec<ViewerView> {
        let entries = self.entries.values();
        let mut viewers: Vec<ViewerView> = entries
            .filter(|entry| entry.stream.session() == session && entry.state.counts())
            .map(|entry| ViewerView {
                viewer: entry.number,
                program: entry.who.program.to_string(),
                read_only: entry.who.read_only,
                in_grace: matches!(entry.state, Attachment::InGrace { .. }),
            })
            .collect();
        viewers.sort_unstable_by_key(|viewer| viewer.viewer);
        viewers.truncate(VIEWERS);
        viewers
    }

    fn news(&mut self, stream: &Arc<SharedStream>) -> News {
        self.version += 1;
        let viewers = self.viewers(stream.session());
        Some((Arc::clone(stream), self.version, viewers))
    }
}

/// Tells who looks on. Not under the lock: whoever is told may be asking at the same time.
fn tell(news: News) {
    if let Some((stream, version, viewers)) = news {
        stream.tell_viewers(version, viewers);
    }
}

impl Attachments {
    pub(crate) fn new() -> Self {
        Self {
            begun: clock::instant(),
            known: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from((clock::instant() - self.begun).as_millis()).unwrap_or(u64::MAX)
    }

    /// Who looks on at a session, those included that are waited for.
    pub(crate) fn viewers(&self, session: SessionId) -> Vec<ViewerView> {
        self.lock().viewers(session)
    }

    /// A viewer comes back over this connection: what it followed, and where it goes on unless it needs a snapshot. None
    /// when there is no such attachment any more, or a later connection has it: what an older one says comes late, from a
    /// viewer that has gone on. Whoever held it before is told nothing from here on.
    pub(crate) fn returns(
        &self,
        name: &str,
        session: SessionId,
        place: Option<&StreamPlace>,
        who: Who,
    ) -> Option<Option<Follower>> {
        let now = self.now();
        let mut known = self.lock();
        let entry = known.entries.get_mut(name)?;
        if entry.stream.session() != session || who.connection < entry.who.connection {
            return None;
        }
        entry.state = entry.state.returns(now)?;
        entry.who = who;
        entry.pump = None;
        let stream = Arc::clone(&entry.stream);
        let news = known.news(&stream);
        drop(known);
        let next = place.and_then(|place| stream.resumes(place));
        tell(news);
        Some(next.map(|next| Follower { stream, next }))
    }

    /// A viewer follows a stream under this name; false when a later connection has taken the name along meanwhile.
    pub(crate) fn reserve(&self, name: String, who: Who, follower: &Follower) -> bool {
        let mut known = self.lock();
        let before = known.entries.get(&name);
        if before.is_some_and(|entry| who.connection < entry.who.connection) {
            return false;
        }
        let before = before.map(|entry| entry.number);
        known.count += u64::from(before.is_none());
        let entry = Entry {
            state: Attachment::Reserved,
            number: before.unwrap_or(known.count),
            who,
            stream: Arc::clone(&follower.stream),
            pump: None,
        };
        known.entries.insert(name, entry);
        let news = known.news(&follower.stream);
        drop(known);
        tell(news);
        true
    }

    /// A viewer was too slow and goes on in this stream.
    pub(crate) fn moved(&self, name: &str, connection: u64, stream: &Arc<SharedStream>) {
        if let Some(entry) = self.lock().entries.get_mut(name)
            && entry.who.connection == connection
        {
            entry.stream = Arc::clone(stream);
        }
    }

    /// The beginning of the stream was sent, and this sends the rest.
    pub(crate) fn sent(&self, name: &str, connection: u64, pump: Pump) {
        // One that went to another connection meanwhile has its own.
        if let Some(entry) = self.lock().entries.get_mut(name)
            && entry.who.connection == connection
        {
            entry.state = entry.state.sent();
            entry.pump = Some(pump);
        }
    }

    /// The viewer leaves.
    pub(crate) fn release(&self, name: &str, connection: u64) -> bool {
        self.ended(name, connection, || true)
    }

    /// A viewer has been told the end of its session, by a pump that is still wanted: one that its viewer has come back from
    /// since ends nothing.
    pub(crate) fn ended(
        &self,
        name: &str,
        connection: u64,
        is_wanted: impl FnOnce() -> bool,
    ) -> bool {
        let mut known = self.lock();
        let is_held = |entry: &Entry| entry.who.connection == connection;
        // Who comes back drops the pump under the same lock.
        if !known.entries.get(name).is_some_and(is_held) || !is_wanted() {
            return false;
        }
        let gone = known.entries.remove(name);
        let news = gone.as_ref().and_then(|gone| known.news(&gone.stream));
        drop(known);
        tell(news);
        true
    }

    /// The connection ended without a word.
    pub(crate) fn lost(&self, names: &[String], connection: u64) {
        let now = self.now();
        let mut known = self.lock();
        let mut touched = Vec::new();
        for name in names {
            if let Some(entry) = known.entries.get_mut(name)
                && entry.who.connection == connection
            {
                entry.state = entry.state.lost(now);
                touched.push(Arc::clone(&entry.stream));
                if let Some(pump) = entry.pump.take() {
                    pump.abort();
                }
            }
        }
        Self::tidy(known, touched);
    }

    /// Time has passed: whoever has not come back in time is let go.
    pub(crate) fn look(&self) {
        let now = self.now();
        let mut known = self.lock();
        for entry in known.entries.values_mut() {
            entry.state = entry.state.passed(now);
        }
        Self::tidy(known, Vec::new());
    }

    /// Lets those go that are over, and tells those who stay. Whoever was the last to look at a session is let go without
    /// the lock: that may end it.
    fn tidy(mut known: MutexGuard<'_, Known>, mut touched: Vec<Arc<SharedStream>>) {
        let is_over = |_: &String, entry: &mut Entry| !entry.state.counts();
        let gone: Vec<Entry> = {
            let over = known.entries.extract_if(is_over);
            over.map(|(_, entry)| entry).collect()
        };
        touched.extend(gone.iter().map(|entry| Arc::clone(&entry.stream)));
        let news: Vec<News> = touched.iter().map(|stream| known.news(stream)).collect();
        drop(known);
        news.into_iter().for_each(tell);
    }
}
