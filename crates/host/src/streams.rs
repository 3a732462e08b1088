//! What an attached viewer is sent: a snapshot, then deltas by topic. Frames that piled up while
//! the socket was busy leave together; nothing is sent on a timer.

use attache_engine::TreeFeed;
use attache_engine::parts::{PageQuery, RowFilter};
use attache_engine::{Change, EngineError, EngineHandle, Observer, SessionRow};
use attache_protocol::{Delta, FromHost, HistoryItem, Patch, Snapshot, Stream};
use attache_session::{Epoch, Event, SessionId, State};

use crate::to_wire;

/// Items of a snapshot's page of history.
const PAGE: usize = 200;

/// Bytes of a snapshot's page of history: older items are left for paging.
const PAGE_BYTES: usize = 512 * 1024;

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
        bytes += item.text.len();
        if bytes > PAGE_BYTES && !history.is_empty() {
            more_history = true;
            break;
        }
        history.push(item);
    }
    history.reverse();
    let row = engine.row(session)?;
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
    observer: Observer,
}

/// What a stream gives.
pub(crate) enum Given {
    /// Frames, and the stream goes on.
    Frames(Vec<FromHost>),
    /// The viewer was too slow: the stream must begin anew.
    Lagged,
}

impl SessionStream {
    /// Waits for what follows.
    pub(crate) async fn next(&mut self) -> Given {
        let changes = self.observer.next().await;
        let mut frames = Vec::with_capacity(changes.len() + 1);
        let mut newest: Option<std::sync::Arc<State>> = None;
        let mut queues = Vec::new();
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
                    let patch = Patch::ItemText {
                        turn,
                        step,
                        offset: offset as u64,
                        text,
                    };
                    frames.push(self.delta(true, patch));
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
                    if let Some(queue) = to_wire::queue_of(&item.event.event)
                        && !queues.contains(&queue)
                    {
                        queues.push(queue);
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
            for queue in queues.into_iter().filter_map(|id| state.queue(id)) {
                let patch = Patch::QueuePut {
                    queue: to_wire::queue(queue),
                };
                frames.push(self.delta(false, patch));
            }
            if let Ok(row) = self.engine.row(self.session) {
                let session = Box::new(to_wire::session(&self.engine, &row));
                frames.push(self.delta(false, Patch::SessionPut { session }));
            }
        }
        frames.extend(terminal);
        Given::Frames(frames)
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

/// The snapshot of a tree as a frame.
pub(crate) fn tree_snapshot(
    engine: &EngineHandle,
    root: Option<SessionId>,
) -> Result<FromHost, EngineError> {
    let sessions = rows(engine, root)?
        .iter()
        .map(|row| to_wire::session(engine, row))
        .collect();
    Ok(FromHost::Snapshot(Box::new(Snapshot {
        stream: Stream::Tree,
        epoch: None,
        sequence: 0,
        sessions,
        history: Vec::new(),
        more_history: false,
        running: None,
        queues: Vec::new(),
    })))
}

/// What follows a tree's snapshot.
pub(crate) struct TreeStream {
    pub(crate) engine: EngineHandle,
    pub(crate) feed: TreeFeed,
    /// The root whose rows are wanted; none for all.
    pub(crate) root: Option<SessionId>,
    pub(crate) sequence: u64,
}

impl TreeStream {
    /// Waits for rows that changed. Of each session the latest row is given.
    pub(crate) async fn next(&mut self) -> Vec<FromHost> {
        let changed = self.feed.next().await;
        let mut frames = Vec::with_capacity(changed.len());
        for session in changed {
            let patch = match self.engine.row(session) {
                Ok(row) if self.root.is_none_or(|root| row.root == root) => Patch::TreeRow {
                    session: Box::new(to_wire::session(&self.engine, &row)),
                },
                Ok(_) => continue,
                Err(_) => Patch::TreeGone {},
            };
            frames.push(FromHost::Delta(Box::new(Delta {
                stream: Stream::Tree,
                epoch: None,
                sequence: self.sequence,
                session_id: session.to_string(),
                live: false,
                patch,
            })));
            self.sequence += 1;
        }
        frames
    }
}
