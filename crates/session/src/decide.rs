//! What a command does to a state: the one entrance, and the draft that all rules write into.
//!
//! The rules are grouped by topic: [`bounds`] (limits of a tree), [`settings`], [`input`] (queues), [`run`] (turns), [`lifecycle`] (epochs),
//! [`lineage`] (children, holds, watches, sending), [`mail`] (taking) and [`modals`] (questions to a person). After each of them the
//! same two steps follow: a live session with deliverable input starts a turn, and a session that
//! has settled tells its watchers. Both are part of the same append as their cause.

mod bounds;
mod input;
mod lifecycle;
mod lineage;
mod mail;
mod modals;
mod run;
mod settings;

pub use self::mail::notice_header;

use std::sync::Arc;

use crate::command::{Answer, Command, Decision, Effect, Expect, Rejected, Starts};
use crate::event::{Event, Stamped};
use crate::id::{Ids, SessionId, TurnId};
use crate::mail::{MailBody, NewMail, Notice, Told};
use crate::queue::{Origin, takeable};
use crate::state::State;
use crate::time::{Clock, Timestamp};

/// Decides a command: the events, mail and effects that it causes, or why it is refused. The state
/// is not changed; `now` is the wall clock and `ids` makes fresh ids.
///
/// # Errors
///
/// [`Rejected`] when the command cannot be carried out in this state.
pub fn decide(
    state: &State,
    command: &Command,
    now: Timestamp,
    ids: &mut dyn Ids,
) -> Result<Decision, Rejected> {
    decide_within(state, command, Starts::All, now, ids)
}

/// The same while not all turns may start.
///
/// # Errors
///
/// [`Rejected`] when the command cannot be carried out in this state.
pub fn decide_within(
    state: &State,
    command: &Command,
    starts: Starts,
    now: Timestamp,
    ids: &mut dyn Ids,
) -> Result<Decision, Rejected> {
    let mut draft = Draft::new(state, now);
    let answer = match command {
        Command::Enqueue {
            item,
            queue,
            text,
            origin,
        } => input::enqueue(&mut draft, *item, *queue, text, origin, ids),
        Command::Edit {
            item,
            text,
            expected,
        } => input::edit(&mut draft, *item, text, *expected),
        Command::Withdraw { item, expected } => input::withdraw(&mut draft, *item, *expected),
        Command::Acknowledge { items } => input::acknowledge(&mut draft, items),
        Command::Move {
            item,
            queue,
            before,
            expected,
        } => input::relocate(&mut draft, *item, *queue, *before, *expected),
        Command::CreateQueue { name, immediacy } => {
            input::create_queue(&mut draft, name.as_ref(), *immediacy)
        }
        Command::ConfigureQueue {
            queue,
            immediacy,
            expected,
        } => input::configure_queue(&mut draft, *queue, *immediacy, *expected),
        Command::DeleteQueue { queue, expected } => {
            input::delete_queue(&mut draft, *queue, *expected)
        }
        Command::Start { epoch } => lifecycle::start(&mut draft, *epoch),
        Command::Stop { reason, partial } => {
            lifecycle::stop(&mut draft, *reason, &[], partial.as_ref(), ids);
            Ok(Answer::Done)
        }
        Command::StopUnviewed {
            held_by,
            waited_for,
            partial,
        } => Ok(lifecycle::stop_unviewed(
            &mut draft,
            held_by,
            waited_for,
            partial.as_ref(),
            ids,
        )),
        Command::EndWith { parents, partial } => Ok(lifecycle::end_with(
            &mut draft,
            parents,
            partial.as_ref(),
            ids,
        )),
        Command::Recover { partial } => lifecycle::recover(&mut draft, partial.as_ref(), ids),
        Command::RecordStep { turn, step, calls } => {
            run::record_step(&mut draft, *turn, step, calls)
        }
        Command::RecordResults { turn, results } => run::record_results(&mut draft, *turn, results),
        Command::Note { turn, code, text } => run::note(&mut draft, *turn, code, text),
        Command::Compact {
            turn,
            cut,
            step,
            restated,
            before,
        } => run::compact(&mut draft, *turn, *cut, step, restated, *before),
        Command::SetBounds { change, paused } => Ok(bounds::set(&mut draft, change, *paused)),
        Command::Set { setting } => settings::set(&mut draft, setting),
        Command::NearlySpent { limit, used, most } => {
            Ok(bounds::nearly_spent(&mut draft, *limit, *used, *most, ids))
        }
        Command::TellParents { turn, code, text } => {
            run::tell_parents(&mut draft, *turn, code, text, ids)
        }
        Command::RaiseModal { modal } => modals::raise(&mut draft, modal),
        Command::AnswerModal { modal, answer, by } => {
            modals::answer(&mut draft, *modal, answer, by)
        }
        Command::ExpireModal { modal } => Ok(modals::expire(&mut draft, *modal)),
        Command::Undeliverable { item, to, text } => {
            Ok(mail::undeliverable(&mut draft, *item, *to, text, ids))
        }
        Command::EndTurn {
            turn,
            reason,
            step,
            error,
        } => run::end_turn(
            &mut draft,
            *turn,
            *reason,
            step.as_ref(),
            error.as_ref(),
            ids,
        ),
        Command::Cancel { reason, watches } => run::cancel(&mut draft, *reason, *watches),
        Command::Spawn { call, child } => lineage::spawn(&mut draft, call.as_ref(), child, ids),
        Command::Acquire { child } => lineage::acquire(&mut draft, *child),
        Command::Release { child } => lineage::release(&mut draft, *child),
        Command::Send {
            to,
            epoch,
            item,
            text,
            immediate,
        } => lineage::send(&mut draft, *to, *epoch, *item, text, *immediate),
        Command::Watch {
            watch,
            target,
            message,
            settled,
        } => lineage::watch(
            &mut draft,
            *watch,
            *target,
            message.as_ref(),
            settled.as_ref(),
            ids,
        ),
        Command::Take {
            mail,
            viewed,
            living,
        } => mail::take(&mut draft, mail, *viewed, living, ids),
    }?;
    draft.start_turn(starts);
    draft.tell_watchers();
    Ok(draft.finish(answer))
}

/// A decision in the making: the state as it will be, and all that the append will hold.
struct Draft {
    state: State,
    clock: Clock,
    events: Vec<Stamped>,
    mail: Vec<NewMail>,
    taken: Vec<crate::mail::MailId>,
    births: Vec<crate::birth::Birth>,
    links: Vec<SessionId>,
    expects: Vec<Expect>,
    effects: Vec<Effect>,
}

impl Draft {
    fn new(state: &State, now: Timestamp) -> Self {
        Self {
            clock: Clock::new(now, state.last_at),
            state: state.clone(),
            events: Vec::new(),
            mail: Vec::new(),
            taken: Vec::new(),
            births: Vec::new(),
            links: Vec::new(),
            expects: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// Says that something happened; later rules of the same decision see it.
    fn push(&mut self, event: Event) {
        let (at, observed) = self.clock.stamp();
        let stamped = Stamped {
            at,
            observed,
            event,
        };
        self.state.apply(&stamped);
        self.events.push(stamped);
    }

    /// Writes mail, and wakes its receiver once it is durable.
    fn post(&mut self, to: SessionId, body: MailBody) {
        self.mail.push(NewMail { to, body });
        let wake = Effect::Wake { session: to };
        if !self.effects.contains(&wake) {
            self.effects.push(wake);
        }
    }

    /// A live session with deliverable input and no turn starts one and takes all of it.
    fn start_turn(&mut self, starts: Starts) {
        if !self.state.is_live() || self.state.turn.is_some() || starts == Starts::None {
            return;
        }
        if !self.state.runs_turns() {
            return;
        }
        let mut ready = takeable(&self.state.queues, None);
        if starts == Starts::Notices {
            ready.retain(|(_, item)| matches!(item.origin, Origin::Notice { .. }));
        }
        if ready.is_empty() {
            return;
        }
        let turn = TurnId(self.state.last_turn.0 + 1);
        self.push(Event::TurnStarted { turn });
        for (queue, item) in ready {
            self.push(Event::Consumed { turn, queue, item });
        }
        self.effects.push(Effect::RunTurn { turn });
    }

    /// A session that has settled tells whoever asked to be told, each once. For a live one the
    /// store checks that no mail lies unread: what was sent before the end counts as work. What
    /// lies unread in a stopped one is none, and notices stay there until it is started.
    fn tell_watchers(&mut self) {
        if self.state.watchers.is_empty() || !self.state.is_settled() {
            return;
        }
        let me = self.state.id;
        for watcher in self.state.watchers.clone() {
            if watcher.session == me {
                continue;
            }
            let notice = self.notice(watcher.watch, watcher.message.as_ref());
            self.push(Event::WatcherRemoved {
                watch: watcher.watch,
            });
            self.post(watcher.session, MailBody::Notice(notice));
            if self.state.is_live() && !self.expects.contains(&Expect::NoOtherMail) {
                self.expects.push(Expect::NoOtherMail);
            }
        }
    }

    /// What there is to tell of this session now.
    fn notice(&self, watch: crate::id::WatchId, message: Option<&Arc<str>>) -> Notice {
        Notice {
            watch,
            message: message.cloned(),
            outcome: self.state.outcome(),
            end_reason: self.state.end_reason,
            stopped: !self.state.is_live(),
            told: self.state.result.as_ref().map(|text| Told {
                text: Arc::clone(text),
                earlier: self.state.result_earlier,
            }),
        }
    }

    fn finish(self, answer: Answer) -> Decision {
        let Self {
            events,
            mail,
            taken,
            births,
            links,
            expects,
            effects,
            ..
        } = self;
        Decision {
            events,
            mail,
            taken,
            births,
            links,
            expects,
            effects,
            answer,
        }
    }
}
