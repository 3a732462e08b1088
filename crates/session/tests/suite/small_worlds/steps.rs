//! What can happen in a small world: the commands that a scenario may use, and what comes by itself.

use attache_session::{
    Command, EndReason, ItemId, Mail, MailBody, Notice, QueueId, StopReason, WatchId,
};
use uuid::Uuid;

use super::world::{Broken, Done, World};
use crate::desk::{call, eid, enqueue, result, said, sid};

/// What a command of a scenario is, with sessions by their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Do {
    Input(usize),
    Call(usize),
    Watch(usize, usize),
    Send(usize, usize),
    Acquire(usize, usize),
    Release(usize, usize),
    Stop(usize),
    Shutdown(usize),
    Start(usize),
    Interrupt(usize),
    /// With all below it, and the registrations of them all.
    InterruptTree(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Command(Do),
    /// The same watch, by somebody who has just seen that the target has settled.
    WatchSettled(usize, usize),
    Look(usize),
    Results(usize),
    End(usize),
    /// The end of a tree comes to its next session.
    CancelNext,
    Crash,
}

fn cancel(watches: bool) -> Command {
    Command::Cancel {
        reason: EndReason::Interrupted,
        watches,
    }
}

impl World {
    /// The world after a step, and whether the step changed it.
    pub(super) fn step(&self, step: Step) -> Result<(Self, Done), Broken> {
        let mut world = self.clone();
        let mut done = Done::Yes;
        let watch = |world: &mut Self, a: usize, b: usize, settled: bool| {
            world.commands -= 1;
            world.next_id += 1;
            let watch = WatchId(Uuid::from_u128(world.next_id));
            let target = &world.sessions[b];
            let settled = settled.then(|| Notice {
                told: None,
                watch,
                message: None,
                outcome: target.outcome(),
                end_reason: target.end_reason,
                stopped: !target.is_live() || !world.known[b],
            });
            let target = target.id;
            world.ask(
                a,
                Command::Watch {
                    watch,
                    target,
                    message: None,
                    settled,
                },
            )
        };
        match step {
            Step::Crash => {
                world.crashes -= 1;
                world.known.fill(false);
                world.cancelled.fill(false);
                world.ending.clear();
            }
            Step::Look(index) => {
                world.load(index)?;
                let lives = world.sessions[index].is_live();
                let held = world.held_by_letter(index);
                if let Some(take) = world.take(index) {
                    world.commit(index, take)?;
                }
                let state = &world.sessions[index];
                let holds = state.parents.iter().any(|parent| parent.holds);
                if (lives || held) && holds && !state.is_live() {
                    return Err(format!("session {index} ended by its mail, and is held"));
                }
            }
            Step::Results(index) => {
                let turn = world.sessions[index].last_turn;
                let results = vec![result("call")];
                world.ask(index, Command::RecordResults { turn, results })?;
            }
            Step::End(index) => {
                let turn = world.sessions[index].last_turn;
                let reason = if world.cancelled[index] {
                    EndReason::Interrupted
                } else {
                    EndReason::Completed
                };
                let end = Command::EndTurn {
                    turn,
                    reason,
                    step: None,
                    error: None,
                };
                world.ask(index, end)?;
            }
            Step::CancelNext => {
                if let Some(index) = world.ending.pop_front() {
                    world.ask(index, cancel(true))?;
                }
            }
            Step::WatchSettled(a, b) => done = watch(&mut world, a, b, true)?,
            Step::Command(Do::Watch(a, b)) => done = watch(&mut world, a, b, false)?,
            Step::Command(command) => {
                world.commands -= 1;
                done = world.carry_out(command)?;
            }
        }
        world.check()?;
        Ok((world, done))
    }

    fn carry_out(&mut self, command: Do) -> Result<Done, Broken> {
        self.next_id += 1;
        let fresh = Uuid::from_u128(self.next_id);
        let id = |index: usize| sid(index as u128);
        match command {
            Do::Watch(..) => Ok(Done::No),
            Do::Interrupt(a) => self.ask(a, cancel(false)),
            Do::InterruptTree(a) => {
                let done = self.ask(a, cancel(true))?;
                let below = self.below(a);
                let live = below.filter(|it| self.known[*it] && self.sessions[*it].is_live());
                let live: Vec<usize> = live.collect();
                self.ending.extend(live);
                Ok(done)
            }
            Do::Input(a) => self.ask(a, enqueue(Some(ItemId(fresh)), QueueId::Default, "go")),
            Do::Call(a) => {
                let turn = self.sessions[a].last_turn;
                let step = said("on it");
                let calls = vec![call("call")];
                self.ask(a, Command::RecordStep { turn, step, calls })
            }
            Do::Send(a, b) => {
                let seen = self.sessions[b].epoch.filter(|_| self.known[b]);
                let send = Command::Send {
                    to: id(b),
                    epoch: seen.unwrap_or(eid(999)),
                    item: ItemId(fresh),
                    text: "go".into(),
                    immediate: true,
                };
                self.ask(a, send)
            }
            Do::Acquire(a, b) => self.ask(a, Command::Acquire { child: id(b) }),
            Do::Release(a, b) => self.ask(a, Command::Release { child: id(b) }),
            Do::Stop(a) | Do::Shutdown(a) => {
                let reason = if matches!(command, Do::Stop(_)) {
                    StopReason::Terminated
                } else {
                    StopReason::HostShutdown
                };
                let partial = None;
                self.ask(a, Command::Stop { reason, partial })
            }
            Do::Start(a) => {
                self.started = true;
                let epoch = attache_session::Epoch(fresh);
                self.ask(a, Command::Start { epoch })
            }
        }
    }

    /// Descendants of a session, its children first.
    fn below(&self, top: usize) -> impl Iterator<Item = usize> {
        let mut found = vec![top];
        let mut next = 0;
        while let Some(parent) = found.get(next).copied() {
            next += 1;
            for (child, _) in self.sessions[parent].children.iter() {
                let child = self.index(child.id);
                if !found.contains(&child) {
                    found.push(child);
                }
            }
        }
        found.into_iter().skip(1)
    }

    /// Steps that need nobody's command.
    pub(super) fn free(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (index, state) in self.sessions.iter().enumerate() {
            let cut = state.epoch.is_some() && !self.known[index];
            let mut mail = self.box_of(index).peekable();
            let reads = mail.peek().is_some() && {
                // A stopped session leaves notices that answer an open watch.
                state.is_live() || mail.any(|mail| !self.stays(index, mail))
            };
            if reads || (cut && state.turn.is_some()) {
                steps.push(Step::Look(index));
            }
            if let Some(turn) = &state.turn
                && !cut
            {
                // One that was told to end may still bring the results that it has.
                if turn.calls.is_empty() || self.cancelled[index] {
                    steps.push(Step::End(index));
                }
                if !turn.calls.is_empty() {
                    steps.push(Step::Results(index));
                }
            }
        }
        if !self.ending.is_empty() {
            steps.push(Step::CancelNext);
        }
        steps
    }

    /// Whether a living session says in an unread letter that it holds this one.
    pub(super) fn held_by_letter(&self, index: usize) -> bool {
        self.box_of(index)
            .any(|mail| mail.body == MailBody::Hold && self.known[self.index(mail.from)])
    }

    pub(super) fn stays(&self, index: usize, mail: &Mail) -> bool {
        let state = &self.sessions[index];
        let MailBody::Notice(notice) = &mail.body else {
            return false;
        };
        state.watches.iter().any(|watch| watch.id == notice.watch)
    }

    pub(super) fn bought(&self, alphabet: &[Do]) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.crashes > 0 && self.known.iter().any(|known| *known) {
            steps.push(Step::Crash);
        }
        if self.commands == 0 {
            return steps;
        }
        for command in alphabet {
            match *command {
                Do::Watch(a, b) if a != b && self.settled(b) => {
                    steps.push(Step::WatchSettled(a, b));
                }
                Do::Call(a) => {
                    let turn = self.sessions[a].turn.as_ref();
                    if !self.known[a] || turn.is_none_or(|turn| !turn.calls.is_empty()) {
                        continue;
                    }
                }
                _ => {}
            }
            steps.push(Step::Command(*command));
        }
        steps
    }
}
