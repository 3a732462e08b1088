//! The rows of a tree, or of all sessions: a snapshot, then each row that has changed. Of each session the latest wins.

use std::collections::HashSet;

use attache_engine::parts::RowFilter;
use attache_engine::{EngineError, EngineHandle, SessionRow, TreeFeed};
use attache_protocol::{Delta, FRAME_LIMIT, FromHost, Patch, Snapshot, Stream, encoded_len};
use attache_session::SessionId;

use crate::to_wire;

/// The rows of a tree, or of all sessions; only those `within` a session's subtree, if one is given.
pub(crate) fn rows(
    engine: &EngineHandle,
    root: Option<SessionId>,
    within: Option<SessionId>,
) -> Result<Vec<SessionRow>, EngineError> {
    let Some(asked) = root.or(within) else {
        return engine.rows(RowFilter::All);
    };
    let row = engine.row(asked)?;
    let mut rows = engine.rows(RowFilter::Tree(row.root))?;
    if let Some(top) = within {
        let mut spawned = Spawned::below(top);
        rows.retain(|row| spawned.takes(row));
    }
    if row.root == asked {
        return Ok(rows);
    }
    // Birth order: a parent stands before its children.
    let mut inside = HashSet::from([asked]);
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

/// A session with all that was spawned below it, as far as it was seen.
struct Spawned(HashSet<SessionId>);

impl Spawned {
    fn below(top: SessionId) -> Self {
        Self(HashSet::from([top]))
    }

    /// Whether a row is of it. Rows come in order of birth.
    fn takes(&mut self, row: &SessionRow) -> bool {
        let takes = self.0.contains(&row.session)
            || row.spawner.is_some_and(|spawner| self.0.contains(&spawner));
        if takes {
            self.0.insert(row.session);
        }
        takes
    }
}

/// A tree as frames, and what follows: a snapshot with as many rows as it holds, then the others one
/// by one. Only what lies `within` a session's subtree is told, if one is given.
pub(crate) fn watch_tree(
    engine: &EngineHandle,
    root: Option<SessionId>,
    within: Option<SessionId>,
) -> Result<(Vec<FromHost>, TreeStream), EngineError> {
    let mut stream = TreeStream {
        feed: engine.tree_feed(),
        engine: engine.clone(),
        inside: root.map(|root| HashSet::from([root])),
        within: within.map(Spawned::below),
        sequence: 0,
    };
    let mut sessions = Vec::new();
    let mut others = Vec::new();
    let mut bytes = 0;
    for row in rows(engine, root, within)? {
        if let Some(inside) = &mut stream.inside {
            inside.insert(row.session);
        }
        if let Some(within) = &mut stream.within {
            within.takes(&row);
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
        detail: None,
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
    /// What may be told; none for all.
    within: Option<Spawned>,
    sequence: u64,
}

impl TreeStream {
    /// Waits for rows that changed. Of each session the latest row is given.
    pub(super) async fn next(&mut self) -> Vec<FromHost> {
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
            let wanted =
                |ids: Option<&mut HashSet<SessionId>>| ids.is_none_or(|ids| ids.remove(&session));
            let told = wanted(self.within.as_mut().map(|within| &mut within.0));
            if wanted(self.inside.as_mut()) && told {
                frames.push(self.delta(session, Patch::TreeGone {}));
            }
        }
        frames
    }

    fn wants(&mut self, row: &SessionRow) -> bool {
        if self
            .within
            .as_mut()
            .is_some_and(|within| !within.takes(row))
        {
            return false;
        }
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
