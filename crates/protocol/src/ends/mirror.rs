//! What a viewer knows of an attached session or a tree: folded from snapshot and deltas, and from
//! nothing else. Pure: frames go in, and what is new for the viewer comes out.

use std::collections::HashMap;

use attache_protocol::{
    Delta, EventKind, FromHost, HistoryItem, Patch, QueueView, RunningItem, SessionView, Snapshot,
    Stream,
};

/// What is new after a frame.
#[derive(Clone, PartialEq, Debug)]
pub enum Seen {
    /// A stable item. `streamed` is how many bytes of its text were seen before, piece by piece.
    Item {
        /// The item.
        item: Box<HistoryItem>,
        /// Bytes of its text that were seen as pieces.
        streamed: usize,
    },
    /// A piece of the running item's text.
    Text(String),
    /// The session's row has changed.
    Session(Box<SessionView>),
    /// The epoch has ended, with its reason.
    Terminal(String),
    /// The stream began anew: what is mirrored now replaces what was. Items that are new for the
    /// viewer follow.
    Fresh,
    /// The viewer was too slow: items between the last one seen and those that follow were not sent.
    Gap,
}

/// One attached session.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Mirror {
    /// The session's row; none before the first snapshot.
    pub session: Option<SessionView>,
    /// The newest part of the history.
    pub items: Vec<HistoryItem>,
    /// What streams now.
    pub running: Option<RunningItem>,
    /// Its queues.
    pub queues: Vec<QueueView>,
    epoch: Option<String>,
    next: u64,
}

impl Mirror {
    /// Folds a frame in; frames of other streams change nothing.
    pub fn apply(&mut self, frame: FromHost) -> Vec<Seen> {
        match frame {
            FromHost::Snapshot(snapshot) if snapshot.stream == Stream::Session => {
                self.begin(*snapshot)
            }
            FromHost::Delta(delta) if delta.stream == Stream::Session => self.go_on(*delta),
            FromHost::SessionTerminal { reason, .. } => {
                self.running = None;
                vec![Seen::Terminal(reason)]
            }
            _ => Vec::new(),
        }
    }

    fn begin(&mut self, snapshot: Snapshot) -> Vec<Seen> {
        let Snapshot {
            epoch,
            sequence,
            mut sessions,
            history,
            more_history,
            running,
            queues,
            ..
        } = snapshot;
        let before = self.items.last().map(|item| item.position);
        let first_time = self.session.is_none();
        let known = self.running.take();
        self.epoch = epoch;
        self.next = sequence;
        self.session = sessions.pop();
        self.queues = queues;
        self.running = running;
        let mut seen = vec![Seen::Fresh];
        let is_new = |item: &HistoryItem| before.is_none_or(|before| item.position > before);
        if !first_time && more_history && history.first().is_some_and(is_new) {
            seen.push(Seen::Gap);
        }
        // What had streamed of the item that has been settled since.
        let mut streamed = known.as_ref();
        for item in history.iter().filter(|item| is_new(item)) {
            let same = |running: &&RunningItem| {
                item.kind == EventKind::Assistant && item.turn == Some(running.turn) && {
                    let shared = running.text.len().min(item.text.len());
                    running.text.get(..shared) == item.text.get(..shared)
                }
            };
            seen.push(Seen::Item {
                item: Box::new(item.clone()),
                streamed: streamed
                    .take_if(|running| same(running))
                    .map_or(0, |running| running.text.len()),
            });
        }
        self.items = history;
        if let Some(now) = &self.running {
            // What streams was seen in part by a viewer that comes back, and not at all by a new one.
            let from = known
                .filter(|known| (known.turn, known.step) == (now.turn, now.step))
                .map_or(0, |known| known.text.len());
            if let Some(text) = now.text.get(from..).filter(|text| !text.is_empty()) {
                seen.push(Seen::Text(text.to_owned()));
            }
        }
        seen
    }

    fn go_on(&mut self, delta: Delta) -> Vec<Seen> {
        let Delta {
            epoch,
            sequence,
            live,
            patch,
            ..
        } = delta;
        if epoch != self.epoch {
            self.epoch = epoch;
            self.running = None;
        } else if !live
            && sequence < self.next
            && !matches!(patch, Patch::QueuePut { .. } | Patch::SessionPut { .. })
        {
            // Said before: applying the same number twice changes nothing.
            return Vec::new();
        }
        if !live {
            self.next = self.next.max(sequence);
        }
        match patch {
            Patch::ItemPut { item } => {
                self.next = self.next.max(sequence + 1);
                let streamed = match (&mut self.running, item.kind) {
                    (Some(running), EventKind::Assistant) if item.turn == Some(running.turn) => {
                        std::mem::take(&mut running.text).len()
                    }
                    _ => 0,
                };
                self.items.push(item.clone());
                vec![Seen::Item {
                    item: Box::new(item),
                    streamed,
                }]
            }
            Patch::ItemText {
                turn,
                step,
                offset,
                text,
            } => self.text(turn, step, offset, text),
            Patch::QueuePut { queue } => {
                match self
                    .queues
                    .iter_mut()
                    .find(|other| other.queue_id == queue.queue_id)
                {
                    Some(known) => *known = queue,
                    None => self.queues.push(queue),
                }
                Vec::new()
            }
            Patch::SessionPut { session } => {
                self.session = Some((*session).clone());
                vec![Seen::Session(session)]
            }
            Patch::TreeRow { .. } | Patch::TreeGone {} => Vec::new(),
        }
    }

    /// Text of a step that is not the running one begins a new running item; a piece that was seen
    /// in part is taken from where it goes on.
    fn text(&mut self, turn: u32, step: u32, offset: u64, text: String) -> Vec<Seen> {
        let running = match &mut self.running {
            Some(running) if (running.turn, running.step) == (turn, step) => running,
            other => other.insert(RunningItem {
                turn,
                step,
                text: String::new(),
                calls: Vec::new(),
            }),
        };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let known = running.text.len();
        let Some(new) = known.checked_sub(offset).and_then(|seen| text.get(seen..)) else {
            // A gap: a record will bring the whole text.
            return Vec::new();
        };
        if new.is_empty() {
            return Vec::new();
        }
        running.text.push_str(new);
        vec![Seen::Text(new.to_owned())]
    }
}

/// The rows of a tree, in order of birth.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TreeMirror {
    rows: Vec<SessionView>,
    places: HashMap<String, usize>,
}

impl TreeMirror {
    /// Folds a frame in; true when a row has changed.
    pub fn apply(&mut self, frame: &FromHost) -> bool {
        match frame {
            FromHost::Snapshot(snapshot) if snapshot.stream == Stream::Tree => {
                self.rows = snapshot.sessions.clone();
                self.index();
                true
            }
            FromHost::Delta(delta) if delta.stream == Stream::Tree => match &delta.patch {
                Patch::TreeRow { session } => {
                    self.put((**session).clone());
                    true
                }
                Patch::TreeGone {} => {
                    self.rows.retain(|row| row.session_id != delta.session_id);
                    self.index();
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[SessionView] {
        &self.rows
    }

    /// Rows come in no order of their own; a new one goes to its place by birth.
    fn put(&mut self, row: SessionView) {
        if let Some(place) = self.places.get(&row.session_id) {
            self.rows[*place] = row;
            return;
        }
        let place = self
            .rows
            .partition_point(|other| other.created_at <= row.created_at);
        self.rows.insert(place, row);
        self.index();
    }

    fn index(&mut self) {
        self.places = self
            .rows
            .iter()
            .enumerate()
            .map(|(i, row)| (row.session_id.clone(), i))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(step: u32, offset: u64, text: &str) -> FromHost {
        delta(
            true,
            0,
            Patch::ItemText {
                turn: 1,
                step,
                offset,
                text: text.to_owned(),
            },
        )
    }

    fn item(sequence: u64, position: u64, text: &str) -> FromHost {
        let item = HistoryItem {
            position,
            at: String::new(),
            kind: EventKind::Assistant,
            text: text.to_owned(),
            cut: false,
            turn: Some(1),
            call_id: None,
            name: None,
            is_error: false,
            incomplete: false,
            spawned_session_id: None,
            origin: None,
            pictures: Vec::new(),
        };
        delta(false, sequence, Patch::ItemPut { item })
    }

    fn delta(live: bool, sequence: u64, patch: Patch) -> FromHost {
        FromHost::Delta(Box::new(Delta {
            stream: Stream::Session,
            epoch: None,
            sequence,
            session_id: "s".to_owned(),
            live,
            patch,
        }))
    }

    fn shown(seen: &[Seen]) -> String {
        seen.iter()
            .map(|seen| match seen {
                Seen::Text(text) => text.clone(),
                Seen::Item { item, streamed } => item.text[*streamed..].to_owned(),
                _ => String::new(),
            })
            .collect()
    }

    #[test]
    fn text_is_seen_once_whether_it_streams_or_comes_as_a_record() {
        let mut mirror = Mirror::default();
        let frames = [
            text(1, 0, "ab"),
            text(1, 1, "bc"),
            text(1, 0, "abc"),
            text(1, 9, "lost"),
            item(4, 10, "abcdef"),
            item(4, 10, "abcdef"),
            text(2, 0, "next"),
            item(7, 12, "next"),
        ];
        let seen: String = frames
            .into_iter()
            .map(|frame| shown(&mirror.apply(frame)))
            .collect();
        assert_eq!(seen, "abcdefnext");
        assert_eq!(mirror.items.len(), 2);
    }

    #[test]
    fn a_viewer_that_comes_in_the_middle_sees_the_text_so_far() {
        let running = |text: &str| RunningItem {
            turn: 1,
            step: 1,
            text: text.to_owned(),
            calls: Vec::new(),
        };
        let snapshot = |text: &str| {
            FromHost::Snapshot(Box::new(Snapshot {
                stream: Stream::Session,
                epoch: None,
                sequence: 0,
                sessions: Vec::new(),
                history: Vec::new(),
                more_history: false,
                running: Some(running(text)),
                queues: Vec::new(),
            }))
        };
        let mut mirror = Mirror::default();
        let frames = [
            snapshot("pl"),
            text(1, 2, "a"),
            snapshot("plai"),
            item(4, 10, "plain"),
        ];
        let seen: String = frames
            .into_iter()
            .map(|frame| shown(&mirror.apply(frame)))
            .collect();
        assert_eq!(seen, "plain");
    }

    #[test]
    fn of_rows_the_latest_wins() {
        let mut mirror = TreeMirror::default();
        assert!(!mirror.apply(&text(1, 0, "x")));
        let gone = FromHost::Delta(Box::new(Delta {
            stream: Stream::Tree,
            epoch: None,
            sequence: 0,
            session_id: "s".to_owned(),
            live: false,
            patch: Patch::TreeGone {},
        }));
        assert!(mirror.apply(&gone));
        assert!(mirror.rows().is_empty());
    }
}
