//! What an engine says of a session, as patches of the protocol.

use std::collections::HashMap;
use std::sync::Arc;

use attache_engine::{Change, EngineHandle, Observer, Snapshot};
use attache_protocol::Patch;
use attache_session::{Epoch, Event, QueueId, SessionId, State};

use super::detail::ToldDetail;
use crate::{modals, to_wire};

/// Bytes of a piece of streamed text; escaped it may take six times as many.
const PIECE: usize = 64 * 1024;

/// See the module.
pub(super) struct Feed {
    engine: EngineHandle,
    session: SessionId,
    pub(super) observer: Observer,
    /// Revisions of the queues as they were told last.
    revisions: HashMap<QueueId, u32>,
    detail: ToldDetail,
}

/// What a stream is told.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are patches, and none is kept"
)]
pub(super) enum Told {
    /// Something changed; `live` is what is never a record.
    Patch { live: bool, patch: Patch },
    /// What was told so far holds this many records.
    Mark(u64),
    /// The session has an epoch.
    Starts(Epoch),
    /// It has none any more.
    Ends(&'static str),
    /// Too much came before anybody looked: the stream has to begin anew.
    Lagged,
}

impl Feed {
    pub(super) fn new(engine: &EngineHandle, snapshot: &Snapshot, observer: Observer) -> Self {
        let queues = snapshot.state.queues.iter();
        Self {
            engine: engine.clone(),
            session: snapshot.state.id,
            observer,
            revisions: queues.map(|queue| (queue.id, queue.revision)).collect(),
            detail: ToldDetail::of(&snapshot.state),
        }
    }

    /// What there is now; empty when there is nothing new.
    pub(super) fn take(&mut self) -> Vec<Told> {
        let before = self.observer.taken();
        let changes = self.observer.take();
        let mut told = Vec::with_capacity(changes.len() + 2);
        let mut newest: Option<Arc<State>> = None;
        let mut ends = None;
        for (index, change) in changes.into_iter().enumerate() {
            match change {
                Change::Lagged => return vec![Told::Lagged],
                Change::Text {
                    turn,
                    step,
                    offset,
                    text,
                } => pieces(turn, step, offset, &text, &mut told),
                Change::Modal { open, state } => {
                    told.push(Told::Patch {
                        live: false,
                        patch: modals::patch(&open, state),
                    });
                    told.push(Told::Mark(before + index as u64 + 1));
                }
                Change::Note => {
                    if let Ok(row) = self.engine.row(self.session) {
                        let session = Box::new(to_wire::session(&self.engine, &row));
                        let patch = Patch::SessionPut { session };
                        told.push(Told::Patch { live: true, patch });
                    }
                }
                Change::Record { item, state } => {
                    if let Event::Started { epoch } = item.event.event {
                        told.push(Told::Starts(epoch));
                    }
                    if let Some(item) = to_wire::item(item.position, &item.event) {
                        told.push(record(Patch::ItemPut { item }));
                    }
                    if let Event::Stopped { reason, .. } = item.event.event {
                        ends = Some(Told::Ends(reason.as_str()));
                    }
                    told.push(Told::Mark(before + index as u64 + 1));
                    newest = Some(state);
                }
            }
        }
        if let Some(state) = newest {
            self.queues(&state, &mut told);
            let changes = self.detail.changes(&self.engine, &state);
            told.extend(changes.into_iter().map(record));
            if let Ok(row) = self.engine.row_as_of(&state) {
                let session = Box::new(to_wire::session(&self.engine, &row));
                told.push(record(Patch::SessionPut { session }));
            }
        }
        told.extend(ends);
        told
    }

    /// Queues that are other ones than were told.
    fn queues(&mut self, state: &State, told: &mut Vec<Told>) {
        for queue in &state.queues {
            if self.revisions.insert(queue.id, queue.revision) != Some(queue.revision) {
                let queue = to_wire::queue(queue);
                told.push(record(Patch::QueuePut { queue }));
            }
        }
        if self.revisions.len() > state.queues.len() {
            self.revisions.retain(|id, _| {
                let is_there = state.queues.iter().any(|queue| queue.id == *id);
                if !is_there {
                    let queue_id = to_wire::queue_id(*id);
                    told.push(record(Patch::QueueGone { queue_id }));
                }
                is_there
            });
        }
    }
}

fn record(patch: Patch) -> Told {
    Told::Patch { live: false, patch }
}

/// Streamed text in pieces that fit into a frame.
fn pieces(turn: u32, step: u32, offset: usize, text: &str, told: &mut Vec<Told>) {
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
        told.push(Told::Patch { live: true, patch });
        at = end;
    }
}
