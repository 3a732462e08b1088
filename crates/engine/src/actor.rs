//! One task owns a session's state: it takes what waits, decides all of it on a copy, commits it
//! as one append, applies, publishes, and starts the effects. It never waits on slow work, and has
//! at most one append in flight.

mod commit;
mod finish;

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use attache_session::{
    Command, EndReason, Epoch, Generation, Mail, Position, SessionId, Starts, State, StepText,
    StopReason,
};
use attache_store::{LogItem, ReadError, Row};
use futures_util::FutureExt;
use tokio::sync::oneshot;

use crate::ask::Shared;
use crate::error::EngineError;
use crate::mailbox::{Failed, Message, SharedMailbox, Taken};
use crate::observe::{Change, Snapshot};
use crate::plan::Work;
use crate::recovery;

/// Most mail that one append takes.
pub(crate) const MAIL_AT_ONCE: usize = 1_000;

/// Events that are read at once while a log is folded; few, because a result may have pictures of 10 MiB.
const FOLD_AT_ONCE: usize = 256;

/// How long an actor waits before it tries again what the store refused and nobody else will ask for:
/// the end of a run, the taking of mail, the end of an earlier life.
const STORAGE_RETRY: Duration = Duration::from_secs(1);

/// Starts the actor of a session whose mailbox says that one is needed.
pub(crate) fn start(shared: Arc<Shared>, session: SessionId, mailbox: SharedMailbox) {
    tokio::spawn(async move {
        let run = run(&shared, session, &mailbox);
        if AssertUnwindSafe(run).catch_unwind().await.is_err() && mailbox.abandon(shared.now()) {
            start(Arc::clone(&shared), session, mailbox);
            return;
        }
        drop(mailbox);
        shared.registry.tidy(session);
    });
}

async fn run(shared: &Arc<Shared>, session: SessionId, mailbox: &SharedMailbox) {
    let mut actor = None;
    // The store knew better than the last one here: what waits is decided by a fresh look.
    let mut lost = None;
    loop {
        let Some(taken) = mailbox.take() else {
            if shared.is_closing() {
                // The end of the host waits until there is nothing to do.
                shared.registry.changed(session);
            }
            if let Some(loaded) = &mut actor {
                match Actor::tend(loaded).await {
                    Tended::Rests => {}
                    Tended::Again => continue,
                    Tended::Later => {
                        rest(mailbox).await;
                        if loaded.look_due {
                            mailbox.look_again();
                        }
                        continue;
                    }
                    Tended::Lost => {
                        (lost, actor) = (Some(Lost::at(&loaded.state)), None);
                        mailbox.look_again();
                        continue;
                    }
                }
            }
            if mailbox.try_leave() {
                if let Some(Actor { state, .. }) = actor {
                    shared.folds.keep(state);
                }
                return;
            }
            mailbox.bell.notified().await;
            continue;
        };
        if actor.is_none() {
            match Actor::load(shared, session, mailbox, lost).await {
                Ok(loaded) => {
                    shared.registry.set_fault(session, None);
                    (actor, lost) = (Some(loaded), None);
                }
                Err(Unloaded { error, again }) => {
                    // Mail for it lies there until it can be loaded; whoever looks sees why.
                    let fault = (!again).then(|| Arc::from(error.message.as_str()));
                    shared.registry.set_fault(session, fault);
                    refuse_all(taken, &error);
                    if again {
                        rest(mailbox).await;
                        mailbox.look_again();
                    }
                    continue;
                }
            }
        }
        if let Some(loaded) = &mut actor
            && loaded.handle(taken).await == Standing::Lost
        {
            (lost, actor) = (Some(Lost::at(&loaded.state)), None);
            // Also where nobody asks: the log may have a turn that nobody runs any more.
            mailbox.look_again();
        }
    }
}

/// Waits for a while, or until something comes in.
async fn rest(mailbox: &SharedMailbox) {
    let _rung = tokio::time::timeout(STORAGE_RETRY, mailbox.bell.notified()).await;
}

/// Whether a state is the fold of the log's beginning. After a deletion, another session may have the id.
fn is_beginning(state: &State, row: &Row) -> bool {
    state.created_at == row.summary.created_at && state.position <= row.head
}

/// Where an actor stood when another owner came in between.
#[derive(Clone, Copy)]
struct Lost {
    epoch: Option<Epoch>,
    position: Position,
}

impl Lost {
    fn at(state: &State) -> Self {
        Self {
            epoch: state.epoch,
            position: state.position,
        }
    }
}

/// What another owner wrote in the epoch that viewers here look at, to its end. What came in a later one is not theirs.
struct Unseen {
    from: Position,
    is_over: bool,
    changes: Vec<Change>,
}

impl Unseen {
    fn of(lost: Lost) -> Self {
        Self {
            from: lost.position,
            is_over: lost.epoch.is_none(),
            changes: Vec::new(),
        }
    }

    fn take(&mut self, item: &LogItem, state: &State) {
        if self.is_over || item.position <= self.from {
            return;
        }
        self.is_over = state.epoch.is_none();
        self.changes.push(Change::Record {
            item: Arc::new(item.clone()),
            state: Arc::new(state.clone()),
        });
    }
}

/// Why a session is not in memory.
struct Unloaded {
    error: EngineError,
    /// The store refused to have the end of an earlier life written down. Others may wait for that
    /// end and for the mail that comes with it, and will not ask for it again.
    again: bool,
}

impl Unloaded {
    /// Another owner came in between.
    fn lost() -> Self {
        let error = EngineError::fenced();
        Self { error, again: true }
    }
}

impl From<EngineError> for Unloaded {
    fn from(error: EngineError) -> Self {
        let again = false;
        Self { error, again }
    }
}

impl From<ReadError> for Unloaded {
    fn from(fault: ReadError) -> Self {
        EngineError::from(fault).into()
    }
}

fn refuse_all(taken: Taken, error: &EngineError) {
    for message in taken.messages {
        match message {
            // A caller that has gone needs no answer.
            Message::Command(ask) => drop(ask.reply.send(Err(error.clone()))),
            Message::Snapshot(reply) => drop(reply.send(Err(error.clone()))),
            Message::Sync(reply) => drop(reply),
        }
    }
}

#[derive(PartialEq, Eq)]
enum Standing {
    Sound,
    Lost,
}

/// What an actor found that has nothing to take.
enum Tended {
    /// Nothing.
    Rests,
    /// It has done something.
    Again,
    /// The store refused what is to be done.
    Later,
    /// Another owner has the session.
    Lost,
}

struct Actor<'a> {
    shared: &'a Arc<Shared>,
    mailbox: &'a SharedMailbox,
    session: SessionId,
    generation: Generation,
    state: State,
    /// The last parent gave it up while a viewer held it: it ends when that one leaves.
    release_due: bool,
    /// Mail could not be read, or the store refused to have it taken; no wake will tell of it again.
    look_due: bool,
    /// Sessions that were removed from the store, as far as this one has tried to reach them.
    removed: HashSet<SessionId>,
}

impl<'a> Actor<'a> {
    /// Folds the session's log, from where an earlier fold stands, and writes down first what an earlier life of the host left
    /// open. `lost` is where it stood when
    /// another owner came in between: whoever then goes on in another epoch has it, and viewers here are told how theirs ended.
    async fn load(
        shared: &'a Arc<Shared>,
        session: SessionId,
        mailbox: &'a SharedMailbox,
        lost: Option<Lost>,
    ) -> Result<Actor<'a>, Unloaded> {
        let store = &shared.config.store;
        let kept = shared.folds.take(session);
        let row = store
            .row(session)?
            .ok_or_else(|| EngineError::unknown(session))?;
        let kept = kept.filter(|kept| lost.is_none() && is_beginning(kept, &row));
        let mut state = kept.unwrap_or_else(|| State::empty(session));
        let mut unseen = lost.map(Unseen::of);
        loop {
            let events = store.events(session, state.position, FOLD_AT_ONCE)?;
            for item in &events {
                state.apply(&item.event);
                if let Some(unseen) = &mut unseen {
                    unseen.take(item, &state);
                }
            }
            if events.len() < FOLD_AT_ONCE {
                break;
            }
            tokio::task::yield_now().await;
        }
        let generation = row.generation;
        let mut actor = Actor {
            shared,
            mailbox,
            session,
            generation,
            state,
            release_due: false,
            look_due: false,
            removed: HashSet::new(),
        };
        if lost.is_some_and(|lost| lost.epoch != actor.state.epoch) {
            shared.registry.set_epoch(session, None);
            if let Some(unseen) = unseen {
                actor.tell(unseen);
            }
            let error = EngineError::fenced();
            return Err(error.into());
        }
        let failed = mailbox.take_failed();
        if actor.state.epoch.is_some() && actor.state.epoch != shared.registry.epoch(session) {
            let partial = recovery::partial(shared, session, &actor.state);
            let (reply, answer) = oneshot::channel();
            let mut recover = Work::own(Command::Recover { partial });
            recover.reply = Some(reply);
            actor.commit(vec![recover]).await;
            // Not written down: a start would find it live and do nothing.
            let answered = answer
                .await
                .unwrap_or_else(|_gone| Err(EngineError::lost()));
            if let Err(error) = answered {
                return Err(Unloaded { error, again: true });
            }
        } else if let Some(turn) = actor.state.turn.as_ref().map(|turn| turn.id)
            && mailbox.running_turn().is_none()
        {
            if failed.is_some() || lost.is_some() {
                actor.end_orphan().await?;
            } else {
                // Just born, with a turn that nobody runs yet.
                actor.run_turn(turn);
            }
        }
        if failed == Some(Failed::Again) {
            let stop = Command::Stop {
                reason: StopReason::Terminated,
                partial: None,
            };
            if actor.commit(vec![Work::own(stop)]).await == Standing::Lost {
                return Err(Unloaded::lost());
            }
        }
        Ok(actor)
    }

    /// Tells viewers here what another owner made of the epoch that they look at, to its end.
    fn tell(&self, unseen: Unseen) {
        if let Some(observation) = self.mailbox.observation() {
            observation.publish(unseen.changes);
        }
        self.shared.changed(self.session);
    }

    /// Does what is due and that nobody will ask for again.
    async fn tend(&mut self) -> Tended {
        if self.has_orphan() {
            return match self.end_orphan().await {
                Err(_lost) => Tended::Lost,
                Ok(()) if self.has_orphan() => Tended::Later,
                Ok(()) => Tended::Again,
            };
        }
        if self.look_due {
            return Tended::Later;
        }
        match self.end_released().await {
            Some(Standing::Lost) => Tended::Lost,
            Some(Standing::Sound) if self.release_due => Tended::Later,
            Some(Standing::Sound) => Tended::Again,
            None => Tended::Rests,
        }
    }

    /// Ends a session whose last parent gave it up while a viewer held it, once that viewer has
    /// left. None when that was not due; it stays due when the store refuses it.
    async fn end_released(&mut self) -> Option<Standing> {
        if !self.release_due || self.mailbox.is_viewed() {
            return None;
        }
        self.release_due = false;
        let held = self.state.parents.iter().any(|parent| parent.holds);
        if held || !self.state.is_live() {
            return None;
        }
        let stop = Command::Stop {
            reason: StopReason::Disposed,
            partial: None,
        };
        let standing = self.commit(vec![Work::own(stop)]).await;
        self.release_due = standing == Standing::Sound && self.state.is_live();
        Some(standing)
    }

    async fn handle(&mut self, taken: Taken) -> Standing {
        let mut works = Vec::with_capacity(taken.messages.len() + 1);
        let mut after = Vec::new();
        let mut look = taken.mail;
        for message in taken.messages {
            match message {
                Message::Command(ask) => {
                    // Who holds it is known only when its mail has been taken.
                    look |= matches!(ask.command, Command::EndWith { .. });
                    works.push(Work::from(ask));
                }
                other => {
                    look |= matches!(other, Message::Sync(_));
                    after.push(other);
                }
            }
        }
        if look && let Some(take) = self.take_mail() {
            self.release_due |= take.releases() && self.mailbox.is_viewed();
            works.insert(0, take);
        } else if look && self.has_kept_back() {
            works.insert(0, self.take_nothing());
        }
        if self.has_orphan() {
            works.insert(0, self.orphan_end());
        }
        if self.shared.is_cutting()
            && works
                .iter()
                .any(|work| matches!(work.command, Command::EndTurn { .. }))
        {
            // In one append: nobody sees it idle in between and takes that for its end.
            works.push(Work::own(Command::Stop {
                reason: StopReason::HostShutdown,
                partial: None,
            }));
        }
        let standing = if works.is_empty() {
            Standing::Sound
        } else {
            self.commit(works).await
        };
        for message in after {
            match message {
                // A caller that has gone needs no answer.
                Message::Snapshot(reply) => drop(reply.send(Ok(self.snapshot()))),
                Message::Sync(reply) => drop(reply.send(())),
                Message::Command(_) => {}
            }
        }
        standing
    }

    /// Whether input waits that could start no turn when it came, and can now.
    fn has_kept_back(&self) -> bool {
        self.state.is_live()
            && self.state.turn.is_none()
            && self.state.deliverable() > 0
            && self.shared.starts(self.session) == Starts::All
    }

    /// Looks at what waits, as after any mail.
    fn take_nothing(&self) -> Work {
        Work::own(Command::Take {
            mail: Vec::new(),
            viewed: self.mailbox.is_viewed(),
            living: Vec::new(),
        })
    }

    /// Whether the log has a turn that nobody runs: the store refused its end.
    fn has_orphan(&self) -> bool {
        self.state.turn.is_some() && self.mailbox.running_turn().is_none()
    }

    fn orphan_end(&self) -> Work {
        let turn = self
            .state
            .turn
            .as_ref()
            .map_or(self.state.last_turn, |turn| turn.id);
        Work::own(Command::EndTurn {
            turn,
            reason: EndReason::StorageError,
            step: None,
            error: Some("the run ended on a fault of the host or its store".into()),
        })
    }

    async fn end_orphan(&mut self) -> Result<(), Unloaded> {
        let end = self.orphan_end();
        match self.commit(vec![end]).await {
            Standing::Sound => Ok(()),
            Standing::Lost => Err(Unloaded::lost()),
        }
    }

    fn take_mail(&mut self) -> Option<Work> {
        let read = self.shared.config.store.mail(self.session, MAIL_AT_ONCE);
        self.look_due = read.is_err();
        let mail = read.unwrap_or_default();
        if mail.len() == MAIL_AT_ONCE {
            let _running = self.mailbox.wake();
        }
        self.take_work(mail)
    }

    fn take_work(&self, mail: Vec<Mail>) -> Option<Work> {
        let viewed = self.mailbox.is_viewed();
        let registry = &self.shared.registry;
        let living = mail
            .iter()
            .map(|letter| letter.from)
            .filter(|from| registry.epoch(*from).is_some())
            .collect();
        (!mail.is_empty()).then(|| {
            Work::own(Command::Take {
                mail,
                viewed,
                living,
            })
        })
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: Arc::new(self.state.clone()),
            epoch: self.state.epoch,
            live: self.mailbox.live.read(Clone::clone),
            window_end: self
                .mailbox
                .observation()
                .map_or(0, |observation| observation.end()),
        }
    }
}

/// The step that a live buffer holds, as what an end of the epoch keeps of it.
pub(crate) fn streamed(mailbox: &SharedMailbox, model: &Arc<str>) -> Option<StepText> {
    mailbox.live.read(|live| {
        let step = StepText {
            text: live.text.as_str().into(),
            reasoning: live.reasoning.as_str().into(),
            model: Arc::clone(model),
            incomplete: true,
            ..StepText::default()
        };
        (!step.is_silent()).then_some(step)
    })
}
