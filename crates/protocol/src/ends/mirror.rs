//! What a viewer knows of an attached session: folded from snapshot and deltas, and from nothing else. Frames go in, and what
//! is new for the viewer comes out.

use std::cmp::Ordering;

use crate::command::StreamPlace;
use crate::detail::{ChildView, SessionDetail};
use crate::frame::{Delta, FromHost, Patch, Snapshot, Stream};
use crate::history::{EventKind, HistoryItem, RunningItem};
use crate::modal::{ModalEnd, ModalView};
use crate::session::{QueueView, SessionView};

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
    /// The queues have changed.
    Queues,
    /// Something of the rest has changed.
    Detail,
    /// A question to a person is open.
    Asked(Box<ModalView>),
    /// A question that was known has ended.
    Settled {
        /// The question.
        modal: Box<ModalView>,
        /// How it ended.
        end: ModalEnd,
    },
    /// The session's row has changed.
    Session(Box<SessionView>),
    /// The epoch has ended, with its reason.
    Terminal(String),
    /// The stream began anew: what is mirrored now replaces what was. Items that are new for the
    /// viewer follow.
    Fresh,
    /// A frame is missing. Nothing is applied before the next snapshot.
    Lost,
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
    /// The rest of it; none before the first snapshot.
    pub detail: Option<Box<SessionDetail>>,
    epoch: Option<String>,
    /// The number of the frame that is wanted next.
    next: u64,
    is_lost: bool,
}

impl Mirror {
    /// Where it stands, for coming back; none before the first snapshot, and when a frame is missing.
    #[must_use]
    pub fn place(&self) -> Option<StreamPlace> {
        (self.session.is_some() && !self.is_lost).then(|| StreamPlace {
            epoch: self.epoch.clone(),
            sequence: self.next,
        })
    }

    /// Folds a frame in; frames of other streams change nothing.
    pub fn apply(&mut self, frame: FromHost) -> Vec<Seen> {
        match frame {
            FromHost::Snapshot(snapshot) if snapshot.stream == Stream::Session => {
                self.begin(*snapshot)
            }
            FromHost::Delta(delta) if delta.stream == Stream::Session => self.go_on(*delta),
            FromHost::SessionTerminal {
                sequence, reason, ..
            } => self.is_next(sequence).unwrap_or_else(|| {
                self.running = None;
                vec![Seen::Terminal(reason)]
            }),
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
            detail,
            stream: _,
        } = snapshot;
        let before = self.items.last().map(|item| item.position);
        let first_time = self.session.is_none();
        let known = self.running.take();
        self.epoch = epoch;
        self.next = sequence;
        self.is_lost = false;
        self.session = sessions.pop();
        self.queues = queues;
        let before_that = std::mem::replace(&mut self.detail, detail);
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
        // What runs may have been looked at before its result was on record.
        self.calls();
        let is_new = |modal: &&ModalView| {
            let before = before_that.iter().flat_map(|before| &before.modals);
            !before
                .map(|it| &it.modal_id)
                .any(|id| *id == modal.modal_id)
        };
        let open = self.detail.iter().flat_map(|detail| &detail.modals);
        let asked = open.filter(is_new).cloned().map(Box::new);
        seen.extend(asked.map(Seen::Asked));
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

    /// The frame that is wanted next: others are known already, or something is missing.
    fn is_next(&mut self, sequence: u64) -> Option<Vec<Seen>> {
        match sequence.cmp(&self.next) {
            _ if self.is_lost => Some(Vec::new()),
            Ordering::Less => Some(Vec::new()),
            Ordering::Greater => {
                self.is_lost = true;
                Some(vec![Seen::Lost])
            }
            Ordering::Equal => {
                self.next = self.next.saturating_add(1);
                None
            }
        }
    }

    fn go_on(&mut self, delta: Delta) -> Vec<Seen> {
        let Delta {
            epoch,
            sequence,
            patch,
            ..
        } = delta;
        if let Some(seen) = self.is_next(sequence) {
            return seen;
        }
        if epoch != self.epoch {
            self.epoch = epoch;
            self.running = None;
        }
        match patch {
            Patch::ItemPut { item } => {
                let newest = self.items.last().map(|last| last.position);
                if newest.is_some_and(|newest| newest >= item.position) {
                    // The snapshot had it.
                    return Vec::new();
                }
                let streamed = match (&mut self.running, item.kind) {
                    (Some(running), EventKind::Assistant) if item.turn == Some(running.turn) => {
                        std::mem::take(&mut running.text).len()
                    }
                    _ => 0,
                };
                self.items.push(item.clone());
                if matches!(item.kind, EventKind::ToolCall | EventKind::ToolResult) {
                    self.calls();
                }
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
                let known = |other: &&mut QueueView| other.queue_id == queue.queue_id;
                match self.queues.iter_mut().find(known) {
                    Some(known) => *known = queue,
                    None => self.queues.push(queue),
                }
                vec![Seen::Queues]
            }
            Patch::QueueGone { queue_id } => {
                self.queues.retain(|queue| queue.queue_id != queue_id);
                vec![Seen::Queues]
            }
            Patch::SessionPut { session } => {
                self.session = Some((*session).clone());
                vec![Seen::Session(session)]
            }
            Patch::TreeRow { .. } | Patch::TreeGone {} => Vec::new(),
            patch => self.detail(patch),
        }
    }

    /// A part of the rest is another one.
    fn detail(&mut self, patch: Patch) -> Vec<Seen> {
        let Some(detail) = self.detail.as_deref_mut() else {
            return Vec::new();
        };
        match patch {
            Patch::InformationPut { information } => detail.information = *information,
            Patch::UsagePut { usage } => detail.usage = usage,
            Patch::ToolsPut { tools } => detail.tools = tools,
            Patch::ViewersPut { viewers } => detail.viewers = viewers,
            Patch::RetentionPut { retention } => detail.retention = retention,
            Patch::OwnershipPut { ownership } => detail.ownership = ownership,
            Patch::ChildPut { child } => {
                let known = |other: &&mut ChildView| other.session_id == child.session_id;
                match detail.children.iter_mut().find(known) {
                    Some(known) => *known = child,
                    None => detail.children.push(child),
                }
            }
            Patch::ModalPut { modal } => {
                if detail
                    .modals
                    .iter()
                    .any(|known| known.modal_id == modal.modal_id)
                {
                    return Vec::new();
                }
                detail.modals.push((*modal).clone());
                return vec![Seen::Asked(modal)];
            }
            Patch::ModalGone { modal_id, end, .. } => {
                let place = detail.modals.iter().position(|it| it.modal_id == modal_id);
                let gone = place.map(|place| Box::new(detail.modals.remove(place)));
                let settled = gone.map(|modal| Seen::Settled { modal, end });
                return settled.into_iter().collect();
            }
            Patch::ItemPut { .. }
            | Patch::ItemText { .. }
            | Patch::QueuePut { .. }
            | Patch::QueueGone { .. }
            | Patch::SessionPut { .. }
            | Patch::TreeRow { .. }
            | Patch::TreeGone {} => return Vec::new(),
        }
        vec![Seen::Detail]
    }

    /// The tools that run are those of the running turn that have no result yet.
    fn calls(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        let of_turn = |item: &&HistoryItem| item.turn == Some(running.turn);
        let results = self.items.iter().filter(of_turn);
        let results = results.filter(|item| item.kind == EventKind::ToolResult);
        let settled: Vec<&Option<String>> = results.map(|item| &item.call_id).collect();
        let calls = self.items.iter().filter(of_turn);
        let calls = calls.filter(|item| item.kind == EventKind::ToolCall);
        let open = calls.filter(|item| !settled.contains(&&item.call_id));
        running.calls = open.filter_map(|item| item.name.clone()).collect();
    }

    /// Text of a step behind the running one begins a new running item, that of one before it is over; a piece that was
    /// seen in part is taken from where it goes on.
    fn text(&mut self, turn: u32, step: u32, offset: u64, text: String) -> Vec<Seen> {
        let known = self.running.as_ref();
        if known.is_some_and(|known| (turn, step) < (known.turn, known.step)) {
            return Vec::new();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames with the numbers that a host gives them.
    #[derive(Default)]
    struct Host(u64);

    impl Host {
        fn text(&mut self, step: u32, offset: u64, text: &str) -> FromHost {
            self.delta(
                true,
                Patch::ItemText {
                    turn: 1,
                    step,
                    offset,
                    text: text.to_owned(),
                },
            )
        }

        fn item(&mut self, position: u64, text: &str) -> FromHost {
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
            self.delta(false, Patch::ItemPut { item })
        }

        fn delta(&mut self, live: bool, patch: Patch) -> FromHost {
            self.0 += 1;
            FromHost::Delta(Box::new(Delta {
                stream: Stream::Session,
                epoch: None,
                sequence: self.0 - 1,
                session_id: "s".to_owned(),
                live,
                patch,
            }))
        }

        fn snapshot(&self, items: &[FromHost], running: &str) -> FromHost {
            let history = items.iter().filter_map(|frame| match frame {
                FromHost::Delta(delta) => match &delta.patch {
                    Patch::ItemPut { item } => Some(item.clone()),
                    _ => None,
                },
                _ => None,
            });
            FromHost::Snapshot(Box::new(Snapshot {
                stream: Stream::Session,
                epoch: None,
                sequence: self.0,
                sessions: Vec::new(),
                history: history.collect(),
                more_history: false,
                running: Some(RunningItem {
                    turn: 1,
                    step: 1,
                    text: running.to_owned(),
                    calls: Vec::new(),
                }),
                queues: Vec::new(),
                detail: None,
            }))
        }
    }

    fn shown(mirror: &mut Mirror, frames: impl IntoIterator<Item = FromHost>) -> String {
        let seen = frames.into_iter().flat_map(|frame| mirror.apply(frame));
        let text = |seen| match seen {
            Seen::Text(text) => text,
            Seen::Item { item, streamed } => item.text[streamed..].to_owned(),
            _ => String::new(),
        };
        seen.map(text).collect()
    }

    #[test]
    fn text_is_seen_once_whether_it_streams_or_comes_as_a_record() {
        let mut host = Host::default();
        let mut mirror = Mirror::default();
        let frames = [
            host.text(1, 0, "ab"),
            host.text(1, 1, "bc"),
            host.text(1, 0, "abc"),
            host.text(1, 9, "lost"),
            host.item(10, "abcdef"),
            host.item(10, "abcdef"),
            host.text(2, 0, "next"),
            host.item(12, "next"),
        ];
        assert_eq!(shown(&mut mirror, frames), "abcdefnext");
        assert_eq!(mirror.items.len(), 2);
    }

    #[test]
    fn a_frame_that_comes_twice_changes_nothing_and_one_that_is_missing_is_noticed() {
        let mut host = Host::default();
        let mut mirror = Mirror::default();
        let frames: Vec<FromHost> = (1..=4).map(|number| host.item(number, "x")).collect();
        assert_eq!(shown(&mut mirror, frames[..2].to_vec()), "xx");
        assert_eq!(shown(&mut mirror, frames[..2].to_vec()), "");
        assert_eq!(mirror.apply(frames[3].clone()), [Seen::Lost]);
        assert_eq!(mirror.place(), None);
        // Nothing of what follows is built on what is missing.
        assert_eq!(shown(&mut mirror, frames[2..].to_vec()), "");
        let snapshot = host.snapshot(&frames, "");
        assert_eq!(shown(&mut mirror, [snapshot, host.item(5, "y")]), "xxy");
        assert_eq!(mirror.items.len(), 5);
    }

    #[test]
    fn a_viewer_that_comes_in_the_middle_sees_the_text_so_far() {
        let mut host = Host::default();
        let mut mirror = Mirror::default();
        let frames = [
            host.snapshot(&[], "pl"),
            host.text(1, 2, "a"),
            host.snapshot(&[], "plai"),
            host.item(10, "plain"),
        ];
        assert_eq!(shown(&mut mirror, frames), "plain");
    }

    #[test]
    fn a_tool_runs_until_its_result_is_there() {
        let mut host = Host::default();
        let mut mirror = Mirror::default();
        mirror.apply(host.text(1, 0, "let me look"));
        let item = |mut frame: FromHost, tool: EventKind, call: &str, name: Option<&str>| {
            if let FromHost::Delta(delta) = &mut frame
                && let Patch::ItemPut { item } = &mut delta.patch
            {
                item.kind = tool;
                item.call_id = Some(call.to_owned());
                item.name = name.map(str::to_owned);
            }
            frame
        };
        let mut runs = |mirror: &mut Mirror, position, tool, call, name| {
            let frame = item(host.item(position, "{}"), tool, call, name);
            mirror.apply(frame);
            mirror.running.as_ref().unwrap().calls.clone()
        };
        let (asks, says) = (EventKind::ToolCall, EventKind::ToolResult);
        assert_eq!(runs(&mut mirror, 1, asks, "a", Some("look")), ["look"]);
        assert_eq!(
            runs(&mut mirror, 2, asks, "b", Some("read")),
            ["look", "read"]
        );
        assert_eq!(runs(&mut mirror, 3, says, "a", None), ["read"]);
        assert!(runs(&mut mirror, 4, says, "b", None).is_empty());
    }

    #[test]
    fn what_the_snapshot_holds_already_is_not_taken_twice() {
        let mut host = Host::default();
        let mut mirror = Mirror::default();
        let settled = host.item(10, "settled");
        let snapshot = host.snapshot(std::slice::from_ref(&settled), "run");
        // The host may say again what came shortly before: an item, and text of a step that was given up.
        let again = host.item(10, "settled");
        let given_up = host.text(0, 0, "given up");
        let frames = [snapshot, again, given_up, host.text(1, 1, "unn")];
        assert_eq!(shown(&mut mirror, frames), "settledrunn");
    }
}
