//! What an attached viewer is sent: a snapshot, then deltas by topic. Frames that piled up while
//! the socket was busy leave together; nothing is sent on a timer.

use std::collections::{HashMap, HashSet};

use attache_engine::parts::{PageQuery, RowFilter};
use attache_engine::{Change, EngineError, EngineHandle, Observer, SessionRow, TreeFeed};
use attache_protocol::{
    Delta, FRAME_LIMIT, FromHost, HistoryItem, Patch, Snapshot, Stream, encoded_len,
};
use attache_session::{Epoch, Event, QueueId, SessionId, State};
use tokio::sync::mpsc;

use crate::to_wire;

/// Items of a snapshot's page of history.
const PAGE: usize = 200;

/// Bytes of a snapshot's page of history: older items are left for paging.
const PAGE_BYTES: usize = FRAME_LIMIT / 3;

/// Bytes of a piece of streamed text; escaped it may take six times as many.
const PIECE: usize = 64 * 1024;

/// Attaches to a session: its snapshot as a frame, and what follows.
pub(crate) async fn attach(
    engine: &EngineHandle,
    session: SessionId,
) -> Result<(FromHost, SessionStream), EngineError> {
    let observed = engine.attach(session).await?;
    let snapshot = observed.snapshot;
    let query = PageQuery {
        after: None,
        up_to: Some(snapshot.position()),
        kinds: Vec::new(),
        search: None,
        limit: PAGE,
        newest: true,
    };
    let page = engine.page(session, &query)?;
    let mut history: Vec<HistoryItem> = Vec::new();
    let mut bytes = 0;
    let mut more_history = page.more;
    for stored in page.items.iter().rev() {
        let Some(item) = to_wire::item(stored.position, &stored.event) else {
            continue;
        };
        bytes += encoded_len(&item);
        if bytes > PAGE_BYTES && !history.is_empty() {
            more_history = true;
            break;
        }
        history.push(item);
    }
    history.reverse();
    let row = engine.row_as_of(&snapshot.state)?;
    let frame = FromHost::Snapshot(Box::new(Snapshot {
        stream: Stream::Session,
        epoch: snapshot.epoch.map(|epoch| epoch.to_string()),
        sequence: snapshot.sequence,
        sessions: vec![to_wire::session(engine, &row)],
        history,
        more_history,
        running: to_wire::running(&snapshot.live),
        queues: snapshot.state.queues.iter().map(to_wire::queue).collect(),
    }));
    let stream = SessionStream {
        engine: engine.clone(),
        session,
        epoch: snapshot.epoch,
        sequence: snapshot.sequence,
        revisions: snapshot
            .state
            .queues
            .iter()
            .map(|queue| (queue.id, queue.revision))
            .collect(),
        observer: observed.observer,
    };
    Ok((frame, stream))
}

/// What follows an attached session's snapshot.
pub(crate) struct SessionStream {
    engine: EngineHandle,
    session: SessionId,
    epoch: Option<Epoch>,
    sequence: u64,
    /// Revisions of the queues as the viewer has them.
    revisions: HashMap<QueueId, u32>,
    observer: Observer,
}

/// What a stream gives.
enum Given {
    /// Frames, and the stream goes on.
    Frames(Vec<FromHost>),
    /// The viewer was too slow: the stream must begin anew.
    Lagged,
}

impl SessionStream {
    /// Sends what follows until the session's end is told or nobody takes it. A viewer that was too
    /// slow begins anew.
    pub(crate) async fn send_to(mut self, outbox: mpsc::Sender<FromHost>) {
        loop {
            let frames = match self.next().await {
                Given::Frames(frames) => frames,
                Given::Lagged => match attach(&self.engine, self.session).await {
                    Ok((snapshot, anew)) => {
                        self = anew;
                        vec![snapshot]
                    }
                    Err(_gone) => return,
                },
            };
            for frame in frames {
                let over = matches!(frame, FromHost::SessionTerminal { .. });
                if outbox.send(frame).await.is_err() || over {
                    return;
                }
            }
        }
    }

    /// Waits for what follows.
    async fn next(&mut self) -> Given {
        let changes = self.observer.next().await;
        let mut frames = Vec::with_capacity(changes.len() + 1);
        let mut newest: Option<std::sync::Arc<State>> = None;
        let mut terminal = None;
        for change in changes {
            match change {
                Change::Lagged => return Given::Lagged,
                Change::Text {
                    turn,
                    step,
                    offset,
                    text,
                } => {
                    self.pieces(turn, step, offset, &text, &mut frames);
                }
                Change::Note => {
                    if let Ok(row) = self.engine.row(self.session) {
                        let session = Box::new(to_wire::session(&self.engine, &row));
                        frames.push(self.delta(true, Patch::SessionPut { session }));
                    }
                }
                Change::Record {
                    sequence,
                    item,
                    state,
                } => {
                    if let Event::Started { epoch } = item.event.event {
                        self.epoch = Some(epoch);
                    }
                    self.sequence = sequence;
                    if let Some(item) = to_wire::item(item.position, &item.event) {
                        frames.push(self.delta(false, Patch::ItemPut { item }));
                    }
                    if let Event::Stopped { reason } = item.event.event {
                        terminal = Some(FromHost::SessionTerminal {
                            session_id: self.session.to_string(),
                            epoch: self.epoch.map(|epoch| epoch.to_string()),
                            sequence,
                            reason: reason.as_str().to_owned(),
                        });
                    }
                    self.sequence = sequence + 1;
                    newest = Some(state);
                }
            }
        }
        if let Some(state) = newest {
            for queue in &state.queues {
                if self.revisions.insert(queue.id, queue.revision) != Some(queue.revision) {
                    let patch = Patch::QueuePut {
                        queue: to_wire::queue(queue),
                    };
                    frames.push(self.delta(false, patch));
                }
            }
            if let Ok(row) = self.engine.row_as_of(&state) {
                let session = Box::new(to_wire::session(&self.engine, &row));
                frames.push(self.delta(false, Patch::SessionPut { session }));
            }
        }
        frames.extend(terminal);
        Given::Frames(frames)
    }

    /// Streamed text in pieces that fit into a frame.
    fn pieces(&self, turn: u32, step: u32, offset: usize, text: &str, out: &mut Vec<FromHost>) {
        let mut at = 0;
        while at < text.len() {
            let mut end = (at + PIECE).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let patch = Patch::ItemText {
                turn,
                step,
                offset: (offset + at) as u64,
                text: text[at..end].to_owned(),
            };
            out.push(self.delta(true, patch));
            at = end;
        }
    }

    fn delta(&self, live: bool, patch: Patch) -> FromHost {
        FromHost::Delta(Box::new(Delta {
            stream: Stream::Session,
            epoch: self.epoch.map(|epoch| epoch.to_string()),
            sequence: self.sequence,
            session_id: self.session.to_string(),
            live,
            patch,
        }))
    }
}

/// The rows of a tree, or of all sessions.
pub(crate) fn rows(
    engine: &EngineHandle,
    root: Option<SessionId>,
) -> Result<Vec<SessionRow>, EngineError> {
    match root {
        None => engine.rows(RowFilter::All),
        Some(asked) => {
            let row = engine.row(asked)?;
            let rows = engine.rows(RowFilter::Tree(row.root))?;
            if row.root == asked {
                return Ok(rows);
            }
            // Birth order: a parent stands before its children.
            let mut inside = std::collections::HashSet::from([asked]);
            let mut kept = Vec::new();
            for row in rows {
                let below = row
                    .view
                    .summary
                    .parents
                    .iter()
                    .any(|id| inside.contains(id));
                if below || row.session == asked {
                    inside.insert(row.session);
                    kept.push(row);
                }
            }
            Ok(kept)
        }
    }
}

/// A tree as frames, and what follows: a snapshot with as many rows as it holds, then the others one
/// by one.
pub(crate) fn watch_tree(
    engine: &EngineHandle,
    root: Option<SessionId>,
) -> Result<(Vec<FromHost>, TreeStream), EngineError> {
    let mut stream = TreeStream {
        feed: engine.tree_feed(),
        engine: engine.clone(),
        inside: root.map(|root| HashSet::from([root])),
        sequence: 0,
    };
    let mut sessions = Vec::new();
    let mut others = Vec::new();
    let mut bytes = 0;
    for row in rows(engine, root)? {
        if let Some(inside) = &mut stream.inside {
            inside.insert(row.session);
        }
        let session = to_wire::session(engine, &row);
        bytes += encoded_len(&session);
        if bytes > FRAME_LIMIT / 2 && !sessions.is_empty() {
            let patch = Patch::TreeRow {
                session: Box::new(session),
            };
            others.push(stream.delta(row.session, patch));
        } else {
            sessions.push(session);
        }
    }
    let mut frames = vec![FromHost::Snapshot(Box::new(Snapshot {
        stream: Stream::Tree,
        epoch: None,
        sequence: 0,
        sessions,
        history: Vec::new(),
        more_history: false,
        running: None,
        queues: Vec::new(),
    }))];
    frames.append(&mut others);
    Ok((frames, stream))
}

/// What follows a tree's snapshot.
pub(crate) struct TreeStream {
    engine: EngineHandle,
    feed: TreeFeed,
    /// The sessions whose rows are wanted, growing with their children; none for all.
    inside: Option<HashSet<SessionId>>,
    sequence: u64,
}

impl TreeStream {
    /// Sends what follows until nobody takes it.
    pub(crate) async fn send_to(mut self, outbox: mpsc::Sender<FromHost>) {
        loop {
            for frame in self.next().await {
                if outbox.send(frame).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Waits for rows that changed. Of each session the latest row is given.
    async fn next(&mut self) -> Vec<FromHost> {
        let changed = self.feed.next().await;
        let mut rows = Vec::with_capacity(changed.len());
        let mut gone = Vec::new();
        for session in changed {
            match self.engine.row(session) {
                Ok(row) => rows.push(row),
                Err(_) => gone.push(session),
            }
        }
        // A parent comes before its children, so that they are known for its.
        rows.sort_by_key(|row| row.view.summary.created_at);
        let mut frames = Vec::with_capacity(rows.len() + gone.len());
        for row in rows {
            if self.wants(&row) {
                let session = Box::new(to_wire::session(&self.engine, &row));
                frames.push(self.delta(row.session, Patch::TreeRow { session }));
            }
        }
        for session in gone {
            if self
                .inside
                .as_mut()
                .is_none_or(|inside| inside.remove(&session))
            {
                frames.push(self.delta(session, Patch::TreeGone {}));
            }
        }
        frames
    }

    fn wants(&mut self, row: &SessionRow) -> bool {
        let Some(inside) = &mut self.inside else {
            return true;
        };
        let parents = &row.view.summary.parents;
        if !inside.contains(&row.session) && !parents.iter().any(|id| inside.contains(id)) {
            return false;
        }
        inside.insert(row.session);
        true
    }

    fn delta(&mut self, session: SessionId, patch: Patch) -> FromHost {
        let sequence = self.sequence;
        self.sequence += 1;
        FromHost::Delta(Box::new(Delta {
            stream: Stream::Tree,
            epoch: None,
            sequence,
            session_id: session.to_string(),
            live: false,
            patch,
        }))
    }
}
