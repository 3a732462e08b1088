//! Bugs that are planted between the two ends of a wire: each is what some mistake of a host or of a viewer's end would come to.
//! The simulation has to find each of them: else a host with that bug would pass.

use std::collections::{BTreeMap, BTreeSet};

use attache_protocol::{Answer, Command, FromHost, FromViewer, Patch, Snapshot, decode, encode};

/// A bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Planted {
    /// An item never comes, and the frames behind it are numbered as if there had been none.
    DeltaLost,
    /// A command that is said again has another id.
    FreshId,
    /// Input is acknowledged and never gets to the host.
    FakedReceipt,
    /// A later snapshot of a session says what an earlier one said.
    StaleSnapshot,
    /// A piece of text comes twice, with the places that belong to that.
    TextTwice,
    /// A refusal is told as done.
    RefusalSwallowed,
    /// Whoever only looks may do anything.
    LooksAndActs,
    /// The name of an attachment is forgotten at once.
    GraceForgotten,
    /// A replay begins behind the frame that is wanted.
    ReplaySkips,
    /// A repeat is answered with another item.
    AnswersDiffer,
    /// The end of an epoch is not told.
    EndUntold,
    /// The stream goes on for whoever has left.
    LeavingIgnored,
}

impl Planted {
    /// Every one.
    pub(crate) const ALL: [Self; 12] = [
        Self::DeltaLost,
        Self::FreshId,
        Self::FakedReceipt,
        Self::StaleSnapshot,
        Self::TextTwice,
        Self::RefusalSwallowed,
        Self::LooksAndActs,
        Self::GraceForgotten,
        Self::ReplaySkips,
        Self::AnswersDiffer,
        Self::EndUntold,
        Self::LeavingIgnored,
    ];
}

/// A bug at work, with what it remembers.
pub(crate) struct Bug {
    kind: Planted,
    /// Ids that viewers have said, and the ids that were made for their repeats.
    ids: BTreeSet<String>,
    fresh: BTreeMap<String, String>,
    snapshots: BTreeMap<String, Snapshot>,
    answers: BTreeSet<String>,
    /// By viewer: the connection that is numbered anew, and by how much.
    shifts: BTreeMap<String, (u64, i64)>,
    /// By viewer: the connection whose next frame is kept back.
    skips: BTreeMap<String, u64>,
    next: u32,
}

impl Bug {
    pub(crate) fn new(kind: Planted) -> Self {
        Self {
            kind,
            ids: BTreeSet::new(),
            fresh: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            answers: BTreeSet::new(),
            shifts: BTreeMap::new(),
            skips: BTreeMap::new(),
            next: 0,
        }
    }

    /// What becomes of a viewer's frame on its way; `answers` is what it hears at once.
    pub(crate) fn viewer_says(
        &mut self,
        frame: FromViewer,
        answers: &mut Vec<FromHost>,
    ) -> Option<FromViewer> {
        let FromViewer::Command {
            mut command_id,
            mut body,
        } = frame
        else {
            return Some(frame);
        };
        let is_repeat = !self.ids.insert(command_id.clone());
        match (self.kind, &mut body) {
            (Planted::FreshId, Command::Enqueue { .. }) if is_repeat => {
                self.next += 1;
                let fresh = format!("fresh-{}", self.next);
                self.fresh.insert(fresh.clone(), command_id);
                command_id = fresh;
            }
            (Planted::FakedReceipt, Command::Enqueue { .. }) if is_repeat => {
                let accepted = Answer::Accepted {
                    item_id: "0".to_owned(),
                    status: attache_protocol::Status::Idle,
                };
                answers.push(FromHost::answer(command_id, accepted));
                return None;
            }
            (Planted::LooksAndActs, Command::Attach { read_only, .. }) => *read_only = false,
            (Planted::GraceForgotten, Command::Attach { resume, .. }) => *resume = None,
            (Planted::LeavingIgnored, Command::Detach { .. }) => {
                let done = Answer::Done { changed: true };
                answers.push(FromHost::answer(command_id, done));
                return None;
            }
            _ => {}
        }
        Some(FromViewer::Command { command_id, body })
    }

    /// What becomes of a line of the host on its way to a viewer.
    pub(crate) fn host_wrote(&mut self, link: u64, viewer: &str, line: Vec<u8>) -> Vec<u8> {
        let Ok(frame) = decode::<FromHost>(line.trim_ascii_end()) else {
            return line;
        };
        let mut way = Vec::new();
        for frame in self.spoilt(link, viewer, frame) {
            way.extend(encode(&frame));
            way.push(b'\n');
        }
        way
    }

    fn spoilt(&mut self, link: u64, viewer: &str, mut frame: FromHost) -> Vec<FromHost> {
        if let FromHost::Answer { command_id, .. }
        | FromHost::OperationError {
            command_id: Some(command_id),
            ..
        } = &mut frame
            && let Some(id) = self.fresh.get(command_id)
        {
            command_id.clone_from(id);
        }
        match (self.kind, &mut frame) {
            (Planted::DeltaLost | Planted::TextTwice, FromHost::Snapshot(_)) => {
                self.shifts.remove(viewer);
            }
            (
                Planted::DeltaLost | Planted::TextTwice,
                FromHost::Delta(_) | FromHost::SessionTerminal { .. },
            ) => return self.renumbered(link, viewer, frame),
            (Planted::StaleSnapshot, FromHost::Snapshot(snapshot)) => {
                let known = snapshot.sessions[0].session_id.clone();
                let known = self.snapshots.entry(known);
                let sequence = snapshot.sequence;
                let epoch = snapshot.epoch.clone();
                **snapshot = known.or_insert_with(|| (**snapshot).clone()).clone();
                snapshot.sequence = sequence;
                snapshot.epoch = epoch;
            }
            (Planted::RefusalSwallowed, FromHost::OperationError { command_id, error }) => {
                if let (Some(id), "revision-conflict") = (command_id, error.code.as_str()) {
                    let done = Answer::Done { changed: true };
                    return vec![FromHost::answer(id.clone(), done)];
                }
            }
            (Planted::AnswersDiffer, FromHost::Answer { command_id, body }) => {
                let is_first = self.answers.insert(command_id.clone());
                if let (Answer::Accepted { item_id, .. }, false) = (&mut **body, is_first) {
                    "another".clone_into(item_id);
                }
            }
            (Planted::EndUntold, FromHost::SessionTerminal { .. }) => return Vec::new(),
            (Planted::ReplaySkips, FromHost::Answer { body, .. }) => {
                if matches!(**body, Answer::Attached { replays: true, .. }) {
                    self.skips.insert(viewer.to_owned(), link);
                }
            }
            (Planted::ReplaySkips, FromHost::Delta(_))
                if self.skips.remove(viewer) == Some(link) =>
            {
                return Vec::new();
            }
            _ => {}
        }
        vec![frame]
    }

    /// A frame of a stream of which one frame is lost, or one comes twice.
    fn renumbered(&mut self, link: u64, viewer: &str, mut frame: FromHost) -> Vec<FromHost> {
        let known = self.shifts.get(viewer).filter(|it| it.0 == link);
        let mut shift = known.map_or(0, |it| it.1);
        let mut frames = Vec::new();
        let shifted = |sequence: u64, shift: i64| sequence.saturating_add_signed(shift);
        match &mut frame {
            FromHost::SessionTerminal { sequence, .. } => *sequence = shifted(*sequence, shift),
            FromHost::Delta(delta) => {
                delta.sequence = shifted(delta.sequence, shift);
                let mut twice = delta.clone();
                match (self.kind, &mut twice.patch) {
                    (Planted::DeltaLost, Patch::ItemPut { .. }) if known.is_none() => {
                        self.shifts.insert(viewer.to_owned(), (link, -1));
                        return Vec::new();
                    }
                    (Planted::TextTwice, Patch::ItemText { offset, text, .. })
                        if known.is_none() =>
                    {
                        *offset += text.len() as u64;
                        twice.sequence += 1;
                        shift = 1;
                        frames.push(FromHost::Delta(twice));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        if shift != 0 {
            self.shifts.insert(viewer.to_owned(), (link, shift));
        }
        frames.insert(0, frame);
        frames
    }
}
