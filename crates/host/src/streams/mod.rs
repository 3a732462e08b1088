//! What viewers of sessions are sent. Each observed session has one stream, whose frames are encoded once; a viewer is a
//! place in it. A viewer that reads too slowly falls off the window and begins anew with a snapshot, and nobody else waits.

mod detail;
mod feed;
mod pump;
mod tree;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use attache_engine::parts::PageQuery;
use attache_engine::{EngineError, EngineHandle, Observed, Observer, Snapshot as Now};
use attache_protocol::{
    FRAME_LIMIT, FromHost, HistoryItem, HostStream, Patch, QueueView, Snapshot, Stream,
    StreamPlace, Taken, ViewerView, WINDOW_LIMIT, encode, encoded_len,
};
use attache_session::SessionId;
use tokio::sync::watch;

use crate::attachments::Attachments;
use crate::to_wire;
use feed::{Feed, Told};

pub(crate) use pump::{Pump, Viewer, follow_session, follow_tree};
pub(crate) use tree::{rows, watch_tree};

/// Items of a snapshot's page of history.
const PAGE: usize = 200;

/// Bytes of a snapshot's page of history: older items are left for paging.
const PAGE_BYTES: usize = FRAME_LIMIT / 3;

/// Bytes of a snapshot's queues: of what waits behind that, only the number is told.
const QUEUE_BYTES: usize = FRAME_LIMIT / 4;

/// Bytes that a page is to have: where less is left, the definition is left out.
const LEAST_PAGE: usize = FRAME_LIMIT / 16;

/// Bytes of an item beside its text, and of what sets items apart.
const AROUND_TEXT: usize = 16 * 1024;

/// Most bytes of all windows of a host.
const ALL_WINDOWS: usize = 16 * WINDOW_LIMIT;

/// The streams of a host.
pub(crate) struct Streams {
    engine: EngineHandle,
    attachments: Arc<Attachments>,
    open: Mutex<HashMap<SessionId, Weak<SharedStream>>>,
    /// Shared by all windows.
    windows: Arc<Windows>,
}

#[derive(Default)]
struct Windows {
    bytes: AtomicUsize,
    /// Greater than any place at which a viewer of a stream that is gone can stand: a stream that is new takes none of them for
    /// its own.
    next: AtomicU64,
}

/// The stream of one observed session. It goes with the last who holds it.
pub(crate) struct SharedStream {
    session: SessionId,
    bell: watch::Receiver<u64>,
    windows: Arc<Windows>,
    inner: Mutex<Inner>,
}

struct Inner {
    stream: HostStream,
    feed: Feed,
    /// How many records were told before each of these frames.
    marks: VecDeque<(u64, u64)>,
    /// What was missed by all: nothing more is put into it.
    is_broken: bool,
    /// Which of the lists of viewers was told last.
    viewers: u64,
}

/// A viewer's place in a stream.
#[derive(Clone)]
pub(crate) struct Follower {
    pub(crate) stream: Arc<SharedStream>,
    /// The frame that it wants next.
    pub(crate) next: u64,
}

impl Streams {
    pub(crate) fn new(engine: EngineHandle, attachments: Arc<Attachments>) -> Self {
        Self {
            engine,
            attachments,
            open: Mutex::default(),
            windows: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<SharedStream>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches to a session: its snapshot as a frame, and where what follows begins.
    pub(crate) async fn attach(
        &self,
        session: SessionId,
    ) -> Result<(Arc<[u8]>, Follower), EngineError> {
        let Observed { snapshot, observer } = self.engine.attach(session).await?;
        let follower = self.follower(&snapshot, observer);
        let frame = self.snapshot(&snapshot, follower.next)?;
        Ok((encode(&frame).into(), follower))
    }

    /// A place in the session's stream behind a snapshot; in a new one where there is none that can serve it.
    fn follower(&self, snapshot: &Now, observer: Observer) -> Follower {
        let session = snapshot.state.id;
        let mut open = self.lock();
        if let Some(stream) = open.get(&session).and_then(Weak::upgrade) {
            if let Some(next) = stream.place_of(snapshot, &observer) {
                return Follower { stream, next };
            }
            self.windows.passes(stream.lock().stream.next());
        }
        let feed = Feed::new(&self.engine, snapshot, observer);
        let stream = Arc::new(SharedStream::new(feed, snapshot, &self.windows));
        let next = stream.lock().stream.next();
        open.retain(|_, stream| stream.strong_count() > 0);
        open.insert(session, Arc::downgrade(&stream));
        Follower { stream, next }
    }

    /// A session's state as the beginning of what a viewer sees.
    fn snapshot(&self, now: &Now, sequence: u64) -> Result<FromHost, EngineError> {
        let query = PageQuery {
            after: None,
            up_to: Some(now.position()),
            kinds: Vec::new(),
            search: None,
            limit: PAGE,
            newest: true,
        };
        let page = self.engine.page(now.state.id, &query)?;
        let row = self.engine.row_as_of(&now.state)?;
        let viewers = self.attachments.viewers(now.state.id);
        let mut snapshot = Box::new(Snapshot {
            stream: Stream::Session,
            epoch: now.epoch.map(|epoch| epoch.to_string()),
            sequence,
            sessions: vec![to_wire::session(&self.engine, &row)],
            history: Vec::new(),
            more_history: page.more,
            running: to_wire::running(&now.live),
            queues: within(now.state.queues.iter().map(to_wire::queue), QUEUE_BYTES),
            detail: detail::whole(&self.engine, &now.state, row.generation, viewers).map(Box::new),
        });
        let left = |snapshot: &Snapshot| FRAME_LIMIT.saturating_sub(encoded_len(snapshot));
        if left(&snapshot) < LEAST_PAGE
            && let Some(detail) = &mut snapshot.detail
        {
            detail.information.agent_definition = None;
        }
        let room = left(&snapshot).saturating_sub(AROUND_TEXT);
        let newest = page.items.iter().rev();
        let newest = newest.filter_map(|stored| to_wire::item(stored.position, &stored.event));
        let (history, are_more) = newest_of(newest, room.min(PAGE_BYTES));
        snapshot.history = history;
        snapshot.more_history |= are_more;
        Ok(FromHost::Snapshot(snapshot))
    }
}

/// As many of these items as have room, the newest one first, in the order of the history; and whether there are more. The
/// newest is always among them, with as much of its text as fits.
pub(crate) fn newest_of(
    newest: impl Iterator<Item = HistoryItem>,
    mut room: usize,
) -> (Vec<HistoryItem>, bool) {
    let mut history: Vec<HistoryItem> = Vec::new();
    let mut are_more = false;
    for item in newest {
        let item = match history.is_empty() {
            true => to_wire::shortened(item, room),
            false => item,
        };
        let bytes = encoded_len(&item);
        if bytes > room && !history.is_empty() {
            are_more = true;
            break;
        }
        room = room.saturating_sub(bytes);
        history.push(item);
    }
    history.reverse();
    (history, are_more)
}

impl Windows {
    /// A stream ends here. Whoever has all of it stands at this number, and what a later stream begins with is not what that
    /// viewer wants next.
    fn passes(&self, next: u64) {
        self.next.fetch_max(next + 1, Ordering::Relaxed);
    }
}

/// Queues with as many of their items as fit, the first ones first.
fn within(queues: impl Iterator<Item = QueueView>, mut room: usize) -> Vec<QueueView> {
    let fitting = queues.map(|mut queue| {
        let fit = queue.items.iter().take_while(|item| {
            let bytes = encoded_len(*item);
            let fits = bytes <= room;
            room = if fits { room - bytes } else { 0 };
            fits
        });
        let fit = fit.count();
        queue.items.truncate(fit);
        queue
    });
    fitting.collect()
}

impl SharedStream {
    fn new(feed: Feed, snapshot: &Now, windows: &Arc<Windows>) -> Self {
        let session = snapshot.state.id;
        let epoch = snapshot.epoch.map(|epoch| epoch.to_string());
        let first = windows.next.load(Ordering::Relaxed);
        Self {
            session,
            bell: feed.observer.bell(),
            windows: Arc::clone(windows),
            inner: Mutex::new(Inner {
                stream: HostStream::new(&session.to_string(), epoch.as_deref(), first),
                marks: VecDeque::from([(snapshot.records(), first)]),
                feed,
                is_broken: false,
                viewers: 0,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose stream it is.
    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// Rings whenever there may be something to take.
    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.bell.clone()
    }

    /// Others look on than before; `version` counts the lists.
    pub(crate) fn tell_viewers(&self, version: u64, viewers: Vec<ViewerView>) {
        let mut inner = self.lock();
        inner.read_on(&self.windows);
        if version > inner.viewers {
            inner.viewers = version;
            let told = Told::Patch {
                live: true,
                patch: Patch::ViewersPut { viewers },
            };
            inner.put(vec![told], &self.windows);
            inner.feed.observer.ring();
        }
    }

    /// What there is for a viewer that wants this frame next, and whether nothing follows behind it.
    pub(crate) fn take(&self, next: u64) -> (Taken, bool) {
        let mut inner = self.lock();
        inner.read_on(&self.windows);
        if inner.is_broken {
            return (Taken::Passed, false);
        }
        let taken = inner.stream.take(next);
        let count = match &taken {
            Taken::Frames(frames) => frames.len() as u64,
            Taken::Passed => 0,
        };
        let is_last = inner.stream.is_over() && next + count == inner.stream.next();
        (taken, is_last)
    }

    /// Where a viewer that comes back goes on; none when it needs a snapshot.
    pub(crate) fn resumes(&self, place: &StreamPlace) -> Option<u64> {
        let mut inner = self.lock();
        inner.read_on(&self.windows);
        inner.stream.resumes(place).filter(|_next| !inner.is_broken)
    }

    /// Where what follows a snapshot begins; none when this stream cannot serve a viewer that has it. Live frames before it
    /// may be told again: they say where their text stands.
    fn place_of(&self, snapshot: &Now, observer: &Observer) -> Option<u64> {
        let mut inner = self.lock();
        inner.read_on(&self.windows);
        if inner.is_broken || inner.stream.is_over() || !inner.feed.observer.is_beside(observer) {
            return None;
        }
        let known = inner
            .marks
            .iter()
            .rev()
            .find(|(records, _)| *records <= snapshot.records());
        known
            .map(|(_, sequence)| *sequence)
            .filter(|sequence| *sequence >= inner.stream.first())
    }
}

impl Drop for SharedStream {
    fn drop(&mut self) {
        let inner = self.lock();
        self.windows.passes(inner.stream.next());
        let bytes = inner.stream.bytes();
        self.windows.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Inner {
    /// Makes frames of all that has come.
    fn read_on(&mut self, windows: &Windows) {
        loop {
            if self.is_broken || self.stream.is_over() {
                return;
            }
            let told = self.feed.take();
            if told.is_empty() {
                return;
            }
            self.put(told, windows);
        }
    }

    fn put(&mut self, told: Vec<Told>, windows: &Windows) {
        {
            let before = self.stream.bytes();
            let all = windows.bytes.load(Ordering::Relaxed);
            let room = ALL_WINDOWS.saturating_sub(all.saturating_sub(before));
            for told in told {
                match told {
                    Told::Patch { live, patch } => self.stream.put(live, patch, room),
                    Told::Mark(records) => self.marks.push_back((records, self.stream.next())),
                    Told::Starts(epoch) => self.stream.starts(&epoch.to_string()),
                    Told::Ends(reason) => self.stream.ends(reason, room),
                    Told::Lagged => self.is_broken = true,
                }
            }
            let now = self.stream.bytes();
            windows.bytes.fetch_add(now, Ordering::Relaxed);
            windows.bytes.fetch_sub(before, Ordering::Relaxed);
            // The newest of those that the window has passed is enough.
            while self
                .marks
                .get(1)
                .is_some_and(|(_, sequence)| *sequence <= self.stream.first())
            {
                self.marks.pop_front();
            }
        }
    }
}
